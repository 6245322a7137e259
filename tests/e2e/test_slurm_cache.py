"""The poller and its caches against a real slurmctld: events follow on each other, writes show at once, restarts and lists that run
meanwhile take nothing away that is there, and a new token is all it takes to go on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import REPO
from slincdev.common import PATIENCE
from slincdev.slurm import SlurmError
from waits import wait_for

DRIVE = REPO / "build/plain/tests/e2e/drive_slurm_cache"
PENDING, RUNNING, CANCELLED = 1 << 0, 1 << 1, 1 << 4
VISIBLE_MS = 50
LIVES_S = 8  # a token that ends within the test
NODES = {f"cache-{index}" for index in range(1, 5)}


class Driver:
    """The program, and all that it has said. It ends by itself when an event does not follow on the one before."""

    def __init__(self, slurm, token_file: Path) -> None:
        self.lines: list[dict] = []
        self.came = threading.Condition()
        self.process = subprocess.Popen([DRIVE, f"http://{slurm.host}:{slurm.port}", str(token_file)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        threading.Thread(target=self._read, daemon=True).start()
        self.wait("the caches are filled", lambda line: "synced" in line)

    def _read(self) -> None:
        for line in self.process.stdout:
            with self.came:
                self.lines.append(json.loads(line))
                self.came.notify_all()
        with self.came:
            self.lines.append({"ended": True})
            self.came.notify_all()

    def wait(self, what: str, is_it: Callable[[dict], bool], seconds: float = 60, since: int = 0) -> dict:
        seconds *= PATIENCE
        end = time.monotonic() + seconds
        with self.came:
            while True:
                for line in self.lines[since:]:
                    assert "fail" not in line, line
                    if is_it(line):
                        return line
                assert "ended" not in (self.lines or [{}])[-1], f"{what}: the program has ended"
                assert self.came.wait(max(0.0, end - time.monotonic())), f"{what}: not after {seconds:g} s; last: {self.lines[-5:]}"

    def say(self, *words: object) -> int:
        """How many lines there were before: what comes of the words is after them."""
        before = len(self.lines)
        self.process.stdin.write(" ".join(str(word) for word in words) + "\n")
        self.process.stdin.flush()
        return before

    def ask(self, word: str) -> dict:
        tag = f"{word}-{time.monotonic_ns()}"
        since = self.say(word, tag)
        return self.wait(word, lambda line: line.get(word) == tag, since=since)

    def submit(self, name: str) -> tuple[str, float]:
        """The job, and how many milliseconds after the answer it was in the cache."""
        since = self.say("submit", name)
        number = self.wait("the job is submitted", lambda line: "submitted" in line, since=since)["submitted"]
        return number, self.wait("the job shows", lambda line: line.get("visible") == number, since=since)["after_ms"]

    def cancel(self, number: str) -> float:
        since = self.say("cancel", number)
        return self.wait("the cancel shows", lambda line: line.get("visible") == number, since=since)["after_ms"]

    def jobs(self) -> dict[str, int]:
        return self.ask("dump")["jobs"]

    def events(self, key: str) -> list[tuple[int | None, int | None]]:
        return [(line["old"], line["new"]) for line in self.lines if line.get("feed") == "jobs" and line["key"] == key]

    def gone(self) -> set[str]:
        return {line["key"] for line in self.lines if "feed" in line and line["new"] is None}


@contextlib.contextmanager
def driving(slurm, token_file: Path) -> Iterator[Driver]:
    driver = Driver(slurm, token_file)
    try:
        yield driver
        driver.say("quit")
        assert driver.process.wait(60 * PATIENCE) == 0
    finally:
        driver.process.kill()
        driver.process.wait()


@pytest.fixture(scope="module", autouse=True)
def nodes(slurm):
    if not DRIVE.exists():
        subprocess.run([REPO / "dev/build", "plain"], cwd=REPO, check=True)
    slurm.create_nodes("cache-[1-4]", cpus=16, memory_mib=8000)
    yield
    for number, state in states(slurm).items():
        if state in ("RUNNING", "PENDING"):
            slurm.cancel(int(number))

    def are_gone() -> bool:
        left = NODES & {node["name"] for node in slurm.call("GET", "/slurm/{api}/nodes/").get("nodes", [])}
        for name in left:  # one by one: Slurm may delete a part of a range and refuse the rest
            with contextlib.suppress(SlurmError):
                slurm.delete_node(name)
        return not left
    wait_for("the nodes can be deleted", 30, are_gone)


@pytest.fixture
def token_file(slurm, tmp_path) -> Path:
    path = tmp_path / "token"
    path.write_text(slurm.token())
    return path


@pytest.fixture
def driver(slurm, token_file) -> Iterator[Driver]:
    with driving(slurm, token_file) as driver:
        driver.say("expect")
        yield driver


def states(slurm) -> dict[str, str]:
    return {job["job_id"]: job["state"][0] for job in slurm.call("GET", "/slurm/{api}/jobs/state/")["jobs"]}


WORD = {"PENDING": PENDING, "RUNNING": RUNNING, "CANCELLED": CANCELLED}


def agrees(driver: Driver, slurm) -> bool:
    """The cache shows what slurmctld has, neither more nor less."""
    truth, shown = states(slurm), driver.jobs()
    return truth.keys() == shown.keys() and all(shown[key] & WORD[word] for key, word in truth.items() if word in WORD)


def test_lives_are_told_in_order_and_writes_show_within_50_ms(slurm, token_file):
    """A poll comes every 2 s here and would show none in time; a busy machine delays some reads, but not all of them."""
    with driving(slurm, token_file) as driver:
        lives = dict(driver.submit(f"life-{index}") for index in range(5))
        assert min(lives.values()) < VISIBLE_MS, lives
        for number in lives:
            driver.wait("the job runs", lambda line: line.get("key") == number and (line["new"] or 0) & RUNNING)
        ends = [driver.cancel(number) for number in lives]
        assert min(ends) < VISIBLE_MS, ends
        for number in lives:
            events = driver.events(number)
            assert events[0][0] is None
            assert [old for old, _ in events[1:]] == [new for _, new in events[:-1]]
            assert events[-1][1] & CANCELLED
            assert slurm.job(int(number))["job_state"][0] == "CANCELLED"


def test_lists_that_run_meanwhile_take_nothing_away(driver, slurm, eventually):
    theirs = str(slurm.submit("theirs"))
    driver.wait("what others ask for is told", lambda line: line.get("key") == theirs and (line["new"] or 0) & RUNNING)
    slurm.cancel(int(theirs))
    assert driver.wait("its end", lambda line: line.get("key") == theirs and (line["new"] or 0) & CANCELLED)["old"] & RUNNING
    before, numbers = driver.ask("stats")["lists"], []
    for index in range(15):
        driver.say("relist", "a test asks for it")
        numbers.append(driver.submit(f"meanwhile-{index}")[0])
        if index % 3 == 0:
            driver.cancel(numbers[index // 2])
    eventually("lists ran", lambda: driver.ask("stats")["lists"] > before)
    eventually("the cache agrees", lambda: agrees(driver, slurm))
    assert not driver.gone() & set(numbers)
    for number in numbers:
        events = driver.events(number)
        assert [old for old, _ in events[1:]] == [new for _, new in events[:-1]]
        moves = [event for event in events if event[0] != event[1]]  # its reason or forecast may change, as often as Slurm likes
        assert len(set(moves)) == len(moves), "nothing is told twice"
    for number in set(numbers):
        slurm.cancel(int(number))


def slurmctld(cluster) -> int | None:
    """Its process, as the machine sees it."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "comm").read_text() == "slurmctld\n" and f"slinc-{cluster.name}/" in (folder / "cgroup").read_text():
                return int(folder.name)
    return None


def test_a_kill_of_slurmctld_loses_no_event_and_no_job_that_was_saved(driver, slurm, cluster, eventually):
    kept = [driver.submit(f"kept-{index}")[0] for index in range(6)]
    eventually("the jobs run", lambda: all(states(slurm)[number] == "RUNNING" for number in kept))
    old, now = slurmctld(cluster), time.time()
    slurm.cancel(slurm.submit("something to write down"))
    saved = Path(f"/proc/{old}/root/var/spool/slurmctld/slinc/job_state")
    eventually("slurmctld has written them down: these survive a kill -9, the next may not", lambda: saved.stat().st_mtime > now)
    young = [driver.submit(f"young-{index}")[0] for index in range(3)]
    before = len(driver.lines)
    os.kill(old, signal.SIGKILL)

    def answers() -> bool:
        with contextlib.suppress(SlurmError):
            return slurmctld(cluster) not in (None, old) and bool(states(slurm))
        return False
    eventually("slurmctld is back", answers, 90)
    for number in kept[:3]:
        slurm.cancel(int(number))
    for number in kept[:3]:
        driver.wait("a cancel after the restart is told", lambda line: line.get("key") == number and (line["new"] or 0) & CANCELLED, 60, before)
    eventually("the cache agrees", lambda: agrees(driver, slurm))
    eventually("it was suspected", lambda: driver.ask("stats")["suspicions"] > 0, 70)  # at the latest by its time of boot
    eventually("the suspicion has ended", lambda: not driver.ask("stats")["suspicious"])
    assert not driver.gone() & set(kept), "what was there all the time was reported as gone"
    lost = set(young) - states(slurm).keys()
    assert driver.gone() & set(young) == lost
    for number in [*kept[3:], *(set(young) - lost)]:
        slurm.cancel(int(number))


def replace(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def test_a_new_token_that_comes_late_loses_no_event(slurm, token_file, eventually):
    replace(token_file, slurm.token(seconds=LIVES_S))
    with driving(slurm, token_file) as driver:
        number = driver.submit("before")[0]
        eventually("polls fail", lambda: driver.ask("stats")["failures"] > 0)
        slurm.cancel(int(number))
        second = str(slurm.submit("while blind"))
        assert second not in driver.jobs()
        replace(token_file, slurm.token(seconds=600))
        driver.wait("the cancel is told", lambda line: line.get("key") == number and (line["new"] or 0) & CANCELLED, 40)
        driver.wait("the new job is told", lambda line: line.get("key") == second, 40)
        eventually("the cache agrees", lambda: agrees(driver, slurm))
        assert not driver.gone() & {*NODES, *states(slurm)}, "what is there was reported as gone"
        slurm.cancel(int(second))
