"""The operator and the bridge in one cluster: three lines of Helm without values, pods beside native jobs on one node and on cores of their
own, what a person at the terminal is told of them, a new JWT key."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import re
import secrets
import shlex
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from bridge import JOB_LABEL, NODE_LABEL, PARTITIONS, STAYS, TAINT, WISH
from definitions import DEFINITION, KINDS
from pods import BUSYBOX, pod
from slincdev.build import bin_dir
from slincdev.claims import CORES, SLICES, fake_cores, numbers, show_devices
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, REPO, Fail, run
from slincdev.components import NODE
from slincdev.kube import ApiError, b64
from slincdev.parts import ensure_images, import_images, kubectl
from slincdev.release import ensure_image
from slincdev.system import IMAGES, VALUES, WORKERS, System
from terminal import Terminal, config_of
from waits import PASSING, wait_for

HOME, OPERATOR_HOME, MANAGED = "together", "together-operator", "slurm-bridge"
SLURM_NAME = "slinky.slurm.net/slurm-nodename"
KWOK = "kwok-0"
GRACE_S, PROLOG_PORT = 20, 8082
REFUSED_S = 30  # how long calls may be refused after the key was replaced
UNTIL_TOLD = "grep Cpus_allowed_list /proc/self/status > /tmp/cpus-$SLURM_JOB_ID; while [ ! -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.1; done"
ON_KWOK = {"nodeSelector": {"type": "kwok"}, "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]}
HELM = """
helm install slurm-operator charts/slurm-operator -n together-operator --create-namespace --wait
helm install slurm charts/slurm -n together --create-namespace
helm install slurm-bridge charts/slurm-bridge -n together
"""


class Together(System):
    """With pods of the managed namespace, and native jobs."""

    def pods_path(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{MANAGED}/pods/{name}".rstrip("/")

    def make(self, name: str, *command: str, cpu: str = "100m", annotations: dict | None = None, **spec) -> None:
        """By default it takes a core of Slurm's; Kubernetes has few to give."""
        one = pod(name, BUSYBOX, *(command or ("sleep", "1000000")), **spec)
        one["metadata"]["annotations"] = {f"{WISH}exclusive": "false"} | (annotations or {})
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": "16Mi"}}
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

    def cpus_of(self, name: str) -> set[int]:
        """On which the pod may run."""
        return allowed(self.kubectl("-n", MANAGED, "exec", name, "--", "grep", "Cpus_allowed_list", "/proc/self/status"))

    def cpus_of_job(self, job: str) -> set[int]:
        """Which it writes when it begins: for Slurm it runs before that, while its prolog does."""
        worker = self.worker_pods()["cpu-0"]["metadata"]["name"]
        return allowed(self.wait("the job begins", 60, lambda: self.kubectl("-n", HOME, "exec", worker, "-c", "slurmd", "--", "cat", f"/tmp/cpus-{job}")))

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


def allowed(line: str) -> set[int]:
    return numbers(line.split()[1])


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
            found.helm(*shlex.split(line)[1:])
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
    api.delete(f"{SLICES}?fieldSelector=spec.driver%3D{CORES}")
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
    """The real node has a worker, which tolerates the bridge; so do the pods of the system, which live there as well. Pods are pinned: the real
    node by the chart's DaemonSet, the fake one as far as anybody can see."""
    pins = ["--set", f"bridgeConfig.maxGraceSeconds={GRACE_S},scheduler.prologPort={PROLOG_PORT},bridgeConfig.pinCpus=auto,dra.enabled=true,dra.nodeSelector.kubernetes\\.io/hostname={NODE}"]
    show_devices(system.api, CORES, KWOK, [fake_cores(64)])
    with_volume = ["--set", f"bridge.prologAddress=slurm-bridge-prolog.{HOME}:{PROLOG_PORT},controller.persistence.enabled=true,loginsets.main.enabled=false,nodesets.cpu.slurmd.resources.limits.cpu=2"]
    tolerant = ["--set", f"nodePolicy.namespaces={{kube-system,{OPERATOR_HOME}}}"]  # the operator will tolerate the taint
    system.helm("upgrade", "slurm-bridge", REPO / "charts/slurm-bridge", "-n", HOME, "--reuse-values", *tolerant)
    system.helm("upgrade", "slurm-operator", REPO / "charts/slurm-operator", "-n", OPERATOR_HOME, "-f", VALUES / "operator.yaml", "--wait")
    system.helm("upgrade", "slurm", REPO / "charts/slurm", "-n", HOME, "-f", VALUES / "slurm.yaml", *with_volume)
    system.helm("upgrade", "slurm-bridge", REPO / "charts/slurm-bridge", "-n", HOME, "-f", VALUES / "bridge.yaml", *pins, *tolerant)
    system.wait("the worker is idle, with two cores", 120, lambda: system.are_idle("cpu-0") and system.free_cores("cpu-0") == 2)
    system.wait("an external node is in the same Slurm", 60, lambda: KWOK in system.node_states())
    system.api.merge(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {SLURM_NAME: "cpu-0"}}})
    system.wait("the node shows its cores", 60, lambda: system.api.get(f"{SLICES}/{NODE}-{CORES}")["spec"].get("devices"))
    system.wait("the node is shared", 60, lambda: any(one["key"] == TAINT for one in system.api.get(f"/api/v1/nodes/{NODE}")["spec"].get("taints", [])))
    return system


def test_pods_and_native_jobs_share_a_node_and_no_core(hybrid: Together) -> None:
    """In rounds, because the node has two cores: who comes third waits, and gets the core that becomes free."""
    system = hybrid
    native = system.sbatch()
    system.wait("a native job runs", 60, lambda: system.job_states()[native] == "RUNNING")
    system.make("beside")
    system.wait("a pod runs beside it", 90, lambda: system.is_running("beside"))
    assert system.pod("beside")["spec"]["nodeName"] == NODE
    system.wait("Slurm counts both", 30, lambda: system.free_cores("cpu-0") == 0)
    cpus, other = system.cpus_of_job(native), system.cpus_of("beside")
    assert sorted([tuple(cpus), tuple(other)]) == [(0,), (1,)]
    system.make("third")
    system.wait("another pod waits for a core", 60, lambda: "job" in system.says("third"))
    system.end_job("cpu-0", native)
    system.wait("the pod starts on the core that is free now", 60, lambda: system.is_running("third"))
    assert system.cpus_of("third") == cpus and system.cpus_of("beside") == other
    native = system.sbatch()
    system.wait("a native job waits for a core", 30, lambda: system.job_states()[native] == "PENDING")
    system.api.delete(system.pods_path("third"), {"gracePeriodSeconds": 0})
    system.wait("it starts when the pod is gone", 60, lambda: system.job_states()[native] == "RUNNING")
    assert system.cpus_of_job(native) == cpus and system.cpus_of("beside") == other
    system.end_job("cpu-0", native)
    system.api.delete(system.pods_path("beside"), {"gracePeriodSeconds": 0})
    system.wait("both cores are free", 60, lambda: system.free_cores("cpu-0") == 2)


@pytest.fixture
def stubborn(hybrid: Together) -> Iterator[str]:
    """A pod on the shared node that asks for an hour to stop, and does not; it can be seen on its way out."""
    one = pod("stubborn", BUSYBOX, "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
    one["metadata"] |= {"annotations": {f"{WISH}exclusive": "false"}, "finalizers": [STAYS]}
    one["spec"]["terminationGracePeriodSeconds"] = 3600
    one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "16Mi"}}
    hybrid.api.post(hybrid.pods_path(), one)
    hybrid.wait("the pod runs", 90, lambda: hybrid.is_running("stubborn"))
    assert hybrid.pod("stubborn")["spec"]["nodeName"] == NODE
    yield "stubborn"
    if hybrid.api.exists(hybrid.pods_path("stubborn")):
        hybrid.api.delete(hybrid.pods_path("stubborn"), {"gracePeriodSeconds": 0})
        left = [name for name in hybrid.pod("stubborn")["metadata"].get("finalizers", []) if name != STAYS]
        hybrid.api.merge(hybrid.pods_path("stubborn"), {"metadata": {"finalizers": left}})
    hybrid.wait("both cores are free", 60, lambda: hybrid.free_cores("cpu-0") == 2)


def is_leaving(system: Together, name: str) -> dict | None:
    found = system.pod(name)
    return found if found["metadata"].get("deletionTimestamp") else None


def stopped_at(system: Together, name: str) -> float | None:
    """When its container ended."""
    ended = system.pod(name)["status"]["containerStatuses"][0]["state"].get("terminated")
    return datetime.fromisoformat(ended["finishedAt"]).timestamp() if ended else None


def test_a_pod_that_slurm_ends_gets_no_more_time_to_stop_than_the_administrator_allows(hybrid: Together, stubborn: str) -> None:
    hybrid.slurm(f"scancel {hybrid.job_of(stubborn)}")
    leaving = hybrid.wait("it is told to stop", 30, lambda: is_leaving(hybrid, stubborn))
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == GRACE_S
    address = hybrid.api.get(f"/api/v1/namespaces/{HOME}/services/slurm-bridge-prolog")["spec"]["clusterIP"]

    def ask(words: str) -> str:
        with urllib.request.urlopen(f"http://{address}:{PROLOG_PORT}/v1/nodes/cpu-0/ending?{words}", timeout=5 * PATIENCE) as answer:
            return answer.read().decode()

    def told() -> list[str]:
        """A replica that has just read the end of the job says so at the next question."""
        assert ask("job=99&waited=1000&last=1") == "1\n"
        events = hybrid.api.get(f"/apis/events.k8s.io/v1/namespaces/{MANAGED}/events?fieldSelector=regarding.name%3D{stubborn}")["items"]
        return [one["note"] for one in events if one["reason"] == "SlurmJobStartsBeside"]
    assert "job 99 starts on cpu-0" in hybrid.wait("a job that starts beside it is told", 5, told)[0]
    hybrid.wait("it has stopped", GRACE_S + 30, lambda: stopped_at(hybrid, stubborn))
    hybrid.wait("nobody stays there", 10, lambda: ask("job=99&waited=60000") == "0\n")


def test_a_native_job_starts_only_when_the_preempted_pod_has_left_its_cores(hybrid: Together, stubborn: str) -> None:
    hybrid.slurm("scontrol create PartitionName=urgent Nodes=cpu-0 PriorityTier=10 MaxTime=UNLIMITED")
    try:
        script = f"date +%s > /tmp/began-$SLURM_JOB_ID; {UNTIL_TOLD}"
        native = hybrid.slurm(shlex.join(["sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-n2", "--mem=16", "-p", "urgent", "--wrap", script]))
        hybrid.wait("Slurm takes the place of the pod", 60, lambda: is_leaving(hybrid, stubborn))
        hybrid.wait("by Slurm's accounting the job runs", 10, lambda: hybrid.job_states()[native] in ("RUNNING", "CONFIGURING"))
        assert not stopped_at(hybrid, stubborn), "while the pod does"
        ended = hybrid.wait("the pod has stopped", GRACE_S + 30, lambda: stopped_at(hybrid, stubborn))
        worker = hybrid.worker_pods()["cpu-0"]["metadata"]["name"]
        began = hybrid.wait("the job begins", 30, lambda: hybrid.kubectl("-n", HOME, "exec", worker, "-c", "slurmd", "--", "cat", f"/tmp/began-{native}"))
        assert int(began) >= ended, "on one clock"
        hybrid.end_job("cpu-0", native)
        hybrid.wait("it has ended well", 30, lambda: native not in hybrid.job_states())
        assert "ExitCode=0:0" in hybrid.slurm(f"scontrol show job {native}")
    finally:
        hybrid.slurm("scancel -p urgent")
        hybrid.wait("the partition goes", 30, lambda: hybrid.slurm("scontrol delete PartitionName=urgent") == "")


# --- at the terminal ---


class Office(Terminal):
    """An administrator at the terminal, beside the exporter; and somebody who may read pods and events of one namespace, and nothing else."""

    def __init__(self, system: Together, folder: Path) -> None:
        super().__init__(system.cluster.admin_config)
        self.system, self.user = system, Terminal(config_of(system.cluster, folder, MANAGED))
        self.native: list[str] = []

    def members(self) -> list[str]:
        """The pods of the gang."""
        return [one["metadata"]["name"] for one in self.system.api.get(f"{self.system.pods_path()}?labelSelector=gang%3Dduo")["items"]]

    def why(self, *words: str) -> str:
        """It answers within a second."""
        said = self.run("why", *words)
        assert self.seconds < 1 * PATIENCE, self.seconds
        return said

    def tells(self, what: str, *parts: str, namespace: str = MANAGED) -> None:
        """As soon as bridge and exporter have read what happened. Text and JSON say the same."""
        words = (*what.split(), "-n", namespace)

        def told() -> bool:
            found = self.json("why", *words)
            lines = [found["summary"], *(f"{one['about']} {one['text']}" for one in found["evidence"])]
            return found["result"].upper() == parts[0] and all(any(part in line for line in lines) for part in parts[1:])
        wait_for(f"why {what} tells {parts}", 30, told, hint=lambda: self.said)
        said = " ".join(self.why(*words).split())
        assert said.startswith(f"{parts[0]} ") and all(part.partition(" ")[2] in said for part in parts[1:]), said


def gang(name: str, size: int) -> dict:
    """A Job whose pods start together, each on a node that kwok plays, of which Slurm has one."""
    template = pod("x", BUSYBOX, "sleep", "1000000", restartPolicy="Never", **ON_KWOK)
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "16Mi"}}
    return {"metadata": {"name": name, "annotations": {f"{WISH}gang": "true"}},
            "spec": {"parallelism": size, "completions": size, "template": {"metadata": {"labels": {"gang": name}}, "spec": template["spec"]}}}


@pytest.fixture(scope="class")
def office(hybrid: Together, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """With a pod in every state, and native jobs of which one waits."""
    system, found = hybrid, Office(hybrid, tmp_path_factory.mktemp("office"))
    system.helm("install", "slurm-exporter", REPO / "charts/slurm-exporter", "-n", HOME, "-f", VALUES / "exporter.yaml", "--set", "externalMetrics.enabled=true", "--wait",
                "--timeout", f"{60 * PATIENCE:.0f}s")
    kubectl(system.cluster, "-n", MANAGED, "create", "role", "reader", "--verb=get,list", "--resource=pods,events")
    kubectl(system.cluster, "-n", MANAGED, "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={MANAGED}:default")
    system.make("ended", "true", restartPolicy="Never")
    system.wait("a pod has ended", 60, lambda: system.pod("ended")["status"]["phase"] == "Succeeded")
    found.native = [system.sbatch("-J", "native"), system.sbatch("-J", "native"), system.sbatch("-J", "next")]
    system.wait("native jobs have the worker", 60, lambda: [system.job_states()[one] for one in found.native[:2]] == ["RUNNING", "RUNNING"])
    system.make("runs", **ON_KWOK)
    system.make("waits", nodeSelector={"kubernetes.io/hostname": NODE})
    system.make("huge", cpu="500", **ON_KWOK)
    system.make("lost", annotations={f"{WISH}partition": "nowhere"}, **ON_KWOK)
    system.api.post(f"/apis/batch/v1/namespaces/{MANAGED}/jobs", gang("duo", 2))
    system.api.post("/api/v1/namespaces/default/pods", pod("stranger", BUSYBOX, nodeSelector={"nobody": "has-this"}))
    system.wait("the pod that fits runs, and the gang is whole", 60, lambda: system.is_running("runs") and len(found.members()) == 2)
    yield found
    system.api.delete("/api/v1/namespaces/default/pods/stranger", {"gracePeriodSeconds": 0})
    system.api.delete(f"/apis/batch/v1/namespaces/{MANAGED}/jobs/duo", {"propagationPolicy": "Background"})
    for name in ("ended", "runs", "waits", "huge", "lost"):
        system.api.delete(system.pods_path(name), {"gracePeriodSeconds": 0})
    system.slurm(f"scancel {' '.join(found.native)}")
    system.helm("uninstall", "slurm-exporter", "-n", HOME, "--wait")
    system.wait("both cores are free", 60, lambda: system.free_cores("cpu-0") == 2)


class TestAtTheTerminal:
    def test_why_tells_the_whole_story_of_a_pod_a_job_and_a_nodeset(self, office: Office) -> None:
        first, _, last = office.native
        office.tells("waits", "WAITING", "Slurm PENDING", "nodes by Kubernetes' rules 1 of", "nodes in slurm-bridge 1 of 2 have room now, 1 needed; 1 busy", "submitted +")
        assert re.search(r"^  to do     (nobody has to act|nodes that it needs are kept for other jobs)", office.why("waits", "-n", MANAGED), re.M)
        office.tells(office.members()[0], "WAITING", "asked one of 2 pods that start together (2 exist)", "1/2 nodes are available: its pods need 2", "has to act: change the selector")
        office.tells("runs", "RUNNING", f"runs on {KWOK}", "became job", f"Slurm RUNNING on {KWOK} since", "bound +")
        office.tells("ended", "ENDED", "has ended: Succeeded", "has ended")
        office.tells("lost", "NEVER", "Invalid partition name specified", "partition=nowhere", "became a job: partition nowhere", "has to act: correct what Slurm's message names")
        office.tells("huge", "WAITING", "Insufficient cpu", "by Kubernetes' rules 0 of 2 fit, 1 needed")
        office.tells("stranger", "WAITING", "Slurm has nothing to do with this pod: its scheduler is default-scheduler", namespace="default")
        office.tells(f"job {first}", "RUNNING", f"job {first} (native) is running on cpu-0", "none: it was submitted to Slurm itself")
        office.tells(f"job {last}", "WAITING", f"job {last} (next) waits for", "Slurm PENDING", "nodes in cpu 0 of 1 have room now")
        office.tells(f"nodeset {WORKERS}", "READY", "1 of 1 workers serve", namespace=HOME)
        assert "there is no pod or NodeSet nobody in namespace" in office.run("why", "nobody", "-n", MANAGED, code=3)
        assert "no job 999999 waits or runs in Slurm" in office.run("why", "job", "999999", code=3)
        assert office.run("why", "waits", "-n", MANAGED, "--exit-code", code=10) and office.run("why", "lost", "-n", MANAGED, "--exit-code", code=11)

    def test_why_tells_somebody_who_may_read_a_pod_what_the_bridge_knows_and_of_no_other_pod(self, office: Office) -> None:
        parts = ("Slurm     PENDING", "by Kubernetes' rules 1 of 2 fit, 1 needed", "became    job",
                 "its place in the queue is not shown: needs the right to list jobs.view.slinky.slurm.net (ClusterRole slinc-viewer)",
                 "the room on Slurm's nodes is not shown: needs the right to list nodes.view.slinky.slurm.net (ClusterRole slinc-viewer)")

        def told() -> bool:
            """By the leader, or by the other replica, which reads Slurm's jobs less often."""
            said = office.user.run("why", "waits", "-n", MANAGED)
            return all(part in said for part in parts)
        wait_for("somebody who may read the pod is told", 30, told, hint=lambda: office.user.said)
        assert office.user.seconds < 1 * PATIENCE, office.user.seconds
        assert "needs the right to get pods in namespace default" in office.user.run("why", "stranger", "-n", "default", code=4)
        with pytest.raises(Fail, match="the user may not get pods in namespace default"):
            run([bin_dir() / "kubectl", f"--kubeconfig={office.user.kubeconfig}", "get", "--raw", "/apis/view.slinky.slurm.net/v1alpha1/namespaces/default/workloads/stranger/why"])

    def test_the_queue_lists_who_waits_whether_pod_or_job(self, office: Office) -> None:
        def two_wait() -> list[str] | None:
            lines = office.run("queue").splitlines()
            return lines if lines[-1].startswith("2 waiting") else None
        lines = wait_for("two wait", 30, two_wait, hint=lambda: office.said)
        job = next(one for one in office.json("queue")["items"] if one.get("pod") == f"{MANAGED}/waits")["id"]
        assert lines[0].split() == ["#", "JOB", "WHAT", "WHO", "NODES", "CPU", "GPU", "WAITS", "REASON", "STARTS"]
        assert any(f"{job} " in line and f"pod {MANAGED}/waits" in line for line in lines)
        assert any(f"{office.native[2]} " in line and "job next" in line for line in lines)
        assert re.fullmatch(r"2 waiting, \d nodes wanted; data \d+ s old", lines[-1]), lines[-1]
        assert [one["id"] for one in office.json("queue", "-p", "cpu")["items"]] == [int(office.native[2])]
        assert "needs the right to list jobs.view.slinky.slurm.net" in office.user.run("queue", code=4)

    def test_nodes_tell_who_holds_them_and_drain_takes_one_out_of_service(self, office: Office) -> None:
        def shown(*words: str) -> list[str]:
            return office.run("nodes", *words).splitlines()

        def states() -> dict[str, str]:
            return {one["name"]: one["state"] for one in office.json("nodes")["items"]}
        wait_for("the worker is full", 20, lambda: any(line.split()[:6] == ["allocated", "1", "cpu-0", "2/2", "0", "2"] for line in shown()), hint=lambda: office.said)
        wait_for("the other is in use", 20, lambda: any(line.split()[:3] == ["mixed", "1", KWOK] for line in shown("-p", "slurm-bridge")), hint=lambda: office.said)
        try:
            assert office.run("drain", KWOK, "--reason", "a fan") == f"node {KWOK} is cordoned: Slurm starts no job there, and what runs there goes on\n"
            assert office.json("drain", KWOK)["changed"] is False
            wait_for("Slurm drains it", 30, lambda: states()[KWOK] == "draining", hint=lambda: office.said)
            assert any(line.startswith("draining") and "is unschedulable (1)" in line for line in shown())
            assert office.system.is_running("runs")
            assert "needs the right to get nodes" in office.user.run("drain", KWOK, code=4)
        finally:
            office.run("resume", KWOK)
        wait_for("Slurm uses it again", 30, lambda: states()[KWOK] == "mixed", hint=lambda: office.said)
        worker = office.system.worker_pods()["cpu-0"]["metadata"]["name"]
        try:
            office.run("drain", "worker", worker, "-n", HOME)
            office.tells(f"nodeset {WORKERS}", "WAITING", "0 of 1 workers serve", "cordoned by a person (slinc resume takes it back)", namespace=HOME)
        finally:
            office.run("resume", worker, "-n", HOME)
        office.tells(f"nodeset {WORKERS}", "READY", "1 of 1 workers serve", namespace=HOME)

    def test_the_doctor_finds_an_installation_in_order_and_says_what_is_not(self, office: Office) -> None:
        """What a slow machine shows (SD212), what nobody uses here and the disk that this kubelet knows nothing of (SD214) is no finding."""
        def found() -> dict[int, dict]:
            return {one["id"]: one for one in office.json("doctor", "--fail-on=never")["checks"]}
        def in_order() -> dict[int, dict] | None:
            """A bridge that began to lead a moment ago has not checked everything."""
            now = found()
            results = {result: {number for number, one in now.items() if one["result"] == result} for result in ("failed", "warning", "skipped")}
            return now if not results["failed"] and results["warning"] <= {212} and results["skipped"] <= {204, 212, 214, 411, 602, 603} else None
        healthy = wait_for("everything is in order", 30, in_order, hint=lambda: office.said)
        assert "2 leases" in healthy[104]["found"] and "is served by together/" in healthy[601]["found"]
        binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        office.system.api.post(binding, {
            "metadata": {"name": "doctor"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "slinc-viewer"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": MANAGED}]})
        def by_the_view_api() -> set[str]:
            """Of somebody who may neither see pods of ours nor ask them."""
            return {one["result"] for one in office.user.json("doctor", "--fail-on=never")["checks"] if one["id"] in (201, 203)}
        wait_for("whoever may list checks is told what bridge and exporter found", 30, lambda: by_the_view_api() == {"ok"}, hint=lambda: office.user.said)
        office.system.api.delete(f"{binding}/doctor")
        path = f"/apis/apps/v1/namespaces/{HOME}/deployments/slurm-bridge-scheduler/scale"
        office.system.api.merge(path, {"spec": {"replicas": 0}})
        try:
            wait_for("no bridge runs", 60, lambda: found()[201]["found"] == "no pod runs slinc bridge" and found()[402]["result"] == "failed",
                     hint=lambda: office.said)
            said = office.run("doctor", code=6)
            assert re.search(r"^x SD402 webhook \S+ Service together/\S+ has no endpoint that is ready: pods cannot be created$", said, re.M), said
            assert re.search(r"^- SD106 SD201 .* skipped: no pod runs slinc bridge$", said, re.M), said
        finally:
            office.system.api.merge(path, {"spec": {"replicas": 2}})
        wait_for("the bridge leads again", 60, lambda: found()[201]["result"] == "ok", hint=lambda: office.said)
        assert re.match(r"kubernetes 1 ok 7 skipped, slurm 15 skipped, ", office.user.run("doctor"))


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
