"""The README.md of each chart: what it is, and its values with the comments of values.yaml, as a table.

    PYTHONPATH=dev python3 -m slincdev.chart_readme      writes them; tests/charts/golden.py does as well"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from .common import REPO

CHARTS = REPO / "charts"
PAGES = {"slurm-operator-crds": "docs/crds.md", "slurm-operator": "docs/operator.md", "slurm": "docs/slurm-chart.md", "slurm-bridge": "docs/chart.md",
         "slurm-exporter": "docs/exporter.md"}
LONGEST = 60  # of a default that is shown
LINE = re.compile(r"^( *)(?:# ?(.*)|([\w./-]+):(?: +(.*?))?)$")


class Row(NamedTuple):
    """A key with its default; "" for a mapping of other keys."""

    path: str
    default: str
    comment: str


def rows(values: str) -> list[Row]:
    """The keys of a values.yaml in its order. A comment is about the key below it; one with an empty line below it is about the file."""
    found: list[Row] = []
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    lines = values.splitlines()
    for number, line in enumerate(lines):
        parts = LINE.match(line)
        if path and path[-1][0] < 0 and len(line) - len(line.lstrip()) > -path[-1][0] and line.strip():
            continue  # inside a list or a text of several lines
        if not parts:
            comment = []
        elif parts[3] is None:
            comment.append(parts[2])
        else:
            indent, key, default = len(parts[1]), parts[3], parts[4] or ""
            path = [(depth, name) for depth, name in path if 0 <= depth < indent]
            below = next((one for one in lines[number + 1:] if one.strip() and not one.lstrip().startswith("#")), "")
            is_list = not default and below.lstrip().startswith("- ")
            is_mapping = not default and not is_list
            path.append((indent if is_mapping else -indent - 1, key))
            shown = "several lines" if is_list or default == "|" else default
            name = ".".join(name for _, name in path)
            if not is_mapping or comment:
                found.append(Row(name, shown, " ".join(comment)))
            comment = []
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _default(text: str) -> str:
    if not text or text == "several lines":
        return text
    short = text if len(text) <= LONGEST else "see values.yaml"
    return f"`{short}`" if short == text else short


def render(chart: Path) -> str:
    about = dict(re.findall(r"^(name|description|kubeVersion): (.*)$", (chart / "Chart.yaml").read_text(), re.M))
    name = about["name"]
    table = "".join(f"| `{row.path}` | {_cell(_default(row.default))} | {_cell(row.comment)} |\n" for row in rows((chart / "values.yaml").read_text()))
    values = f"## Values\n\n| key | default | what it does |\n|---|---|---|\n{table}" if table else "It has no values.\n"
    kubernetes = about["kubeVersion"].strip('"').removesuffix("-0").replace(">= ", "")
    return (f"# {name}\n\n{about['description']} It needs Kubernetes {kubernetes} or newer.\n\n"
            f"How to install it is in `docs/install.md` of the sources; `{PAGES[name]}` says more.\n\n"
            f"{values}\n<!-- Generated from values.yaml: PYTHONPATH=dev python3 -m slincdev.chart_readme -->\n")


def write_all() -> None:
    for path in sorted(CHARTS.glob("*/Chart.yaml")):
        (path.parent / "README.md").write_text(render(path.parent))


if __name__ == "__main__":
    write_all()
