"""The table of attacks in docs/security.md: every test that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
TABLE = (REPO / "docs/security.md").read_text().split("## Attacks and their tests", 1)[1]
ROWS = [row.strip("| ").split(" | ") for row in TABLE.splitlines() if row.startswith("| ") and not row.startswith("| what ")]
NAMED = re.findall(r"`([a-z0-9_]+\.(?:c|py|yaml))(?:::([^`]+))?`", "\n".join(row[-1] for row in ROWS))
# How a test of this name begins in a file of C, of Python, of worlds and of chart suites; in C also a row of a table.
BEGINS = {".c": r"static void {}\(|(?<=\"){}\"", ".py": r"def {}\(", ".yaml": r"(?m)^(?:- )?name: {}$|^ +- it: {}$"}


def found(file: str) -> list[Path]:
    return [*(REPO / "tests").rglob(file), *(REPO / "charts").glob(f"*/tests/{file}")]


def test_every_attack_has_a_test() -> None:
    assert ROWS and [row[0] for row in ROWS if len(row) != 3 or not re.search(r"`[a-z0-9_]+\.(?:c|py|yaml)", row[-1])] == []


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_is_named_is_there(file: str, name: str) -> None:
    files = found(file)
    assert files, f"there is no file {file}"
    begins = BEGINS[files[0].suffix].replace("{}", re.escape(name))
    assert not name or any(re.search(begins, path.read_text()) for path in files), f"{file} has no test \"{name}\""
