"""Runs every libFuzzer target: the kept seeds first, unpacked into build/fuzz-work, then a while of new input."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import fuzz_pack


def _run_target(repo: Path, program: Path, seconds: int) -> str | None:
    """None when it held, else what broke it."""
    name = program.name.removeprefix("fuzz_")
    pack = repo / "tests/fuzz/corpus" / f"{name}.pack"
    work = repo / "build/fuzz-work" / name
    corpus = work / "corpus"
    shutil.rmtree(work, ignore_errors=True)
    (work / "found").mkdir(parents=True)
    try:
        if fuzz_pack.unpack(pack, corpus) == 0:
            return f"{name}: no seeds in {pack}"
    except (OSError, fuzz_pack.BadPack) as error:
        return f"{name}: {error}"
    environment = dict(os.environ) | {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    common = ["-timeout=10", "-rss_limit_mb=2048", f"-artifact_prefix={work}/"]
    replay = [program, "-runs=0", *common, corpus]
    fresh = [program, f"-max_total_time={seconds}", "-print_final_stats=1", *common, work / "found", corpus]
    for words in (replay, fresh):
        done = subprocess.run([str(w) for w in words], text=True, capture_output=True, errors="replace", env=environment)
        if done.returncode != 0:
            return f"{name}: input kept in {work}; tests/tools/fuzz-seed add {name} FILE makes it a seed\n{done.stderr[-3000:]}"
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    print(f"  {name:<14} {int(runs[1]) if runs else 0:>9,} runs", flush=True)
    return None


def run_all(repo: Path, seconds: int) -> tuple[int, int, int]:
    programs = sorted(path for path in (repo / "build/fuzz/tests/fuzz").glob("fuzz_*") if path.is_file() and os.access(path, os.X_OK))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [p for p in pool.map(lambda program: _run_target(repo, program, seconds), programs) if p]
    for problem in problems:
        print(problem)
    return len(programs) - len(problems), len(problems), 0
