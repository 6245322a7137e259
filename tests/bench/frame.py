"""What bench rows are made of: a cluster that comes up when first asked for, figures, and the list of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property

from slincdev import up as life
from slincdev.cluster import Cluster, find
from slincdev.slurm import Slurm

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

    @property
    def ratio(self) -> float | None:
        return self.ours / self.reference if self.ours is not None and self.reference else None

    def as_json(self) -> dict:
        return asdict(self) | {"ratio": self.ratio}


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
    def cluster(self) -> Cluster:
        return life.up(NAME, node_count=20, with_parts=["slurm"])

    @cached_property
    def slurm(self) -> Slurm:
        return Slurm(self.cluster)

    @cached_property
    def wide_slurm(self) -> Slurm:
        """One that has room for all the nodes that anybody asks it to make; its tables make it slower."""
        return Slurm(life.up(WIDE, with_parts=["slurm", "wide"]))


_rows: dict[str, Callable[[Bench], list[Figure]]] = {}


def row(measure: Callable[[Bench], list[Figure]]) -> Callable[[Bench], list[Figure]]:
    _rows[measure.__name__.replace("_", "-")] = measure
    return measure


def all_rows() -> dict[str, Callable[[Bench], list[Figure]]]:
    return _rows
