"""Workers on a real cluster: they come and go with their NodeSet, and no job is hurt by it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from definitions import installed
from exporter_release import Exporter
from slincdev.cluster import Cluster
from slincdev.common import Fail
from slincdev.components import NODE
from slincdev.kube import ApiError
from slincdev.parts import ensure_images, import_images
from slincdev.slurm import with_token
from slurm_operator import Operator, Site
from waits import PASSING, wait_for

HOME = "nodeset-site"
GPU = "nvidia.com/gpu"
IMAGES = ["slurmctld", "slurmrestd", "slurmd", "login", "busybox"]
PREFIX = "nodeset.slinky.slurm.net"
HPA_PERIOD_S = 15  # of kube-controller-manager
PROTECTED = f"{PREFIX}/pod-protect"
SAVES_S = 15  # slurmctld writes down what changed within this time, on a busy machine too
LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/slurm-operator"


class Fleet(Site):
    """The NodeSet `workers`, whose nodes are w-0, w-1 ..., and jobs that run until they are told to end."""

    def worker_pods(self) -> dict[str, dict]:
        """By the name that Slurm has for them; those that end count, too."""
        found = self.api.get(self.core("pods") + "?labelSelector=app.kubernetes.io%2Fname%3Dslurmd")["items"]
        return {one["spec"]["hostname"]: one for one in found}

    def uids(self) -> dict[str, str]:
        return {name: one["metadata"]["uid"] for name, one in self.worker_pods().items()}

    def successors(self, before: dict[str, str]) -> dict[str, str]:
        """The workers, if none of those before is left. They may have other names: after a scale-in w-1 may be the only one, and w-0 follows it."""
        now = self.uids()
        return now if not set(before.values()) & set(now.values()) else {}

    def scale(self, count: int) -> None:
        self.kubectl("scale", "nodesets.slinky.slurm.net/workers", f"--replicas={count}")

    def status(self) -> dict:
        return self.api.get(self.path("nodesets", "workers")).get("status", {})

    def login(self, *words: str) -> str:
        """In a login pod, as somebody who has logged in there."""
        return with_token(lambda: self.kubectl("exec", "deployment/login", "-c", "login", "--", *words).strip())

    def node_states(self) -> dict[str, set[str]]:
        lines = self.login("sinfo", "-hN", "-O", "NodeList:60,StateComplete:60").splitlines()
        return {line.split()[0]: set(line.split()[1].lower().split("+")) for line in lines}

    def reasons(self) -> dict[str, str]:
        return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in self.login("sinfo", "-hN", "-o", "%N %E").splitlines()}

    def draining(self) -> set[str]:
        """Of the workers that are there."""
        return {name for name, states in self.node_states().items() if "drain" in states} & self.uids().keys()

    def is_idle(self, *names: str) -> bool:
        """These are all workers; they are ready, and Slurm would give each a job."""
        status, states = self.status(), self.node_states()
        return status.get("readyReplicas", 0) == status.get("replicas") == len(names) and self.uids().keys() == set(names) and \
            all(states.get(name) == {"idle", "dynamic_norm"} for name in names)

    def start_job(self, node: str) -> str:
        """It runs when this returns, and ends when it finds a file with its number."""
        script = "while [ ! -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.1; done"
        job = self.login("sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-w", node, "--wrap", script)
        self.wait(f"job {job} runs", 30, lambda: self.job_state(job) == "RUNNING")
        self.started = int(self.login("sh", "-c", f"date +%s -d $(squeue -h -j {job} -o %S)"))
        return job

    def end_job(self, job: str) -> None:
        pod = self.worker_pods()[self.login("squeue", "-h", "-j", job, "-o", "%N")]["metadata"]["name"]
        self.kubectl("exec", pod, "-c", "slurmd", "--", "touch", f"/tmp/end-{job}")
        self.wait(f"job {job} has ended as it should", 30, lambda: self.job_state(job) == "COMPLETED")

    def slurmctld(self) -> int:
        """The process, as this machine numbers it."""
        space = self.kubectl("exec", "slurm-controller-0", "-c", "slurmctld", "--", "readlink", "/proc/self/ns/pid").strip()
        [found] = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit() and is_first_of(one, space)]
        return found

    def saved(self) -> int:
        """When, in whole seconds."""
        return int(self.kubectl("exec", "slurm-controller-0", "-c", "slurmctld", "--", "sh", "-c", "stat -c %Y /var/spool/slurmctld/*/job_state"))

    def kill_slurmctld(self) -> None:
        """Once it has written down that the last job runs, which it does within seconds; its container is started again."""
        def is_written() -> bool:
            saved = self.saved()  # in the second of the start: it was after the start if no other follows
            return saved > self.started or saved == self.started and time.time() > self.started + SAVES_S
        self.wait("slurmctld has written down its jobs", 60, is_written)
        os.kill(self.slurmctld(), signal.SIGKILL)

    def slurmctld_is_up(self) -> bool:
        return "UP" in self.kubectl("exec", "slurm-controller-0", "-c", "slurmctld", "--", "scontrol", "ping")

    def wait(self, what: str, calm_s: float, check: Callable[[], object]) -> object:
        def show() -> str:
            return self.login("sh", "-c", "sinfo -hN -O NodeList:12,StateComplete:30,Reason:80; squeue -t all; scontrol -o show jobs") + "\n" + \
                self.kubectl("get", "pods,nodesets.slinky.slurm.net")
        return wait_for(what, calm_s, check, hint=show, forgiven=(*PASSING, Fail))

    def job_state(self, job: str) -> str:
        return self.login("squeue", "-h", "-t", "all", "-j", job, "-o", "%T")


def is_first_of(process: Path, space: str) -> bool:
    """Whether it is process 1 of this PID namespace."""
    with contextlib.suppress(OSError):
        return os.readlink(process / "ns/pid") == space and re.search(r"^NSpid:.*\t1$", (process / "status").read_text(), re.M) is not None
    return False


def revive(operator: Operator) -> None:
    """kill -9, and another one that need not wait for the end of the lease."""
    operator.kill()
    operator.cluster.api().delete(LEASE)
    operator.start().wait_until_it_leads()


@contextlib.contextmanager
def killed_at_random(operator: Operator) -> Iterator[None]:
    """Whatever the operator does, it is killed in the middle of it, again and again."""
    seed = random.randrange(1 << 32)
    chance, over, problems = random.Random(seed), threading.Event(), []

    def kill() -> None:
        try:
            while not over.wait(chance.uniform(0.3, 6)):
                revive(operator)
        except BaseException as error:
            problems.append(error)
    print(f"the operator is killed at random moments: seed {seed}")
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not problems, problems


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    with installed(cluster, HOME):
        one, fleet = Operator(cluster, tmp_path_factory.mktemp("operator")), Fleet(cluster, HOME)
        try:
            yield one.start().wait_until_it_leads()
            one.stop()
        finally:
            one.end()
            for found in fleet.api.get(fleet.path("nodesets"))["items"]:  # of a test that failed: nobody would end it now
                fleet.api.delete(fleet.path("nodesets", found["metadata"]["name"]))
                fleet.api.merge(fleet.path("nodesets", found["metadata"]["name"]), {"metadata": {"finalizers": None}})
            fleet.end_pods()


@pytest.fixture(scope="module")
def fleet(cluster: Cluster, operator: Operator) -> Fleet:
    """A Slurm cluster with one worker. All workers share the one real node."""
    found, ref = Fleet(cluster, HOME), {"controllerRef": {"name": "slurm"}}
    found.api.post(found.core("secrets"), {"metadata": {"name": "sssd"}, "stringData": {"sssd.conf": "[sssd]\n"}})
    found.api.post(found.core("configmaps"), {"metadata": {"name": "files"}, "data": {"cgroup.conf": "CgroupPlugin=disabled\n"}})
    found.api.post(found.core("configmaps"), {"metadata": {"name": "settings"}, "data": {"GREETING": "hello"}})
    found.make("controllers", "slurm", found.make_keys() | {
        "slurmctld": found.image("slurmctld"), "logfile": found.busybox, "persistence": {"enabled": False}, "configFileRefs": [{"name": "files"}],
        "extraConf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity\nMinJobAge=10"})
    found.make("restapis", "slurm", ref | {"slurmrestd": found.image("slurmrestd")})
    found.make("loginsets", "login", ref | {
        "login": found.image("login"), "initconf": found.busybox, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
        "service": {"spec": {"type": "ClusterIP"}}})
    found.make("nodesets", "workers", ref | {
        "replicas": 1, "oversubscribeNode": True, "logfile": found.busybox,
        "slurmd": found.image("slurmd") | {"resources": {"requests": {"cpu": "50m"}}, "envFrom": [{"configMapRef": {"name": "settings"}}]},
        "template": {"spec": {"hostname": "w-", "terminationGracePeriodSeconds": 5}},
        "partition": {"enabled": True, "config": "State=UP Default=YES MaxTime=UNLIMITED"}})
    for plural, name in {"controllers": "slurm", "restapis": "slurm", "loginsets": "login"}.items():
        found.wait_until_ready(plural, name, 90)
    return found


def test_a_person_who_has_logged_in_runs_a_command_on_a_worker(fleet):
    fleet.wait("the worker is idle", 90, lambda: fleet.is_idle("w-0"))
    assert fleet.login("srun", "hostname") == "w-0"
    assert fleet.login("sinfo", "-h", "-p", "w", "-o", "%N") == "w-0"


@pytest.fixture
def scaler(cluster: Cluster, fleet: Fleet) -> Iterator[str]:
    """The exporter's chart, and a HorizontalPodAutoscaler from no worker to three; its path."""
    exporter, path = Exporter(cluster, HOME, "exporter.jwtKey.name=keys"), f"/apis/autoscaling/v2/namespaces/{HOME}/horizontalpodautoscalers"
    exporter.install()
    metric = {"name": "slinc_nodeset_nodes_wanted", "selector": {"matchLabels": {"nodeset": "w"}}}
    fleet.api.post(path, {"metadata": {"name": "workers"}, "spec": {
        "scaleTargetRef": {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "name": "workers"}, "minReplicas": 0, "maxReplicas": 3,
        "metrics": [{"type": "External", "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}}}],
        "behavior": {"scaleUp": {"tolerance": "0", "policies": [{"type": "Pods", "value": 3, "periodSeconds": 15}]},
                     "scaleDown": {"tolerance": "0", "stabilizationWindowSeconds": 0}}}})
    yield f"{path}/workers"
    fleet.api.delete(f"{path}/workers")
    exporter.uninstall()


def test_an_autoscaler_sizes_a_nodeset_by_the_queue_from_zero_and_back(fleet, scaler):
    def wait(what: str, calm_s: float, check: Callable[[], object]) -> None:
        wait_for(what, calm_s, check, hint=lambda: str(fleet.api.get(scaler).get("status")) + fleet.kubectl("get", "pods,nodesets.slinky.slurm.net"),
                 forgiven=(*PASSING, Fail))

    def wanted() -> int:
        return fleet.api.get(fleet.path("nodesets", "workers"))["spec"]["replicas"]
    wait("nobody wants the worker", 45, lambda: wanted() == 0)
    wait("it drains and goes", 60, lambda: not fleet.worker_pods())
    job = fleet.login("sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-N2", "--wrap", "sleep 3")
    submitted = int(fleet.login("sh", "-c", f"date +%s -d $(squeue -h -j {job} -o %V)"))  # on the one clock of this machine
    wait("a job wants two workers", 60, lambda: wanted() == 2)
    scaled = datetime.fromisoformat(fleet.api.get(scaler)["status"]["lastScaleTime"]).timestamp()
    print(f"the autoscaler followed the queue after {scaled - submitted:.0f} s")
    assert scaled - submitted <= 2 * HPA_PERIOD_S
    wait("the job has run on them", 90, lambda: fleet.job_state(job) == "COMPLETED")
    wait("nobody wants them any more", 2 * HPA_PERIOD_S, lambda: wanted() == 0)
    wait("they drain and go", 60, lambda: not fleet.worker_pods())


def test_workers_with_jobs_outlive_a_scale_in_until_their_jobs_end(fleet, operator):
    fleet.api.merge(fleet.path("nodesets", "workers"), {"spec": {"pruneSlurmNodeRecords": "NodeNotFound"}})
    fleet.scale(3)
    fleet.wait("three workers are idle", 90, lambda: fleet.is_idle("w-0", "w-1", "w-2"))
    assert sorted(fleet.login("srun", "-N3", "hostname").split()) == ["w-0", "w-1", "w-2"]
    before, jobs = fleet.uids(), {node: fleet.start_job(node) for node in ("w-0", "w-1", "w-2")}
    fleet.wait("all have the label of busy workers", 10, lambda: all(one["metadata"]["labels"].get(PROTECTED) == "true" for one in fleet.worker_pods().values()))
    late = (datetime.now(UTC) + timedelta(days=360)).isoformat()  # a job without a limit that the backfill scheduler starts gets a year
    fleet.wait("jobs without a limit end last", 20, lambda: all(one["metadata"].get("annotations", {}).get(f"{PREFIX}/pod-deadline", "") > late
                                                                for one in fleet.worker_pods().values()))
    fleet.scale(1)
    going = fleet.wait("two of them drain", 20, lambda: len(fleet.draining()) == 2 and fleet.draining())
    pod = fleet.worker_pods()[min(going)]["metadata"]["name"]
    with pytest.raises(ApiError) as refused:  # the PodDisruptionBudget protects a busy worker that is about to go, too
        fleet.api.post(fleet.core("pods", f"{pod}/eviction"), {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})
    assert refused.value.status == 429

    fleet.scale(3)
    fleet.wait("a scale-in that is taken back undrains them", 20, lambda: not fleet.draining())
    fleet.scale(1)
    going = fleet.wait("two drain again", 20, lambda: len(fleet.draining()) == 2 and fleet.draining())
    fleet.kill_slurmctld()
    revive(operator)
    fleet.wait("a new slurmctld and a new operator drain the same two", 60, lambda: fleet.draining() == going)
    for node in sorted(going):
        assert {fleet.job_state(job) for job in jobs.values()} == {"RUNNING"} and fleet.uids() == {name: before[name] for name in jobs}
        fleet.end_job(jobs.pop(node))
        fleet.wait("a worker goes when its job has ended", 30, lambda: fleet.uids().keys() == jobs.keys())
        fleet.wait("Slurm's record of it goes with its pod", 10, lambda: fleet.node_states().keys() == jobs.keys())
    [(node, job)] = jobs.items()
    assert fleet.job_state(job) == "RUNNING" and fleet.uids() == {node: before[node]} and not fleet.draining() & jobs.keys()
    fleet.end_job(job)
    fleet.wait("it has nothing to do", 30, lambda: fleet.is_idle(node))


def test_a_cordoned_node_drains_its_workers_and_gives_them_back(fleet):
    [name] = before = fleet.uids()
    fleet.wait("the worker is idle", 60, lambda: fleet.is_idle(name))
    job, node = fleet.start_job(name), fleet.worker_pods()[name]["spec"]["nodeName"]
    fleet.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    try:
        fleet.wait("Slurm drains the worker", 20, lambda: fleet.draining() == {name})
        fleet.kill_slurmctld()
        fleet.wait("it is drained still, or again", 60, lambda: fleet.draining() == {name})
        assert fleet.reasons()[name].startswith(f"slurm-operator: Node ({node}) was cordoned")
        assert fleet.job_state(job) == "RUNNING"
    finally:
        fleet.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})
    fleet.wait("Slurm uses the worker again", 20, lambda: not fleet.draining())
    fleet.end_job(job)
    fleet.wait("the worker is idle", 30, lambda: fleet.is_idle(name))
    assert fleet.uids() == before


def test_a_partition_that_is_switched_off_takes_no_more_jobs_and_keeps_those_that_run(fleet):
    [name] = fleet.uids()

    def partition() -> str:
        return fleet.login("sinfo", "-h", "-p", "w", "-o", "%a")
    job = fleet.start_job(name)
    fleet.api.merge(fleet.path("nodesets", "workers"), {"spec": {"partition": {"enabled": False}}})
    fleet.wait("Slurm drains the partition", 30, lambda: partition() == "drain")
    assert fleet.job_state(job) == "RUNNING" and fleet.slurmctld_is_up()
    fleet.api.merge(fleet.path("nodesets", "workers"), {"spec": {"partition": {"enabled": True}}})
    fleet.wait("Slurm uses the partition again", 30, lambda: partition() == "up")
    fleet.end_job(job)


def test_another_content_that_a_worker_reads_replaces_it_when_its_job_has_ended(fleet):
    [name] = before = fleet.uids()
    fleet.wait("the worker is idle", 60, lambda: fleet.is_idle(name))
    fleet.api.merge(fleet.path("nodesets", "workers"), {"metadata": {"annotations": {"slinky.slurm.net/reload-on-change": "true"}}})
    [name] = fleet.wait("what the worker read is part of its revision now, so it is replaced", 60, lambda: fleet.successors(before))
    fleet.wait("the worker is idle", 60, lambda: fleet.is_idle(name))
    before, job = fleet.uids(), fleet.start_job(name)
    fleet.api.merge(fleet.core("configmaps", "settings"), {"data": {"GREETING": "good morning"}})
    fleet.wait("it drains", 20, lambda: fleet.draining() == {name})
    assert fleet.job_state(job) == "RUNNING" and fleet.uids() == before
    fleet.end_job(job)
    [name] = fleet.wait("it is replaced", 60, lambda: fleet.successors(before))
    fleet.wait("the new one is idle", 60, lambda: fleet.is_idle(name))
    assert fleet.kubectl("exec", fleet.worker_pods()[name]["metadata"]["name"], "-c", "slurmd", "--", "printenv", "GREETING").strip() == "good morning"
    assert fleet.login("srun", "hostname") == name


def test_an_update_replaces_every_worker_and_ends_no_job(fleet, operator):
    fleet.scale(2)
    fleet.wait("two workers are idle", 90, lambda: len(fleet.uids()) == 2 and fleet.is_idle(*fleet.uids()))
    before = fleet.uids()
    jobs = {node: fleet.start_job(node) for node in before}
    with killed_at_random(operator):
        fleet.api.merge(fleet.path("nodesets", "workers"), {"spec": {"extraConf": "Features=fresh"}})
        for _ in range(2):
            [node] = fleet.wait("one of them drains: maxUnavailable is a quarter of two, rounded up", 60, lambda: fleet.draining() & jobs.keys())
            if len(jobs) == 2:
                fleet.kill_slurmctld()
                fleet.wait("slurmctld is back", 90, lambda: fleet.draining() & jobs.keys() == {node})
            assert fleet.uids()[node] == before[node] and {fleet.job_state(job) for job in jobs.values()} == {"RUNNING"}
            fleet.end_job(jobs.pop(node))
            fleet.wait(f"{node} is replaced", 90, lambda node=node: fleet.uids().get(node) not in (None, before[node]))
            assert all(fleet.job_state(other) == "RUNNING" for other in jobs.values())
    fleet.wait("both are new and idle", 90, lambda: fleet.is_idle(*before) and fleet.status().get("updatedReplicas") == 2)
    assert set(fleet.login("sinfo", "-hN", "-n", ",".join(before), "-o", "%f").split()) == {"fresh,w"}


def test_a_worker_whose_limits_name_gpus_runs_jobs_with_gpus(fleet):
    """The Node has two, as a device plugin would tell; for their files two devices that every machine has stand in."""
    def slurmctld() -> list[str]:
        pod = fleet.api.get(fleet.core("pods", "slurm-controller-0"))
        return [pod["metadata"]["uid"], *(str(one["restartCount"]) for one in pod["status"]["containerStatuses"])]
    before, node = slurmctld(), f"/api/v1/nodes/{NODE}/status"
    fleet.api.merge(node, {"status": {"capacity": {GPU: "2"}, "allocatable": {GPU: "2"}}})
    fleet.api.merge(fleet.core("configmaps", "files"), {"data": {"gres.conf": "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"}})
    fleet.make("nodesets", "gpus", {
        "controllerRef": {"name": "slurm"}, "replicas": 1, "oversubscribeNode": True, "logfile": fleet.busybox,
        "slurmd": fleet.image("slurmd") | {"resources": {"requests": {"cpu": "50m"}, "limits": {GPU: "2"}}},
        "template": {"spec": {"hostname": "g-", "terminationGracePeriodSeconds": 5}}, "partition": {"enabled": True, "config": "State=UP"}})
    try:
        fleet.wait("the worker is idle", 90, lambda: fleet.node_states().get("g-0") == {"idle", "dynamic_norm"})
        assert fleet.login("sinfo", "-hN", "-n", "g-0", "-o", "%G") == "gpu:2"
        assert fleet.login("srun", "-p", "g", "--gres=gpu:2", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1"
        assert slurmctld() == before
    finally:
        fleet.api.delete(fleet.path("nodesets", "gpus"))
        fleet.wait("the NodeSet has gone", 90, lambda: not fleet.api.exists(fleet.path("nodesets", "gpus")))
        fleet.api.merge(fleet.core("configmaps", "files"), {"data": {"gres.conf": None}})
        fleet.api.merge(node, {"status": {"capacity": {GPU: None}, "allocatable": {GPU: None}}})


def test_a_deleted_nodeset_waits_for_its_jobs_and_leaves_nothing(fleet):
    before = fleet.uids()
    fleet.wait("all workers are idle", 90, lambda: fleet.is_idle(*before))
    busy = min(before)
    job = fleet.start_job(busy)
    fleet.api.delete(fleet.path("nodesets", "workers"))
    fleet.wait("only the busy worker is left, and drains", 60, lambda: fleet.uids() == {busy: before[busy]} and fleet.draining() == {busy})
    assert fleet.job_state(job) == "RUNNING"
    fleet.end_job(job)
    fleet.wait("nothing of the NodeSet is left", 150, lambda: not fleet.worker_pods() and not fleet.api.exists(fleet.path("nodesets", "workers")))
    assert fleet.slurmctld_is_up()
    fleet.wait("nor of what NodeSets share", 30, lambda: not fleet.api.exists(f"/apis/policy/v1/namespaces/{HOME}/poddisruptionbudgets/slurm-workers-pdb-slurm"))
