"""NodeSets on a real cluster: a real slurmctld whose external nodes stand for registered workers, and pods that kwok plays."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import threading
import time
from collections.abc import Iterator
from statistics import quantiles

from frame import Bench, Figure, full_row, row
from rows_operator import GROUP, Operator, custom, operator_on, steady
from slincdev.cluster import Cluster
from slincdev.common import wait_for
from slincdev.kube import Api, ApiError, b64
from slincdev.parts import ensure_images, facts, import_images
from slincdev.slurm import Slurm, SlurmError

HOME, AWAY = "bench-nodeset", "bench-nodeset-away"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
RANGE = 500  # nodes in one call that creates them


class PodWatch:
    """When each worker was first seen, and first seen to be on its way out. It ends with the namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.api, self.namespace, self.is_over = cluster.api(), namespace, False
        self.seen: dict[str, float] = {}
        self.leaving: dict[str, float] = {}
        self.answer = self._open()
        threading.Thread(target=self._read, daemon=True).start()

    def _open(self) -> http.client.HTTPResponse:
        connection = http.client.HTTPSConnection(self.api.host, self.api.port, context=self.api.context, timeout=600)
        connection.request("GET", f"/api/v1/namespaces/{self.namespace}/pods?watch=1&resourceVersion=0&labelSelector=app.kubernetes.io%2Fname%3Dslurmd",
                           headers={"Authorization": f"Bearer {self.api.token}", "Accept": METADATA})
        return connection.getresponse()

    def _read(self) -> None:
        while not self.is_over:
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                for line in self.answer:
                    self._see(json.loads(line))
                self.answer = self._open()

    def _see(self, event: dict) -> None:
        metadata, now = event["object"].get("metadata", {}), time.monotonic()
        if event["type"] == "DELETED" or metadata.get("deletionTimestamp"):
            self.leaving.setdefault(metadata["name"], now)
        elif metadata.get("name"):
            self.seen.setdefault(metadata["name"], now)


class Fleet:
    """A Controller and a RestApi with real pods, and the NodeSet `w`, whose pods kwok plays."""

    def __init__(self, cluster: Cluster, namespace: str, max_nodes: int) -> None:
        self.cluster, self.api, self.namespace = cluster, cluster.api(), namespace
        self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.api.post(self.path("/api/v1", "secrets"), {"metadata": {"name": "keys"}, "data": {
            "slurm.key": b64(secrets.token_bytes(1024)), "jwt.key": b64(secrets.token_bytes(32))}})
        self.watch = PodWatch(cluster, namespace)
        self.make("configmaps", "files", {"cgroup.conf": "CgroupPlugin=disabled\n"})
        self.custom("Controller", "slurm", {
            "slurmKeyRef": {"name": "keys", "key": "slurm.key"}, "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
            "slurmctld": self.image("slurmctld"), "logfile": {"image": "localhost/slinc/busybox:1", "imagePullPolicy": "Never"},
            "persistence": {"enabled": False}, "configFileRefs": [{"name": "files"}],
            "extraConf": f"ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity\nMaxNodeCount={max_nodes}\nMinJobAge=10"})

    def path(self, api: str, plural: str, name: str = "") -> str:
        return f"{api}/namespaces/{self.namespace}/{plural}/{name}".rstrip("/")

    def image(self, name: str) -> dict:
        return {"image": f"localhost/slinc/{name}:{facts(self.cluster)['SLURM_TAG']}", "imagePullPolicy": "Never"}

    def make(self, plural: str, name: str, data: dict) -> None:
        self.api.post(self.path("/api/v1", plural), {"metadata": {"name": name}, "data": data})

    def custom(self, kind: str, name: str, spec: dict) -> None:
        self.api.post(self.path(GROUP, f"{kind.lower()}s"), custom(kind, name, spec))

    def start_slurmrestd(self) -> Slurm:
        """And wait until slurmctld answers behind it."""
        self.custom("RestApi", "slurm", {"controllerRef": {"name": "slurm"}, "slurmrestd": self.image("slurmrestd")})
        wait_for("slurmrestd has its Service", 30, lambda: self.api.exists(self.path("/api/v1", "services", "slurm-restapi")))
        wait_for("slurmrestd is ready", 90, lambda: self.is_ready("restapis"), every=0.5)
        slurm = Slurm(self.cluster, self.namespace, "keys")
        wait_for("Slurm answers", 90, lambda: answers(slurm), every=0.5)
        return slurm

    def is_ready(self, plural: str) -> bool:
        conditions = self.api.get(self.path(GROUP, plural, "slurm")).get("status", {}).get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def make_nodeset(self, size: int) -> None:
        """Without a grace period, so that kwok's part of an end is short. The bridge's rows leave their taint on the nodes."""
        self.custom("NodeSet", "w", {
            "controllerRef": {"name": "slurm"}, "replicas": size, "oversubscribeNode": True,
            "slurmd": {"image": "none/none:1"}, "logfile": {"image": "none/none:1"},
            "partition": {"enabled": True, "config": "State=UP Default=YES MaxTime=UNLIMITED"},
            "updateStrategy": {"type": "OnDelete"},
            "template": {"spec": {"hostname": "w-", "nodeSelector": {"type": "kwok"}, "terminationGracePeriodSeconds": 0,
                                  "tolerations": [{"operator": "Exists"}]}}})

    def scale(self, size: int) -> None:
        self.api.merge(self.path(GROUP, "nodesets", "w"), {"spec": {"replicas": size}})

    def status(self) -> dict:
        return self.api.get(self.path(GROUP, "nodesets", "w")).get("status", {})

    def is_serving(self, size: int) -> bool:
        status = self.status()
        return status.get("readyReplicas", 0) == size and status.get("slurmIdle", 0) + status.get("slurmAllocated", 0) == size

    def end(self) -> None:
        for found in self.api.get(self.path(GROUP, "nodesets"))["items"]:
            name = found["metadata"]["name"]
            self.api.merge(self.path(GROUP, "nodesets", name), {"metadata": {"annotations": {"nodeset.slinky.slurm.net/skip-drain": "true"}}})
            self.api.delete(self.path(GROUP, "nodesets", name))
        self.watch.is_over = True
        end_namespace(self.api, self.namespace)


def end_namespace(api: Api, name: str) -> None:
    api.delete(f"/api/v1/namespaces/{name}")
    wait_for(f"namespace {name} is gone", 240, lambda: not api.exists(f"/api/v1/namespaces/{name}"), every=0.5)


def answers(slurm: Slurm) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException, SlurmError):
        return any(ping["responding"] for ping in slurm.ping())
    return False


@contextlib.contextmanager
def fleet_on(cluster: Cluster, namespace: str, max_nodes: int = 1024) -> Iterator[tuple[Operator, Fleet]]:
    ensure_images(["slurmctld", "slurmrestd", "busybox"])
    import_images(cluster, ["slurmctld", "slurmrestd", "busybox"])
    with operator_on(cluster) as operator:
        fleet = Fleet(cluster, namespace, max_nodes)
        try:
            yield operator, fleet
        finally:
            with contextlib.suppress(ApiError):
                fleet.end()


def make_nodes(slurm: Slurm, size: int) -> None:
    """Each is registered before its pod exists: with slurmd the worker would do so itself."""
    for start in range(0, size, RANGE):
        slurm.create_nodes(f"w-[{start}-{min(start + RANGE, size) - 1}]", 2, 100, "w")


def time_pods(operator: Operator, fleet: Fleet, size: int, within_s: float) -> float:
    """By the answers to the creates, as of the one connection: when two cores are busy, watches and lists tell of a pod seconds after it exists."""
    def created() -> float:
        return operator.metric("slinc_actions_total", 'type="kube"', 'verb="create"', 'outcome="done"')
    before, begun = created(), time.monotonic()
    fleet.scale(size)
    wait_for(f"{size} workers are created", within_s, lambda: created() >= before + size, every=0.02)
    took = time.monotonic() - begun
    wait_for(f"{size} workers are there", 30, lambda: len(fleet.watch.seen) == size)
    return took


def time_by_one(cluster: Cluster, fleet: Fleet, size: int) -> float:
    """Equal pods in another namespace, made by one connection that waits for each answer."""
    cluster.api().post("/api/v1/namespaces", {"metadata": {"name": AWAY}})
    api, live = cluster.api(), fleet.api.get(fleet.path("/api/v1", "pods", "w-0"))
    wait_for("the namespace has its account", 30, lambda: api.exists(f"/api/v1/namespaces/{AWAY}/serviceaccounts/default"))
    about = {key: live["metadata"][key] for key in ("labels", "annotations") if key in live["metadata"]}
    spec = {key: value for key, value in live["spec"].items() if key != "nodeName"}
    begun = time.monotonic()
    for index in range(size):
        api.post(f"/api/v1/namespaces/{AWAY}/pods", {"metadata": about | {"name": f"w-{index}"}, "spec": spec})
    took = time.monotonic() - begun
    end_namespace(api, AWAY)
    return took


def leave_times(fleet: Fleet, slurm: Slurm, count: int) -> list[float]:
    """Workers with a job each are to go; the jobs end one after the other. From a job's end to the pod's deletion."""
    watch = fleet.watch
    jobs = {f"w-{index}": slurm.submit(f"j{index}", partition="w", required_nodes=f"w-{index}") for index in range(count)}

    def busy() -> bool:
        return fleet.status().get("slurmAllocated", 0) == count
    wait_for("each worker has its job", 60, busy, every=0.2)
    watch.leaving.clear()
    fleet.scale(0)
    wait_for("only those are left, and drain", 90, lambda: fleet.status().get("slurmDrain", 0) == count and len(watch.leaving) == len(watch.seen) - count,
             every=0.2)
    ended = {}
    for name, job in jobs.items():
        slurm.cancel(job)
        ended[name] = time.monotonic()
        time.sleep(0.05)
    wait_for("all workers are gone", 60, lambda: all(name in watch.leaving for name in jobs), every=0.05)
    return [watch.leaving[name] - ended[name] for name in jobs]


def is_shown(fleet: Fleet, name: str, state: str) -> bool:
    conditions = fleet.api.get(fleet.path("/api/v1", "pods", name))["status"].get("conditions", [])
    return any(one["type"] == f"SlurmNodeState{state}" and one["status"] == "True" for one in conditions)


def time_shown(fleet: Fleet, slurm: Slurm, name: str, state: str) -> float:
    """From Slurm's change to the condition of the pod."""
    wait_for(f"{name} is {state} in Slurm", 30, lambda: state.upper() in slurm.call("GET", f"/slurm/{{api}}/node/{name}")["nodes"][0]["state"], every=0.02)
    begun = time.monotonic()
    wait_for(f"{name} shows {state}", 60, lambda: is_shown(fleet, name, state), every=0.02)
    return time.monotonic() - begun


def job_lags(fleet: Fleet, slurm: Slurm, names: list[str]) -> list[float]:
    """Starts and ends of jobs, one after the other: each makes the list of all nodes new."""
    found = []
    for name in names:
        job = slurm.submit(f"lag-{name}", partition="w", required_nodes=name)
        found.append(time_shown(fleet, slurm, name, "Mixed"))
        slurm.cancel(job)
        found.append(time_shown(fleet, slurm, name, "Idle"))
    return found


def drain_lags(fleet: Fleet, slurm: Slurm, names: list[str]) -> list[float]:
    """Drains by somebody else: only the list of all nodes tells of them."""
    found = []
    for name in names:
        slurm.call("POST", f"/slurm/{{api}}/node/{name}", {"state": ["DRAIN"], "reason": "bench"})
        found.append(time_shown(fleet, slurm, name, "Drain"))
        time.sleep(5)
    return found


@row
def nodeset(bench: Bench) -> list[Figure]:
    """A NodeSet grows from 0 to 500 workers; then workers with jobs are removed, each when its job ends."""
    size, going = (100, 20) if bench.quick else (500, 100)
    with fleet_on(bench.cluster, HOME) as (operator, fleet):
        slurm = fleet.start_slurmrestd()
        make_nodes(slurm, size)
        fleet.make_nodeset(0)
        wait_for("the NodeSet is known", 60, lambda: fleet.status().get("observedGeneration", 0) > 0 and partition_is_there(slurm), every=0.5)
        before = operator.kube_writes()
        mine = size / time_pods(operator, fleet, size, 120)
        wait_for(f"{size} workers serve", 180, lambda: fleet.is_serving(size), every=0.5)
        writes = (operator.kube_writes() - before) / size
        theirs = size / time_by_one(bench.cluster, fleet, size)
        waits = leave_times(fleet, slurm, going)
    p99 = quantiles(waits, n=100)[98]
    return [
        Figure(f"nodeset: 0 to {size} workers, real slurmctld with registered nodes, kwok pods", "at least 100 pods/s; one connection",
               theirs, mine, "pods/s", mine >= 100),
        Figure("nodeset: writes to the API server for each worker until it serves", "ground: create, conditions, metadata, Events, status", None,
               writes, "writes"),
        Figure("nodeset: end of a worker's last job to the deletion of its pod, p99", "under 2 s; Slinky up to 30 s", 30.0, p99, "s", p99 < 2),
    ]


def partition_is_there(slurm: Slurm) -> bool:
    return any(one["name"] == "w" for one in slurm.call("GET", "/slurm/{api}/partitions/")["partitions"])


@full_row
def nodeset_steady(bench: Bench) -> list[Figure]:
    """A NodeSet of 5,000 workers that all serve, and nothing happens."""
    size = 1000 if bench.quick else 5000
    with fleet_on(bench.cluster, HOME, max_nodes=size + 100) as (operator, fleet):
        slurm = fleet.start_slurmrestd()
        make_nodes(slurm, size)
        begun = time.monotonic()
        fleet.make_nodeset(size)
        wait_for(f"{size} workers serve", size / 5, lambda: fleet.is_serving(size), every=1)
        grown = time.monotonic() - begun
        writes, cpu = steady(operator, 20 if bench.quick else 60, calm_s=40)  # the last reconfigure ends half a minute after the last worker serves
        memory = operator.memory_mib()
        drains = drain_lags(fleet, slurm, [f"w-{index}" for index in range(2 if bench.quick else 4)])
        jobs = job_lags(fleet, slurm, [f"w-{index}" for index in range(100, 105 if bench.quick else 115)])
    return [
        Figure(f"nodeset, {size} workers: until all serve", "ground: 20 kwok nodes, kube-scheduler, two cores", None, grown, "s"),
        Figure(f"nodeset, {size} workers, steady: writes", "0 a minute", None, writes, "writes/min", writes == 0),
        Figure(f"nodeset, {size} workers, steady: CPU", "under 2 % of a core", None, cpu, "%", cpu < 2),
        Figure(f"nodeset, {size} workers: resident memory", "under 100 MiB", None, memory, "MiB", memory < 100),
        Figure(f"nodeset, {size} workers: start or end of a job to the condition of its pod, longest", "under 2 s", None, max(jobs), "s", max(jobs) < 2),
        Figure(f"nodeset, {size} workers: a drain by others to the condition of its pod, longest", "under 2 s", None, max(drains), "s", max(drains) < 2),
    ]


@full_row
def nodeset_without_slurm(bench: Bench) -> list[Figure]:
    """slurmrestd has no pod, so that nobody answers for Slurm. Slinky's operator made 0 of 100 in 60 s."""
    size = 100
    with fleet_on(bench.cluster, HOME) as (_, fleet):
        fleet.custom("RestApi", "slurm", {"controllerRef": {"name": "slurm"}, "replicas": 0, "slurmrestd": fleet.image("slurmrestd")})
        wait_for("slurmrestd has its Service", 30, lambda: fleet.api.exists(fleet.path("/api/v1", "services", "slurm-restapi")))
        fleet.make_nodeset(size)
        begun = time.monotonic()
        with contextlib.suppress(Exception):
            wait_for(f"{size} workers are there", 60, lambda: len(fleet.watch.seen) >= size, every=0.05)
        took, made = time.monotonic() - begun, len(fleet.watch.seen)
    return [Figure(f"nodeset, slurmrestd away: workers created of {size} ({took:.1f} s)", "all; Slinky 0 in 60 s", 0, made, "pods", made == size)]
