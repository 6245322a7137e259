"""The operator on a real cluster: how soon children are there, what a steady site costs, how soon a condition follows."""

from __future__ import annotations

import contextlib
import json
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from daemon import Daemon
from frame import Bench, Figure, build_programs, row
from rows_kube import reference_programs
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import run, wait_for
from slincdev.crds import CHART
from slincdev.kube import Api, ApiError, b64
from slincdev.parts import ensure_images, facts, import_images

GROUP = "/apis/slinky.slurm.net/v1beta1"
HOME, COPY, ONE = "bench-operator", "bench-copy", "bench-one"
RESTAPIS, CONTROLLERS = 200, 50
CHILDREN = 2 * RESTAPIS + 4 * CONTROLLERS
PATHS = {"services": "/api/v1", "configmaps": "/api/v1", "deployments": "/apis/apps/v1", "statefulsets": "/apis/apps/v1"}
KEYS = {"slurmKeyRef": {"name": "keys", "key": "k"}, "jwtKeyRef": {"name": "keys", "key": "k"}}
NOWHERE = {"spec": {"nodeSelector": {"bench": "nowhere"}}}  # 50 slurmctld at once would measure kubelet


class Operator(Daemon):
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(folder)
        address = f"127.0.0.1:{self.port}"
        self.run("operator", "--kubeconfig", cluster.admin_config, "--leader-elect-namespace", "default", "--metrics-addr", address,
                 "--health-addr", address)

    def writes(self) -> float:
        """Leases aside."""
        return self.metric("slinc_actions_total", 'type="kube"')


def is_accepted(cluster: Cluster, kind: str, plural: str) -> bool:
    """By a dry run: a definition is served some time before it takes objects."""
    with contextlib.suppress(ApiError):
        cluster.api().post(f"{GROUP}/namespaces/default/{plural}?dryRun=All", custom(kind, "probe", KEYS | {"controllerRef": {"name": "c"}}))
        return True
    return False


@contextlib.contextmanager
def operator_on(cluster: Cluster) -> Iterator[Operator]:
    build_programs()
    api = cluster.api()
    # The definitions stay for the rows that follow: one that is made again under its name takes objects only after a minute.
    run([bin_dir() / "helm", f"--kubeconfig={cluster.admin_config}", "upgrade", "--install", "slurm-operator-crds", CHART])
    for kind, plural in (("Controller", "controllers"), ("RestApi", "restapis")):
        wait_for(f"{plural} are accepted", 30, lambda kind=kind, plural=plural: is_accepted(cluster, kind, plural))
    with tempfile.TemporaryDirectory() as folder:
        operator = Operator(cluster, Path(folder))
        try:
            yield operator
        finally:
            operator.stop()
            for name in (HOME, COPY, ONE):
                with contextlib.suppress(ApiError):
                    api.delete(f"/api/v1/namespaces/{name}")


def make_namespace(cluster: Cluster, name: str) -> None:
    cluster.api().post("/api/v1/namespaces", {"metadata": {"name": name}})
    cluster.api().post(f"/api/v1/namespaces/{name}/secrets", {"metadata": {"name": "keys"}, "data": {"k": b64(secrets.token_bytes(1024))}})


def custom(kind: str, name: str, spec: dict) -> dict:
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def children(cluster: Cluster, namespace: str) -> dict[str, list[dict]]:
    return {plural: [one for one in cluster.api().get(f"{api}/namespaces/{namespace}/{plural}?resourceVersion=0")["items"]
                     if one["metadata"].get("ownerReferences")] for plural, api in PATHS.items()}


def count_objects(api: Api, namespace: str) -> int:
    """Of the kinds of the children. The server counts: lists of all of them would take a core from what is measured."""
    answers = [api.get(f"{path}/namespaces/{namespace}/{plural}?limit=1") for plural, path in PATHS.items()]
    return sum(len(one["items"]) + one["metadata"].get("remainingItemCount", 0) for one in answers)


def time_children(cluster: Cluster) -> tuple[float, float]:
    """From the first custom resource to the last of them, which is our own doing, and to the last child."""
    make_namespace(cluster, HOME)
    api = cluster.api()
    wait_for("the namespace has the ConfigMap that every namespace has", 30, lambda: count_objects(api, HOME) == 1)
    image = {"image": "none/none:1"}
    ref = {"controllerRef": {"name": "c0"}, "replicas": 0, "slurmrestd": image}
    begun = time.monotonic()
    api.post_many(f"{GROUP}/namespaces/{HOME}/controllers", [
        custom("Controller", f"c{i}", KEYS | {"persistence": {"enabled": False}, "slurmctld": image, "logfile": image, "template": NOWHERE})
        for i in range(CONTROLLERS)])
    api.post_many(f"{GROUP}/namespaces/{HOME}/restapis", [custom("RestApi", f"r{i}", ref) for i in range(RESTAPIS)])
    created = time.monotonic() - begun
    wait_for(f"{CHILDREN} children are there", 60, lambda: count_objects(api, HOME) > CHILDREN, every=0.05)
    took = time.monotonic() - begun
    assert sum(map(len, children(cluster, HOME).values())) == CHILDREN
    return created, took


def time_client_go(cluster: Cluster) -> float:
    """The same children in another namespace, made by a loop that waits for each answer."""
    make_namespace(cluster, COPY)
    admin = json.loads(cluster.admin_config.read_text())
    with tempfile.NamedTemporaryFile("w") as file:
        for plural, objects in children(cluster, HOME).items():
            for one in objects:
                spec = {key: value for key, value in one.get("spec", {}).items() if key not in ("clusterIP", "clusterIPs") or "None" in value}
                kept = {key: one[key] for key in ("data", "immutable") if key in one} | ({"spec": spec} if spec else {})
                about = {key: one["metadata"][key] for key in ("name", "labels", "annotations") if key in one["metadata"]}
                body = {"apiVersion": PATHS[plural].removeprefix("/apis/").removeprefix("/api/"), "metadata": about,
                        "kind": {"services": "Service", "configmaps": "ConfigMap", "deployments": "Deployment", "statefulsets": "StatefulSet"}[plural]}
                file.write(json.dumps({"path": f"{PATHS[plural]}/namespaces/{COPY}/{plural}", "body": body | kept}) + "\n")
        file.flush()
        done = json.loads(run([reference_programs() / "children", "-server", admin["clusters"][0]["cluster"]["server"],
                               "-ca", admin["clusters"][0]["cluster"]["certificate-authority"], "-token", admin["users"][0]["user"]["token"],
                               file.name], timeout=300))
    assert done["objects"] == CHILDREN, done
    return done["seconds"]


def steady(operator: Operator, seconds: float, calm_s: float = 5) -> tuple[float, float]:
    """Writes a minute, and the share of a core, once nothing was written for calm_s."""
    last, since = operator.writes(), time.monotonic()
    while time.monotonic() - since < calm_s:
        time.sleep(0.5)
        if operator.writes() != last:
            last, since = operator.writes(), time.monotonic()
    writes, cpu, begun = operator.writes(), operator.cpu_s(), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begun
    return 60 * (operator.writes() - writes) / took, 100 * (operator.cpu_s() - cpu) / took


def time_condition(cluster: Cluster) -> float:
    """From the moment at which the pod is seen to be ready to that at which the Controller is; below zero: it was too early."""
    ensure_images(["slurmctld", "busybox"])
    import_images(cluster, ["slurmctld", "busybox"])
    make_namespace(cluster, ONE)
    api, image = cluster.api(), {"image": f"localhost/slinc/slurmctld:{facts(cluster)['SLURM_TAG']}", "imagePullPolicy": "Never"}
    api.post(f"{GROUP}/namespaces/{ONE}/controllers", custom("Controller", "slurm", KEYS | {
        "persistence": {"enabled": False}, "slurmctld": image, "logfile": {"image": "localhost/slinc/busybox:1", "imagePullPolicy": "Never"},
        "extraConf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity"}))

    def is_ready(path: str) -> bool:
        try:
            conditions = api.get(path).get("status", {}).get("conditions", [])
        except ApiError:
            return False
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    paths = {"pod": f"/api/v1/namespaces/{ONE}/pods/slurm-controller-0", "controller": f"{GROUP}/namespaces/{ONE}/controllers/slurm"}
    seen: dict[str, float] = {}

    def look() -> bool:
        """The Controller is asked first: one that is ready too early is seen before its pod."""
        for what in ("controller", "pod"):
            if what not in seen and is_ready(paths[what]):
                seen[what] = time.monotonic()
        return len(seen) == len(paths)
    wait_for("the pod and the Controller are ready", 90, look, every=0.02)
    return seen["controller"] - seen["pod"]


@row
def operator(bench: Bench) -> list[Figure]:
    """200 RestApi and 50 Controller objects created at once; then nothing changes; then one real slurmctld starts."""
    with operator_on(bench.cluster) as program:
        (created, mine), theirs = time_children(bench.cluster), time_client_go(bench.cluster)
        writes, cpu = steady(program, 10 if bench.quick else 60)
        memory = program.memory_mib()
        condition = time_condition(bench.cluster)
    return [
        Figure(f"operator: {CHILDREN} children of {RESTAPIS} RestApi and {CONTROLLERS} Controller objects", "under 10 s; client-go one after the other",
               theirs, mine, "s", mine < 10),
        Figure("operator: of that, the bench creates the custom resources", "ground", created, None, "s"),
        Figure("operator, steady: writes", "0 a minute", None, writes, "writes/min", writes == 0),
        Figure("operator, steady: CPU", "under 1 % of a core", None, cpu, "%", cpu < 1),
        Figure("operator, steady: resident memory", "under 60 MiB", None, memory, "MiB", memory < 60),
        Figure("operator: Controller Ready after its last pod", "at most 2 s", None, condition, "s", 0 <= condition <= 2),
    ]
