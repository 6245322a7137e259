"""linked.py - programs of the build folder, with the shared libraries they are linked with.

The libraries are those of the machine that builds, for they are what the program was linked and
tested with; each stands in the image where the loader found it here. What their packages say about
copyright goes in beside them.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pack
import sbom
from debs import run
from recipe import IMAGES, Linked, Recipe, RecipeError, program_version

REPO = IMAGES.parent


def build_folder() -> Path:
    """build/plain, or the one that SLINC_BUILD names."""
    return Path(os.environ.get("SLINC_BUILD") or REPO / "build/plain").absolute()


def make(recipes: list[Recipe]) -> None:
    """Builds build/plain if a recipe wants it; a folder that SLINC_BUILD names is left alone."""
    if any(item.linked for item in recipes) and "SLINC_BUILD" not in os.environ:
        if subprocess.run([REPO / "dev/build", "plain"], check=False).returncode != 0:
            raise RecipeError("build/plain could not be built")


def program(item: Linked) -> Path:
    """The executable, which must be there."""
    path = build_folder() / item.source
    if not path.exists():
        raise RecipeError(f"{path} does not exist; dev/build plain makes it")
    return path


def libraries(path: Path) -> list[Path]:
    """What the loader needs besides the program, itself included, by the names it looks for."""
    found = []
    for line in run(["ldd", str(path)]).splitlines():
        if "not found" in line:
            raise RecipeError(f"{path.name}: {line.strip()}")
        match = re.match(r"\s*(?:\S+ => )?(/\S+) \(", line)
        if match:
            found.append(Path(match[1]))
    if not found:
        raise RecipeError(f"{path.name} is linked with no library at all")
    return sorted(found)


def _needed(item: Linked) -> list[Path]:
    return [] if item.static else libraries(program(item))


def inputs(item: Linked) -> list[Path]:
    """All files whose content goes into the image."""
    return [program(item), *_needed(item)]


def adds(item: Linked, work: Path) -> list[pack.Add]:
    """The program without its symbols, the libraries, and their copyright files."""
    path = program(item)
    bare = work / path.name
    run(["strip", "-o", str(bare), str(path)])
    result = [pack.Add(bare, item.path, 0o755, (0, 0))]
    for library in _needed(item):
        result.append(pack.Add(library.resolve(), str(library), 0o755, (0, 0)))
    for file in _copyrights(_needed(item)):
        result.append(pack.Add(file.resolve(), str(file), 0o644, (0, 0)))
    return result


def _copyrights(found: list[Path]) -> list[Path]:
    """By file name alone: dpkg may know a library below /lib and the loader below /usr/lib."""
    if not found:
        return []
    names = [f"*/{path.resolve().name}" for path in found]
    owners = set(re.findall(r"^([^\s:,]+)", run(["dpkg-query", "-S", *names]), re.M))
    files = [Path(f"/usr/share/doc/{owner}/copyright") for owner in sorted(owners)]
    return [file for file in files if file.exists()]


def version() -> str:
    """Of our own programs."""
    return program_version()


def parts(item: Linked) -> list[sbom.Package]:
    """The program, and each library with the version of the package that has it on this machine."""
    result = [sbom.Package(Path(item.path).name, version())]
    for library in _needed(item):
        owner = run(["dpkg-query", "-S", f"*/{library.resolve().name}"]).split(":")[0].split(",")[0]
        have = run(["dpkg-query", "-W", "-f", "${Version}\\n", owner]).split()[0]
        content = hashlib.sha256(library.read_bytes()).hexdigest()
        result.append(sbom.Package(library.name, have, f"pkg:deb/debian/{owner}@{have}", content))
    return result
