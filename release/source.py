"""source.py - the sources of one release: a commit, with the release's version in the places that name one.

The program has its version from meson.build, and everything asks the program's build for it. A chart's own version is in
its Chart.yaml. The appVersion of the chart `slurm` is that of Slurm, and stays.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from slincdev.common import REPO, Fail, run

VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-rc\.[1-9]\d*)?")


def check_version(version: str) -> None:
    if not VERSION.fullmatch(version):
        raise Fail(f"VERSION={version}: a version is 1.2.3, or 1.2.3-rc.1 for a candidate")


def commit_of(name: str) -> tuple[str, int]:
    """The commit that `name` means, and when it was made."""
    commit, seconds = run(["git", "-C", REPO, "log", "-1", "--format=%H %ct", name]).split()
    return commit, int(seconds)


def changed_files() -> list[str]:
    """Files of the tree that differ from the last commit: a release does not have these changes."""
    return run(["git", "-C", REPO, "status", "--porcelain", "--untracked-files=no"]).splitlines()


def export(commit: str, version: str, into: Path) -> None:
    """Writes the sources of the commit into an empty folder."""
    into.mkdir(parents=True)
    with subprocess.Popen(["git", "-C", str(REPO), "archive", commit], stdout=subprocess.PIPE) as archive:
        unpack = subprocess.run(["tar", "-x", "-C", str(into)], stdin=archive.stdout, check=False)
    if archive.returncode != 0 or unpack.returncode != 0:
        raise Fail(f"git archive {commit} failed")
    set_version(into, version)


def set_version(tree: Path, version: str) -> None:
    """Puts the version in where one is named: meson.build, and the Chart.yaml of each chart."""
    before = _replace(tree / "meson.build", r"^( *version: ')([^']+)(')", version)
    for chart in sorted(tree.glob("charts/*/Chart.yaml")):
        _replace(chart, r"^(version: )(\S+)()$", version)
        text = chart.read_text()
        text = re.sub(rf'^appVersion: "?{re.escape(before)}"?$', f'appVersion: "{version}"', text, flags=re.M)
        text = re.sub(rf"^(    version: ){re.escape(before)}$", rf"\g<1>{version}", text, flags=re.M)  # a dependency on a chart of ours
        chart.write_text(text)


def _replace(path: Path, pattern: str, version: str) -> str:
    text = path.read_text()
    found = re.search(pattern, text, re.M)
    if not found:
        raise Fail(f"{path} names no version")
    path.write_text(text[: found.start(2)] + version + text[found.end(2) :])
    return found[2]
