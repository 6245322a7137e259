"""The operator and the bridge in one cluster: three lines of Helm without values, pods beside native jobs on one node, a new JWT key."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import secrets
import shlex
import time
from collections.abc import Callable, Iterator

import pytest
from bridge import JOB_LABEL, NODE_LABEL, PARTITIONS, TAINT
from definitions import DEFINITION, KINDS
from pods import BUSYBOX, pod
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, REPO, Fail
from slincdev.components import NODE
from slincdev.kube import ApiError, b64
from slincdev.parts import ensure_images, import_images, kubectl
from slincdev.release import ensure_image
from slincdev.system import IMAGES, VALUES, System
from waits import PASSING, wait_for

HOME, OPERATOR_HOME, MANAGED = "together", "together-operator", "slurm-bridge"
SLURM_NAME = "slinky.slurm.net/slurm-nodename"
KWOK = "kwok-0"
REFUSED_S = 30  # how long calls may be refused after the key was replaced
UNTIL_TOLD = "while [ ! -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.1; done"
HELM = """
helm install slurm-operator charts/slurm-operator -n together-operator --create-namespace
helm install slurm charts/slurm -n together --create-namespace
helm install slurm-bridge charts/slurm-bridge -n together
"""


class Together(System):
    """With pods of the managed namespace, and native jobs."""

    def pods_path(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{MANAGED}/pods/{name}".rstrip("/")

    def make(self, name: str, **spec) -> None:
        one = pod(name, BUSYBOX, "sleep", "1000000", **spec)
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "16Mi"}}
        self.api.post(self.pods_path(), one)

    def pod(self, name: str) -> dict:
        return self.api.get(self.pods_path(name))

    def is_running(self, name: str) -> bool:
        return self.pod(name)["status"]["phase"] == "Running"

    def job_of(self, name: str) -> str:
        return self.pod(name)["metadata"]["labels"].get(JOB_LABEL, "")

    def says(self, name: str) -> str:
        found = self.pod(name)["status"].get("conditions", [])
        return next((one["message"] for one in found if one["type"] == "SlurmPending" and one["status"] == "True"), "")

    def sbatch(self, *words: str) -> str:
        return self.slurm(shlex.join(["sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-n1", "--mem=16", "-p", "cpu", *words, "--wrap", UNTIL_TOLD]))

    def free_cores(self, node: str) -> int:
        """By Slurm's accounting."""
        used, idle, _, _ = map(int, self.slurm(f"sinfo -hN -n {node} -o %C").splitlines()[0].split("/"))
        return idle

    def rest_status(self) -> int:
        """With which slurmrestd answers to the token that the bridge is given."""
        secret = self.api.get(f"/api/v1/namespaces/{HOME}/secrets/slurm-bridge-token")
        address = self.api.get(f"/api/v1/namespaces/{HOME}/services/slurm-restapi")["spec"]["clusterIP"]
        connection = http.client.HTTPConnection(address, 6820, timeout=5 * PATIENCE)
        connection.request("GET", "/slurm/v0.0.44/nodes/", headers={"X-SLURM-USER-TOKEN": base64.b64decode(secret["data"]["auth-token"]).decode()})
        return connection.getresponse().status

    def wait(self, what: str, calm_s: float, check: Callable[[], object]) -> object:
        def show() -> str:
            return "\n".join(self.try_to(*words) for words in (
                ("-n", HOME, "get", "pods,tokens.slinky.slurm.net,controllers.slinky.slurm.net,nodesets.slinky.slurm.net"), ("-n", MANAGED, "get", "pods"),
                ("-n", HOME, "exec", "slurm-controller-0", "-c", "slurmctld", "--", "sh", "-c", "sinfo -N -o '%N %P %T %C %E'; squeue -a"),
                ("-n", HOME, "logs", "deployment/slurm-bridge-scheduler", "--tail=12")))
        return wait_for(what, calm_s, check, hint=show, forgiven=(*PASSING, Fail, IndexError, ValueError))

    def try_to(self, *words: str) -> str:
        try:
            return self.kubectl(*words)
        except Fail as fail:
            return str(fail)


def volume(cluster: Cluster) -> dict:
    """For the claim of slurmctld: no provisioner runs here."""
    folder = cluster.shared / "together"
    folder.mkdir(exist_ok=True)
    os.chown(folder, 401, 401)
    return {"metadata": {"name": "together"}, "spec": {"capacity": {"storage": "4Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(folder)}}}


@pytest.fixture(scope="module")
def system(cluster: Cluster) -> Iterator[Together]:
    ensure_image()
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    found, api = Together(cluster, HOME, OPERATOR_HOME), cluster.api()
    api.post("/api/v1/persistentvolumes", volume(cluster))
    api.post("/api/v1/namespaces", {"metadata": {"name": MANAGED}})
    try:
        for line in HELM.strip().splitlines():
            found.helm(*shlex.split(line)[1:], *(["--wait"] if "slurm-operator" in line else []))
        yield found
    finally:
        with contextlib.suppress(ApiError, Fail, OSError):
            remove(found)


def remove(system: Together) -> None:
    api = system.api
    for namespace in (MANAGED, HOME, OPERATOR_HOME):
        api.delete(f"/api/v1/namespaces/{namespace}")
    for plural in KINDS:
        if api.exists(DEFINITION.format(plural)):
            for one in api.get(f"/apis/slinky.slurm.net/v1beta1/{plural}")["items"]:  # nobody is left who would take the finalizers off
                api.merge(f"/apis/slinky.slurm.net/v1beta1/namespaces/{one['metadata']['namespace']}/{plural}/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
            api.delete(DEFINITION.format(plural))
    for node, labels in ((KWOK, {NODE_LABEL: None}), (NODE, {SLURM_NAME: None})):
        taints = [one for one in api.get(f"/api/v1/nodes/{node}")["spec"].get("taints", []) if one["key"] != TAINT]
        api.merge(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}, "spec": {"taints": taints}})
    wait_for("the namespaces are gone", 60, lambda: not any(api.exists(f"/api/v1/namespaces/{one}") for one in (MANAGED, HOME, OPERATOR_HOME)))
    api.delete("/api/v1/persistentvolumes/together")


def test_three_lines_of_helm_without_values_are_a_whole_system(system: Together) -> None:
    for plural in ("controllers", "restapis"):
        system.wait(f"{plural} slurm is ready", 90, lambda plural=plural: system.is_ready(plural, "slurm"))
    system.wait("the Token is ready", 30, lambda: system.is_ready("tokens", "slurm-bridge"))
    system.api.merge(f"/api/v1/nodes/{KWOK}", {"metadata": {"labels": {NODE_LABEL: "true"}, "annotations": {PARTITIONS: "slurm-bridge"}}})
    system.wait("Slurm has the node", 60, lambda: system.are_idle(KWOK))
    system.make("first", nodeSelector={"type": "kwok"}, tolerations=[{"key": "kwok.x-k8s.io/node", "operator": "Exists"}])
    system.wait("the pod runs where Slurm placed it", 60, lambda: system.is_running("first"))
    assert system.pod("first")["spec"]["nodeName"] == KWOK
    assert system.slurm(f"squeue -h -j {system.job_of('first')} -o '%T %N'") == f"RUNNING {KWOK}"


def test_pods_and_native_jobs_share_a_node_by_slurms_accounting(system: Together) -> None:
    """The node has a worker, which tolerates the bridge; so do the pods of the system, which live there as well."""
    with_volume = ["--set", "controller.persistence.enabled=true,loginsets.main.enabled=false,nodesets.cpu.slurmd.resources.limits.cpu=2"]
    system.helm("upgrade", "slurm-operator", REPO / "charts/slurm-operator", "-n", OPERATOR_HOME, "-f", VALUES / "operator.yaml", "--wait")
    system.helm("upgrade", "slurm", REPO / "charts/slurm", "-n", HOME, "-f", VALUES / "slurm.yaml", *with_volume)
    system.helm("upgrade", "slurm-bridge", REPO / "charts/slurm-bridge", "-n", HOME, "-f", VALUES / "bridge.yaml")
    system.wait("the worker is idle, with two cores", 120, lambda: system.are_idle("cpu-0") and system.free_cores("cpu-0") == 2)
    assert KWOK in system.node_states()  # an external node and a worker in one Slurm
    system.api.merge(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {SLURM_NAME: "cpu-0"}}})
    system.wait("the node is shared", 60, lambda: any(one["key"] == TAINT for one in system.api.get(f"/api/v1/nodes/{NODE}")["spec"].get("taints", [])))
    native = system.sbatch()
    system.wait("a native job runs", 60, lambda: system.job_states()[native] == "RUNNING")
    system.make("beside")
    system.wait("a pod runs beside it", 90, lambda: system.is_running("beside"))
    assert system.pod("beside")["spec"]["nodeName"] == NODE and system.free_cores("cpu-0") == 0
    system.make("third")
    system.wait("another pod waits for a core", 60, lambda: "job" in system.says("third"))
    system.end_job("cpu-0", native)
    system.wait("the pod starts on the core that is free now", 60, lambda: system.is_running("third"))
    native = system.sbatch()
    system.wait("a native job waits for a core", 30, lambda: system.job_states()[native] == "PENDING")
    system.api.delete(system.pods_path("third"), {"gracePeriodSeconds": 0})
    system.wait("it starts when the pod is gone", 60, lambda: system.job_states()[native] == "RUNNING")
    assert system.is_running("beside")


def test_a_new_jwt_key_refuses_calls_for_half_a_minute_at_most_and_loses_nothing(system: Together) -> None:
    before = {name: (system.pod(name)["metadata"]["uid"], system.job_of(name)) for name in ("first", "beside")}
    jobs = system.job_states()
    assert len(jobs) == 3 and set(jobs.values()) == {"RUNNING"} and system.rest_status() == 200
    fresh = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "slurm-auth-jwt"}, "immutable": True, "data": {"jwt.key": b64(secrets.token_hex(512).encode())}}
    kubectl(system.cluster, "-n", HOME, "replace", "--force", "-f", "-", input=json.dumps(fresh))
    begun = time.monotonic()
    system.make("after", nodeSelector={"type": "kwok"}, tolerations=[{"key": "kwok.x-k8s.io/node", "operator": "Exists"}])

    def has_new_key() -> bool:
        stamp = system.custom("tokens", "slurm-bridge")["status"]["issuedAt"]
        return stamp >= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - (time.monotonic() - begun) - 1)) and system.rest_status() == 200

    system.wait("the new token is taken", REFUSED_S, has_new_key)
    system.wait("the bridge places pods again", REFUSED_S, lambda: system.is_running("after"))
    seconds = time.monotonic() - begun
    assert seconds < REFUSED_S * PATIENCE, seconds
    print(f"a new key, and pods are placed again after {seconds:.1f} s")
    assert {name: (system.pod(name)["metadata"]["uid"], system.job_of(name)) for name in before} == before
    system.wait("all jobs run", 30, lambda: {state for job, state in system.job_states().items() if job in jobs} == {"RUNNING"} and jobs.keys() <= system.job_states().keys())


def test_nothing_is_left_when_the_charts_are_gone(system: Together) -> None:
    for name in ("first", "beside", "after"):
        system.api.delete(system.pods_path(name), {"gracePeriodSeconds": 0})
    system.wait("the pods are gone", 60, lambda: not system.api.get(system.pods_path())["items"])
    system.slurm("scancel -p cpu")
    for release, namespace in (("slurm-bridge", HOME), ("slurm", HOME), ("slurm-operator", OPERATOR_HOME)):
        if release == "slurm-operator":
            system.wait("the workers are gone", 90, lambda: not system.worker_pods())
        system.helm("uninstall", release, "-n", namespace, "--timeout", f"{120 * PATIENCE:.0f}s")
        if release == "slurm-bridge":
            taints = [one["key"] for node in (NODE, KWOK) for one in system.api.get(f"/api/v1/nodes/{node}")["spec"].get("taints", [])]
            assert TAINT not in taints
            system.wait("the Token is gone", 30, lambda: not system.api.exists(f"/api/v1/namespaces/{HOME}/secrets/slurm-bridge-token"))
    kinds = "pods,services,configmaps,jobs,deployments,statefulsets,controllers.slinky.slurm.net,nodesets.slinky.slurm.net,tokens.slinky.slurm.net"
    for namespace in (HOME, OPERATOR_HOME):
        system.wait(f"nothing is left in {namespace}", 60, lambda namespace=namespace: set(
            system.kubectl("-n", namespace, "get", kinds, "-o", "name", "--ignore-not-found").split()) == {"configmap/kube-root-ca.crt"})
