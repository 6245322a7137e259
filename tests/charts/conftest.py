"""For the charts' tests: where things are, and helm without a cluster."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SLINC_BUILD", REPO / "build/plain"))
sys.path[:0] = [str(REPO / "dev")]
from slincdev.build import bin_dir  # noqa: E402
from slincdev.common import versions  # noqa: E402


def helm(*words: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in (bin_dir() / "helm", *words)], text=True, capture_output=True, timeout=60)


def render(chart: Path, *words: object) -> str:
    """All objects, hooks too."""
    done = helm("template", "bridge", chart, "--namespace", "slinky", "--kube-version", versions()["KUBERNETES_VERSION"], *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_notes(chart: Path, folder: Path) -> Path:
    """A copy of the chart that renders what the user is told as one more object: without a cluster helm shows it nowhere."""
    copy = Path(shutil.copytree(chart, folder / chart.name))
    notes = copy / "templates/NOTES.txt"
    (copy / "templates/told.yaml").write_text(f'{{{{- define "told" }}}}{notes.read_text()}{{{{ end -}}}}\ntold: |\n  {{{{- include "told" . | nindent 2 }}}}\n')
    return copy


def leaves(values: Path) -> set[str]:
    """The dotted keys of a values.yaml that are no mapping; lists and {} count as values. Enough of YAML for a file of ours."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in values.read_text().splitlines():
        text = line.strip()
        if not text or text[0] in "#-":
            continue
        depth = len(line) - len(line.lstrip())
        above = [one for one in above if one[0] < depth]
        key, _, value = text.partition(":")
        above.append((depth, key))
        found[".".join(name for _, name in above)] = value.strip()
    return {key for key in found if not any(other.startswith(f"{key}.") for other in found)}
