"""Reads every source with cppcheck, which follows values through a function and into those that it calls. clang-tidy (lint.py) looks at other things."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

FOLDERS = ("src", "libslinc-slurm")
KNOWN = "tests/tools/cppcheck.txt"  # findings that are none, each with the reason
CHECKS = "warning,portability"


def sources(repo: Path) -> list[str]:
    shown = subprocess.run(["git", "ls-files", "-z", "--", *(f"{folder}/**.c" for folder in FOLDERS)], cwd=repo, text=True, capture_output=True, check=True)
    return [name for name in shown.stdout.split("\0") if name]


def findings(repo: Path, names: list[str], folder: Path) -> list[str]:
    """folder: keeps what is known of sources that did not change."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["cppcheck", f"-j{os.cpu_count()}", "--quiet", "--std=c11", f"--enable={CHECKS}", f"--suppressions-list={KNOWN}",
                           "--suppress=missingIncludeSystem", "--template={file}:{line}: {id}: {message}", f"--cppcheck-build-dir={folder}", "-Isrc",
                           *names], cwd=repo, text=True, capture_output=True)
    found = done.stderr.splitlines()
    return found if found or done.returncode == 0 else [f"cppcheck ended with {done.returncode}: {done.stdout[-500:].strip()}"]


def run_all(repo: Path, build: Path) -> tuple[int, int]:
    """Sources without findings, and findings."""
    subprocess.run([repo / "dev/setup", "soak"], check=True)
    names = sources(repo)
    found = findings(repo, names, build / "cppcheck")
    for line in found:
        print(line)
    return len(names) - len({line.partition(":")[0] for line in found}), len(found)
