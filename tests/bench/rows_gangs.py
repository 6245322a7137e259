"""Gangs: PodGroups whose pods Slurm places together."""

from __future__ import annotations

import json
from statistics import median

from frame import Bench, Figure, build_programs, full_row, row
from rows_bridge import SCHEDULER, Load, bridge_on, lend_nodes, no_jobs_left, warm_up
from slincdev.common import REPO, run

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
        turns = []
        for turn in range(3 if bench.quick else 10):
            before = bridge.steps("allocated to bound")
            Load(bench.cluster, f"gang-{turn}", SCHEDULER, 100, gang=100, annotations=PER_NODE).end()
            no_jobs_left(bench.slurm)
            turns.append(at_most(before, bridge.steps("allocated to bound"), 0.99))
    last = median(turns)
    return [Figure(f"gang of 100 pods: allocated to bound, p99, at most; median of {len(turns)}", "at most 0.5 s", None, last, "s", last <= 0.5)]


@full_row
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


@row
def gang_of_4000(bench: Bench) -> list[Figure]:
    """4,000 pods on 4,000 nodes whose names do not fold, from creation to end and through a restart of the bridge.

    The whole bridge runs against the simulator's API server and slurmctld, so that the figures are the bridge's and not those of a busy machine."""
    size = 4_000
    build_programs()
    program = REPO / "build/plain/tests/bench/bench_gang"
    runs = [json.loads(run([program, str(size)], timeout=600)) for _ in range(1 if bench.quick else 3)]
    steps = ("bound", "running", "restarted", "over")
    longest = min(max(each[step]["longest_ms"] for step in steps) for each in runs)
    last_bind = min(each["allocated_to_last_bind"] for each in runs)
    cpu = min(sum(each[step]["cpu"] for step in steps) for each in runs)
    plan_mib = max(each[step]["plan_kib"] for each in runs for step in steps) / 1024
    peak_mib = min(each["peak_mib"] for each in runs)
    name = f"gang of {size:,} pods on {size:,} nodes"
    return [
        Figure(f"{name}: longest plan", "under 50 ms", None, longest, "ms CPU", longest < 50),
        Figure(f"{name}: allocated to last bind, simulated", "at most 5 s", None, last_bind, "s", last_bind <= 5),
        Figure(f"{name}: its whole life, bridge and simulated servers", "at most 30 s", None, cpu, "s CPU", cpu <= 30),
        Figure(f"{name}: largest plan", "at most 48 MiB", None, plan_mib, "MiB", plan_mib <= 48),
        Figure(f"{name}: resident at most, bridge and simulated servers", "at most 512 MiB", None, peak_mib, "MiB", peak_mib <= 512),
    ]
