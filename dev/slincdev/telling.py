"""How the demo speaks: numbered chapters, commands as one would type them, small tables; at most 100 columns."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .common import say

WIDTH, MARGIN = 100, "   "


class Telling:
    """Chapters and figures with their times, for the table at the end."""

    def __init__(self) -> None:
        self.rows: list[list] = []
        self.count = 0

    @contextmanager
    def chapter(self, title: str, text: str) -> Iterator[None]:
        self.count += 1
        say(f"\n{self.count}. {title}\n")
        tell(text)
        say("")
        row, begun = [f"{self.count}. {title}", 0.0], time.monotonic()
        self.rows.append(row)
        yield
        row[1] = time.monotonic() - begun

    def note(self, what: str, seconds: float) -> None:
        """A figure of the chapter that is being told."""
        self.rows.append([f"   {what}", seconds])

    def close(self, seconds: float) -> None:
        say("")
        rule()
        for what, took in [*self.rows, ["All of it", seconds]]:
            say(f"{MARGIN}{what:<{WIDTH - 14}} {took:8.2f} s")
        rule()


def tell(text: str) -> None:
    say(textwrap.fill(text, WIDTH, initial_indent=MARGIN, subsequent_indent=MARGIN))


def command(text: str) -> None:
    """As a person would type it; a long one goes on in the next line."""
    lines = textwrap.wrap(text, WIDTH - 10, break_on_hyphens=False, break_long_words=False)
    say(" \\\n".join(f"{MARGIN}{'$' if number == 0 else '     '} {line}" for number, line in enumerate(lines)))


def answer(text: str) -> None:
    """What a command said, or a pod; columns stay as they are where they fit."""
    for line in text.rstrip().splitlines():
        shown = f"{MARGIN}  {line.rstrip()}"
        say(shown if len(shown) <= WIDTH else textwrap.fill(shown, WIDTH, subsequent_indent=f"{MARGIN}    ", break_on_hyphens=False))


def rule() -> None:
    say(MARGIN + "-" * (WIDTH - len(MARGIN)))


def side_by_side(left: list[str], right: list[str]) -> None:
    wide = max(map(len, left)) + 2
    for one, other in zip(left, right, strict=True):
        say(f"{MARGIN}{one:<{wide}}| {other}".rstrip()[:WIDTH])


def fold(names: list[str]) -> str:
    """As Slurm writes them: node-0, kwok-[0-1,3]."""
    heads: dict[str, list[int]] = {}
    for name in sorted(set(names)):
        head, number = re.fullmatch(r"(.*?)(\d+)", name).groups()
        heads.setdefault(head, []).append(int(number))
    return ",".join(f"{head}{_ranges(sorted(numbers))}" for head, numbers in heads.items())


def _ranges(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return "[" + ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) + "]"
