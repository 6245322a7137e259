"""The operator and the bridge in one cluster: three lines of Helm without values, pods beside native jobs on one node, a new JWT key."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator

import pytest
from bridge import JOB_LABEL, NODE_LABEL, PARTITIONS, TAINT, WISH
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
ON_KWOK = {"nodeSelector": {"type": "kwok"}, "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]}
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
        one["metadata"]["annotations"] = {f"{WISH}exclusive": "false"}
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "16Mi"}}  # a core of Slurm's; Kubernetes has few to give
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
        address = self.api.get(f"/api/v1/namespaces/{HOME}/services/slurm-restapi")["spec"]["clusterIP"]
        connection = http.client.HTTPConnection(address, 6820, timeout=5 * PATIENCE)
        connection.request("GET", "/slurm/v0.0.44/nodes/", headers={"X-SLURM-USER-TOKEN": self.bridge_token()})
        return connection.getresponse().status

    def bridge_token(self) -> str:
        return base64.b64decode(self.api.get(f"/api/v1/namespaces/{HOME}/secrets/slurm-bridge-token")["data"]["auth-token"]).decode()

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
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
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
        for plural in ("controllers", "restapis"):
            found.wait(f"{plural} slurm is ready", 90, lambda plural=plural: found.is_ready(plural, "slurm"))
        api.merge(f"/api/v1/nodes/{KWOK}", {"metadata": {"labels": {NODE_LABEL: "true"}, "annotations": {PARTITIONS: "slurm-bridge"}}})
        yield found
    finally:
        with contextlib.suppress(ApiError, Fail, OSError):
            remove(found)


def remove(system: Together) -> None:
    api = system.api
    for namespace in (MANAGED, HOME, OPERATOR_HOME):
        api.delete(f"/api/v1/namespaces/{namespace}")
    def are_gone(plural: str) -> bool:
        """Nobody is left who would take the finalizers off."""
        for one in api.get(f"/apis/slinky.slurm.net/v1beta1/{plural}")["items"]:
            api.merge(f"/apis/slinky.slurm.net/v1beta1/namespaces/{one['metadata']['namespace']}/{plural}/{one['metadata']['name']}", {"metadata": {"finalizers": None}})
        return not api.get(f"/apis/slinky.slurm.net/v1beta1/{plural}")["items"]

    for plural in KINDS:
        if api.exists(DEFINITION.format(plural)):
            wait_for(f"{plural} are gone", 60, lambda plural=plural: are_gone(plural))
            api.delete(DEFINITION.format(plural))
    for node, labels in ((KWOK, {NODE_LABEL: None}), (NODE, {SLURM_NAME: None})):
        taints = [one for one in api.get(f"/api/v1/nodes/{node}")["spec"].get("taints", []) if one["key"] != TAINT]
        api.merge(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}, "spec": {"taints": taints}})
    wait_for("the namespaces are gone", 60, lambda: not any(api.exists(f"/api/v1/namespaces/{one}") for one in (MANAGED, HOME, OPERATOR_HOME)))
    api.delete("/api/v1/persistentvolumes/together")


def test_three_lines_of_helm_without_values_are_a_whole_system(system: Together) -> None:
    system.wait("the Token is ready", 30, lambda: system.is_ready("tokens", "slurm-bridge"))
    system.wait("Slurm has the node", 60, lambda: system.are_idle(KWOK))
    system.make("first", **ON_KWOK)
    system.wait("the pod runs where Slurm placed it", 60, lambda: system.is_running("first"))
    assert system.pod("first")["spec"]["nodeName"] == KWOK
    assert system.slurm(f"squeue -h -j {system.job_of('first')} -o '%T %N'") == f"RUNNING {KWOK}"


@pytest.fixture(scope="module")
def hybrid(system: Together) -> Together:
    """The real node has a worker, which tolerates the bridge; so do the pods of the system, which live there as well."""
    with_volume = ["--set", "controller.persistence.enabled=true,loginsets.main.enabled=false,nodesets.cpu.slurmd.resources.limits.cpu=2"]
    system.helm("upgrade", "slurm-operator", REPO / "charts/slurm-operator", "-n", OPERATOR_HOME, "-f", VALUES / "operator.yaml", "--wait")
    system.helm("upgrade", "slurm", REPO / "charts/slurm", "-n", HOME, "-f", VALUES / "slurm.yaml", *with_volume)
    system.helm("upgrade", "slurm-bridge", REPO / "charts/slurm-bridge", "-n", HOME, "-f", VALUES / "bridge.yaml")
    system.wait("the worker is idle, with two cores", 120, lambda: system.are_idle("cpu-0") and system.free_cores("cpu-0") == 2)
    system.wait("an external node is in the same Slurm", 60, lambda: KWOK in system.node_states())
    system.api.merge(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {SLURM_NAME: "cpu-0"}}})
    system.wait("the node is shared", 60, lambda: any(one["key"] == TAINT for one in system.api.get(f"/api/v1/nodes/{NODE}")["spec"].get("taints", [])))
    return system


def test_pods_and_native_jobs_share_a_node_by_slurms_accounting(hybrid: Together) -> None:
    system = hybrid
    native = system.sbatch()
    system.wait("a native job runs", 60, lambda: system.job_states()[native] == "RUNNING")
    system.make("beside")
    system.wait("a pod runs beside it", 90, lambda: system.is_running("beside"))
    assert system.pod("beside")["spec"]["nodeName"] == NODE
    system.wait("Slurm counts both", 30, lambda: system.free_cores("cpu-0") == 0)
    system.make("third")
    system.wait("another pod waits for a core", 60, lambda: "job" in system.says("third"))
    system.end_job("cpu-0", native)
    system.wait("the pod starts on the core that is free now", 60, lambda: system.is_running("third"))
    native = system.sbatch()
    system.wait("a native job waits for a core", 30, lambda: system.job_states()[native] == "PENDING")
    system.api.delete(system.pods_path("third"), {"gracePeriodSeconds": 0})
    system.wait("it starts when the pod is gone", 60, lambda: system.job_states()[native] == "RUNNING")
    assert system.is_running("beside")
    system.end_job("cpu-0", native)
    system.api.delete(system.pods_path("beside"), {"gracePeriodSeconds": 0})
    system.wait("both cores are free", 60, lambda: system.free_cores("cpu-0") == 2)


def test_a_new_jwt_key_refuses_calls_for_half_a_minute_at_most_and_loses_nothing(hybrid: Together) -> None:
    system, native = hybrid, hybrid.sbatch()
    system.make("stays", **ON_KWOK)
    system.wait("a pod and a native job run", 60, lambda: system.is_running("stays") and system.job_states()[native] == "RUNNING")
    pod, job = system.pod("stays")["metadata"]["uid"], system.job_of("stays")
    assert system.rest_status() == 200
    fresh = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "slurm-auth-jwt"}, "immutable": True, "data": {"jwt.key": b64(secrets.token_hex(512).encode())}}
    old = system.bridge_token()
    kubectl(system.cluster, "-n", HOME, "replace", "--force", "-f", "-", input=json.dumps(fresh))
    begun = time.monotonic()
    system.wait("a new token is signed, and taken", REFUSED_S, lambda: system.bridge_token() != old and system.rest_status() == 200)
    system.make("after", **ON_KWOK)
    system.wait("the bridge places pods again", REFUSED_S, lambda: system.is_running("after"))
    seconds = time.monotonic() - begun
    print(f"a new key, and pods are placed again after {seconds:.1f} s")
    assert seconds < REFUSED_S * PATIENCE, seconds
    system.wait("all jobs run", 60, lambda: {system.job_states().get(one) for one in (native, job)} == {"RUNNING"})
    assert (system.pod("stays")["metadata"]["uid"], system.job_of("stays")) == (pod, job)


def test_nothing_is_left_when_the_charts_are_gone(system: Together) -> None:
    system.api.delete(system.pods_path(), {"gracePeriodSeconds": 0})
    system.wait("the pods are gone", 60, lambda: not system.api.get(system.pods_path())["items"])
    system.try_to("-n", HOME, "exec", "slurm-controller-0", "-c", "slurmctld", "--", "scancel", "-p", "cpu")
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
