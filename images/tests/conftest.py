"""Shared by the image tests: where the modules are, and slinc-init built with sanitizers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

IMAGES = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(IMAGES))
sys.path.insert(0, str(IMAGES / "tests"))

WARNINGS = (
    "-Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes -Wmissing-prototypes "
    "-Wformat=2 -Wundef -Werror"
).split()


@pytest.fixture(scope="session")
def init(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """slinc-init with AddressSanitizer and UBSan, leaks included."""
    import recipe

    out = tmp_path_factory.mktemp("init") / "slinc-init"
    sources = [str(path) for path in recipe.program_sources("init") if path.suffix == ".c"]
    subprocess.run(
        ["gcc", "-std=c17", "-D_GNU_SOURCE", "-g", "-O1", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all", *WARNINGS, f"-I{recipe.SOURCES}", "-o", str(out), *sources],
        check=True,
    )  # fmt: skip
    return out
