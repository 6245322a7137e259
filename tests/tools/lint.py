"""Lint as part of the product: format, clang-tidy, layers, banned functions, file heads, foreign hosts, rules of the end-to-end tests."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from slincdev.common import cache_dir

# Each layer may include itself and what stands left of it (ARCHITECTURE.md, layers).
LAYERS = {
    "base": [], "codec": ["base"], "io": ["base", "codec"], "kube": ["base", "codec", "io"], "slurm": ["base", "codec", "io"],
    "engine": ["base", "codec", "io", "kube", "slurm"],
    "filter": ["base", "codec", "kube"],
    "device": ["base", "codec", "kube", "slurm"],
    "bridge": ["base", "codec", "io", "kube", "slurm", "engine", "filter", "device"],
    "admit": ["base", "codec", "io", "kube", "slurm", "engine", "device", "bridge"],
    **{name: ["base", "codec", "io", "kube", "slurm", "engine"] for name in ("operator", "exporter", "dra", "cli")},
    "cmd": ["base", "codec", "io", "kube", "slurm", "engine", "filter", "device", "bridge", "admit", "operator", "exporter", "dra", "cli"],
}

# What the agent is made of besides its own folder (agent/NOTICE), and the folder of the headers that only the agent may include.
AGENT_MAY = ["base", "codec", "io", "cmd/flags.h", "cmd/cmd.h"]
LIBSLURM = re.compile(r"<slurm/|-lslurm\b|libslurm_dep|agent_dep")

# The rooms of the bridge: each may include itself and what stands left of it (docs/internals/bridge.md).
ROOMS = ["world", "unit", "slurm", "nodes", "run", "submit"]

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

LINTED = "tests/tools/linted"  # the last commit of which clang-tidy has read every source; `make lint` writes it
TIDIED = ("src/*.c", "examples/*.c", "tests/sim/*.c", ":(glob)agent/*.c")
TIDY_KEPT_DAYS = 30  # a kept result of clang-tidy that no run used for so long is dropped

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


def check_agent(repo: Path) -> list[Problem]:
    """The agent includes our lowest layers alone, says its licence in each file, and nothing else is linked with libslurm."""
    problems = []
    for file in _tracked(repo, "agent/*.c", "agent/*.h"):
        text, name = file.read_text(), file.relative_to(repo)
        if "SPDX-License-Identifier: GPL-3.0-or-later" not in text:
            problems.append(f"{name}: its head does not say GPL-3.0-or-later")
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"(\w+)/([^"]+)"', line)
            if found and found[1] not in AGENT_MAY and f"{found[1]}/{found[2]}" not in AGENT_MAY:
                problems.append(f"{name}:{number}: the agent may not include '{found[1]}/{found[2]}'")
    for file in _tracked(repo, "src/*.[ch]", "examples/*.[ch]", "libslinc-slurm/*.[ch]", "*meson.build"):
        name = file.relative_to(repo)
        if name.parts[0] == "agent" or name.parts[:2] == ("tests", "fuzz"):
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if LIBSLURM.search(line):
                problems.append(f"{name}:{number}: nothing but the agent is linked with libslurm")
    return problems


def check_rooms(repo: Path) -> list[Problem]:
    """Files at the top of src/bridge may include every room, and no room includes them."""
    problems = []
    rooms = {name: i for i, name in enumerate([*ROOMS, "bridge"])}
    for file in _tracked(repo, "src/bridge/*.c", "src/bridge/*.h"):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+"bridge/([^"]+)"', line)
            if found and rooms[Path("bridge", found[1]).parent.name] > rooms[file.parent.name]:
                problems.append(f"{file.relative_to(repo)}:{number}: room '{file.parent.name}' may not include '{found[1]}'")
    return problems


def _without_comments(text: str) -> str:
    def blank(found: re.Match) -> str:
        return re.sub(r"[^\n]", " ", found[0])
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_banned(repo: Path) -> list[Problem]:
    call = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
    problems = []
    for file in _tracked(repo, "src/*.c", "src/*.h", "agent/*.c", "agent/*.h"):
        if file.name in BANNED_HOME or "tests" in file.relative_to(repo).parts[:2]:
            continue
        for number, line in enumerate(_without_comments(file.read_text()).splitlines(), 1):
            for found in call.finditer(line):
                problems.append(f"{file.relative_to(repo)}:{number}: {found[1]}() is banned; use {BANNED[found[1]]}")
    return problems


def check_cleanups(repo: Path) -> list[Problem]:
    """A variable that is cleaned up at the end of its scope must have a value on every way out of it."""
    problems = []
    for file in _tracked(repo, "src/*.c", "examples/*.c"):
        text = _without_comments(file.read_text())
        for body in re.finditer(r"^\{\n.*?^\}$", text, re.M | re.S):
            for declared in re.finditer(r"\bauto_\w+ ([^;]*);", body[0]):
                names, inner = declared[1], re.compile(r"\([^(){}]*\)|\{[^(){}]*\}")
                while inner.search(names):
                    names = inner.sub(" ", names)
                rest = body[0][declared.end():]
                way_out = re.search(r"\b(return|continue|break|goto)\b", rest)
                for part in names.split(","):
                    name = re.search(r"(\w+)$", part.strip())
                    if way_out and "=" not in part and name and not re.search(rf"\b{name[1]}\b", rest[:way_out.start()]):
                        number = text[:body.start() + declared.start()].count("\n") + 1
                        problems.append(f"{file.relative_to(repo)}:{number}: '{name[1]}' may be cleaned up without ever having had a value")
    return problems


def check_heads(repo: Path) -> list[Problem]:
    """Every source says on top what it is for, by its own name."""
    return [f"{file.relative_to(repo)}: its first line should be '/* {file.name} - what it is for'"
            for file in _c_files(repo) if not file.read_text().startswith(f"/* {file.name} - ")]


def check_references(repo: Path) -> list[Problem]:
    """Whoever follows a comment, or a page about the sources, finds the file that it names."""
    paths = [str(file.relative_to(repo)) for file in _tracked(repo)]
    names = {path.rsplit("/", 1)[-1] for path in paths}
    problems = []
    for file in [*_tracked(repo, "src/*.[ch]"), *_tracked(repo, "docs/internals/*.md", "ARCHITECTURE.md")]:
        text = file.read_text()
        for part in re.finditer(r"/\*.*?\*/" if file.suffix != ".md" else r"`[^`\n]+`", text, re.S):
            for found in re.finditer(r"(?<![\w/.<*-])(?:\w+/)*(\w+\.[ch])\b|\bdocs/[\w/-]+\.md\b", part[0]):
                if found[1] not in names and found[0] not in paths:
                    number = text[:part.start() + found.start()].count("\n") + 1
                    problems.append(f"{file.relative_to(repo)}:{number}: there is no {found[0]}")
    return problems


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


def check_e2e(repo: Path) -> list[Problem]:
    """Every end-to-end test must pass, and no file name decides when its tests run."""
    problems = []
    for file in _tracked(repo, "tests/e2e/*.py"):
        name = file.relative_to(repo)
        if re.match(r"test_z[a-z]?_", file.name):
            problems.append(f"{name}: a mark orders tests, not a file name that sorts last")
        problems += [f"{name}:{number}: no test may be expected to fail"
                     for number, line in enumerate(file.read_text().splitlines(), 1) if re.search(r"\bxfail\b", line)]
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


@dataclass
class Compiled:
    """One source of build/plain: its compile commands, and the headers that the compiler read for them (None: unknown)."""

    commands: list[str] = field(default_factory=list)
    reads: set[Path] | None = field(default_factory=set)


def _dependencies(folder: Path) -> dict[str, list[Path]]:
    """What ninja knows about the files that each object was made of, by the object's name."""
    shown = subprocess.run(["ninja", "-t", "deps"], cwd=folder, text=True, capture_output=True, check=True).stdout
    found: dict[str, list[Path]] = {}
    for block in shown.split("\n\n"):
        head, *files = block.splitlines() or [""]
        if head.endswith("(VALID)"):
            found[head.split(": #deps")[0]] = [Path(os.path.normpath(folder / file.strip())) for file in files]
    return found


def _compiled(repo: Path) -> dict[Path, Compiled]:
    folder, sources = repo / "build/plain", {}
    reads = _dependencies(folder)
    for unit in json.loads((folder / "compile_commands.json").read_text()):
        source = sources.setdefault((folder / unit["file"]).resolve(), Compiled())
        source.commands.append(unit["command"])
        known = reads.get(unit["output"])
        source.reads = source.reads | set(known) if known and source.reads is not None else None
    return sources


@lru_cache(maxsize=None)
def _content_at(file: Path, changed_ns: int) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


def _content(file: Path) -> bytes:
    return _content_at(file, file.stat().st_mtime_ns)


def _tidy_key(repo: Path, source: Compiled, version: str) -> str | None:
    """A name for everything that the result for one source depends on; None if its headers are unknown."""
    if source.reads is None or not all(file.is_file() for file in source.reads):
        return None
    place = str(repo)  # the same source in another clone has the same result
    words = [version, *(command.replace(place, ".") for command in source.commands)]
    key = hashlib.sha256("\0".join(words).encode())
    key.update(_content(repo / ".clang-tidy"))
    for name, file in sorted((str(file).replace(place, "."), file) for file in source.reads):
        key.update(name.encode() + b"\0" + _content(file))
    return key.hexdigest()


def _drop_unused(kept: Path) -> None:
    oldest = time.time() - TIDY_KEPT_DAYS * 86400
    for stamp in kept.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another run may drop it at the same time
            if stamp.stat().st_mtime < oldest:
                stamp.unlink()


def _tidy(repo: Path, file: Path) -> list[Problem]:
    done = subprocess.run(["clang-tidy-19", "--quiet", "-p", "build/plain", str(file)], cwd=repo, text=True, capture_output=True)
    found = [line for line in done.stdout.splitlines() if re.search(r": (warning|error):", line)]
    if done.returncode != 0 and not found:
        found = [f"{file.name}: clang-tidy ended with {done.returncode}: {done.stderr.strip()[-300:]}"]
    return found


def _git(repo: Path, *words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=repo, text=True, capture_output=True)
    return done.stdout if done.returncode == 0 else None


def _changed_since_linted(repo: Path) -> set[Path] | None:
    """The files that differ from the last commit that was linted whole; None: there is no such commit here, or the checks differ."""
    commit = (repo / LINTED).read_text().strip() if (repo / LINTED).exists() else ""
    if not re.fullmatch("[0-9a-f]{40}", commit):
        return None
    changed, new = _git(repo, "diff", "--name-only", "--no-renames", commit, "--"), _git(repo, "ls-files", "-o", "--exclude-standard")
    if changed is None or new is None or ".clang-tidy" in changed.splitlines():
        return None
    return {(repo / name).resolve() for name in (*changed.splitlines(), *new.splitlines())}


def _note_linted(repo: Path) -> None:
    """Writes the commit down, if it is the tree as it lies here and a source differs from the one that is written down."""
    changed = _changed_since_linted(repo)
    if _git(repo, "status", "--porcelain") != "" or (changed is not None and not any(file.suffix in (".c", ".h") for file in changed)):
        return
    (repo / LINTED).write_text(_git(repo, "rev-parse", "HEAD"))
    print(f"  {LINTED} names this commit now; commit it, and `make test` lints only what differs")


def check_tidy(repo: Path, changed: set[Path] | None = None) -> list[Problem]:
    """A source without problems leaves an empty file in the cache, named by its key; a source with problems is checked in every run.
    changed: check only these sources, and those that read one of these headers."""
    kept = cache_dir() / "tidy"
    kept.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy-19", "--version"], text=True, capture_output=True, check=True).stdout
    compiled = _compiled(repo)

    def stamp_of(file: Path) -> Path | None:
        key = _tidy_key(repo, compiled[file.resolve()], version)
        return kept / key if key else None

    def is_wanted(file: Path) -> bool:
        source = compiled.get(file.resolve())
        if not source or file.name.startswith("test_"):
            return False
        return changed is None or file.resolve() in changed or source.reads is None or not changed.isdisjoint(source.reads)

    stamps = {file: stamp_of(file) for file in _tracked(repo, *TIDIED) if is_wanted(file)}

    def check(file: Path) -> list[Problem]:
        stamp = stamps[file]
        if stamp and stamp.exists():
            return []  # a run in another clone was faster
        found = _tidy(repo, file)
        if stamp and not found and stamp == stamp_of(file):  # else somebody changed the file during the check
            stamp.touch()
        return found

    unread = []
    for file, stamp in stamps.items():
        if stamp and stamp.exists():
            stamp.touch()  # a kept result that is used stays
        else:
            unread.append(file)
    _drop_unused(kept)
    print(f"  clang-tidy reads {len(unread)} of {len(stamps)} sources" + ("" if changed is None else f" that differ from {LINTED}"), flush=True)
    unread.sort(key=lambda file: -file.stat().st_size)  # the longest checks first, so that all cores end together
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for found in pool.map(check, unread) for problem in found]


def check_built(repo: Path) -> list[Problem]:
    """A source that nobody compiles is dead, and a test that nobody builds proves nothing. (Fuzzers and images have builds of their own.)"""
    compiled = _compiled(repo)
    return [f"{file.relative_to(repo)}: no meson.build names it" for file in _tracked(repo, "src/*.c", "tests/*.c", "examples/*.c", "agent/*.c")
            if file.resolve() not in compiled and file.parent.name != "fuzz"]


def check_symbols(repo: Path) -> list[Problem]:
    """One program links all folders: of two definitions of a name the linker takes one, and one of the two folders runs the code of the other."""
    homes: dict[str, set[str]] = {}
    for archive in sorted((repo / "build/plain/src").glob("*/*.a")):
        shown = subprocess.run(["nm", "-g", "--defined-only", "-P", archive], text=True, capture_output=True, check=True).stdout
        for line in shown.splitlines():
            if len(line.split()) > 2:
                homes.setdefault(line.split()[0], set()).add(archive.parent.name)
    return [f"{name}: defined in {' and '.join(sorted(folders))}" for name, folders in sorted(homes.items()) if len(folders) > 1]


def run_all(repo: Path, whole: bool = False) -> tuple[int, int, int]:
    def check_tidy_here(repo: Path) -> list[Problem]:
        return check_tidy(repo, None if whole else _changed_since_linted(repo))

    checks = [check_format, check_layers, check_rooms, check_agent, check_banned, check_cleanups, check_heads, check_references, check_lengths, check_hosts, check_scripts, check_e2e, check_built, check_symbols, check_tidy_here]
    failed = 0
    for check in checks:
        problems = check(repo)
        print(f"  {check.__name__.removeprefix('check_').removesuffix('_here'):<10} {'ok' if not problems else f'{len(problems)} problems'}", flush=True)
        for problem in problems[:30]:
            print(f"    {problem}")
        failed += bool(problems)
    if whole and not failed:
        _note_linted(repo)
    return len(checks) - failed, failed, 0
