"""Pods with devices and with cores of their own. The nodes are fake, and so are their drivers: the row writes the ResourceSlices."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from statistics import median

from frame import Bench, Figure, make_cluster_programs, ready_slurm, row
from rows_bridge import SCHEDULER, Load, bridge_on, fake_nodes, lend_nodes, no_jobs_left, warm_up
from slincdev import up as life
from slincdev.claims import CLAIMS, CORES, ClaimWatch, fake_cores, show_devices
from slincdev.cluster import Cluster, find
from slincdev.common import wait_for
from slincdev.slurm import Slurm

GPU, NAME = "gpu.example.com", "bench-devices"
CONTAINER = {"name": "c", "image": "none/none:1"}


@contextlib.contextmanager
def cluster_of(count: int) -> Iterator[tuple[Cluster, Slurm]]:
    """Nodes of 64 cores, each with eight GPUs."""
    make_cluster_programs(["slurm"])
    cluster = life.up(NAME, node_count=count, with_parts=["slurm"])
    try:
        for node in fake_nodes(cluster):
            show_devices(cluster.api(), GPU, node, [{"name": f"gpu-{index}"} for index in range(8)])
            show_devices(cluster.api(), CORES, node, [fake_cores(64)])
        yield cluster, ready_slurm(cluster)
    finally:
        if find(NAME):
            life.down(NAME)


def end(load: Load, slurm: Slurm) -> Load:
    load.end()
    no_jobs_left(slurm)
    wait_for("the claims are gone", 120, lambda: not load.api.get(f"{CLAIMS}?limit=1")["items"])
    return load


def with_gpu(index: int) -> dict:
    one = {f"deviceclass.resource.kubernetes.io/{GPU}": "1"}
    return {"containers": [CONTAINER | {"resources": {"requests": {"cpu": "1", "memory": "64Mi"} | one, "limits": one}}]}


def pinned(run: int):
    """As the pods leave admission with `pinCpus: auto`."""
    return lambda index: {
        "resourceClaims": [{"name": "slinc-cpu", "resourceClaimName": f"slinc-cpu-{run}-{index}"}],
        "containers": [CONTAINER | {"resources": {"requests": {"cpu": "1", "memory": "64Mi"}, "claims": [{"name": "slinc-cpu"}]}}]}


@row
def devices(bench: Bench) -> list[Figure]:
    """Every GPU of 25 nodes is claimed at once, beside as many pods without claims; then pinned pods at 20 a second."""
    rounds, count = 1 if bench.quick else 3, 100 if bench.quick else 1000
    free, claiming = [], []
    with cluster_of(25) as (cluster, slurm), bridge_on(cluster, slurm) as bridge, ClaimWatch(cluster) as watch:
        lend_nodes(cluster, slurm, 90)
        warm_up(cluster)
        for turn in range(rounds):
            free.append(end(Load(cluster, f"free-{turn}", SCHEDULER, 200), slurm).rate)
            claiming.append(end(Load(cluster, f"gpus-{turn}", SCHEDULER, 200, spec=with_gpu), slurm).rate)
        given, writes = watch.seen, bridge.kube_writes()
        load = Load(cluster, "pinned", SCHEDULER, count, per_second=20, spec=pinned(1))
        writes = (bridge.kube_writes() - writes) / count
        end(load, slurm)
        twice, given = list(watch.twice), (given, watch.seen - given)
    if given != (200 * rounds, count):
        raise RuntimeError(f"the watch saw {given} claims allocated")
    rate, reference = median(claiming), median(free)
    return [
        Figure("200 pods with a GPU claim on 25 nodes x 8, beside 200 without", "at least half", reference, rate, "pods/s", rate >= reference / 2),
        Figure("devices and cores given twice" + "".join(f"; {one}" for one in twice[:3]), "none", None, len(twice), "", not twice),
        Figure(f"{count:,} pinned pods at 20 pods/s, create to bound, p50", "under 100 ms", None, load.p50 * 1e3, "ms", load.p50 < 0.1),
        Figure("the same, p99", "-", None, load.p99 * 1e3, "ms"),
        Figure("the same, writes to Kubernetes per pod until it is bound, events included", "at most 5", None, writes, "writes", writes <= 5.05),
    ]
