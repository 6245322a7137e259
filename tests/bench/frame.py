"""What bench rows are made of: a cluster that comes up when first asked for, figures, and the list of rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from http.client import HTTPException
from pathlib import Path

from slincdev import build, parts
from slincdev import up as life
from slincdev.cluster import Cluster, find
from slincdev.common import REPO, Fail, cache_dir, run, wait_for
from slincdev.slurm import Slurm, SlurmError

NAME, WIDE = "bench", "bench-wide"


@dataclass
class Figure:
    """One line of the table. A row that only measures the ground has no `ours`."""

    name: str
    goal: str
    reference: float | None
    ours: float | None
    unit: str
    met: bool | None = None
    before: float | None = None  # what the program of another commit gave in the same run

    @property
    def ratio(self) -> float | None:
        return self.ours / self.reference if self.ours is not None and self.reference else None

    def as_json(self) -> dict:
        return asdict(self) | {"ratio": self.ratio}


prepared: list[float] = []  # how long each preparation took, in seconds


@contextmanager
def preparing() -> Iterator[None]:
    """Around what is made once per machine or per change of the tree: its time is not that of the bench."""
    begun = time.monotonic()
    try:
        yield
    finally:
        prepared.append(time.monotonic() - begun)


@cache
def build_programs() -> None:
    """The release build that rows measure, once per run."""
    with preparing():
        run([REPO / "dev/build", "plain"])


def program_of(commit: str) -> Path:
    """The release build of another commit, made once and kept in the cache."""
    commit = run(["git", "-C", REPO, "rev-parse", "--verify", f"{commit}^{{commit}}"]).strip()
    tree = cache_dir() / "bench" / commit[:12]
    with preparing():
        if not (tree / "dev/build").exists():
            tree.mkdir(parents=True, exist_ok=True)
            run(["sh", "-c", 'git -C "$1" archive "$2" | tar -x -C "$3"', "sh", REPO, commit, tree])
        run([tree / "dev/build", "plain", "src/cmd/slinc"], timeout=1200)
    return tree / "build/plain/src/cmd/slinc"


class Bench:
    """What rows measure with. Leaving it ends the cluster."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for name in (NAME, WIDE):
            if find(name):
                life.down(name)

    @cached_property
    def _started(self) -> dict[str, Cluster | Exception]:
        return {}

    def _up(self, name: str, **options: object) -> Cluster:
        """Starts the cluster once. A start that failed is not tried again by every row that needs the cluster."""
        if name not in self._started:
            try:
                make_cluster_programs(options["with_parts"])
                self._started[name] = life.up(name, **options)
            except Exception as error:
                self._started[name] = error
        found = self._started[name]
        if isinstance(found, Exception):
            raise Fail(f"cluster '{name}' did not start: {found}")
        return found

    @property
    def cluster(self) -> Cluster:
        return self._up(NAME, node_count=20, with_parts=["slurm"])

    @cached_property
    def slurm(self) -> Slurm:
        return ready_slurm(self.cluster)

    @cached_property
    def wide_slurm(self) -> Slurm:
        """One that has room for all the nodes that anybody asks it to make; its tables make it slower."""
        return ready_slurm(self._up(WIDE, with_parts=["slurm", "wide"]))


def make_cluster_programs(with_parts: list[str]) -> None:
    """Programs and images, into the cache; on a machine that has them this takes no time."""
    wanted = parts.in_order(with_parts)
    with preparing():
        build.ensure_programs(wanted)
        parts.ensure_images([*parts.CORE_IMAGES, *parts.images_of(wanted)])


def ready_slurm(cluster: Cluster) -> Slurm:
    """Slurm of this cluster, once slurmrestd knows the paths of the version that rows use and slurmctld answers behind it."""
    slurm, last = Slurm(cluster), ["no answer"]

    def answers() -> bool:
        try:
            up = any(ping["responding"] for ping in slurm.ping())
            slurm.call("GET", "/slurm/{api}/nodes/")
            slurm.call("GET", "/slurm/{api}/jobs/state/")
        except (OSError, HTTPException, SlurmError) as error:
            last[0] = str(error)
            return False
        return up

    wait_for(f"Slurm of cluster '{cluster.name}' answers", 60, answers, every=0.5, hint=lambda: last[0])
    return slurm


Measure = Callable[[Bench], list[Figure]]
_rows: dict[str, Measure] = {}
_full_only: set[str] = set()


def row(measure: Measure) -> Measure:
    _rows[measure.__name__.replace("_", "-")] = measure
    return measure


def full_row(measure: Measure) -> Measure:
    """One that --quick leaves out unless it is named."""
    _full_only.add(measure.__name__.replace("_", "-"))
    return row(measure)


def all_rows() -> dict[str, Measure]:
    return _rows


def quick_rows() -> list[str]:
    return [name for name in _rows if name not in _full_only]
