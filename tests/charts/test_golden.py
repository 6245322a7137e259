"""What the charts render is what was written down."""

from __future__ import annotations

import difflib

import golden
import pytest


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return golden.goldens()


@pytest.mark.parametrize("chart", golden.CHARTS)
def test_a_chart_renders_what_was_written_down(chart: str, found: dict[str, str]) -> None:
    path = golden.GOLDEN / f"{chart}.txt"
    written = path.read_text() if path.exists() else ""
    changed = list(difflib.unified_diff(written.splitlines(), found[chart].splitlines(), "written down", "rendered", lineterm="", n=1))
    assert not changed, "\n".join(["if this is what you want: python3 tests/charts/golden.py", *changed[:200]])


def test_there_are_thirty_values_files_and_every_chart_has_that_of_the_other_one() -> None:
    names = [(chart, name) for chart, name, *_ in golden.cases()]
    assert len(names) >= 30
    assert {(chart, "defaults") for chart in golden.CHARTS} <= set(names)
    assert {(chart, "slinky") for chart in golden.CHARTS if chart != "slurm-operator-crds"} <= set(names), "the other chart of definitions has no values"


def test_the_examples_of_the_documentation_are_found() -> None:
    found = {(name.split()[0], chart) for name, chart, _, _ in golden.examples()}
    assert {("docs/slurm-chart.md", "slurm"), ("docs/install.md", "slurm"), ("docs/chart.md", "slurm-bridge"), ("docs/exporter.md", "slurm-exporter")} <= found
    assert golden.chart_of("    accounting: {enabled: true}\n    nodesets:\n      a: {}\n") == "slurm"
    assert golden.chart_of("    apiVersion: v1\n") is None and golden.chart_of("    kubectl get pods\n") is None


def test_a_difference_names_what_is_gone_new_and_changed() -> None:
    base = {"A /a": {"x": [1, 2], "y": {}}, "B /b": {"z": 1}}
    assert golden.difference(base, {"A /a": {"x": [1, 3]}, "C /c": {"w": "t"}}) == ["- B /b", "* A /a", "    - y", "    x[1]: 3", "+ C /c", '    w: "t"']
