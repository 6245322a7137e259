"""The bridge on a real Kubernetes with a real Slurm: nodes are lent to Slurm, pods get the places that Slurm finds, and what either side
does to them is seen on the other."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator

import pytest
from bridge import (FINALIZER, JOB_LABEL, SCHEDULER, TOPOLOGY, WISH, Bridge, Site, Strangers, condition, settled, uid_of)
from slincdev import components, nodes
from slincdev.common import PATIENCE, Fail
from slincdev.kube import ApiError
from waits import wait_for

NODES = [f"shop-{index}" for index in range(3)]
REAL = components.NODE  # the one node with a kubelet
MINE = "slurm-bridge:"  # begins the reasons of our drains
STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 1; done")  # must be killed
PATIENT = ("sh", "-c", "trap 'sleep 8; exit 0' TERM; while :; do sleep 0.1; done")  # takes eight seconds to say goodbye


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "bridged")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    """The bridge that all tests share, with its nodes."""
    bridge = Bridge(cluster, slurm, tmp_path_factory.mktemp("bridge"))
    for name in NODES:
        site.add_node(name)
    site.lend(REAL, "kubelet")
    try:
        bridge.start().wait_until_it_leads()
        wait_for("the nodes are in Slurm", 30, lambda: all(site.is_registered(name) for name in [*NODES, REAL]))
        yield bridge
        if not bridge.process:
            bridge.start().wait_until_it_leads()
        site.clear([*NODES, REAL])
        settled(site)
        bridge.stop()
    finally:
        bridge.end()


@pytest.fixture(scope="module")
def short(site, one) -> dict:
    """A pod whose job may take one minute: the shortest that Slurm knows, so it starts before the tests and is looked at after them."""
    site.make("short", wishes={"timelimit": "1"})
    return wait_for("it is placed", 20, lambda: site.placed("short"))


@pytest.fixture(autouse=True)
def bridge(site, one, short) -> Iterator[Bridge]:
    """Running; and after the test nothing of it is left, whatever became of it."""
    yield one
    if not one.process or one.process.poll() is not None:
        one.start().wait_until_it_leads()
    left = [pod["metadata"]["name"] for pod in site.api.get(site.pods_path)["items"] if pod["metadata"]["name"] != "short"]
    for name in left:
        with contextlib.suppress(ApiError):
            site.delete(name, 0)
    wait_for("its pods are gone", 30, lambda: not any(site.see(name) for name in left))


def drained(site: Site, name: str) -> str | None:
    """Slurm's reason, if it is."""
    found = site.slurm_node(name)
    return found["reason"] if found and "DRAIN" in found["state"] else None


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_a_labelled_node_is_in_slurm_with_its_size_partition_address_and_mark(site, cluster):
    found = site.slurm_node("shop-0")
    assert {"EXTERNAL", "DYNAMIC_NORM"} <= set(found["state"])
    assert (found["cpus"], found["real_memory"], found["address"]) == (64, 256 * 1024, "127.0.0.1")
    assert found["features"] == found["active_features"] == ["slurm-bridge"]
    assert "slurm-bridge" in found["partitions"]
    assert json.loads(found["extra"]) == {"v": 1, "cluster": site.uid}  # its names are equal
    assert site.taint("shop-0") == SCHEDULER

    real, capacity = site.slurm_node(REAL), site.node(REAL)["status"]["allocatable"]
    assert (real["cpus"], real["address"]) == (int(capacity["cpu"]), cluster.node_ip)
    assert real["real_memory"] == int(capacity["memory"].removesuffix("Ki")) // 1024
    assert "kubelet" in real["partitions"] and "slurm-bridge" not in real["partitions"]


def test_a_cordon_drains_the_node_in_slurm_until_it_is_lifted(site, eventually):
    site.api.merge("/api/v1/nodes/shop-1", {"spec": {"unschedulable": True}})
    reason = eventually("Slurm drains it", lambda: drained(site, "shop-1"))
    assert reason == f"{MINE} Corresponding Kubernetes node (shop-1) is unschedulable"
    site.api.merge("/api/v1/nodes/shop-1", {"spec": {"unschedulable": False}})
    eventually("the drain ends", lambda: drained(site, "shop-1") is None)


def test_a_node_that_is_not_ready_is_drained_until_it_is(site, eventually):
    def is_ready(status: str) -> None:
        site.api.call("PATCH", "/api/v1/nodes/shop-unsteady/status", {"status": {"conditions": [
            {"type": "Ready", "status": status, "reason": "Test", "message": "", "lastHeartbeatTime": time.strftime("%FT%TZ", time.gmtime())}]}},
            "application/strategic-merge-patch+json")

    node = nodes.node_object("shop-unsteady")
    del node["metadata"]["annotations"]["kwok.x-k8s.io/node"]  # nobody but this test says how it is
    site.api.post("/api/v1/nodes", node)
    site.lend("shop-unsteady", "slurm-bridge")
    is_ready("True")
    eventually("it is in Slurm", lambda: site.is_registered("shop-unsteady"))
    is_ready("False")
    reason = eventually("Slurm drains it", lambda: drained(site, "shop-unsteady"))
    assert reason == f"{MINE} Corresponding Kubernetes node (shop-unsteady) is not ready"
    is_ready("True")
    eventually("the drain ends", lambda: drained(site, "shop-unsteady") is None)
    site.api.delete("/api/v1/nodes/shop-unsteady")
    eventually("it leaves Slurm with its Kubernetes node", lambda: site.slurm_node("shop-unsteady") is None)


def test_an_administrators_drain_shows_on_the_node_and_is_left_alone(site, eventually):
    site.set_slurm_node("shop-1", state=["DRAIN"], reason="a fan is broken")
    shown = eventually("the node says it", lambda: condition(site.node("shop-1"), "SlurmAvailable")["status"] == "False"
                       and condition(site.node("shop-1"), "SlurmAvailable"))
    assert (shown["reason"], shown["message"]) == ("Drained", "a fan is broken")
    for cordoned in (True, False):
        site.api.merge("/api/v1/nodes/shop-1", {"spec": {"unschedulable": cordoned}})
        time.sleep(1.5)
        assert drained(site, "shop-1") == "a fan is broken"
    site.set_slurm_node("shop-1", state=["RESUME"])
    eventually("the node says that too", lambda: condition(site.node("shop-1"), "SlurmAvailable")["status"] == "True")


def test_a_node_that_slurm_refuses_says_why_until_it_is_mended(site, eventually):
    def says() -> dict:
        return condition(site.node("shop-astray"), "SlurmAvailable")

    site.add_node("shop-astray", annotations={TOPOLOGY: "topo-switch:no-such-leaf"})
    said = eventually("it says why", lambda: (found := says())["reason"] and found)
    assert (said["status"], said["reason"]) == ("False", "SlurmNodeRefused")
    assert said["message"].startswith("Slurm refused to create node shop-astray: "), said
    path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dshop-astray"
    eventually("so does an event", lambda: any(event["note"] == said["message"] for event in site.api.get(path)["items"]))
    assert site.slurm_node("shop-astray") is None
    site.api.merge("/api/v1/nodes/shop-astray", {"metadata": {"annotations": {TOPOLOGY: None}}})
    eventually("it is in Slurm", lambda: site.is_registered("shop-astray"))
    eventually("and has nothing to say", lambda: says()["reason"] in ("", "InService"))
    site.api.delete("/api/v1/nodes/shop-astray")
    eventually("it leaves Slurm with its Kubernetes node", lambda: site.slurm_node("shop-astray") is None)


def test_a_node_without_its_label_leaves_slurm_when_its_last_pod_is_gone(site, placed, eventually):
    site.add_node("shop-leaving", cpus=8)
    eventually("it is in Slurm", lambda: site.is_registered("shop-leaving"))
    for name in NODES:
        site.api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    eventually("no other takes work", lambda: all(drained(site, name) for name in NODES))
    last = placed("last")
    assert last["spec"]["nodeName"] == "shop-leaving"
    eventually("it runs", lambda: site.runs("last"))
    for name in NODES:
        site.api.merge(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": False}})
    site.take_back("shop-leaving")
    assert eventually("it is drained", lambda: drained(site, "shop-leaving")).startswith(MINE)
    time.sleep(1)
    assert site.runs("last") and site.job(last)["job_state"] == ["RUNNING"] and site.taint("shop-leaving") == SCHEDULER
    site.delete("last")
    eventually("it leaves Slurm", lambda: site.slurm_node("shop-leaving") is None)
    eventually("its taint goes", lambda: site.taint("shop-leaving") is None)
    site.api.delete("/api/v1/nodes/shop-leaving")


def test_a_node_that_slurmd_runs_on_is_neither_resized_nor_removed(site, slurm, eventually):
    slurm.call("POST", "/slurm/{api}/new/node/", {"node_conf": "NodeName=hybrid NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=CLOUD"})
    before = site.slurm_node("hybrid")
    site.add_node("hybrid", cpus=32)
    eventually("it is tainted: Slurm says what runs there", lambda: site.taint("hybrid") == SCHEDULER)
    site.api.merge("/api/v1/nodes/hybrid", {"spec": {"unschedulable": True}})
    eventually("a cordon shows", lambda: (drained(site, "hybrid") or "").startswith(MINE))
    site.api.delete("/api/v1/nodes/hybrid")
    time.sleep(2)
    after = site.slurm_node("hybrid")
    kept = ("cpus", "real_memory", "features", "extra", "address", "partitions")
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}
    slurm.delete_node("hybrid")


# --- pods and their jobs ---------------------------------------------------------------------------------------------


STEPS = ("created to seen", "seen to asked", "asked to allocated", "allocated to bound", "seen to bound", "bound to ended")


def test_a_pod_runs_on_a_real_node_to_its_end_and_so_does_its_job(site, bridge, placed, eventually):
    pod = placed("worker", "sh", "-c", "sleep 1")
    job = site.job(pod)
    assert pod["spec"]["nodeName"] == job["nodes"] == REAL
    assert pod["metadata"]["annotations"]["slinky.slurm.net/slurm-node"] == REAL
    assert FINALIZER in pod["metadata"]["finalizers"]
    assert (job["name"], job["partition"], "EXTERNAL_JOB" in job["flags"], job["mcs_label"]) == ("worker", "kubelet", True, "kubernetes")
    assert json.loads(job["admin_comment"])["pods"] == ["bridged/worker"]
    assert uid_of(job, site.uid) == pod["metadata"]["uid"]
    assert job["state_reason"] == "None" and job["memory_per_node"]["number"] == 16 and job["cpus"]["number"] == 1
    assert "Successfully assigned" in eventually("the event", lambda: site.events("worker").get("Scheduled"))
    done = eventually("it has run", lambda: (p := site.see("worker"))["status"]["phase"] == "Succeeded" and p)
    eventually("its job ends", lambda: site.job_state(job["job_id"]) != "RUNNING")
    eventually("the pod may go", lambda: FINALIZER not in site.see("worker")["metadata"].get("finalizers", []))
    assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    measured = bridge.ask("/metrics")[1]
    assert [step for step in STEPS if f'slinc_bridge_step_seconds_count{{step="{step}"}}' not in measured] == []


WISHES = {"account": "physics", "timelimit": "90", "job-name": "from-the-owner"}


def template(site: Site, kind: str, **spec) -> dict:
    pod = site.pod(kind, **spec)
    return {"metadata": {"labels": {"kind": kind}, "annotations": {WISH + "job-name": "from-the-pod"}}, "spec": pod["spec"]}


def test_pods_of_workloads_follow_the_annotations_of_their_owner(site, eventually):
    wishes = {WISH + key: value for key, value in WISHES.items()}
    set_spec = {"replicas": 2, "selector": {"matchLabels": {"kind": "x"}}}
    where = "/apis/{}/namespaces/bridged/{}"
    cron = site.api.post(where.format("batch/v1", "cronjobs"), {
        "metadata": {"name": "nightly"}, "spec": {"schedule": "0 0 1 1 *", "suspend": True,
                                                  "jobTemplate": {"spec": {"template": template(site, "cron")}}}})
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": cron["metadata"]["uid"], "controller": True}
    for group, plural, name, spec, more in [
            ("batch/v1", "jobs", "job", {"parallelism": 2, "completions": 2, "template": template(site, "job")}, {}),
            ("batch/v1", "jobs", "cron", {"template": template(site, "cron")}, {"ownerReferences": [owner]}),
            ("apps/v1", "deployments", "deployment", set_spec | {"template": template(site, "deployment", restartPolicy="Always"),
                                                                 "selector": {"matchLabels": {"kind": "deployment"}}}, {}),
            ("apps/v1", "statefulsets", "statefulset", set_spec | {"serviceName": "none", "podManagementPolicy": "Parallel",
                                                                   "template": template(site, "statefulset", restartPolicy="Always"),
                                                                   "selector": {"matchLabels": {"kind": "statefulset"}}}, {})]:
        site.api.post(where.format(group, plural), {"metadata": {"name": name, "annotations": wishes} | more, "spec": spec})

    def all_placed() -> list[dict]:
        pods = [pod for pod in site.api.get(site.pods_path)["items"] if "kind" in pod["metadata"].get("labels", {})]
        return pods if len(pods) == 7 and all(pod["spec"].get("nodeName") for pod in pods) else []
    pods = eventually("all pods are placed", all_placed)
    for pod in pods:
        job = site.job(pod)
        assert (job["account"], job["time_limit"]["number"], job["name"]) == ("physics", 90, "from-the-owner"), pod["metadata"]["name"]
    assert len({pod["metadata"]["labels"][JOB_LABEL] for pod in pods}) == 7
    for group, plural, name in [("batch/v1", "cronjobs", "nightly"), ("batch/v1", "jobs", "job"),
                                ("apps/v1", "deployments", "deployment"), ("apps/v1", "statefulsets", "statefulset")]:
        site.api.delete(where.format(group, plural) + f"/{name}", {"propagationPolicy": "Background"})
    eventually("all are gone", lambda: not [pod for pod in site.api.get(site.pods_path)["items"] if "kind" in pod["metadata"].get("labels", {})])
    eventually("and their jobs", lambda: not [job for job in site.live_jobs() if job["name"] == "from-the-owner"])


def test_a_gated_pod_is_asked_for_when_its_gate_opens(site, eventually):
    pod = site.make("gated", schedulingGates=[{"name": "example.org/wait"}])
    time.sleep(1.5)
    assert site.live_jobs_of(pod["metadata"]["uid"]) == []
    site.api.merge(f"{site.pods_path}/gated", {"spec": {"schedulingGates": []}})
    eventually("it is placed", lambda: site.placed("gated"))


def test_a_pod_that_waits_says_what_slurm_says(site, eventually, placed):
    for index in range(3):
        placed(f"wide-{index}", cpu="63")
    site.make("waiting", cpu="60")

    def waits() -> dict | None:
        said = condition(pod := site.see("waiting"), "SlurmPending")
        return pod if (said["status"], said["reason"]) == ("True", "Resources") else None
    pod = eventually("it says why", waits)
    said, planned = condition(pod, "SlurmPending"), condition(pod, "PodScheduled")
    job = site.live_jobs_of(pod["metadata"]["uid"])[0]
    assert said["message"].startswith(f"job {job['job_id']} waits: Resources")
    assert (planned["status"], planned["reason"], planned["message"]) == ("False", "Unschedulable", said["message"])
    site.delete("wide-1")
    pod = eventually("it is placed", lambda: site.placed("waiting"))
    assert pod["spec"]["nodeName"]
    eventually("it waits no more", lambda: condition(site.see("waiting"), "SlurmPending")["status"] == "False")
    assert condition(site.see("waiting"), "SlurmPending")["message"] == f"job {job['job_id']} runs on {pod['spec']['nodeName']}"


def test_a_waiting_pod_that_is_deleted_takes_its_job_with_it(site, eventually):
    pod = site.make("held-and-gone", wishes={"priority": "0"})
    jobs = eventually("its job waits", lambda: site.live_jobs_of(pod["metadata"]["uid"]))
    site.delete("held-and-gone")
    eventually("the pod is gone", lambda: site.see("held-and-gone") is None)
    eventually("its job too", lambda: site.job_state(jobs[0]["job_id"]) == "CANCELLED")


def says(site: Site, name: str, reason: str) -> dict | None:
    found = condition(site.see(name), "SlurmPending")
    return found if (found["status"], found["reason"]) == ("True", reason) else None


def test_a_pod_larger_than_any_node_says_so(site, eventually):
    pod = site.make("giant", cpu="4000")
    said = eventually("it says so", lambda: says(site, "giant", "NoNodeFits"))
    assert said["message"].startswith("0/") and "Insufficient cpu" in said["message"]
    assert eventually("so does an event", lambda: site.events("giant").get("FailedScheduling")) == said["message"]
    assert not site.live_jobs_of(pod["metadata"]["uid"])  # Slurm could not say it better
    site.delete("giant")


def test_what_slurm_refuses_is_said_on_the_pod_once_and_not_tried_for_ever(site, bridge, eventually):
    def asks() -> set[str]:
        return {line for line in bridge.ask("/metrics")[1].splitlines() if line.startswith("slinc_bridge_asks_total")}

    site.make("lost", wishes={"partition": "nowhere"})
    said = eventually("it says so", lambda: says(site, "lost", "Refused"))
    assert said["message"].startswith("Slurm refused the job: ") and "nvalid partition" in said["message"]
    assert eventually("there is an event", lambda: site.events("lost").get("FailedScheduling")) == said["message"]
    before, version = asks(), site.see("lost")["metadata"]["resourceVersion"]
    time.sleep(3)
    assert (asks(), site.see("lost")["metadata"]["resourceVersion"]) == (before, version)
    site.delete("lost")
    eventually("it can be deleted", lambda: site.see("lost") is None)


def test_a_bad_annotation_is_named_on_the_pod(site, eventually):
    site.make("careless", wishes={"timelimit": "soon"})
    said = eventually("it says so", lambda: (c := condition(site.see("careless"), "SlurmPending"))["status"] == "True" and c)
    assert said["reason"] == "Invalid"
    assert said["message"].startswith(f'{WISH}timelimit: "soon" is not a whole number')


def test_a_pod_gets_a_whole_node_only_where_it_asks_for_one(site, placed):
    whole = placed("whole", wishes={"exclusive": "true"})
    shared = [placed(f"shared-{index}") for index in range(2)]
    assert site.job(whole)["cpus"]["number"] == 64
    assert [site.job(pod)["cpus"]["number"] for pod in shared] == [1, 1]
    assert whole["spec"]["nodeName"] not in [pod["spec"]["nodeName"] for pod in shared]


# --- what Slurm does to a job ----------------------------------------------------------------------------------------


def test_scancel_deletes_the_pod_gracefully_and_says_why(site, placed, eventually):
    pod = placed("cancelled", *STUBBORN, terminationGracePeriodSeconds=10)
    eventually("it runs", lambda: site.runs("cancelled"))
    number = site.job(pod)["job_id"]
    site.slurm.cancel(number)
    leaving = eventually("it is being deleted", lambda: (p := site.see("cancelled")) and p["metadata"].get("deletionTimestamp") and p)
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 10
    said = condition(leaving, "SlurmJobEnded")
    assert (said["status"], said["reason"]) == ("True", "SlurmJobCancelled")
    assert said["message"].startswith(f"job {number} was cancelled in Slurm")
    eventually("so says an event", lambda: site.events("cancelled").get("SlurmJobCancelled") == said["message"])
    eventually("it goes", lambda: site.see("cancelled") is None)


def test_a_held_job_is_placed_when_it_is_released(site, eventually):
    site.make("held", wishes={"priority": "0"})

    def held() -> int | None:
        said = condition(site.see("held"), "SlurmPending")
        return int(said["message"].split()[1]) if said["message"].startswith("job ") and "Held" in said["message"] else None
    number = eventually("it says that it is held", held)
    site.scontrol("release", number)
    pod = eventually("it is placed", lambda: site.placed("held"))
    assert int(pod["metadata"]["labels"][JOB_LABEL]) == number
    with pytest.raises(Fail, match="Only batch jobs"):  # so there is no requeue to follow; what it would do is a unit test
        site.scontrol("requeue", number)


def test_a_job_that_is_preempted_ends_its_pod_and_the_other_gets_its_place(site, placed, eventually):
    site.scontrol("create", "PartitionName=urgent", "Nodes=shop-0,shop-1,shop-2", "PriorityTier=10")
    wide = [placed(f"wide-{index}", cpu="63") for index in range(3)]
    urgent = placed("urgent", cpu="60", wishes={"partition": "urgent"})
    lost = eventually("one pod makes way", lambda: [pod for pod in wide if not site.see(pod["metadata"]["name"])])
    assert [pod["spec"]["nodeName"] for pod in lost] == [urgent["spec"]["nodeName"]]
    assert "was preempted" in eventually("there is an event", lambda: site.events(lost[0]["metadata"]["name"]).get("SlurmJobPreempted"))
    site.delete("urgent")
    eventually("nothing is left in the partition", lambda: not site.live_jobs_of(urgent["metadata"]["uid"]))
    site.scontrol("delete", "PartitionName=urgent")


def test_a_suspended_job_ends_its_pod(site, placed, eventually):
    pod = placed("suspended")
    site.scontrol("suspend", pod["metadata"]["labels"][JOB_LABEL])
    eventually("its pod goes", lambda: site.see("suspended") is None)
    eventually("there is an event", lambda: "SlurmJobSuspended" in site.events("suspended"))
    eventually("and its job", lambda: not site.live_jobs_of(pod["metadata"]["uid"]))


# --- what people do to a pod -----------------------------------------------------------------------------------------


def test_slurm_gets_the_resources_back_only_when_the_containers_have_ended(site, placed, eventually):
    pod = placed("leaving", *PATIENT, terminationGracePeriodSeconds=30)
    eventually("it runs", lambda: site.runs("leaving"))
    number = site.job(pod)["job_id"]
    site.delete("leaving")
    watched = 0
    while (found := site.see("leaving")) is not None:
        if all("running" in status["state"] for status in found["status"]["containerStatuses"]):
            state, after = site.job_state(number), site.see("leaving")
            assert state == "RUNNING" or not after or not all("running" in one["state"] for one in after["status"]["containerStatuses"])
            watched += 1
        time.sleep(0.1)
    assert watched
    eventually("the job ends", lambda: site.job_state(number) != "RUNNING")


def test_a_pod_deleted_by_force_gives_its_job_up_when_its_containers_have_ended(site, placed, eventually):
    pod = placed("forced", *STUBBORN, terminationGracePeriodSeconds=30)
    eventually("it runs", lambda: site.runs("forced"))
    site.delete("forced", 0)
    eventually("it is gone", lambda: site.see("forced") is None)
    eventually("its job too", lambda: site.job_state(site.job(pod)["job_id"]) != "RUNNING")


def test_a_new_pod_of_an_old_name_gets_a_job_of_its_own(site, placed, eventually):
    first = placed("again")
    site.delete("again", 0)
    eventually("it is gone", lambda: site.see("again") is None)
    second = placed("again")
    assert first["metadata"]["labels"][JOB_LABEL] != second["metadata"]["labels"][JOB_LABEL]
    eventually("the first job has ended", lambda: site.job_state(site.job(first)["job_id"]) != "RUNNING")
    assert site.job_state(site.job(second)["job_id"]) == "RUNNING"


# --- the bridge itself -----------------------------------------------------------------------------------------------


def test_what_happened_while_no_bridge_ran_is_made_good(site, bridge, placed, eventually):
    kept, _, ended = placed("kept"), placed("gone"), placed("ended")
    bridge.stop()
    site.delete("gone", 0)
    number = site.job(ended)["job_id"]
    site.slurm.cancel(number)
    newcomer = site.make("newcomer")
    time.sleep(1)
    assert site.see("gone") is not None, "its finalizer keeps it"
    bridge.start().wait_until_it_leads()
    eventually("what was deleted is gone", lambda: site.see("gone") is None)
    eventually("what Slurm ended goes", lambda: site.see("ended") is None)
    eventually("the newcomer is placed", lambda: site.placed("newcomer"))
    settled(site)
    assert site.job(kept)["job_state"] == ["RUNNING"] and site.see("kept")["metadata"]["uid"] == kept["metadata"]["uid"]
    assert len(site.live_jobs_of(newcomer["metadata"]["uid"])) == 1


def test_a_bridge_that_only_observes_writes_nothing(site, bridge, eventually):
    bridge.stop()
    pod = site.make("observed")
    site.api.merge("/api/v1/nodes/shop-2", {"spec": {"unschedulable": True}})
    said = len(bridge.said())
    bridge.start("--observe-only")
    eventually("it says what it would do", lambda: "would do" in bridge.said()[said:] and pod["metadata"]["uid"] in bridge.said()[said:])
    time.sleep(2)
    assert site.see("observed")["metadata"]["resourceVersion"] == pod["metadata"]["resourceVersion"]
    assert site.live_jobs_of(pod["metadata"]["uid"]) == []
    assert drained(site, "shop-2") is None
    assert not site.api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/slurm-bridge-scheduler")["spec"].get("holderIdentity")
    bridge.stop()
    bridge.start().wait_until_it_leads()
    eventually("the real one does", lambda: site.placed("observed") and drained(site, "shop-2"))
    site.api.merge("/api/v1/nodes/shop-2", {"spec": {"unschedulable": False}})
    eventually("and undoes", lambda: drained(site, "shop-2") is None)


@pytest.mark.parametrize("wrong, code, words", [
    ({"config": "slurmRestApi: [1"}, 1, "--config"),
    ({"config": "slurmRestApi: ftp://slurm"}, 1, "slurmRestApi: wants a URL"),
    ({"config": "partition: 5"}, 1, "partition: wants a text"),
    ({"config": "{}"}, 1, "SLURM_JWT_FILE"),
    ({"config": "jwtKeyFile: /nowhere/jwt.key"}, 1, "jwtKeyFile"),
    ({"flags": ["--kubeconfig", "/nowhere/config"]}, 1, "/nowhere/config"),
    ({"flags": ["--no-such-flag"]}, 2, "no-such-flag"),
    ({"flags": ["--zap-log-level", "loud"]}, 2, "--zap-log-level"),
    ({"flags": ["--metrics-bind-address", "here"]}, 1, "--metrics-bind-address"),
], ids=lambda value: str(value)[:40])
def test_a_wrong_setting_is_named_and_ends_it(cluster, slurm, tmp_path, wrong, code, words):
    other = Bridge(cluster, slurm, tmp_path)
    if "config" in wrong:
        other.config.write_text(wrong["config"])
    other.start(*wrong.get("flags", []))
    assert other.process.wait(60 * PATIENCE) == code
    assert words in other.said()
    assert "Sanitizer" not in other.said()


def test_a_token_that_slurm_does_not_take_is_said_and_nothing_is_asked(cluster, slurm, tmp_path, site, bridge, eventually):
    bridge.stop()
    other = Bridge(cluster, slurm, tmp_path, jwtKeyFile="")
    other.token.write_text("not.a.token")
    try:
        other.start()
        eventually("it says that it is not ready, and why", lambda: (a := other.ask("/readyz"))[0] != 200 and "slurm" in a[1])
        assert other.process.poll() is None
        other.token.write_text(slurm.token())
        eventually("a good one is taken up", lambda: other.ask("/readyz")[0] == 200)
        other.stop()
        assert "not.a.token" not in other.said()
    finally:
        other.end()


def test_what_belongs_to_others_is_left_alone(site, placed, bridge, eventually):
    strangers = Strangers(site)
    try:
        placed("neighbour")
        bridge.stop()
        bridge.start().wait_until_it_leads()
        site.delete("neighbour")
        eventually("our own pod goes", lambda: site.see("neighbour") is None)
        settled(site)
        assert strangers.changes() == []
    finally:
        strangers.remove()


def test_a_job_that_reaches_its_time_limit_ends_its_pod(site, short, eventually):
    eventually("its pod goes", lambda: site.see("short") is None, 100)
    assert "reached its time limit" in eventually("there is an event", lambda: site.events("short").get("SlurmJobTimeout"))


def test_nodes_taken_back_and_workloads_deleted_leave_nothing_when_the_bridge_goes(site, placed, bridge, eventually):
    placed("final")
    for name in NODES:
        site.take_back(name)
    site.delete("final")
    eventually("the pod is gone", lambda: site.see("final") is None)
    eventually("the nodes have left Slurm", lambda: not any(site.slurm_node(name) for name in NODES))
    eventually("the taints are gone", lambda: not any(site.taint(name) for name in NODES))
    bridge.stop()
    for pod in site.api.get(site.pods_path)["items"]:
        assert FINALIZER not in pod["metadata"].get("finalizers", []), pod["metadata"]["name"]
    site.api.delete(site.pods_path, {"gracePeriodSeconds": 0})
    eventually("whatever is left can be deleted without a bridge", lambda: not site.api.get(site.pods_path)["items"])
