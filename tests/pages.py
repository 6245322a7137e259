"""What pages of the documentation tell people to type, so that a test types the same.

A comment names the indented block that follows it:

    <!-- run: install -->              commands, for a shell
    <!-- file: slurm.yaml -->          a file that commands name
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

MARK = re.compile(r"^( *)<!-- (run|file): (\S+) -->\n\n?((?:\1 {4}.*\n|\n(?=\1 {4}))+)", re.M)


def blocks(page: Path) -> dict[str, str]:
    """The named blocks of a page, in its order."""
    found: dict[str, str] = {}
    text = page.read_text()
    for _, _, name, block in MARK.findall(text):
        if name in found:
            raise ValueError(f"{page.name} has two blocks named {name}")
        found[name] = textwrap.dedent(block).strip("\n") + "\n"
    marks = re.findall(r"<!-- (?:run|file): (\S+) -->", text)
    if marks != list(found):
        raise ValueError(f"{page.name}: no indented block follows {', '.join(set(marks) - set(found))}")
    return found
