"""toolchain.py - a Debian root for each architecture, and our programs compiled in it.

The root is that of an old Debian, so that programs need no newer glibc than users have (decision 015). It is made once, and kept
in the cache; the compiler runs on this machine and writes code for the other one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from slincdev.common import DEV, REPO, cache_dir, locked, need_root, run, say, slow_step, versions

sys.path.append(str(REPO / "images"))
import debs  # noqa: E402
import pack  # noqa: E402
from recipe import TRIPLETS  # noqa: E402

BINFMT = Path("/proc/sys/fs/binfmt_misc")
TOOLS = ["libc6-dev", "gcc", "binutils", "meson", "ninja-build", "pkg-config", "python3"]
LIBRARIES = ["libevent-dev", "libcurl4-openssl-dev", "libssl-dev", "libyaml-dev", "libyyjson-dev", "libnghttp2-dev"]
# The suite has no yyjson: that one library comes from the next.
PREFERENCES = "Package: *\\nPin: release n={next}\\nPin-Priority: -1\\n\\nPackage: libyyjson*:any\\nPin: release n={next}\\nPin-Priority: 500\\n"
CROSS = """[binaries]
c = '{triplet}-gcc'
ar = '{triplet}-gcc-ar'
strip = '{triplet}-strip'
pkgconfig = '{triplet}-pkg-config'
[host_machine]
system = 'linux'
cpu_family = '{family}'
cpu = '{family}'
endian = 'little'
"""
BUILD = """set -e
mount --bind -o ro {source} {root}/src
mount --bind {out} {root}/out
mount -t proc proc {root}/proc
exec chroot {root} env -i PATH=/usr/bin:/bin HOME=/tmp SOURCE_DATE_EPOCH={epoch} sh -ec '
    meson setup /out/build /src {cross} --buildtype=debugoptimized -Dtests=false -Dportable=true --prefix=/usr --libdir=lib/{triplet}
    ninja -C /out/build
    DESTDIR=/out/stage meson install -C /out/build --no-rebuild --quiet'
"""


def packages(arch: str) -> list[str]:
    """What the root has besides Debian's essential packages."""
    if arch == pack.own_architecture():
        return TOOLS + LIBRARIES
    return TOOLS + [f"gcc-{TRIPLETS[arch].replace('_', '-')}", f"libc6-dev-{arch}-cross"] + [f"{name}:{arch}" for name in LIBRARIES]


def ensure_emulation(arch: str) -> None:
    """Lets this machine run programs of another architecture, with qemu: packages run some while they are installed."""
    machine = TRIPLETS[arch].split("-")[0]
    if arch == pack.own_architecture() or (BINFMT / f"qemu-{machine}").exists():
        return
    if not (BINFMT / "register").exists():
        run(["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT])
    (BINFMT / "register").write_bytes(Path(f"/usr/lib/binfmt.d/qemu-{machine}.conf").read_bytes().strip())
    say(f"  this machine now runs programs for {arch} with qemu")


def ensure_root(arch: str) -> Path:
    """The root for this architecture; made if the cache has none."""
    suite, following = versions()["RELEASE_SUITE"], versions()["RELEASE_NEXT_SUITE"]
    key = hashlib.sha256(" ".join([suite, following, PREFERENCES, *packages(arch)]).encode()).hexdigest()[:16]
    root = cache_dir() / "release" / f"root-{arch}-{key}"
    with locked(cache_dir() / "release" / f".root-{arch}.lock", f"the root for {arch}", 3600):
        if not root.exists():
            need_root("a Debian root")
            with slow_step(f"Debian {suite} with a compiler for {arch}"):
                _bootstrap(arch, suite, following, root)
    return root


def _bootstrap(arch: str, suite: str, following: str, root: Path) -> None:
    part = root.with_name(root.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    mirror = run([DEV / "mirror"]).strip()
    sources = root.with_name(root.name + ".list")
    sources.write_text("".join(f"deb [signed-by={debs.KEYRING}] {mirror} {name} main\n" for name in (suite, following)))
    own = pack.own_architecture()
    run(["mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", f"--architectures={','.join(dict.fromkeys((own, arch)))}",
         "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", '--aptopt=APT::Install-Recommends "false"',
         f'--aptopt=Acquire::Check-Valid-Until "{debs.check_valid_until()}"',
         f"--setup-hook=printf '{PREFERENCES.format(next=following)}' >\"$1/etc/apt/preferences.d/slinc\"",
         f"--include={','.join(packages(arch))}", "", part, sources], what="mmdebstrap")  # fmt: skip
    for folder in ("src", "out"):
        (part / folder).mkdir()
    sources.unlink()
    part.rename(root)


def installed(root: Path) -> list[str]:
    """The packages of a root, as name:architecture=version."""
    lines = run(["dpkg-query", f"--admindir={root / 'var/lib/dpkg'}", "-W", "-f", "${Package}:${Architecture}=${Version}\\n"]).splitlines()
    return sorted(line for line in lines if line)


def compile_programs(arch: str, source: Path, epoch: int, out: Path) -> Path:
    """Compiles everything that is installed. `out` gets build/, and stage/ with the installed files; gives stage/."""
    root, triplet = ensure_root(arch), TRIPLETS[arch]
    out.mkdir(parents=True)
    cross = ""
    if arch != pack.own_architecture():
        (out / "cross.txt").write_text(CROSS.format(triplet=triplet, family=triplet.split("-")[0]))
        cross = "--cross-file /out/cross.txt"
    script = BUILD.format(source=source, out=out, root=root, epoch=epoch, cross=cross, triplet=triplet)
    with slow_step(f"programs for {arch}"):
        run(["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "sh", "-c", script], what=f"the build for {arch}")
    return out / "stage"


def own_environment(arch: str, source: Path, build: Path, cache: Path, registry: str, epoch: int) -> dict[str, str]:
    """What `images/build` of the exported sources needs to make the images of this release."""
    return {**os.environ, "SLINC_ARCH": arch, "SLINC_BUILD": str(build), "SLINC_SYSROOT": str(ensure_root(arch)), "SLINC_CACHE": str(cache),
            "SLINC_REGISTRY": registry, "SOURCE_DATE_EPOCH": str(epoch)}  # fmt: skip


def image_packages(cache: Path) -> list[str]:
    """The Debian packages of all images in this cache, as name:architecture=version."""
    found = set()
    for lock in cache.glob("images/debs-*/lock.json"):
        for lines in json.loads(lock.read_text())["debs"].values():
            for line in lines:
                name, version, arch = line.split()[0].removesuffix(".deb").split("_")
                found.add(f"{name}:{arch}={version.replace('%3a', ':')}")
    return sorted(found)
