"""recipe.py - what an image is made of, read from images/<name>/recipe (TOML)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pack

IMAGES = Path(__file__).resolve().parent
SOURCES = IMAGES.parent / "src"
VERSIONS = IMAGES.parent / "dev" / "versions.env"
FORMAT = b"labels"  # another word where the same inputs give other bytes than before
DEFAULT_VERSIONS = {"SLURM_SUITE": "sid", "SLURM_VERSION": "26.05"}
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}  # Debian's word for an architecture, and the compiler's


class RecipeError(Exception):
    """A recipe that cannot be used; the text names it."""


@dataclass(frozen=True)
class User:
    """A user with a group of the same name and number, without a shell."""

    name: str
    uid: int


@dataclass(frozen=True)
class Dir:
    """A folder that must exist, with its owner and mode."""

    path: str
    owner: str = "0:0"
    mode: str = "755"


@dataclass(frozen=True)
class File:
    """A file of images/ that is put into the image as root's."""

    source: str
    path: str
    mode: str = "644"


@dataclass(frozen=True)
class Linked:
    """A program of the build folder, put in with its shared libraries (linked.py), or without any: when it is static, or when its libraries are
    those of the image's packages."""

    source: str
    path: str
    static: bool = False
    packaged: bool = False

    @property
    def is_alone(self) -> bool:
        return self.static or self.packaged


@dataclass(frozen=True)
class Recipe:
    """One image; the fields are the keys of the recipe file."""

    title: str  # the folder's name
    name: str = ""  # the image's full name
    base: str = ""
    packages: list[str] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)
    user: str = ""
    env: dict[str, str] = field(default_factory=dict)
    workdir: str = ""
    ports: list[int] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    strip: list[str] = field(default_factory=list)
    slurm: str = ""  # the one version of Slurm for which there is such an image
    keep: list[str] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    dirs: list[Dir] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    linked: list[Linked] = field(default_factory=list)

    @property
    def is_debian(self) -> bool:
        """True when the image holds a Debian root and not just our own programs."""
        return bool(self.packages)


def own_architecture() -> str:
    """Of this machine, in Debian's word."""
    return pack.own_architecture()


def architecture() -> str:
    """Of the images: this machine's, or what SLINC_ARCH names."""
    wanted = os.environ.get("SLINC_ARCH") or own_architecture()
    if wanted != own_architecture() and wanted not in TRIPLETS:
        raise RecipeError(f"SLINC_ARCH={wanted}: images are made for {' and '.join(TRIPLETS)}")
    return wanted


def tool(name: str) -> str:
    """A tool of the compiler (gcc, strip) for the architecture of the images."""
    return name if architecture() == own_architecture() else f"{TRIPLETS[architecture()]}-{name}"


def titles() -> list[str]:
    """Every recipe that there is for this version of Slurm, bases first."""
    found = sorted(path.parent.name for path in IMAGES.glob("*/recipe"))
    found = [title for title in found if load(title).slurm in ("", versions()["SLURM_VERSION"])]
    return sorted(found, key=lambda title: bool(load(title).base))


def versions() -> dict[str, str]:
    """The lines of dev/versions.env that the images depend on. SLINC_SLURM_VERSION and SLINC_SLURM_SUITE go before them."""
    found = dict(DEFAULT_VERSIONS)
    if VERSIONS.exists():
        for line in VERSIONS.read_text().splitlines():
            name, sign, value = line.partition("=")
            if sign and name.strip() in found:
                found[name.strip()] = value.strip()
    return {name: os.environ.get(f"SLINC_{name}") or value for name, value in found.items()}


def program_version() -> str:
    """Of our own programs: that of meson.build."""
    found = re.search(r"^ *version: '([^']+)'", (IMAGES.parent / "meson.build").read_text(), re.M)
    if not found:
        raise RecipeError("meson.build names no version")
    return found[1]


def load(title: str) -> Recipe:
    """Reads one recipe and refuses keys it does not know."""
    path = IMAGES / title / "recipe"
    if not path.exists():
        raise RecipeError(f"no image '{title}': {path} does not exist")
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text())
        values["users"] = [User(**row) for row in values.pop("users", [])]
        values["dirs"] = [Dir(**row) for row in values.pop("dirs", [])]
        values["files"] = [File(**row) for row in values.pop("files", [])]
        values["linked"] = [Linked(**row) for row in values.pop("linked", [])]
        tag = program_version() if values["linked"] else f"{versions()['SLURM_VERSION']}-debian"
        registry = os.environ.get("SLINC_REGISTRY") or "localhost/slinc"
        values.setdefault("name", f"{registry}/{title}:{tag}")
        return Recipe(title=title, **values)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise RecipeError(f"{path}: {error}") from None


def program_sources(program: str) -> list[Path]:
    """The C files of one of our programs: its folder's, the codecs it includes, and src/base if it includes any of that."""
    own = sorted((IMAGES / program).glob("*.[ch]"))
    text = "".join(path.read_text() for path in own)
    own += [SOURCES / "codec" / f"{name}.{end}" for name in sorted(set(re.findall(r'#include "codec/(\w+)\.h"', text))) for end in "ch"]
    if '#include "base/' in text:
        own += sorted((SOURCES / "base").glob("*.[ch]"))
    return own


def key(recipe: Recipe, debs: list[str], base_key: str, linked: list[Path] | None = None) -> str:
    """Changes whenever something that goes into the image does; `linked` lie outside images/."""
    digest = hashlib.sha256()

    def mix(*parts: bytes) -> None:
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)

    mix(FORMAT, (IMAGES / recipe.title / "recipe").read_bytes(), recipe.name.encode(), base_key.encode())
    mix(architecture().encode(), json.dumps(debs).encode(), os.environ.get("SOURCE_DATE_EPOCH", "0").encode())
    inputs = [IMAGES / name for name in ("pack.py", "root.py")]
    inputs += [IMAGES / file.source for file in recipe.files]
    for program in recipe.programs:
        inputs += program_sources(program)
    inputs += linked or []
    for path in inputs:
        mix(path.name.encode(), path.read_bytes())
    return digest.hexdigest()[:16]
