"""Lint as part of the product: format, clang-tidy, layers, banned functions, file heads, foreign hosts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from slincdev.common import cache_dir

# Each layer may include itself and what stands left of it (DESIGN, section 3).
LAYERS = {
    "base": [], "codec": ["base"], "io": ["base", "codec"], "kube": ["base", "codec", "io"], "slurm": ["base", "codec", "io"],
    "engine": ["base", "codec", "io", "kube", "slurm"],
    **{name: ["base", "codec", "io", "kube", "slurm", "engine"] for name in ("bridge", "operator", "exporter", "dra", "cli")},
    "cmd": ["base", "codec", "io", "kube", "slurm", "engine", "bridge", "operator", "exporter", "dra", "cli"],
}

# Functions that have a bounded or thread-safe replacement of ours, and what it is.
BANNED = {
    "strtol": "str_to_i64", "strtoul": "str_to_u64", "strtoll": "str_to_i64", "strtoull": "str_to_u64", "atoi": "str_to_i64",
    "atol": "str_to_i64", "atoll": "str_to_i64", "sprintf": "snprintf or buf_printf", "vsprintf": "buf_vprintf", "strcpy": "arena_strdup",
    "strcat": "buf_add_text", "strncpy": "mem_strndup", "strncat": "buf_add_str", "strtok": "str_next", "strtok_r": "str_next",
    "gets": "a bounded read", "scanf": "str_to_*", "sscanf": "str_to_*", "alloca": "arena_alloc", "malloc": "mem_alloc",
    "calloc": "mem_alloc_array", "realloc": "mem_resize_array", "strdup": "mem_strdup", "strndup": "mem_strndup",
    "localtime": "timestamp_*", "gmtime": "timestamp_*", "mktime": "timestamp_*", "sleep": "a loop timer", "usleep": "a loop timer",
    "rand": "rand_u64", "srand": "rand_init", "random": "rand_u64", "time": "clock_wall_us", "system": "nothing",
}
BANNED_HOME = {"mem.c"}  # the one place that may call the allocator

# The mirror comes from the machine's own configuration; no registry is named in the tree.
FOREIGN_HOSTS = re.compile(r"(deb|snapshot|security|ftp)\.debian\.(org|net)|proxy\.golang\.org|sum\.golang\.org|(files\.)?pypi(\.python)?\.org|"
                           r"pythonhosted\.org|registry\.npmjs\.org")

Problem = str


def _tracked(repo: Path, *patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=repo, text=True, capture_output=True, check=True)
    return [repo / line for line in listed.stdout.splitlines() if (repo / line).is_file()]


def _c_files(repo: Path) -> list[Path]:
    return _tracked(repo, "*.c", "*.h")


def check_format(repo: Path) -> list[Problem]:
    files = _c_files(repo)
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *files], cwd=repo, text=True, capture_output=True)
    return sorted({line.split(":")[0] + ": not formatted; clang-format-19 -i mends it" for line in done.stderr.splitlines() if "error:" in line})


def check_layers(repo: Path) -> list[Problem]:
    problems = []
    for file in _tracked(repo, "src/*.c", "src/*.h"):
        layer = file.relative_to(repo / "src").parts[0]
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"([^"/]+)/', line)
            if found and found[1] != layer and found[1] not in LAYERS.get(layer, []):
                problems.append(f"{file.relative_to(repo)}:{number}: layer '{layer}' may not include '{found[1]}'")
    return problems


def _without_comments(text: str) -> str:
    def blank(found: re.Match) -> str:
        return re.sub(r"[^\n]", " ", found[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_banned(repo: Path) -> list[Problem]:
    call = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    problems = []
    for file in _tracked(repo, "src/*.c", "src/*.h"):
        if file.name in BANNED_HOME:
            continue
        for number, line in enumerate(_without_comments(file.read_text()).splitlines(), 1):
            for found in call.finditer(line):
                problems.append(f"{file.relative_to(repo)}:{number}: {found[1]}() is banned; use {BANNED[found[1]]}")
    return problems


def check_heads(repo: Path) -> list[Problem]:
    """Every source says on top what it is for, by its own name."""
    return [f"{file.relative_to(repo)}: its first line should be '/* {file.name} - what it is for'"
            for file in _c_files(repo) if not file.read_text().startswith(f"/* {file.name} - ")]


def check_lengths(repo: Path) -> list[Problem]:
    return [f"{file.relative_to(repo)}: {count} lines; would two files read better?"
            for file in _tracked(repo, "src/*.c", "src/*.h") if (count := len(file.read_text().splitlines())) > 800]


def check_hosts(repo: Path) -> list[Problem]:
    problems = []
    for file in _tracked(repo):
        if file.name == "lint.py" or file.suffix in (".sum", ".png"):
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if FOREIGN_HOSTS.search(line):
                problems.append(f"{file.relative_to(repo)}:{number}: names a package registry or mirror")
    return problems


def check_scripts(repo: Path) -> list[Problem]:
    problems = []
    for file in _tracked(repo):
        first = file.read_bytes()[:64].split(b"\n")[0]
        if first.startswith(b"#!") and b"bash" in first:
            done = subprocess.run(["bash", "-n", file], text=True, capture_output=True)
            if done.returncode != 0:
                problems.append(done.stderr.strip())
        elif file.suffix == ".py" or (first.startswith(b"#!") and b"python" in first):
            try:
                compile(file.read_text(), str(file.relative_to(repo)), "exec")
            except SyntaxError as error:
                problems.append(str(error))
    return problems


def _compiled(repo: Path) -> set[Path]:
    return {(repo / "build/plain" / unit["file"]).resolve() for unit in json.loads((repo / "build/plain/compile_commands.json").read_text())}


def _tidy_key(repo: Path, file: Path) -> str:
    """What a file's result depends on; headers all count, since tracking them finely is not worth it."""
    parts = [file, repo / ".clang-tidy", *_tracked(repo, "src/*.h", "images/*.h")]
    return hashlib.sha256(b"".join(hashlib.sha256(part.read_bytes()).digest() for part in parts)).hexdigest()


def check_tidy(repo: Path) -> list[Problem]:
    kept = cache_dir() / "tidy"
    kept.mkdir(parents=True, exist_ok=True)

    def tidy(file: Path) -> list[Problem]:
        stamp = kept / _tidy_key(repo, file)
        if stamp.exists():
            return []
        done = subprocess.run(["clang-tidy-19", "--quiet", "-p", "build/plain", str(file)], cwd=repo, text=True, capture_output=True)
        found = [line for line in done.stdout.splitlines() if re.search(r": (warning|error):", line)]
        if done.returncode != 0 and not found:
            found = [f"{file.name}: clang-tidy ended with {done.returncode}: {done.stderr.strip()[-300:]}"]
        if not found:
            stamp.touch()
        return found

    compiled = _compiled(repo)
    files = [file for file in _tracked(repo, "src/*.c", "examples/*.c", "tests/sim/*.c") if file.resolve() in compiled and not file.name.startswith("test_")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for found in pool.map(tidy, files) for problem in found]


def check_built(repo: Path) -> list[Problem]:
    """A source that nobody compiles is dead, and a test that nobody builds proves nothing. (Fuzzers and images have builds of their own.)"""
    compiled = _compiled(repo)
    return [f"{file.relative_to(repo)}: no meson.build names it" for file in _tracked(repo, "src/*.c", "tests/*.c", "examples/*.c")
            if file.resolve() not in compiled and file.parent.name != "fuzz"]


def run_all(repo: Path) -> tuple[int, int, int]:
    checks = [check_format, check_layers, check_banned, check_heads, check_lengths, check_hosts, check_scripts, check_built, check_tidy]
    failed = 0
    for check in checks:
        problems = check(repo)
        print(f"  {check.__name__.removeprefix('check_'):<10} {'ok' if not problems else f'{len(problems)} problems'}", flush=True)
        for problem in problems[:30]:
            print(f"    {problem}")
        failed += bool(problems)
    return len(checks) - failed, failed, 0
