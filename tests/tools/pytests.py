"""Runs pytest for a job, gives failed tests a second chance where the part allows it, and splits modules into shards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from slincdev.common import cache_dir, locked, run as run_command, slow_step
from tools.lanes import Job, Result
from tools.pytest_plugin import log_name

PYTEST = "pytest==9.0.2"
SECOND_CHANCES = 10  # when more tests of a job fail, the product or the machine is broken: they are not run again
NO_TESTS = 5         # pytest's exit code when it has selected none
UNKNOWN_TEST_S = 5   # what a test without a recorded duration counts in the split


def python_tools() -> Path:
    """A virtual environment with pytest, in the cache, made once per Python and pytest version."""
    folder = cache_dir() / f"venv-{sys.version_info.major}.{sys.version_info.minor}-{PYTEST.replace('==', '-')}"
    if not (folder / "bin/pytest").exists():
        with locked(folder.with_suffix(".lock"), "the python tools"):  # on a new machine several jobs want them at once
            _make_python_tools(folder)
    return folder / "bin"


def _make_python_tools(folder: Path) -> None:
    if (folder / "bin/pytest").exists():
        return  # another job has made them
    with slow_step("python tools"):
        run_command([sys.executable, "-m", "venv", "--clear", folder])
        run_command([folder / "bin/pip", "install", "--quiet", PYTEST])


def read_results(file: Path) -> dict[str, dict]:
    """What the plugin wrote: a fact per test, by the test's id."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {fact["test"]: fact for fact in map(json.loads, lines) if "test" in fact}


def _attempt(job: Job, name: str, words: list[str], environment: dict[str, str]) -> tuple[dict[str, dict], bool]:
    """Runs pytest once. Gives the results by test, and whether pytest itself came to its end."""
    results = job.folder / f"{name}.jsonl"
    argv = [str(python_tools() / "pytest"), "-q", "-rs", "--tb=short", "--runxfail", "--strict-markers", "-p", "no:cacheprovider",
            "-p", "tools.pytest_plugin", f"--results={results}", f"--junitxml={job.folder / name}.xml", *words]
    tests = Path(__file__).resolve().parents[1]
    environment = dict(os.environ) | environment | {"SLINC_TEST_LOGS": str(job.folder / name), "PYTHONPATH": f"{tests}:{tests.parent / 'dev'}"}
    process = subprocess.Popen(argv, cwd=job.repo, env=environment)
    try:
        code = process.wait()
    except KeyboardInterrupt:  # pytest has got it too, and takes its cluster down
        process.wait()
        raise
    if code not in (0, 1, NO_TESTS):
        print(f"{job.name}: pytest ended with {code}", flush=True)
    return read_results(results), code in (0, 1, NO_TESTS)


def _passed_on_second_chance(job: Job, failed: list[str], environment: dict[str, str]) -> list[str]:
    if len(failed) > SECOND_CHANCES:
        print(f"{len(failed)} tests failed: too many for a second chance", flush=True)
        return []
    print(f"\nsecond chance for {len(failed)} failed test(s)", flush=True)
    again, _ = _attempt(job, "second", [*failed, "--log-all"], environment)
    return [test for test in failed if again.get(test, {}).get("outcome") == "passed"]


def run(job: Job, second_chance: bool = False, **environment: str) -> Result:
    """Runs the job's modules or folder. A new process is a fresh cluster, because the cluster is a fixture of the session."""
    first, ended = _attempt(job, "first", [*job.targets, *job.words], environment)
    failed = [test for test, fact in first.items() if fact["outcome"] == "failed"]
    flaky = _passed_on_second_chance(job, failed, environment) if second_chance and failed and ended else []
    result = Result(passed=sum(fact["outcome"] == "passed" for fact in first.values()) + len(flaky),
                    failed=len(failed) - len(flaky) + (not ended),
                    skipped=sum(fact["outcome"] == "skipped" for fact in first.values()))
    for test in flaky:
        result.flaky[test] = [str(job.folder / attempt / log_name(test)) for attempt in ("first", "second")]
    for test, fact in first.items():
        module = test.split("::")[0]
        result.modules[module] = round(result.modules.get(module, 0) + fact["seconds"], 2)
    return result


# ---- shards ----


def _durations_file() -> Path:
    return cache_dir() / "test-modules.json"


def recorded_durations() -> dict[str, float]:
    try:
        return json.loads(_durations_file().read_text())
    except (OSError, ValueError):
        return {}


def record_durations(modules: dict[str, float]) -> None:
    """Keeps how long each module took, for the split of the next run."""
    scratch = _durations_file().with_suffix(f".{os.getpid()}")
    scratch.parent.mkdir(parents=True, exist_ok=True)
    scratch.write_text(json.dumps(recorded_durations() | modules, indent=1, sort_keys=True))
    scratch.replace(_durations_file())


def split(modules: list[str], repo: Path, count: int, recorded: dict[str, float]) -> list[list[str]]:
    """Splits modules into `count` shards of about the same duration: the longest first, each to the shard that has least."""
    def weight(module: str) -> float:
        tests = len(re.findall(r"^def test_", (repo / module).read_text(), re.M))
        return recorded.get(module, tests * UNKNOWN_TEST_S)

    shards: list[list[str]] = [[] for _ in range(count)]
    load = [0.0] * count
    for module in sorted(modules, key=lambda module: (-weight(module), module)):
        least = load.index(min(load))
        shards[least].append(module)
        load[least] += weight(module)
    return [sorted(shard) for shard in shards]
