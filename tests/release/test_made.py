"""A release that was made: twice the same bytes, and each file of it works where it is meant for. RELEASE_ARCH=amd64 leaves arm64 out."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "release"), str(REPO / "dev"), str(REPO / "images")]

import debs  # noqa: E402
import index  # noqa: E402
import portable  # noqa: E402
import toolchain  # noqa: E402
from recipe import TRIPLETS  # noqa: E402
from slincdev.common import DEV, cache_dir, run, versions  # noqa: E402

VERSION, REGISTRY = re.search(r"^    make release VERSION=(\S+) REGISTRY=(\S+)", (REPO / "docs/install.md").read_text(), re.M).groups()
ARCHITECTURES = os.environ.get("RELEASE_ARCH", "amd64,arm64").split(",")
OWN = toolchain.pack.own_architecture()
MADE = REPO / "build/release"
SUITES = [versions()["RELEASE_SUITE"], versions()["RELEASE_NEXT_SUITE"]]  # Debian 12 and 13


def make(out: Path, *words: str) -> Path:
    run([REPO / "release/make", VERSION, REGISTRY, "--out", out, "--arch", ",".join(ARCHITECTURES), *words], cwd=REPO, timeout=3 * 3600)
    return out


@pytest.fixture(scope="session")
def dist() -> Path:
    """SLINC_DIST: one that was made of this commit before."""
    return Path(os.environ["SLINC_DIST"]).absolute() if os.environ.get("SLINC_DIST") else make(MADE / "dist")


def sums(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*")) if path.is_file()}


def unpacked(dist: Path, arch: str, folder: Path) -> Path:
    name = f"slinc-{VERSION}-linux-{arch}"
    with tarfile.open(dist / f"{name}.tar.gz") as tar:
        tar.extractall(folder, filter="data")
    return folder / name


def root_of(suite: str) -> Path:
    """A root of this Debian with what every root has, made once."""
    root = cache_dir() / "release" / f"plain-{suite}"
    if not root.exists():
        part, sources = root.with_suffix(".part"), root.with_suffix(".list")
        shutil.rmtree(part, ignore_errors=True)
        sources.write_text(f"deb [signed-by={debs.KEYRING}] {run([DEV / 'mirror']).strip()} {suite} main\n")
        run(["mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", "--include=ca-certificates",
             f'--aptopt=Acquire::Check-Valid-Until "{debs.check_valid_until()}"', "", part, sources], what="mmdebstrap")
        part.rename(root)
    return root


@contextlib.contextmanager
def inside(root: Path, extra: Path) -> Iterator[object]:
    """Runs commands in the root, in which the folder `extra` is /extra."""
    def call(command: str) -> str:
        script = (f"mkdir -p {root}/extra && mount --bind {shlex.quote(str(extra))} {root}/extra && mount -t proc proc {root}/proc && "
                  f"exec chroot {root} env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/tmp sh -ec {shlex.quote(command)}")
        return run(["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "sh", "-c", script], what=command)
    yield call


def test_all_that_a_release_has_is_there_and_its_sums_are_right(dist: Path) -> None:
    run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=dist)
    debian = VERSION.replace("-", "~")
    charts = {path.parent.name for path in (REPO / "charts").glob("*/Chart.yaml")}
    wanted = {"NOTES.md", "images.txt", "packages.lock", "slinc.krew.yaml", *(f"charts/{name}-{VERSION}.tgz" for name in charts)}
    for arch in ARCHITECTURES:
        wanted |= {f"slinc-{VERSION}-linux-{arch}.tar.gz", f"debian/slinc_{debian}_{arch}.deb", f"debian/libslinc-slurm1_{debian}_{arch}.deb",
                   f"debian/libslinc-slurm-dev_{debian}_{arch}.deb"}
    assert wanted - sums(dist).keys() == set()
    for line in (dist / "images.txt").read_text().splitlines():
        name = line.split("@")[0].split("/")[-1].split(":")[0]
        assert [arch for arch, _ in index.platforms(dist / f"images/{name}.tar")] == sorted(ARCHITECTURES)


def test_the_same_commit_and_packages_give_the_same_bytes(dist: Path) -> None:
    again = sums(make(MADE / "again", "--again"))
    first = sums(dist)
    assert first.keys() == again.keys()
    assert [name for name in first if first[name] != again[name]] == []
    shutil.rmtree(MADE / "again")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_no_file_of_the_tarball_needs_a_newer_glibc_than_is_promised(dist: Path, tmp_path: Path, arch: str) -> None:
    tree = unpacked(dist, arch, tmp_path)
    code = [tree / "bin/slinc", *(tree / "lib/slinc").iterdir()]
    assert len(code) > 3
    promised = tuple(map(int, versions()["GLIBC_MAXIMUM"].split(".")))
    for path in code:
        assert tuple(map(int, portable.newest_glibc(path).split("."))) <= promised, path


@pytest.mark.parametrize("suite", SUITES)
def test_the_tarball_runs_in_a_debian_that_has_nothing_of_it(dist: Path, tmp_path: Path, suite: str) -> None:
    tree = unpacked(dist, OWN, tmp_path)
    with inside(root_of(suite), tree) as call:
        assert call("/extra/bin/slinc version --client") == f"slinc {VERSION}\n"
        loaded = call("ldd /extra/bin/slinc")
        assert "not found" not in loaded
        theirs = {line.split(" => ")[1].split()[0] for line in loaded.splitlines() if " => /" in line and "/extra/" not in line}
        assert all(portable.GLIBC.fullmatch(Path(path).name) for path in theirs), theirs


def test_the_packages_install_and_run_in_the_newest_debian_they_are_for(dist: Path, tmp_path: Path) -> None:
    """In a copy of the root, with what they depend on from its suite."""
    root = tmp_path / "root"
    run(["cp", "-a", root_of(SUITES[1]), root])
    with inside(root, dist / "debian") as call:
        call(f"apt-get update -qq 2>&1; apt-get install -y -qq --no-install-recommends /extra/*_{OWN}.deb >/tmp/log 2>&1 || {{ tail -5 /tmp/log >&2; exit 1; }}")
        assert call("slinc version --client") == f"slinc {VERSION}\n"
        assert "libslinc-slurm.so.1" in call("ldconfig -p")


@pytest.mark.parametrize("arch", [arch for arch in ARCHITECTURES if arch != OWN])
def test_programs_for_another_machine_run_on_it(dist: Path, tmp_path: Path, arch: str) -> None:
    """Under qemu: slinc of the tarball in that architecture's root, slurmctld in the root of its image."""
    toolchain.ensure_emulation(arch)
    with inside(toolchain.ensure_root(arch), unpacked(dist, arch, tmp_path)) as call:
        assert call("/extra/bin/slinc version --client") == f"slinc {VERSION}\n"
    root = tmp_path / "slurmctld"
    root.mkdir()
    run(["skopeo", "copy", "--quiet", f"--override-arch={arch}", f"oci-archive:{dist}/images/slurmctld.tar:{versions()['SLURM_VERSION']}-debian",
         f"dir:{tmp_path}/layers"])
    for layer in manifest_layers(tmp_path / "layers"):
        subprocess.run(["tar", "-xzf", layer, "-C", root, "--exclude=dev/*"], check=True)
    with inside(root, tmp_path) as call:
        assert call("slurmctld -V").startswith(f"slurm {versions()['SLURM_VERSION']}") and call("uname -m").strip() == TRIPLETS[arch].split("-")[0]


def manifest_layers(folder: Path) -> list[Path]:
    """The layers of an image in a folder, lowest first."""
    layers = json.loads((folder / "manifest.json").read_text())["layers"]
    return [folder / layer["digest"].removeprefix("sha256:") for layer in layers]
