"""The charts and the program of an older commit, which an upgrade begins with. They are made once, and kept in the cache by commit."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from slincdev.common import REPO, Fail, cache_dir, run

COMMIT = "544d2fe16b13cfa718ff6b97b9e4bb997159aa61"  # the last one before releases were made

def _git(*words: str) -> bytes:
    done = subprocess.run(["git", "-C", REPO, *words], capture_output=True)
    if done.returncode != 0:
        raise Fail(f"the history of this clone must go back to {COMMIT[:8]}: {done.stderr.decode().strip()}")
    return done.stdout


def older() -> Path:
    """Its tree, with its program built in build/plain."""
    folder = cache_dir() / "older" / COMMIT[:12]
    if not (folder / "complete").exists():
        with tarfile.open(fileobj=io.BytesIO(_git("archive", COMMIT))) as tree:
            tree.extractall(folder, filter="tar")
        run([folder / "dev/build", "plain", "src/cmd/slinc", "src/dra/slinc-cpuset-hook"], what=f"the program of {COMMIT[:8]}")
        (folder / "complete").touch()
    return folder


def image(tree: Path) -> Path:
    """Our image with the program of this tree, by the recipe of today, in a cache of its own."""
    builds = os.environ | {"SLINC_BUILD": str(tree / "build/plain"), "SLINC_CACHE": str(cache_dir() / "older")}
    run([sys.executable, REPO / "images/build", "slinc"], what="the image of the older program", env=builds)
    return Path(run([sys.executable, REPO / "images/build", "--archive", "slinc"], env=builds).strip())


def charts(tree: Path, folder: Path, version: str) -> Path:
    """The charts of a tree as a release would have them: with this version, in all names of images too."""
    own = re.search(r"^version: (\S+)$", (tree / "charts/slurm/Chart.yaml").read_text(), re.M)[1]
    for chart in sorted((tree / "charts").rglob("*")):
        copy = folder / chart.relative_to(tree / "charts")
        if chart.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(chart.readlink())
        elif chart.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = chart.read_bytes()
            copy.write_bytes(text.replace(own.encode(), version.encode()) if chart.name == "Chart.yaml" else text)
    return folder


def named(archive: Path, copy: Path, version: str) -> Path:
    """An image under another version."""
    with tarfile.open(archive) as old, tarfile.open(copy, "w") as new:
        for member in old:
            data = old.extractfile(member).read() if member.isfile() else b""
            if member.name.endswith("index.json"):
                data = re.sub(rb'("localhost/slinc/[a-z]+):[^"]+"', rb'\1:' + version.encode() + b'"', data)
                member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return copy
