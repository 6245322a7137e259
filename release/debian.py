"""debian.py - packages for Debian of what `make install` puts on a machine: slinc, the library, and what compiles against it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from slincdev.common import REPO, run

sys.path.append(str(REPO / "images"))
import linked  # noqa: E402
from recipe import tool  # noqa: E402

from portable import GLIBC  # noqa: E402

MAINTAINER = "The Slinc project <slinc@slinc.example>"


class Package(NamedTuple):
    """One package: which installed files go in, by patterns below the stage."""

    name: str
    section: str
    summary: str
    patterns: list[str]
    depends: str = ""


def wanted(stage: Path, triplet: str, version: str) -> list[Package]:
    """The packages; the library's has the number of its interface in its name."""
    soname = next(path.name for path in sorted((stage / "usr/lib" / triplet).glob("libslinc-slurm.so.*")) if path.name.count(".") == 2)
    library = f"libslinc-slurm{soname.rpartition('.')[2]}"
    return [
        Package("slinc", "admin", "Slurm and Kubernetes as one system: the program and the plugin of kubectl",
                ["usr/bin/slinc", "usr/bin/kubectl*", "usr/share/man/man1/*", "usr/share/bash-completion/**/*"]),
        Package(library, "libs", "client of slurmrestd", [f"usr/lib/{triplet}/libslinc-slurm.so.*"]),
        Package("libslinc-slurm-dev", "libdevel", "client of slurmrestd: headers and static library",
                ["usr/include/**/*", f"usr/lib/{triplet}/libslinc-slurm.so", f"usr/lib/{triplet}/*.a", f"usr/lib/{triplet}/pkgconfig/*",
                 "usr/share/man/man3/*", "usr/share/doc/libslinc-slurm/**/*"], f"{library} (= {debian_version(version)})"),
    ]  # fmt: skip


def debian_version(version: str) -> str:
    """1.0.0-rc.1 comes before 1.0.0."""
    return version.replace("-", "~")


def make(dist: Path, work: Path, stage: Path, source: Path, version: str, arch: str, triplet: str, epoch: int) -> list[Path]:
    """Writes the packages of one architecture into dist/debian. The environment names architecture and sysroot."""
    made = []
    (dist / "debian").mkdir(parents=True, exist_ok=True)
    for package in wanted(stage, triplet, version):
        tree = work / f"{package.name}-{arch}"
        files = _copy(stage, tree, package.patterns)
        doc = tree / "usr/share/doc" / package.name
        doc.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "LICENSE", doc / "copyright")
        (doc / "copyright").chmod(0o644)
        depends = ", ".join(filter(None, [package.depends, *_depends(files)]))
        size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) >> 10
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(
            f"Package: {package.name}\nVersion: {debian_version(version)}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\n"
            f"Installed-Size: {size}\nSection: {package.section}\nPriority: optional\n"
            + (f"Depends: {depends}\n" if depends else "")
            + f"Description: {package.summary}\n"
        )
        if package.section == "libs":
            (tree / "DEBIAN/triggers").write_text("activate-noawait ldconfig\n")
        for path in sorted(tree.rglob("*"), reverse=True):
            os.utime(path, (epoch, epoch), follow_symlinks=False)
        out = dist / "debian" / f"{package.name}_{debian_version(version)}_{arch}.deb"
        run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, out], env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
        made.append(out)
    return made


def _copy(stage: Path, tree: Path, patterns: list[str]) -> list[Path]:
    """Copies what the patterns name, programs and libraries without symbols; gives those with code in them."""
    code = []
    for path in sorted({path for pattern in patterns for path in stage.glob(pattern)}):
        out = tree / path.relative_to(stage)
        out.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            out.symlink_to(os.readlink(path))
        elif path.is_file():
            shutil.copy(path, out)
            out.chmod(0o755 if os.access(path, os.X_OK) and ".so" not in path.name else 0o644)
            if path.name == "slinc" or re.search(r"\.so\.\d", path.name):
                run([tool("strip"), "--strip-unneeded", out])
                code.append(out)
    return code


def _depends(files: list[Path]) -> list[str]:
    """The packages whose libraries these files name. Debian 13 has some under other names, which provide the old ones."""
    names = {name for path in files for name in linked.dynamic(path)[1]}
    found = {"libc6 (>= 2.34)"} if names else set()
    for name in sorted(name for name in names if not GLIBC.fullmatch(name)):
        found.add(linked.owner(linked.find(name, Path(name))))
    return sorted(found)
