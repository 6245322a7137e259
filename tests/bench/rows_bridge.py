"""The bridge beside the stock scheduler, on the same cluster in the same run: 20 nodes of 64 cores, pods of one core that share nodes."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles

from daemon import Daemon
from frame import Bench, Figure, build_programs, full_row, make_cluster_programs, ready_slurm, row
from rows_ground import TOLERATE_FAKE, BindWatch
from slincdev import up as life
from slincdev.cluster import Cluster, find
from slincdev.common import wait_for
from slincdev.slurm import Slurm

SCHEDULER = "slurm-bridge-scheduler"
FINALIZER, TAINT = "scheduler.slinky.slurm.net/finalizer", "slinky.slurm.net/managed-node"
LABELS = {"labels": {"scheduler.slinky.slurm.net/external-node": "true"},
          "annotations": {"scheduler.slinky.slurm.net/external-node-partitions": "slurm-bridge"}}
BIG, APART = "bench-big", "bench-apart"


class Bridge(Daemon):
    def __init__(self, cluster: Cluster, slurm: Slurm, folder: Path) -> None:
        super().__init__(folder)
        (folder / "jwt.key").write_bytes(slurm.key)
        (folder / "config.yaml").write_text(json.dumps({
            "slurmRestApi": f"http://{slurm.host}:{slurm.port}", "sharedNodes": True, "jwtKeyFile": str(folder / "jwt.key")}))
        address = f"127.0.0.1:{self.port}"
        self.run("bridge", "--config", folder / "config.yaml", "--kubeconfig", cluster.admin_config, "--lease-namespace", "default",
                 "--metrics-bind-address", address, "--health-probe-bind-address", address)

    def steps(self, step: str) -> list[tuple[float, float]]:
        """The histogram of a step: how many took at most so many seconds."""
        found = re.findall(rf'^slinc_bridge_step_seconds_bucket\{{step="{step}",le="([^"]+)"\}} (\S+)$', self.metrics(), re.M)
        return [(float(bound), float(count)) for bound, count in found]

    def slurm_writes(self) -> float:
        return self.metric("slinc_bridge_asks_total") + self.metric("slinc_bridge_cancels_total")


@contextlib.contextmanager
def bridge_on(cluster: Cluster, slurm: Slurm) -> Iterator[Bridge]:
    build_programs()
    with tempfile.TemporaryDirectory() as folder:
        bridge = Bridge(cluster, slurm, Path(folder))
        try:
            yield bridge
        finally:
            bridge.stop()


def fake_nodes(cluster: Cluster) -> list[str]:
    return [node["metadata"]["name"] for node in cluster.api().get("/api/v1/nodes?labelSelector=type%3Dkwok")["items"]]


def lend_nodes(cluster: Cluster, slurm: Slurm, within_s: float) -> float:
    """Labels all fake nodes; gives how long it took until Slurm had them all, counted from the last label."""
    api, names = cluster.api(), fake_nodes(cluster)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: api.merge(f"/api/v1/nodes/{name}", {"metadata": LABELS}), names))
    begun = time.monotonic()

    def all_there() -> bool:
        nodes = slurm.call("GET", "/slurm/{api}/nodes/")["nodes"]
        return sum(bool(node["extra"]) and "slurm-bridge" in node["partitions"] for node in nodes) >= len(names)

    wait_for(f"{len(names)} nodes are registered", within_s, all_there, every=0.2)
    return time.monotonic() - begun


def pod(index: int, scheduler: str) -> dict:
    """As it leaves admission: the webhook sets scheduler, toleration and finalizer."""
    ours = scheduler == SCHEDULER
    return {"metadata": {"name": f"p{index}", "labels": {"app": "bench"}, "finalizers": [FINALIZER] if ours else []}, "spec": {
        "schedulerName": scheduler, "nodeSelector": {"type": "kwok"}, "terminationGracePeriodSeconds": 0,
        "tolerations": [*TOLERATE_FAKE, {"key": TAINT, "operator": "Equal", "value": SCHEDULER, "effect": "NoExecute"}],
        "containers": [{"name": "c", "image": "none/none:1", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}]}}


_loads = itertools.count(1)


class Load:
    """Pods created as fast as eight connections can, or at a steady rate, and when each was bound."""

    def __init__(self, cluster: Cluster, namespace: str, scheduler: str, count: int, per_second: float = 0, within_s: float = 180,
                 gang: int = 0, annotations: dict[str, str] | None = None, spec: dict | Callable[[int], dict] | None = None) -> None:
        """gang: so many pods each belong to one PodGroup, made before them, with these annotations. spec: more of it, for each pod."""
        namespace = f"{namespace}-{next(_loads)}"  # a row may be measured twice on one cluster
        self.api, self.namespace, self.gang = cluster.api(), namespace, gang
        self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        wait_for("the namespace has its account", 30, lambda: self.api.exists(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
        for group in range(count // gang if gang else 0):
            self.api.post(f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups",
                          {"metadata": {"name": f"g{group}", "annotations": annotations or {}},
                           "spec": {"schedulingPolicy": {"gang": {"minCount": gang}}}})
        watch, created = BindWatch(cluster, namespace, count), {}
        begun = time.monotonic()

        def create(index: int) -> None:
            if per_second:
                time.sleep(max(0.0, begun + index / per_second - time.monotonic()))
            created[f"p{index}"] = time.monotonic()
            body = pod(index, scheduler)
            body["spec"] |= spec(index) if callable(spec) else spec or {}
            if gang:
                body["spec"]["schedulingGroup"] = {"podGroupName": f"g{index // gang}"}
            self.api.post(f"/api/v1/namespaces/{namespace}/pods", body)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(create, range(count)))
        if not watch.done.wait(within_s):
            raise RuntimeError(f"only {len(watch.bound)} of {count} pods were bound in {within_s} s")
        self.rate = count / (max(watch.bound.values()) - begun)
        waits = [watch.bound[name] - created[name] for name in created]
        cuts = quantiles(waits, n=100) if count > 1 else waits * 99
        self.p50, self.p99 = cuts[49], cuts[98]

    def end(self) -> Load:
        self.api.delete(f"/api/v1/namespaces/{self.namespace}/pods")
        if self.gang:
            self.api.delete(f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{self.namespace}/podgroups")
        wait_for("the pods are gone", 120, lambda: not self.api.get(f"/api/v1/namespaces/{self.namespace}/pods?limit=1")["items"])
        return self


def warm_up(cluster: Cluster) -> None:
    """One pod is placed: the bridge leads, and has read all it must have read before it asks."""
    Load(cluster, "first", SCHEDULER, 1).end()


def no_jobs_left(slurm: Slurm) -> None:
    def none() -> bool:
        return not any(set(job["state"]) & {"RUNNING", "PENDING"} for job in slurm.call("GET", "/slurm/{api}/jobs/state/")["jobs"])
    wait_for("all jobs have ended", 60, none)


@row
def bridge_burst(bench: Bench) -> list[Figure]:
    """1,000 pods at once, three times by each scheduler in turn."""
    rounds, count, stock, ours = 1 if bench.quick else 3, 1000, [], []
    with bridge_on(bench.cluster, bench.slurm):
        lend_nodes(bench.cluster, bench.slurm, 60)
        warm_up(bench.cluster)
        for turn in range(rounds):
            stock.append(Load(bench.cluster, f"stock-{turn}", "default-scheduler", count).end())
            ours.append(Load(bench.cluster, f"burst-{turn}", SCHEDULER, count).end())
            no_jobs_left(bench.slurm)
    reference, rate = median(load.rate for load in stock), median(load.rate for load in ours)
    p50 = median(load.p50 for load in ours)
    return [
        Figure("bridge: burst of 1,000 pods, beside kube-scheduler", "at least 0.7", reference, rate, "pods/s", rate >= 0.7 * reference),
        Figure("bridge: the same, create to bound, p50", "under 1 s", median(load.p50 for load in stock), p50, "s", p50 < 1),
    ]


@row
def bridge_steady(bench: Bench) -> list[Figure]:
    """50 pods a second, and what each costs the API server and Slurm over its whole life."""
    count = 300 if bench.quick else 1000
    with bridge_on(bench.cluster, bench.slurm) as bridge:
        lend_nodes(bench.cluster, bench.slurm, 60)
        warm_up(bench.cluster)
        kube, slurm = bridge.kube_writes(), bridge.slurm_writes()
        load = Load(bench.cluster, "steady", SCHEDULER, count, per_second=50).end()
        no_jobs_left(bench.slurm)
        kube, slurm = (bridge.kube_writes() - kube) / count, (bridge.slurm_writes() - slurm) / count
        busy = bridge.metric("slinc_bridge_asks_total", "busy") / max(1, bridge.metric("slinc_bridge_asks_total"))
    stock = Load(bench.cluster, "steady-stock", "default-scheduler", count, per_second=50).end()
    return [
        Figure("bridge: 50 pods/s offered, create to bound, p50", "under 60 ms", stock.p50 * 1e3, load.p50 * 1e3, "ms", load.p50 < 0.06),
        Figure("bridge: 50 pods/s offered, create to bound, p99", "under 200 ms", stock.p99 * 1e3, load.p99 * 1e3, "ms", load.p99 < 0.2),
        Figure("bridge: writes to Kubernetes per pod, events included", "at most 3", None, kube, "writes", kube <= 3.05),
        Figure("bridge: writes to Slurm per pod", "at most 2", None, slurm, "writes", slurm <= 2.05),
        Figure("bridge: immediate tries that Slurm refused", "under 1 %", None, busy * 100, "%", busy < 0.01),
    ]


@full_row
def bridge_many_jobs(bench: Bench) -> list[Figure]:
    """The same load while Slurm has few jobs of others, and many."""
    slurm, figures, few, many = bench.slurm, {}, 100, 1000 if bench.quick else 4000
    slurm.create_nodes("others-[1-40]", cpus=200, memory_mib=200000, feature="others")
    with bridge_on(bench.cluster, slurm) as bridge:
        lend_nodes(bench.cluster, slurm, 60)
        warm_up(bench.cluster)
        for others in (few, many):
            _fill(slurm, others)
            time.sleep(6 if bench.quick else 12)  # the bridge asks about all jobs every 5 s, or less often while that takes long
            cpu = bridge.cpu_s()
            load = Load(bench.cluster, f"beside-{others}", SCHEDULER, 300, per_second=50).end()
            figures[others] = (load.p50 * 1e3, (bridge.cpu_s() - cpu) / 300 * 1e3)
    _empty(slurm)
    slurm.delete_node("others-[1-40]")
    beside_few, beside_many = figures[few], figures[many]
    return [
        Figure(f"bridge: create to bound, p50, at {few} and at {many:,} jobs", "does not grow", beside_few[0], beside_many[0], "ms",
               beside_many[0] < 1.5 * beside_few[0] + 5),
        Figure(f"bridge: CPU per pod, at {few} and at {many:,} jobs", "does not grow", beside_few[1], beside_many[1], "ms",
               beside_many[1] < 1.5 * beside_few[1] + 1),
    ]


def _fill(slurm: Slurm, wanted: int) -> None:
    """Running jobs of somebody else, on nodes of their own."""
    there = sum("RUNNING" in job["state"] for job in slurm.call("GET", "/slurm/{api}/jobs/state/")["jobs"])
    job = {"job": {"name": "other", "partition": "all", "cpus_per_task": 1, "tasks": 1, "flags": ["EXTERNAL_JOB"],
                   "required_nodes": ["others-[1-40]"], "nodes": "1", "memory_per_node": {"set": True, "number": 16},
                   "current_working_directory": "/tmp"}}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: slurm.call("POST", "/slurm/{api}/job/submit", job), range(wanted - there)))
    wait_for(f"{wanted} jobs of others run", 120, lambda: sum(
        "RUNNING" in job["state"] for job in slurm.call("GET", "/slurm/{api}/jobs/state/")["jobs"]) >= wanted)


def _empty(slurm: Slurm) -> None:
    """Rows that come after this one have Slurm to themselves."""
    numbers = [str(job["job_id"]) for job in slurm.call("GET", "/slurm/{api}/jobs/state/")["jobs"] if "RUNNING" in job["state"]]
    for begin in range(0, len(numbers), 1000):
        slurm.call("DELETE", "/slurm/{api}/jobs/", {"jobs": numbers[begin:begin + 1000]})
    no_jobs_left(slurm)


@full_row
def bridge_big(bench: Bench) -> list[Figure]:
    """5,000 nodes: how soon Slurm has them, how the rate holds when 5,000 pods are placed, and memory with 10,000 pods."""
    nodes, first, more = (500, 1500, 500) if bench.quick else (5000, 5000, 4000)
    make_cluster_programs(["slurm", "wide"])
    cluster = life.up(BIG, node_count=nodes, with_parts=["slurm", "wide"])
    try:
        slurm = ready_slurm(cluster)
        with bridge_on(cluster, slurm) as bridge:
            registered = lend_nodes(cluster, slurm, 120)
            warm_up(cluster)
            empty = Load(cluster, "empty", SCHEDULER, 1000)
            Load(cluster, "filling", SCHEDULER, first - 1000, within_s=600)
            full = Load(cluster, "full", SCHEDULER, 1000)
            Load(cluster, "more", SCHEDULER, more, within_s=600)
            memory = bridge.memory_mib()
    finally:
        if find(BIG):
            life.down(BIG)
    return [
        Figure(f"bridge: {nodes:,} nodes registered in Slurm", "under 30 s", None, registered, "s", registered < 30),
        Figure(f"bridge: burst of 1,000 on {nodes:,} nodes, empty and with {first:,} pods", "falls by less than a third",
               empty.rate, full.rate, "pods/s", full.rate > empty.rate * 2 / 3),
        Figure(f"bridge: memory at {nodes:,} nodes and {first + 1000 + more:,} pods", "under 150 MiB", None, memory, "MiB", memory < 150),
    ]


HOST, ALL_OF_THEM = "kubernetes.io/hostname", {"matchLabels": {"app": "bench"}}
EXCLUDES = {  # how pods exclude each other
    "a host port": {"containers": [{"name": "c", "image": "none/none:1", "ports": [{"containerPort": 80, "hostPort": 8080}],
                                    "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}]},
    "anti-affinity": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": ALL_OF_THEM, "topologyKey": HOST}]}}},
    "topology spread": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule",
                                                       "labelSelector": ALL_OF_THEM}]},
}


@full_row
def bridge_apart(bench: Bench) -> list[Figure]:
    """50 pods at once that exclude each other on 60 nodes: Slurm does not know why, so they are submitted one at a time."""
    figures, count = [], 50
    make_cluster_programs(["slurm"])
    cluster = life.up(APART, node_count=60, with_parts=["slurm"])
    try:
        slurm = ready_slurm(cluster)
        with bridge_on(cluster, slurm):
            lend_nodes(cluster, slurm, 120)
            warm_up(cluster)
            for index, (how, spec) in enumerate(EXCLUDES.items()):
                stock = Load(cluster, f"stock-{index}", "default-scheduler", count, spec=spec).end()
                ours = Load(cluster, f"apart-{index}", SCHEDULER, count, spec=spec).end()
                no_jobs_left(slurm)
                figures.append(Figure(f"bridge: {count} pods that exclude each other by {how}, on 60 nodes, beside kube-scheduler", "at least 0.2",
                                      stock.rate, ours.rate, "pods/s", ours.rate >= 0.2 * stock.rate))
    finally:
        if find(APART):
            life.down(APART)
    return figures
