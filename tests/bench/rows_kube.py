"""src/kube beside client-go: the same lists, watches and patches against one server, in one run."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from frame import Bench, Figure, build_programs, preparing, row
from slincdev.build import go_program
from slincdev.common import REPO, cache_dir, run, slow_step, wait_for

HERE = Path(__file__).resolve().parent
PODS = 10_000


def reference_programs() -> Path:
    """The Go programs of apiref, built into the cache once: client-go takes minutes to compile."""
    sources = b"".join(path.read_bytes() for path in sorted((HERE / "apiref").rglob("*")) if path.is_file())
    folder = cache_dir() / f"apiref-{hashlib.sha256(sources).hexdigest()[:12]}"
    if not (folder / "clientgo").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with preparing(), slow_step("client-go reference"):
            run([go_program(), "build", "-o", f"{folder}/", "./..."], cwd=HERE / "apiref", env=dict(os.environ) | {"GOTOOLCHAIN": "local"},
                what="building the client-go reference")
    return folder


@contextlib.contextmanager
def fake_api(rate: int, events: int, pods: int = PODS) -> Iterator[tuple[str, str]]:
    """A server that plays 10,000 pods; gives its address and the file of its CA."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([reference_programs() / "fakeapi", "-dir", folder, "-pods", str(pods), "-rate", str(rate), "-events", str(events)])
        try:
            address = Path(folder) / "addr"
            wait_for("the API server stand-in listens", 60, address.exists)
            yield f"https://{address.read_text()}", f"{folder}/ca.crt"
        finally:
            server.terminate()
            server.wait()


def _measure(argv: list[object]) -> dict:
    environment = dict(os.environ) | {"KUBE_FEATURE_WatchListClient": "false"}
    return json.loads(run(argv, env=environment, timeout=120))


def ours(server: str, ca: str, mode: str) -> dict:
    return _measure([REPO / "build/plain/tests/bench/bench_kube", server, ca, mode])


def clientgo(server: str, ca: str, mode: str) -> dict:
    return _measure([reference_programs() / "clientgo", "-server", server, "-ca", ca, mode])


def _best(measure, times: int, key: str) -> dict:
    """The cheapest of several runs: noise only ever adds."""
    return min((measure() for _ in range(times)), key=lambda found: found[key])


def _at_most(name: str, share: float, theirs: float, mine: float, unit: str) -> Figure:
    return Figure(name, f"at most {share:g} x client-go", theirs, mine, unit, mine <= share * theirs)


@row
def kube_cache(bench: Bench) -> list[Figure]:
    """Listing and caching 10,000 pods of 5 kB; then 5,000 updates a second through a watch."""
    build_programs()
    times = 1 if bench.quick else 3
    with fake_api(rate=5000, events=10_000 if bench.quick else 25_000) as (server, ca):
        theirs, mine = _best(lambda: clientgo(server, ca, "list"), times, "cpu"), _best(lambda: ours(server, ca, "list"), times, "cpu")
        world = ours(server, ca, "world")
        followed, mine_followed = clientgo(server, ca, "watch"), ours(server, ca, "watch")
    return [
        _at_most("list and cache 10,000 pods: CPU", 0.5, theirs["cpu"], mine["cpu"], "s"),
        _at_most("list and cache 10,000 pods: resident memory", 0.5, theirs["rss"], mine["rss"], "MiB"),
        Figure("10,000 pods and 5,000 nodes cached: resident memory", "under 80 MiB", None, world["rss"], "MiB", world["rss"] < 80),
        _at_most("watch updates (5,000/s offered): CPU per 1,000", 0.5, 1000 * followed["cpu"] / followed["objects"],
                 1000 * mine_followed["cpu"] / mine_followed["objects"], "s"),
    ]


@row
def kube_patches(bench: Bench) -> list[Figure]:
    """2,000 patches with 64 in flight."""
    build_programs()
    times = 3 if bench.quick else 7
    with fake_api(rate=1, events=1, pods=2) as (server, ca):
        theirs, mine = _best(lambda: clientgo(server, ca, "patch"), times, "seconds"), _best(lambda: ours(server, ca, "patch"), times, "seconds")
    rate, my_rate = theirs["objects"] / theirs["seconds"], mine["objects"] / mine["seconds"]
    return [
        Figure("2,000 patches, 64 in flight: rate", "at least client-go", rate, my_rate, "patches/s", my_rate >= rate),
        _at_most("2,000 patches, 64 in flight: CPU", 1, theirs["cpu"], mine["cpu"], "s"),
    ]


@row
def kube_idle(bench: Bench) -> list[Figure]:
    """A process with nothing to do."""
    build_programs()
    with fake_api(rate=1, events=1, pods=2) as (server, ca):
        mine = ours(server, ca, "idle")
    return [
        Figure("idle process: anonymous memory", "under 6 MiB", None, mine["anon"], "MiB", mine["anon"] < 6),
        Figure("idle process: resident memory", "under 20 MiB", None, mine["rss"], "MiB", mine["rss"] < 20),
    ]
