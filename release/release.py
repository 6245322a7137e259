"""release.py - makes everything that people install, for all architectures, in one folder.

    release/make VERSION REGISTRY [--out dist] [--commit HEAD] [--key KEY] [--url URL] [--arch amd64,arm64] [--update-lock] [--again]

    VERSION    1.2.3, or 1.2.3-rc.1 for a candidate
    REGISTRY   where the images will be pulled from: registry.example/slinc. `release/push` puts them there
    --key      a minisign secret key (a file) or the name of a GPG key: SHA256SUMS is signed with it
    --url      where the files of the folder will be found, for the manifest of krew
    --again    installs the packages of the images again, though the cache has the images: to compare two runs

The release is made of a commit, never of what lies in the tree. The same commit, version, registry and packages give the
same bytes. The packages are those of release/packages.lock: if a Debian suite has others now, nothing is made
until --update-lock writes the new ones.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPO / "dev"), str(REPO / "images")]

from recipe import TRIPLETS  # noqa: E402
from slincdev.common import Fail, cache_dir, locked, need_root, run, say, slow_step, step  # noqa: E402

import charts  # noqa: E402
import debian  # noqa: E402
import index  # noqa: E402
import papers  # noqa: E402
import portable  # noqa: E402
import source as sources  # noqa: E402
import toolchain  # noqa: E402

LOCK = REPO / "release/packages.lock"
HOME = "https://slinc.example"
# Every recipe becomes an image of the release, but for these: `base` lies below others, `pause` and `mariadb` are for the development cluster.
UNPUBLISHED = {"base", "pause", "mariadb"}


class Wanted(NamedTuple):
    """What the command was told."""

    version: str
    registry: str
    commit: str
    epoch: int
    architectures: list[str]
    key: str
    url: str
    updates_lock: bool
    is_again: bool = False


class Folders(NamedTuple):
    """Where things are while a release is made."""

    dist: Path
    work: Path
    source: Path


def make(wanted: Wanted, dist: Path) -> None:
    """Makes the release in `dist`, which appears when it is whole."""
    need_root("a release")
    work = cache_dir() / "release/work"
    with locked(cache_dir() / "release/.lock", "a release", 3600):
        shutil.rmtree(work, ignore_errors=True)
        folders = Folders(work / "dist", work, work / "source")
        folders.dist.mkdir(parents=True)
        sources.export(wanted.commit, wanted.version, folders.source)
        notes = papers.notes(folders.source / "CHANGELOG.md", wanted.version)
        for arch in wanted.architectures:
            toolchain.ensure_emulation(arch)
        stages = {arch: toolchain.compile_programs(arch, folders.source, wanted.epoch, work / f"build-{arch}") for arch in wanted.architectures}
        archives = {arch: make_images(wanted, folders, arch) for arch in wanted.architectures}
        packages = lock_text(wanted, folders)
        check_lock(wanted, packages)
        tarballs = make_programs(wanted, folders, stages)
        write_installable(wanted, folders, archives)
        (folders.dist / "NOTES.md").write_text(notes)
        (folders.dist / "slinc.krew.yaml").write_text(papers.krew(tarballs, wanted.version, wanted.url, HOME))
        (folders.dist / "packages.lock").write_text(packages)
        sums = papers.write_sums(folders.dist)
        if wanted.key:
            papers.sign(sums, wanted.key)
        shutil.rmtree(dist, ignore_errors=True)
        shutil.move(folders.dist, dist)
        shutil.rmtree(work)


def published(source: Path) -> list[str]:
    """The images of a release of these sources."""
    return sorted(path.parent.name for path in source.glob("images/*/recipe") if path.parent.name not in UNPUBLISHED)


def write_installable(wanted: Wanted, folders: Folders, archives: dict[str, dict[str, Path]]) -> None:
    """What release/push puts into a registry: images and their list, charts that name them; and the charts as manifests."""
    images = combine_images(folders, archives)
    made = charts.package(folders.dist, folders.source, folders.work, wanted.registry, images, wanted.version, wanted.epoch)
    charts.render(folders.dist, made, wanted.version)
    (folders.dist / "images.txt").write_text("".join(f"{wanted.registry}/{image.name}:{image.tag}@{image.digest}\n" for image in images))


def image_cache(wanted: Wanted, folders: Folders, arch: str) -> Path:
    """Where the images of this architecture are built. With --again it has only the packages."""
    kept = cache_dir() / "release" / f"images-{arch}"
    if not wanted.is_again:
        return kept
    fresh = folders.work / f"images-{arch}"
    if not fresh.exists():
        (fresh / "images").mkdir(parents=True)
        for packages in kept.glob("images/debs-*"):
            shutil.copytree(packages, fresh / "images" / packages.name, symlinks=True, copy_function=os.link)
    return fresh


def make_images(wanted: Wanted, folders: Folders, arch: str) -> dict[str, Path]:
    """The archives of all images for one architecture, made by the exported sources' own images/build; their lists of contents."""
    names, cache = published(folders.source), image_cache(wanted, folders, arch)
    environment = toolchain.own_environment(arch, folders.source, folders.work / f"build-{arch}/build", cache, wanted.registry, wanted.epoch)
    build = folders.source / "images/build"
    with slow_step(f"images for {arch}"):
        run([build, *names], env=environment, what=f"the images for {arch}")
    (folders.dist / "sbom").mkdir(exist_ok=True)
    for name in names:
        shutil.copy(run([build, "--sbom", name], env=environment).strip(), folders.dist / "sbom" / f"{name}-{arch}.spdx.json")
    return {name: Path(run([build, "--archive", name], env=environment).strip()) for name in names}


def make_programs(wanted: Wanted, folders: Folders, stages: dict[str, Path]) -> dict[str, Path]:
    """Tarballs and Debian packages of the programs; gives the tarballs."""
    tarballs = {}
    for arch, stage in stages.items():
        portable.use(arch, toolchain.ensure_root(arch))
        with step(f"tarball and packages for {arch}"):
            tarballs[arch] = portable.make(folders.dist, folders.work / f"tarball-{arch}", stage, folders.source, wanted.version, arch, wanted.epoch)
            debian.make(folders.dist, folders.work / "debian", stage, folders.source, wanted.version, arch, TRIPLETS[arch], wanted.epoch)
    return tarballs


def combine_images(folders: Folders, archives: dict[str, dict[str, Path]]) -> list[index.Combined]:
    """One archive for each image, with all architectures."""
    blobs = index.Blobs(folders.work / "blobs")
    (folders.dist / "images").mkdir()
    found = []
    for name in next(iter(archives.values())):
        with step(f"image {name}"):
            by_arch = {arch: made[name] for arch, made in archives.items()}
            tag = index.tag_of(next(iter(by_arch.values())))
            found.append(index.combine(folders.dist / "images" / f"{name}.tar", name, tag, by_arch, blobs))
    return found


def lock_text(wanted: Wanted, folders: Folders) -> str:
    """Every package that went into programs and images, a line each."""
    lines = []
    for arch in wanted.architectures:
        lines += [f"build-{arch} {line}" for line in toolchain.installed(toolchain.ensure_root(arch))]
        lines += [f"images-{arch} {line}" for line in toolchain.image_packages(image_cache(wanted, folders, arch))]
    return "".join(f"{line}\n" for line in sorted(set(lines)))


def check_lock(wanted: Wanted, found: str) -> None:
    """Fails if other packages were used than the lock names."""
    if wanted.updates_lock:
        LOCK.write_text(found)
        say(f"  {LOCK.relative_to(REPO)} is written: commit it")
        return
    locked_lines = LOCK.read_text().splitlines() if LOCK.exists() else []
    held = [line for line in locked_lines if line.split()[0].rpartition("-")[2] in wanted.architectures]
    changes = [line for line in difflib.unified_diff(held, found.splitlines(), lineterm="", n=0) if line[0] in "+-" and line[:3] not in ("+++", "---")]
    if changes:
        raise Fail(f"{len(changes)} packages differ from release/packages.lock ({', '.join(changes[:4])}, ...): see what is new, then --update-lock")


def parse(arguments: list[str]) -> tuple[Wanted, Path]:
    parser = argparse.ArgumentParser(prog="release/make", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", metavar="VERSION")
    parser.add_argument("registry", metavar="REGISTRY")
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--key", default="")
    parser.add_argument("--url", default="")
    parser.add_argument("--arch", default="amd64,arm64")
    parser.add_argument("--update-lock", action="store_true")
    parser.add_argument("--again", action="store_true")
    words = parser.parse_args(arguments)
    sources.check_version(words.version)
    commit, epoch = sources.commit_of(words.commit)
    architectures = words.arch.split(",")
    if unknown := [arch for arch in architectures if arch not in TRIPLETS]:
        raise Fail(f"--arch: {', '.join(unknown)} is none of {', '.join(TRIPLETS)}")
    url = words.url or f"{HOME}/releases/{words.version}"
    return Wanted(words.version, words.registry.rstrip("/"), commit, epoch, architectures, words.key, url, words.update_lock, words.again), words.out


def main() -> int:
    """The command release/make."""
    try:
        wanted, dist = parse(sys.argv[1:])
        if wanted.commit == sources.commit_of("HEAD")[0] and (changed := sources.changed_files()):
            say(f"  {len(changed)} changed files are not in this release: it is made of the commit {wanted.commit[:12]}")
        make(wanted, dist.absolute())
    except Fail as error:
        print(f"release/make: {error}", file=sys.stderr)
        return 1
    subprocess.run(["du", "-ah", "--apparent-size", dist], check=False)
    return 0
