"""Runs the simulator: some seeds of each scenario and a slice of the crash cases, split over all cores.

    SIM_SEEDS=300    seeds of the bridge's scenario; the others follow from it
    SIM_SLICE=3/20   the slice of the crash cases; else it rotates with the number of commits"""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SEEDS = 300
SLICES = 20
SEEDS_PER_PROCESS = 50
ENVIRONMENT = {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=1"}


def slice_of_commit(repo: Path) -> tuple[int, int]:
    """The next commit has the next slice, so twenty commits run every case. A tree without history has the first."""
    counted = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=repo, text=True, capture_output=True)
    return (int(counted.stdout) if counted.returncode == 0 else 0) % SLICES + 1, SLICES


def crash_runs(scenario: str, number: int, of: int, processes: int) -> list[list[str]]:
    """One slice, split again into one per process."""
    return [["--scenario", scenario, "--slice", f"{number + of * i}/{of * processes}"] for i in range(processes)]


def seed_runs(scenario: str, seeds: int) -> list[list[str]]:
    starts = range(0, seeds, SEEDS_PER_PROCESS)
    return [["--scenario", scenario, "--seeds", f"{start}:{min(start + SEEDS_PER_PROCESS, seeds)}"] for start in starts]


def all_runs(seeds: int, number: int, of: int, processes: int) -> list[list[str]]:
    """The longest first, so that no core is idle at the end."""
    return [*crash_runs("crashes", number, of, processes), *crash_runs("operator-crashes", number, of, processes), *crash_runs("workers-crashes", number, of, processes), *seed_runs("bridge", seeds), *seed_runs("leaving", max(seeds // 4, 1)),
            *seed_runs("operator", max(seeds // 2, 1)), *seed_runs("workers", max(seeds // 2, 1)), *seed_runs("configcopy", seeds),
            ["--scenario", "bridge", "--seeds", "0:20", "--twice"], ["--scenario", "configcopy", "--seeds", "0:40", "--twice"],
            ["--scenario", "operator", "--seeds", "0:8", "--twice"]]


def problem_of(words: list[str], code: int, output: str) -> str | None:
    """What is wrong with a run: a promise that does not hold, or a slice that left cases out."""
    if code != 0:
        return f"sim {' '.join(words)} ended with {code}\n{output[-6000:]}"
    counted = re.search(r"^[a-z-]+: (\d+) of (\d+) cases", output, re.M)
    if "--slice" in words:
        of = int(words[-1].split("/")[1])
        if not counted or abs(int(counted[1]) - int(counted[2]) / of) > 1:
            return f"sim {' '.join(words)} did not run its share of the cases: {output[-300:]}"
    return None


def run_all(repo: Path) -> tuple[int, int, int]:
    named = os.environ.get("SIM_SLICE")
    number, of = map(int, named.split("/")) if named else slice_of_commit(repo)
    processes = os.cpu_count() or 1
    runs = all_runs(int(os.environ.get("SIM_SEEDS", SEEDS)), number, of, processes)
    print(f"  slice {number} of {of} of the crash cases; SIM_SLICE={number}/{of} runs it again", flush=True)

    def run_one(words: list[str]) -> str | None:
        done = subprocess.run([repo / "build/asan/tests/sim/sim", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              errors="replace", env=dict(os.environ) | ENVIRONMENT)
        print(f"  {(done.stdout.strip().splitlines() or ['no output'])[-1]}", flush=True)
        return problem_of(words, done.returncode, done.stdout)

    with ThreadPoolExecutor(processes) as pool:
        problems = [problem for problem in pool.map(run_one, runs) if problem]
    for problem in problems:
        print(problem)
    return len(runs) - len(problems), len(problems), 0
