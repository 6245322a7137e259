"""Runs the parts of the test suite in two lanes and says what each took.

The waiting lane (images, end to end) starts all its jobs at once, because they mostly wait. The compute lane runs its
jobs one after another at a lower priority, each on all cores. A job is a process of its own; its output goes to
build/reports/<job>/log and is printed whole when the job ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from slincdev.common import Fail, try_lock

WAITING, COMPUTE = "waiting", "compute"
MAX_FLAKY = 2       # more tests than this that pass only on their second chance fail the run
PROGRESS_EVERY_S = 30


@dataclass
class Result:
    """What a job found. `flaky`: tests that passed on their second chance, with both logs; `modules`: seconds by pytest file."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    flaky: dict[str, list[str]] = field(default_factory=dict)
    modules: dict[str, float] = field(default_factory=dict)


@dataclass
class Job:
    """A part, or one shard of it, as one process."""

    name: str
    part: str
    repo: Path
    targets: list[str] = field(default_factory=list)  # pytest's: modules or a folder
    words: list[str] = field(default_factory=list)    # pytest's options of the command line

    @property
    def folder(self) -> Path:
        return self.repo / "build/reports" / self.name


@dataclass(frozen=True)
class Part:
    run: Callable[[Job], Result]
    lane: str
    budget_s: int
    builds: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    shards: Callable[[], dict[str, list[str]]] | None = None  # the name of each job of the part, and its targets


@dataclass(frozen=True)
class Subject:
    """Pytest modules that test one part of the product, and how long they may take, whichever shard they are in."""

    budget_s: int
    modules: tuple[str, ...]  # tests/.../test_<module>*.py


@dataclass
class Suite:
    """All that a run needs: the program that runs one job (this one), the parts, and how to build."""

    program: Path
    repo: Path
    parts: dict[str, Part]
    build: Callable[[str], None]
    whole_s: int = 0  # the budget of a whole run; 0: it has none, and its parts neither
    build_s: int = 0  # of the builds before all parts
    subjects: dict[str, Subject] = field(default_factory=dict)
    at_end: Callable[[dict[str, Result]], None] = lambda results: None


@dataclass
class Took:
    name: str
    lane: str
    began_s: float
    wall_s: float
    cpu_s: float
    budget_s: int


# ---- one job, in its own process ----


def lower_priority() -> None:
    """Lets the waiting lane go first. Where Linux schedules sessions as groups, a nice value counts only inside its session,
    so the session of this job gets one too."""
    os.nice(10)
    try:
        Path("/proc/self/autogroup").write_text("10")
    except OSError:
        pass
    subprocess.run(["ionice", "-c", "3", "-p", str(os.getpid())], capture_output=True)


def run_job(suite: Suite, text: str) -> int:
    wanted = json.loads(text)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and what is ignored the tests' programs would inherit
    if wanted.pop("is_low"):
        lower_priority()
    job = Job(repo=suite.repo, **wanted)
    try:
        result = suite.parts[job.part].run(job)
    except Fail as fail:
        print(f"error: {fail}", flush=True)
        result = Result(failed=1)
    (job.folder / "result.json").write_text(json.dumps(asdict(result)))
    return 0


# ---- all jobs ----


class Running:
    """A job that has been started: its process, its log, and how far it is."""

    def __init__(self, suite: Suite, job: Job, is_low: bool) -> None:
        self.job, self.part = job, suite.parts[job.part]
        self.began = time.monotonic()
        shutil.rmtree(job.folder, ignore_errors=True)
        job.folder.mkdir(parents=True)
        wanted = {"name": job.name, "part": job.part, "targets": job.targets, "words": job.words, "is_low": is_low}
        with open(job.folder / "log", "w") as log:
            # A session of its own: a nice value for it, and Ctrl-C comes from us.
            self.process = subprocess.Popen([sys.executable, str(suite.program), "--job", json.dumps(wanted)], cwd=suite.repo,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def ended(self) -> float | None:
        """None while it runs; then the CPU seconds of the job and its children."""
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return usage.ru_utime + usage.ru_stime

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def result(self) -> Result:
        try:
            return Result(**json.loads((self.job.folder / "result.json").read_text()))
        except (OSError, ValueError):
            print(f"error: {self.job.name} ended with {self.process.returncode} and without a result")
            return Result(failed=1)

    def progress(self) -> str:
        """Tests that have ended and tests in all, where pytest runs; else the seconds so far."""
        for attempt in ("second", "first"):
            file = self.job.folder / f"{attempt}.jsonl"
            lines = file.read_text().splitlines() if file.exists() else []
            if lines:
                again = " again" if attempt == "second" else ""
                return f"{self.job.name} {len(lines) - 1}/{json.loads(lines[0]).get('selected', '?')}{again}"
        return f"{self.job.name} {time.monotonic() - self.began:.0f} s"


class Run:
    def __init__(self, suite: Suite) -> None:
        self.suite = suite
        self.began = time.monotonic()
        self.took: list[Took] = []
        self.results: dict[str, Result] = {}
        self.locks: list[object] = []
        self.is_terminal = sys.stdout.isatty()
        self.shown_at = 0.0

    def build(self, names: list[str]) -> None:
        before, children = time.monotonic(), os.times()
        if names:
            self.say(f"   builds first: {', '.join(names)}; then the tests run. `make help` names the parts")
        for name in names:
            self.suite.build(name)
        after = os.times()
        cpu_s = after.children_user + after.children_system - children.children_user - children.children_system
        self.took.append(Took("build", "first", before - self.began, time.monotonic() - before, cpu_s, self.suite.build_s))

    def run(self, jobs: list[Job]) -> None:
        lane_of = {job.name: self.suite.parts[job.part].lane for job in jobs}
        waiting = [job for job in jobs if lane_of[job.name] == WAITING]
        queue = [job for job in jobs if lane_of[job.name] == COMPUTE]
        is_low = bool(waiting)
        running = [self.start(job, False) for job in waiting]
        try:
            while running or queue:
                if queue and all(one.part.lane == WAITING for one in running):
                    running.append(self.start(queue.pop(0), is_low))
                for one in list(running):
                    cpu_s = one.ended()
                    if cpu_s is not None:
                        running.remove(one)
                        self.finish(one, cpu_s)
                self.show_progress(running)
                time.sleep(0.2)
        except KeyboardInterrupt:
            self.stop(running)
            raise

    def start(self, job: Job, is_low: bool) -> Running:
        self.say(f"   {job.name} starts ({self.suite.parts[job.part].lane} lane)")
        return Running(self.suite, job, is_low)

    def stop(self, running: list[Running]) -> None:
        """Ctrl-C: pytest takes its cluster down on an interrupt, so each job gets one and the time that it needs."""
        self.say("stopping " + ", ".join(one.job.name for one in running))
        for one in running:
            one.interrupt()
        for one in running:
            one.process.wait()

    def finish(self, one: Running, cpu_s: float) -> None:
        wall_s = time.monotonic() - one.began
        self.say(f"\n== {one.job.name}\n{(one.job.folder / 'log').read_text(errors='replace').strip(chr(10))}")
        result = self.results[one.job.name] = one.result()
        self.took.append(Took(one.job.name, one.part.lane, one.began - self.began, wall_s, cpu_s, one.part.budget_s if self.suite.whole_s else 0))
        self.say(f"-- {one.job.name}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped in {wall_s:.0f} s\n")

    def say(self, text: str) -> None:
        if self.is_terminal:
            text = f"\r\033[K{text}"
        print(text, flush=True)

    def show_progress(self, running: list[Running]) -> None:
        now = time.monotonic()
        if not running or now - self.shown_at < (1 if self.is_terminal else PROGRESS_EVERY_S):
            return
        self.shown_at = now
        line = f"   {clock(now - self.began)}  " + ", ".join(one.progress() for one in running)
        print(f"\r\033[K{line[:150]}" if self.is_terminal else line, end="" if self.is_terminal else "\n", flush=True)


# ---- the report ----


def clock(seconds: float) -> str:
    return f"{int(seconds + 0.5) // 60}:{int(seconds + 0.5) % 60:02}"


def machine_cpu_s() -> float:
    """What all cores have been busy since the machine was started."""
    words = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    user, nice, system, idle, iowait, irq, softirq = map(int, words[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def critical_path(took: list[Took]) -> list[Took]:
    """The jobs that decided when the run ended: the build, then the job of the waiting lane that ended last or all of the
    compute lane, whichever ended later."""
    first = [one for one in took if one.lane == "first"]
    compute = [one for one in took if one.lane == COMPUTE]
    waiting = sorted((one for one in took if one.lane == WAITING), key=lambda one: one.began_s + one.wall_s)[-1:]

    def end(lane: list[Took]) -> float:
        return max((one.began_s + one.wall_s for one in lane), default=0)
    return first + (compute if end(compute) > end(waiting) else waiting)


def print_table(run: Run, cpu_s: float) -> None:
    suite, seconds = run.suite, time.monotonic() - run.began
    print(f"\n{'part':<12} {'lane':<8} {'began':>6} {'wall':>6} {'CPU':>6} {'budget':>7}")
    for one in sorted(run.took, key=lambda one: one.began_s):
        over = "  over" if one.budget_s and one.wall_s > one.budget_s else ""
        budget = clock(one.budget_s) if one.budget_s else "-"
        print(f"{one.name:<12} {one.lane:<8} {clock(one.began_s):>6} {clock(one.wall_s):>6} {clock(one.cpu_s):>6} {budget:>7}{over}")
    others = max(0.0, cpu_s - sum(one.cpu_s for one in run.took))
    print(f"{'clusters':<12} {'(and all else on the machine)':<22} {clock(others):>6}")
    for name, subject in suite.subjects.items():
        starts = tuple(f"test_{module}" for module in subject.modules)
        used_s = sum(seconds for result in run.results.values() for module, seconds in result.modules.items()
                     if Path(module).name.startswith(starts))
        print(f"{name:<12} {'subject':<8} {'':>6} {clock(used_s):>6} {'':>6} {clock(subject.budget_s):>7}{'  over' if used_s > subject.budget_s else ''}")
    path = ", ".join(f"{one.name} {clock(one.wall_s)}" for one in critical_path(run.took))
    print(f"critical path: {path}; all of it {clock(seconds)}" + 
          (f" of {clock(suite.whole_s)}" if suite.whole_s else ""))


def print_flaky(suite: Suite, flaky: dict[str, list[str]]) -> None:
    for test, logs in sorted(flaky.items()):
        print(f"flaky: {test} failed, and passed on its second chance")
        for log in logs:
            print(f"       {Path(log).relative_to(suite.repo)}")
    if len(flaky) > MAX_FLAKY:
        print(f"{len(flaky)} flaky tests: more than {MAX_FLAKY} count as failed")


def total(results: dict[str, Result]) -> tuple[int, int, int]:
    """Passed, failed, skipped. Flaky tests count as passed, unless there are too many of them."""
    passed = sum(result.passed for result in results.values())
    failed = sum(result.failed for result in results.values())
    skipped = sum(result.skipped for result in results.values())
    flaky = sum(len(result.flaky) for result in results.values())
    return (passed - flaky, failed + flaky, skipped) if flaky > MAX_FLAKY else (passed, failed, skipped)


# ---- the command ----


def jobs_of(suite: Suite, names: list[str], words: list[str]) -> list[Job]:
    jobs = []
    for name in names:
        part = suite.parts[name]
        shards = part.shards() if part.shards else {name: list(part.targets)}
        jobs += [Job(job, name, suite.repo, targets, words) for job, targets in shards.items()]
    return jobs


def lock_reports(jobs: list[Job]) -> list[object]:
    """To be held while the jobs run: a second run of a job in this tree would clear the reports of the first."""
    locks = [try_lock(job.folder.with_suffix(".lock")) for job in jobs]
    for job, lock in zip(jobs, locks):
        if not lock:
            raise Fail(f"another run is at {job.name} and writes to {job.folder.relative_to(job.repo)}: wait for it, or use another clone")
    return locks


def main(suite: Suite, argv: list[str]) -> int:
    """`PART... [-- WORDS FOR PYTEST]`, or `--job JSON`, which is how a run starts itself for each job."""
    if argv[:1] == ["--job"]:
        return run_job(suite, argv[1])
    cut = argv.index("--") if "--" in argv else len(argv)
    names, words = argv[:cut], argv[cut + 1:]
    if not names or any(name not in suite.parts for name in names):
        print(f"usage: tests/run PART... [-- WORDS FOR PYTEST]\nparts: {' '.join(suite.parts)}", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore SIGINT, and what is ignored the tests' programs would inherit
        signal.signal(number, signal.default_int_handler)
    run, before = Run(suite), machine_cpu_s()
    try:
        jobs = jobs_of(suite, names, words)
        run.locks = lock_reports(jobs)
        run.build(sorted({build for name in names for build in suite.parts[name].builds}))
        run.run(jobs)
    except KeyboardInterrupt:
        return 130
    except Fail as fail:
        print(f"error: {fail}\n\n0 passed, 1 failed")
        return 1
    print_table(run, machine_cpu_s() - before)
    if not words:
        suite.at_end(run.results)
    print_flaky(suite, {test: logs for result in run.results.values() for test, logs in result.flaky.items()})
    passed, failed, skipped = total(run.results)
    print(f"\n{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0
