"""Gangs: PodGroups whose pods Slurm places together."""

from __future__ import annotations

from statistics import median

from frame import Bench, Figure, row
from rows_bridge import SCHEDULER, Load, bridge_on, lend_nodes, no_jobs_left, warm_up

PER_NODE = {"slurmjob.slinky.slurm.net/max-nodes": "20"}


def at_most(before: list[tuple[float, float]], after: list[tuple[float, float]], part: float) -> float:
    """The upper bound of the bucket below which this part of what was added lies."""
    old = dict(before)
    added = [(bound, count - old.get(bound, 0.0)) for bound, count in after]
    total = added[-1][1]
    return next(bound for bound, count in added if count >= part * total)


@row
def gang_of_100(bench: Bench) -> list[Figure]:
    """100 pods in one job, five on each of 20 nodes: from the moment the bridge sees it running to each of its binds."""
    with bridge_on(bench.cluster, bench.slurm) as bridge:
        lend_nodes(bench.cluster, bench.slurm, 60)
        warm_up(bench.cluster)
        before = bridge.steps("allocated to bound")
        for turn in range(3 if bench.quick else 10):
            Load(bench.cluster, f"gang-{turn}", SCHEDULER, 100, gang=100, annotations=PER_NODE).end()
            no_jobs_left(bench.slurm)
        last = at_most(before, bridge.steps("allocated to bound"), 0.99)
    return [Figure("gang of 100 pods: allocated to bound, p99, at most", "at most 0.5 s", None, last, "s", last <= 0.5)]


@row
def gangs_of_20(bench: Bench) -> list[Figure]:
    """50 gangs of 20 pods on 20 nodes, beside as many single pods."""
    rounds, singles, gangs = 1 if bench.quick else 3, [], []
    with bridge_on(bench.cluster, bench.slurm):
        lend_nodes(bench.cluster, bench.slurm, 60)
        warm_up(bench.cluster)
        for turn in range(rounds):
            singles.append(Load(bench.cluster, f"singles-{turn}", SCHEDULER, 1000).end().rate)
            no_jobs_left(bench.slurm)
            gangs.append(Load(bench.cluster, f"gangs-{turn}", SCHEDULER, 1000, gang=20).end().rate)
            no_jobs_left(bench.slurm)
    one, many = median(singles), median(gangs)
    return [Figure("50 gangs of 20 pods, beside 1,000 single pods", "at least 1", one, many, "pods/s", many >= one)]
