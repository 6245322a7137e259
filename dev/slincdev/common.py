"""What every module here needs: places, pinned versions, progress lines, and errors a person can act on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
DEV = REPO / "dev"
PATIENCE = float(os.environ.get("SLINC_PATIENCE", "1"))  # limits are what a calm machine needs at most; a busy one gets so many times that
INOTIFY_INSTANCES = Path("/proc/sys/fs/inotify/max_user_instances")


class Fail(Exception):
    """One clear line for the person; the command prints it and exits with 1."""


def cache_dir() -> Path:
    base = os.environ.get("SLINC_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'}/slinc"
    return Path(base)


def state_root() -> Path:
    return Path(os.environ.get("SLINC_STATE", "/var/lib/slinc"))


@lru_cache
def versions() -> dict[str, str]:
    """The pinned versions of dev/versions.env; for Slurm's the environment goes before them, as for the images."""
    lines = (line.strip() for line in (DEV / "versions.env").read_text().splitlines())
    found = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return found | {name: os.environ[f"SLINC_{name}"] for name in ("SLURM_SUITE", "SLURM_VERSION") if os.environ.get(f"SLINC_{name}")}


def run(argv: list[str | Path], *, what: str | None = None, **options) -> str:
    """Runs a command to its end and returns what it printed; its last lines become the error if it fails. The longest
    are builds: an hour is a fuse."""
    what = what or " ".join(str(a) for a in argv[:4])
    options.setdefault("timeout", 3600)
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    try:
        done = subprocess.run([str(a) for a in argv], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    except subprocess.TimeoutExpired:
        raise Fail(f"{what} did not end within {options['timeout']:g} s") from None
    if done.returncode != 0:
        tail = " / ".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-4:])
        raise Fail(f"{what} failed ({done.returncode}): {tail}")
    return done.stdout


def say(text: str) -> None:
    print(text, flush=True)


def _took(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


class Durations:
    """How long each slow step took last time, so that waiting people know what to expect."""

    def __init__(self) -> None:
        self.path = cache_dir() / "durations.json"

    def read(self) -> dict[str, float]:
        try:
            return json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}

    def note(self, what: str, seconds: float) -> None:
        known = self.read() | {what: round(seconds, 1)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(known, indent=1))
        scratch.replace(self.path)


@contextlib.contextmanager
def slow_step(what: str) -> Iterator[None]:
    """Announces a step that may take minutes, ticks every 20 s, and says what it took."""
    last = Durations().read().get(what)
    say(f"  {what} ..." + (f" (took {_took(last)} last time)" if last else ""))
    begun, ended = time.monotonic(), threading.Event()

    def tick() -> None:
        while not ended.wait(20):
            say(f"  {what} ... {_took(time.monotonic() - begun)} so far")

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()
    seconds = time.monotonic() - begun
    Durations().note(what, seconds)
    say(f"  {what}: done in {_took(seconds)}")


@contextlib.contextmanager
def step(what: str) -> Iterator[None]:
    """A short step: one line with its time when it is over."""
    begun = time.monotonic()
    yield
    say(f"  {what:<52} {time.monotonic() - begun:5.1f} s")


def wait_for(what: str, seconds: float, check: Callable[[], object], every: float = 0.1,
             hint: Callable[[], str] | None = None) -> object:
    """Polls until check() gives something true, and returns it; a Fail naming `what` when time is up."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > end:
            raise Fail(f"{what}: not after {seconds:g} s" + (f"; {hint()}" if hint else ""))
        time.sleep(every)


def retry_briefly(act: Callable[[], None]) -> None:
    """The kernel takes a moment to let go of control groups and files of processes that just died."""
    end = time.monotonic() + 10 * PATIENCE
    while True:
        try:
            return act()
        except FileNotFoundError:
            return None
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def try_lock(path: Path) -> object | None:
    """The locked file, or None. A lock whose file was removed meanwhile holds nobody else off, so it is not taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = open(path, "w")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
            return file
    except FileNotFoundError:  # the folder was removed with the last cluster
        return None
    except BlockingIOError:
        pass
    file.close()
    return None


@contextlib.contextmanager
def locked(path: Path, what: str, seconds: float = 900) -> Iterator[None]:
    """Holds a file lock, waiting for whoever has it."""
    end = time.monotonic() + seconds
    told = False
    while not (file := try_lock(path)):
        if not told:
            say(f"  waiting for another command to finish with {what}")
            told = True
        if time.monotonic() > end:
            raise Fail(f"{what} is still locked by another command ({path})")
        time.sleep(0.2)
    with file:
        yield


def need_root(doing: str) -> None:
    if os.geteuid() != 0:
        raise Fail(f"{doing} needs root: it makes network namespaces, mounts and containers. Try: sudo make ...")


def need_inotify(instances: int) -> None:
    """Raises the machine's limit if it is lower: a node has about twenty of them, and a containerd that gets none starts without its API."""
    had = int(INOTIFY_INSTANCES.read_text())
    if had >= instances:
        return
    try:
        INOTIFY_INSTANCES.write_text(str(instances))
        say(f"  fs.inotify.max_user_instances of this machine is {instances} now (it was {had})")
    except OSError as error:  # one cluster needs less
        say(f"  fs.inotify.max_user_instances stays {had}, too few for several clusters: {error.strerror}")


def need_disk(folder: Path, gigabytes: float, doing: str) -> None:
    probe = folder
    while not probe.exists():
        probe = probe.parent
    free = shutil.disk_usage(probe).free / 1e9
    needed = float(os.environ.get("SLINC_NEED_GB", gigabytes))
    if free < needed:
        raise Fail(f"{doing} needs {needed:.0f} GB free below {probe}, there are {free:.1f} GB")


def main(command: Callable[[list[str]], int | None]) -> None:
    """Runs a command line and turns Fail into one line on stderr."""
    try:
        sys.exit(command(sys.argv[1:]) or 0)
    except Fail as fail:
        print(f"error: {fail}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
