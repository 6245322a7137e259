"""The README of each chart: as its values.yaml is now, with every value."""

from __future__ import annotations

import golden
import pytest
from slincdev import chart_readme, crds


@pytest.mark.parametrize("chart", golden.CHARTS)
def test_the_readme_of_a_chart_is_that_of_its_values(chart: str) -> None:
    folder = golden.CHARTS[chart]
    fresh = chart_readme.render(folder)
    assert (folder / "README.md").read_text() == fresh, "PYTHONPATH=dev python3 -m slincdev.chart_readme writes it again"


@pytest.mark.parametrize("chart", [name for name in golden.CHARTS if name != "slurm-operator-crds"])
def test_every_value_has_a_row_with_its_default(chart: str) -> None:
    text = (golden.CHARTS[chart] / "values.yaml").read_text()
    rows = {row.path: row for row in chart_readme.rows(text)}
    (values,) = crds.from_yaml(text)

    def leaves(value: dict, path: str = "") -> dict[str, object]:
        return {name: one for key, below in value.items() for name, one in
                (leaves(below, f"{path}{key}.") if isinstance(below, dict) and below else {f"{path}{key}": below}).items()}
    wanted = leaves(values)
    assert [path for path in wanted if path not in rows] == []
    assert [path for path, row in rows.items() if path not in wanted and not any(one.startswith(f"{path}.") for one in wanted)] == []
    for path, value in wanted.items():
        if isinstance(value, int) and not isinstance(value, bool):
            assert rows[path].default == str(value), path


def test_a_comment_belongs_to_the_key_below_it() -> None:
    assert chart_readme.rows("# about the file\n\n# One\n# line.\na:\n  b: 1\n  # Two.\n  c:\n    - x\n    # in a list\n    - y\n  d: |\n    e: text\nf: {g: 1}\n") == [
        ("a", "", "One line."), ("a.b", "1", ""), ("a.c", "several lines", "Two."), ("a.d", "several lines", ""), ("f", "{g: 1}", "")]
