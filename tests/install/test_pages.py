"""Blocks of pages that tests type: found by name, and a mark without a block is an error."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest


def test_a_block_is_what_is_indented_below_its_mark(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n<!-- run: first -->\n\n    one\n\n      two \\\n        three\n\nText.\n\n- an item\n\n  <!-- file: a.yaml -->\n\n      a: 1\n\n    not in it\n")
    assert pages.blocks(page) == {"first": "one\n\n  two \\\n    three\n", "a.yaml": "a: 1\n"}


@pytest.mark.parametrize("text,why", [("<!-- run: a -->\n\ntext\n", "no indented block follows a"), ("<!-- run: a -->\n\n    x\n\n<!-- run: a -->\n\n    y\n", "two blocks named a")])
def test_a_mark_that_names_nothing_or_something_twice_is_refused(tmp_path: Path, text: str, why: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=why):
        pages.blocks(page)
