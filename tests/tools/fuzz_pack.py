"""The seeds of a fuzz target in one file, tests/fuzz/corpus/<target>.pack.

A pack is ASCII text. A line `=== NAME` begins a seed; the lines below it, up to the next such line, are its bytes:

    === two-lines
    a: 1
    b: \\xff
    === no-newline-at-its-end
    a: 1\\

Each line is that text and a newline; a line that ends in a single backslash has no newline. `\\\\` is a backslash, and `\\xHH` the
byte HH: all bytes that are not printable ASCII are written so, a space at the end of a line, and the first `=` of a line that
begins with `===`. A seed of no lines is empty.
"""

from __future__ import annotations

import re
from pathlib import Path

HEAD = "=== "
NAME = re.compile(r"[A-Za-z0-9_.-]+")


class BadPack(Exception):
    """The text is no pack; says in which line."""


def _escape(line: bytes) -> str:
    text = "".join("\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in line)
    if text.startswith("==="):
        text = "\\x3d" + text[1:]
    return text[:-1] + "\\x20" if text.endswith(" ") else text


def _unescape(text: str, number: int) -> bytes:
    def byte_of(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return "\\"
        if not match[1]:
            raise BadPack(f"line {number}: a backslash before neither a backslash nor xHH")
        return chr(int(match[1], 16))

    if re.search(r"[^ -~]", text):
        raise BadPack(f"line {number}: not printable ASCII")
    return re.sub(r"\\\\|\\x([0-9a-f]{2})|\\", byte_of, text).encode("latin-1")


def write(seeds: dict[str, bytes]) -> str:
    lines = []
    for name in sorted(seeds):
        lines.append(HEAD + name)
        parts = seeds[name].split(b"\n")
        lines += [_escape(part) for part in parts[:-1]]
        if parts[-1]:
            lines.append(_escape(parts[-1]) + "\\")
    return "".join(line + "\n" for line in lines)


def read(text: str) -> dict[str, bytes]:
    seeds: dict[str, bytes] = {}
    name = None
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if line.startswith("==="):
            name = line.removeprefix(HEAD)
            if not NAME.fullmatch(name) or name in seeds:
                raise BadPack(f"line {number}: a name that is no name, or there already: {name}")
            seeds[name] = b""
        elif name is None:
            raise BadPack(f"line {number}: a line before the first seed")
        elif re.search(r"(?<!\\)(\\\\)*\\$", line):
            seeds[name] += _unescape(line[:-1], number)
        else:
            seeds[name] += _unescape(line, number) + b"\n"
    return seeds


def unpack(pack: Path, folder: Path) -> int:
    """Writes each seed as a file into the folder; returns how many there are."""
    try:
        seeds = read(pack.read_text(encoding="ascii"))
    except (BadPack, UnicodeDecodeError) as error:
        raise BadPack(f"{pack}: {error}") from None
    folder.mkdir(parents=True, exist_ok=True)
    for name, seed in seeds.items():
        (folder / name).write_bytes(seed)
    return len(seeds)
