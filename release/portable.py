"""portable.py - `slinc` for one architecture as a tarball that brings its libraries, all but those of glibc.

    slinc-VERSION-linux-ARCH/bin/slinc          finds its libraries in ../lib/slinc, wherever the folder lies
    slinc-VERSION-linux-ARCH/bin/kubectl-slinc  the same as a plugin of kubectl
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from slincdev.common import REPO, Fail, run, versions

import archive

sys.path.append(str(REPO / "images"))
import linked  # noqa: E402
from recipe import tool  # noqa: E402

GLIBC = re.compile(r"(ld-linux.*|libc|libm|libresolv|libpthread|libdl|librt)\.so\.\d+")  # always the machine's own


def make(dist: Path, work: Path, stage: Path, source: Path, version: str, arch: str, epoch: int) -> Path:
    """Writes the tarball. The environment names architecture and sysroot."""
    name = f"slinc-{version}-linux-{arch}"
    tree = work / name
    for folder in ("bin", "lib/slinc", "share/doc/slinc/licenses"):
        (tree / folder).mkdir(parents=True)
    run([tool("strip"), "-o", tree / "bin/slinc", stage / "usr/bin/slinc"])
    for link in ("kubectl-slinc", "kubectl_complete-slinc"):
        (tree / "bin" / link).symlink_to("slinc")
    for library in bundled(stage / "usr/bin/slinc"):
        shutil.copy(linked.real(library), tree / "lib/slinc" / library.name)
    for file in linked.copyrights(bundled(stage / "usr/bin/slinc")):
        shutil.copy(file, tree / "share/doc/slinc/licenses" / file.parent.name)
    for file in ("LICENSE", "README.md", "CHANGELOG.md"):
        shutil.copy(source / file, tree / "share/doc/slinc" / file)
    check_symbols(tree)
    out = dist / f"{name}.tar.gz"
    archive.write(out, tree, name, epoch)
    return out


def bundled(program: Path) -> list[Path]:
    """The libraries that go with the program."""
    return [path for path in linked.libraries(program) if not GLIBC.fullmatch(path.name)]


def check_symbols(tree: Path) -> None:
    """Nothing may need a newer glibc than the one that is promised."""
    most = versions()["GLIBC_MAXIMUM"]
    for path in [tree / "bin/slinc", *sorted((tree / "lib/slinc").iterdir())]:
        needs = newest_glibc(path)
        if _number(needs) > _number(most):
            raise Fail(f"{path.name} needs glibc {needs}; releases promise {most} (GLIBC_MAXIMUM in dev/versions.env)")


def newest_glibc(path: Path) -> str:
    """The newest version of glibc's symbols that a file asks for."""
    text = run(["readelf", "--wide", "--version-info", path])
    needs = text[text.find("Version needs section") :] if "Version needs section" in text else ""
    return max(re.findall(r"GLIBC_(\d+\.\d+)", needs), key=_number, default="0.0")


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def use(arch: str, sysroot: Path) -> None:
    """What the modules of images/ read to know whose libraries count."""
    os.environ.update({"SLINC_ARCH": arch, "SLINC_SYSROOT": str(sysroot)})
