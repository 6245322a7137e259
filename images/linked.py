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
import recipe as recipes
import sbom
from debs import run
from recipe import IMAGES, Linked, Recipe, RecipeError, program_version, tool

REPO = IMAGES.parent


def build_folder() -> Path:
    """build/plain, or the one that SLINC_BUILD names."""
    return Path(os.environ.get("SLINC_BUILD") or REPO / "build/plain").absolute()


def make(wanted: list[Recipe]) -> None:
    """Builds build/plain if a recipe wants it; a folder that SLINC_BUILD names is left alone."""
    if any(item.linked for item in wanted) and "SLINC_BUILD" not in os.environ:
        if subprocess.run([REPO / "dev/build", "plain"], check=False).returncode != 0:
            raise RecipeError("build/plain could not be built")


def program(item: Linked) -> Path:
    """The executable, which must be there."""
    path = build_folder() / item.source
    if not path.exists():
        raise RecipeError(f"{path} does not exist; dev/build plain makes it")
    return path


def sysroot() -> Path:
    """The root whose libraries and package lists count: this machine's, or the one that SLINC_SYSROOT names."""
    return Path(os.environ.get("SLINC_SYSROOT") or "/").absolute()


def real(path: Path) -> Path:
    """The file behind links, of which an absolute one counts from the sysroot."""
    while path.is_symlink():
        path = Path(os.path.normpath(path.parent.resolve() / os.readlink(path)))
        if not path.is_relative_to(sysroot()):
            path = sysroot() / path.relative_to("/")
    return path


def dynamic(path: Path) -> tuple[str, list[str]]:
    """The loader that a program names, and what it or a library needs directly."""
    text = run(["readelf", "--wide", "--program-headers", "--dynamic", str(real(path))])
    loader = re.search(r"program interpreter: (\S+?)\]", text)
    return loader[1] if loader else "", re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def find(name: str, path: Path) -> Path:
    triplet = recipes.TRIPLETS.get(recipes.architecture(), "")
    for folder in (f"lib/{triplet}", f"usr/lib/{triplet}", "lib", "usr/lib"):
        found = sysroot() / folder / name
        if real(found).exists():
            return found
    raise RecipeError(f"{path.name}: {name} is in no folder of libraries of {sysroot()}")


def libraries(path: Path) -> list[Path]:
    """What the program needs besides itself, the loader included, by the names it looks for."""
    loader, names = dynamic(path)
    if not names:
        raise RecipeError(f"{path.name} is linked with no library at all")
    found = {Path(loader).name: sysroot() / loader.lstrip("/")}
    while names:
        name = names.pop()
        if name not in found:
            found[name] = find(name, path)
            names += dynamic(found[name])[1]
    return sorted(found.values())


def _inside(path: Path) -> str:
    """The path of a file of the sysroot in the image."""
    return f"/{path.relative_to(sysroot())}"


def _query(*words: str) -> str:
    return run(["dpkg-query", f"--admindir={sysroot() / 'var/lib/dpkg'}", *words])


def owner(library: Path) -> str:
    """The package that a library of the sysroot is from."""
    return _query("-S", f"*/{real(library).name}").split(":")[0].split(",")[0]


def _needed(item: Linked) -> list[Path]:
    return [] if item.is_alone else libraries(program(item))


def inputs(item: Linked) -> list[Path]:
    """All files whose content goes into the image."""
    return [program(item), *_needed(item)]


def adds(item: Linked, work: Path) -> list[pack.Add]:
    """The program without its symbols, the libraries, and their copyright files."""
    path = program(item)
    bare = work / path.name
    run([tool("strip"), "-o", str(bare), str(path)])
    result = [pack.Add(bare, item.path, 0o755, (0, 0))]
    for library in _needed(item):
        result.append(pack.Add(real(library), _inside(library), 0o755, (0, 0)))
    for file in copyrights(_needed(item)):
        result.append(pack.Add(file.resolve(), _inside(file), 0o644, (0, 0)))
    return result


def copyrights(found: list[Path]) -> list[Path]:
    """By file name alone: dpkg may know a library below /lib and the loader below /usr/lib."""
    if not found:
        return []
    names = [f"*/{real(path).name}" for path in found]
    owners = set(re.findall(r"^([^\s:,]+)", _query("-S", *names), re.M))
    files = [sysroot() / f"usr/share/doc/{owner}/copyright" for owner in sorted(owners)]
    return [file for file in files if file.exists()]


def version() -> str:
    """Of our own programs."""
    return program_version()


def parts(item: Linked) -> list[sbom.Package]:
    """The program, and each library with the version of the package that has it on this machine."""
    result = [sbom.Package(Path(item.path).name, version())]
    for library in _needed(item):
        package = owner(library)
        have = _query("-W", "-f", "${Version}\\n", package).split()[0]
        content = hashlib.sha256(real(library).read_bytes()).hexdigest()
        result.append(sbom.Package(library.name, have, f"pkg:deb/debian/{package}@{have}", content))
    return result
