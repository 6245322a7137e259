"""Which of 5,000 nodes a pod may use, beside plain code that walks all nodes for every pod."""

from __future__ import annotations

import functools
import json

from frame import Bench, Figure, build_programs, row
from slincdev.common import REPO, run

NODES, PODS = 5_000, 20_000


@functools.cache
def _measure(bench: Bench) -> dict:
    """One measurement serves both rows. The quickest of several runs for each figure: noise only ever adds."""
    build_programs()
    program = REPO / "build/plain/tests/bench/bench_filter"
    runs = [json.loads(run([program, str(NODES), str(PODS)], timeout=120)) for _ in range(1 if bench.quick else 5)]
    found: dict = {"walk": min(each["walk"] for each in runs)}
    for sort in ("plain", "labels", "pods"):
        found[sort] = {key: min(each[sort][key] for each in runs) for key in ("new", "known", "bound", "node")}
    return found


def _within(name: str, limit_us: float, walk: float, mine: float) -> Figure:
    return Figure(name, f"under {limit_us:,.0f} us", walk, mine, "us CPU", mine < limit_us)


@row
def eligible_new(bench: Bench) -> list[Figure]:
    """A pod with constraints that no pod had before, among 5,000 nodes with 20,000 pods."""
    found = _measure(bench)
    return [
        _within("nodes of a pod without rules, new class", 5000, found["walk"], found["plain"]["new"]),
        _within("nodes of a pod with selector, affinity, tolerations, new class", 5000, found["walk"], found["labels"]["new"]),
        _within("nodes of a pod with anti-affinity and spread, new class", 5000, found["walk"], found["pods"]["new"]),
    ]


@row
def eligible_known(bench: Bench) -> list[Figure]:
    """The next pod of the same workload; then after one node changed, or one pod was bound that counts."""
    found = _measure(bench)
    return [
        _within("nodes of a pod without rules, known class", 50, found["walk"], found["plain"]["known"]),
        _within("nodes of a pod with selector, affinity, tolerations, known class", 50, found["walk"], found["labels"]["known"]),
        _within("nodes of a pod with anti-affinity and spread, known class", 50, found["walk"], found["pods"]["known"]),
        _within("the same after a label of one node changed the set", 5000, found["walk"], found["labels"]["node"]),
        _within("the same after a bound pod changed the set", 5000, found["walk"], found["pods"]["bound"]),
    ]
