"""The bridge on a real Kubernetes with a real Slurm: nodes are lent to Slurm, pods get the places that Slurm finds, and what either side
does to them is seen on the other."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from bridge import FINALIZER, JOB_LABEL, SCHEDULER, STAYS, TOPOLOGY, WISH, Bridge, Site, at_work, condition, settled, uid_of
from slincdev import components
from slincdev.common import PATIENCE, Fail

NODES = [f"shop-{index}" for index in range(3)]
REAL = components.NODE  # the one node with a kubelet
MARGIN = 100  # MiB of a node's memory that Slurm is not told of
MINE = "slurm-bridge:"  # begins the reasons of our drains
HERE = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "bridged")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    """The bridge that all tests share, with its nodes."""
    for name in NODES:
        site.add_node(name)
    site.lend(REAL, "kubelet")
    with at_work(site, Bridge(cluster, slurm, tmp_path_factory.mktemp("bridge")), [*NODES, REAL]) as bridge:
        yield bridge


@pytest.fixture(autouse=True)
def bridge(site, one) -> Iterator[Bridge]:
    """Running; and after the test nothing of it is left, whatever became of it."""
    yield one
    if not one.process or one.process.poll() is not None:
        one.start().wait_until_it_leads()
    site.see_pods_off()


def drained(site: Site, name: str) -> str | None:
    """Slurm's reason, if it is."""
    found = site.slurm_node(name)
    return found["reason"] if found and "DRAIN" in found["state"] else None


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_a_labelled_node_is_in_slurm_with_its_size_partition_address_and_mark(site, cluster):
    found = site.slurm_node("shop-0")
    assert {"EXTERNAL", "DYNAMIC_NORM"} <= set(found["state"])
    assert (found["cpus"], found["real_memory"], found["address"]) == (64, 256 * 1024 - MARGIN, "127.0.0.1")
    assert found["features"] == found["active_features"] == ["slurm-bridge"]
    assert "slurm-bridge" in found["partitions"]
    assert json.loads(found["extra"]) == {"v": 1, "cluster": site.uid, "release": f"default/{SCHEDULER}"}  # its names are equal
    assert site.taint("shop-0") == SCHEDULER

    real, capacity = site.slurm_node(REAL), site.node(REAL)["status"]["allocatable"]
    assert (real["cpus"], real["address"]) == (int(capacity["cpu"]), cluster.node_ip)
    assert real["real_memory"] == int(capacity["memory"].removesuffix("Ki")) // 1024 - MARGIN
    assert "kubelet" in real["partitions"] and "slurm-bridge" not in real["partitions"]


def test_a_cordon_and_an_administrators_drain_each_show_on_the_other_side(site, placed, eventually):
    def shown(status: str) -> dict | None:
        found = condition(site.node("shop-1"), "SlurmAvailable")
        return found if found["status"] == status else None

    here = placed("here", nodeSelector={HERE: "shop-1"})
    site.api.merge("/api/v1/nodes/shop-1", {"spec": {"unschedulable": True}})
    reason = eventually("Slurm drains it", lambda: drained(site, "shop-1"))
    assert reason == f"{MINE} Corresponding Kubernetes node (shop-1) is unschedulable"
    site.api.merge("/api/v1/nodes/shop-1", {"spec": {"unschedulable": False}})
    eventually("the drain ends", lambda: drained(site, "shop-1") is None)

    site.set_slurm_node("shop-1", state=["DRAIN"], reason="a fan is broken")
    said = eventually("the node says it", lambda: shown("False"))
    assert (said["reason"], said["message"]) == ("Drained", "a fan is broken")
    assert site.job(here)["job_state"] == ["RUNNING"] and site.see("here")["metadata"]["uid"] == here["metadata"]["uid"]
    site.set_slurm_node("shop-1", state=["RESUME"])
    eventually("the node says that too", lambda: shown("True"))


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
    last = placed("last", nodeSelector={HERE: "shop-leaving"})
    site.take_back("shop-leaving")
    assert eventually("it is drained", lambda: drained(site, "shop-leaving")).startswith(MINE)
    assert site.placed("last") and site.job(last)["job_state"] == ["RUNNING"] and site.taint("shop-leaving") == SCHEDULER
    site.delete("last")
    eventually("it leaves Slurm", lambda: site.slurm_node("shop-leaving") is None)
    eventually("its taint goes", lambda: site.taint("shop-leaving") is None)
    site.api.delete("/api/v1/nodes/shop-leaving")


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


def phase_of(bridge: Bridge, pod: dict) -> str | None:
    """The phase of the pod's unit in /debug/state."""
    units = bridge.debug(bridge.cluster)["units"]
    key = f"{pod['metadata']['namespace']}/{pod['metadata']['uid']}"
    return next((unit["phase"] for unit in units if unit["unit"] == key), None)


def test_a_pod_that_waits_says_what_slurm_says(site, bridge, eventually, placed):
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
    assert phase_of(bridge, pod) == "pending"
    assert (planned["status"], planned["reason"], planned["message"]) == ("False", "Unschedulable", said["message"])
    site.delete("wide-1")
    pod = eventually("it is placed", lambda: site.placed("waiting"))
    assert pod["spec"]["nodeName"] and phase_of(bridge, pod) == "bound"
    eventually("it waits no more", lambda: condition(site.see("waiting"), "SlurmPending")["status"] == "False")
    assert condition(site.see("waiting"), "SlurmPending")["message"] == f"job {job['job_id']} runs on {pod['spec']['nodeName']}"


def says(site: Site, name: str, reason: str) -> dict | None:
    found = condition(site.see(name), "SlurmPending")
    return found if (found["status"], found["reason"]) == ("True", reason) else None


def test_a_gated_pod_whose_job_is_held_starts_when_both_are_lifted(site, eventually):
    uid = site.make("held", wishes={"priority": "0"}, schedulingGates=[{"name": "example.org/wait"}])["metadata"]["uid"]
    site.make("beside")  # whoever comes later and is placed shows that the other one was looked at
    eventually("the other one is placed", lambda: site.placed("beside"))
    assert site.live_jobs_of(uid) == []
    site.api.merge(f"{site.pods_path}/held", {"spec": {"schedulingGates": []}})

    def held() -> int | None:
        said = condition(site.see("held"), "SlurmPending")
        return int(said["message"].split()[1]) if said["message"].startswith("job ") and "Held" in said["message"] else None
    number = eventually("it says that it is held", held)
    site.scontrol("release", number)
    pod = eventually("it is placed", lambda: site.placed("held"))
    assert int(pod["metadata"]["labels"][JOB_LABEL]) == number
    with pytest.raises(Fail, match="Only batch jobs"):  # so there is no requeue to follow; what it would do is a unit test
        site.scontrol("requeue", number)


def test_what_slurm_refuses_is_said_on_the_pod_until_it_is_mended(site, eventually):
    site.make("lost", wishes={"partition": "nowhere"})
    said = eventually("it says so", lambda: says(site, "lost", "Refused"))
    assert said["message"].startswith("Slurm refused the job: ") and "nvalid partition" in said["message"]
    eventually("there is an event", lambda: site.events("lost").get("FailedScheduling") == said["message"])
    site.api.merge(f"{site.pods_path}/lost", {"metadata": {"annotations": {f"{WISH}partition": "soon", f"{WISH}timelimit": "soon"}}})
    said = eventually("it says what it cannot read", lambda: says(site, "lost", "Invalid"))
    assert said["message"].startswith(f'{WISH}timelimit: "soon" is not a whole number')
    site.api.merge(f"{site.pods_path}/lost", {"metadata": {"annotations": {f"{WISH}partition": None, f"{WISH}timelimit": "5"}}})
    assert site.job(eventually("it is placed", lambda: site.placed("lost")))["time_limit"]["number"] == 5


def test_a_pod_gets_a_whole_node_only_where_it_asks_for_one(site, placed):
    whole = placed("whole", wishes={"exclusive": "true"})
    shared = [placed(f"shared-{index}") for index in range(2)]
    assert site.job(whole)["cpus"]["number"] == 64
    assert [site.job(pod)["cpus"]["number"] for pod in shared] == [1, 1]
    assert whole["spec"]["nodeName"] not in [pod["spec"]["nodeName"] for pod in shared]


def test_a_job_that_slurm_cancels_or_suspends_takes_its_pod_with_it_and_says_why(site, eventually):
    cancelled = site.pod("cancelled")
    cancelled["metadata"]["finalizers"] = [STAYS]
    site.api.post(site.pods_path, cancelled)
    try:
        site.make("suspended")
        number, other = (site.job(eventually(f"{name} is placed", lambda: site.placed(name)))["job_id"] for name in ("cancelled", "suspended"))
        site.slurm.cancel(number)
        site.scontrol("suspend", other)
        leaving = eventually("it is being deleted", lambda: (pod := site.see("cancelled"))["metadata"].get("deletionTimestamp") and pod)
        said = condition(leaving, "SlurmJobEnded")
        assert (said["status"], said["reason"]) == ("True", "SlurmJobCancelled")
        assert said["message"].startswith(f"job {number} was cancelled in Slurm")
        eventually("so says an event", lambda: site.events("cancelled").get("SlurmJobCancelled") == said["message"])
        eventually("only the look at it holds it", lambda: site.see("cancelled")["metadata"]["finalizers"] == [STAYS])
    finally:
        site.let_go("cancelled")
    eventually("the other one goes too", lambda: site.see("suspended") is None)
    eventually("with an event", lambda: "SlurmJobSuspended" in site.events("suspended"))
    eventually("and its job", lambda: site.job_state(other) == "CANCELLED")


# --- the bridge itself -----------------------------------------------------------------------------------------------


def test_what_happened_while_no_bridge_ran_is_shown_by_a_dry_run_and_then_made_good(site, bridge, placed, eventually):
    kept, _, ended = placed("kept"), placed("gone"), placed("ended")
    bridge.stop()
    site.delete("gone", 0)
    site.slurm.cancel(site.job(ended)["job_id"])
    newcomer = site.make("newcomer")
    site.api.merge("/api/v1/nodes/shop-2", {"spec": {"unschedulable": True}})
    uid, said = newcomer["metadata"]["uid"], len(bridge.said())
    bridge.start("--observe-only")
    eventually("it says what it would do", lambda: "would do" in bridge.said()[said:] and uid in bridge.said()[said:])
    bridge.stop()
    assert site.see("gone") and site.see("ended"), "what it says it does not do"
    assert site.see("newcomer")["metadata"]["resourceVersion"] == newcomer["metadata"]["resourceVersion"]
    assert site.live_jobs_of(uid) == [] and drained(site, "shop-2") is None
    assert not site.api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/slurm-bridge-scheduler")["spec"].get("holderIdentity")

    bridge.start().wait_until_it_leads()
    eventually("what was deleted is gone", lambda: site.see("gone") is None)
    eventually("what Slurm ended goes", lambda: site.see("ended") is None)
    eventually("the newcomer is placed", lambda: site.placed("newcomer"))
    eventually("the cordon shows", lambda: drained(site, "shop-2"))
    site.api.merge("/api/v1/nodes/shop-2", {"spec": {"unschedulable": False}})
    eventually("and its end", lambda: drained(site, "shop-2") is None)
    settled(site)
    assert site.job(kept)["job_state"] == ["RUNNING"] and site.see("kept")["metadata"]["uid"] == kept["metadata"]["uid"]
    assert len(site.live_jobs_of(uid)) == 1


WRONG = [
    ("slurmRestApi: ftp://slurm", [], 1, "slurmRestApi: wants a URL"),
    (None, ["--kubeconfig", "/nowhere/config"], 1, "/nowhere/config"),
    (None, ["--metrics-bind-address", "here"], 1, "--metrics-bind-address"),
    (None, ["--no-such-flag"], 2, "no-such-flag"),
    (None, ["--zap-log-level", "loud"], 2, "--zap-log-level"),
    (None, ["--webhook-port=70000"], 2, "wants at most 65535"),
    (None, ["--roles=scheduler"], 2, "name both or neither"),
    (None, ["--roles=webhook,all"], 2, '"all" is none of scheduler, controllers and webhook'),
    (None, ["--roles=webhook", "--uninstall"], 2, "--roles=webhook goes without"),
]


def test_a_wrong_setting_is_named_and_ends_it(cluster, slurm, tmp_path):
    """What else can be wrong: tests/unit/bridge/test_config.c and tests/unit/cmd/test_flags.c."""
    wrong = []
    for number, (config, flags, code, words) in enumerate(WRONG):
        one = Bridge(cluster, slurm, tmp_path, f"wrong-{number}")
        if config:
            one.config.write_text(config)
        wrong.append((one.start(*flags), code, words))
    for one, code, words in wrong:
        assert one.process.wait(60 * PATIENCE) == code, one.said()
        assert words in one.said() and "Sanitizer" not in one.said()


def test_a_token_that_slurm_does_not_take_is_said_until_there_is_a_good_one(cluster, slurm, tmp_path, bridge, eventually):
    other = Bridge(cluster, slurm, tmp_path, jwtKeyFile="")
    other.token.write_text("not.a.token")
    try:
        other.start()
        eventually("it says that it is not ready, and why", lambda: (a := other.ask("/readyz"))[0] != 200 and "slurm" in a[1])
        other.token.write_text(slurm.token())
        eventually("a good one is taken up", lambda: other.ask("/readyz")[0] == 200)
        other.stop()
        assert "not.a.token" not in other.said()
    finally:
        other.end()
