"""What Slurm can do for pods, by a real slurmctld: begin times, dependencies, features, reservations, switches and blocks, preemption.

Preemption is by the tier of partitions (PreemptType=preempt/partition_prio); by QOS it is in test_bridge_accounting.py."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from bridge import TOPOLOGY, WISH, WORKLOADS, Bridge, Site, at_work, condition, settled
from slincdev import components
from waits import wait_for

ZONE, NVME = "topology.kubernetes.io/zone", "example.org/nvme"
ROWS = [f"row-{index}" for index in range(4)]  # even ones in the east; the last two have disks
SWITCHED = [f"switched-{index}" for index in range(4)]  # in turn at one leaf and at the other
BLOCKED = [f"blocked-{index}" for index in range(4)]
REAL = components.NODE
ONE_EACH = "6"  # CPUs of a pod, so that a node of eight holds one
LINGERS = ("sh", "-c", "trap 'sleep 2; exit 0' TERM; while :; do sleep 0.1; done")


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "slurmish")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    for index, name in enumerate(ROWS):
        site.add_node(name, cpus=8, labels={ZONE: "west" if index % 2 else "east", NVME: "true" if index > 1 else "false"})
    for index, (switched, blocked) in enumerate(zip(SWITCHED, BLOCKED)):
        site.add_node(switched, cpus=8, partitions="switched", annotations={TOPOLOGY: f"topo-switch:leaf-{index % 2 + 1}"})
        site.add_node(blocked, cpus=8, partitions="blocked", annotations={TOPOLOGY: f"topo-block:b{index % 2 + 1}"})
    site.lend(REAL, "kubelet")
    bridge = Bridge(cluster, slurm, tmp_path_factory.mktemp("slurmish"), nodeFeatures=[ZONE, NVME])
    with at_work(site, bridge, [*ROWS, *SWITCHED, *BLOCKED, REAL]):
        site.make("first")  # it may wait for whoever led before; those after it do not
        wait_for("a first pod is placed", 40, lambda: site.placed("first"), hint=bridge.said)
        site.empty()
        yield bridge


@pytest.fixture(autouse=True)
def bridge(site, one) -> Iterator[Bridge]:
    yield one
    site.empty()


@pytest.fixture
def gang(site, eventually):
    """A gang that has its places; tells its pods by rank."""
    def start(name: str, size: int, **options) -> list[dict]:
        site.start("podgroup", name, size, cpu=ONE_EACH, **options)
        return eventually(f"{name} is placed", lambda: site.team_placed(name, size))
    return start


def nodes_of(pods: list[dict]) -> list[str]:
    """By rank: in Slurm's own order, which is that of its table and not that of the names."""
    return [pod["spec"]["nodeName"] for pod in pods]


def waits_for(site: Site, name: str, reason: str) -> bool:
    found = condition(site.see(name), "SlurmPending")
    return (found["status"], found["reason"]) == ("True", reason)


# --- when ------------------------------------------------------------------------------------------------------------


def test_a_pod_waits_for_its_time_and_for_the_job_that_it_depends_on(site, placed, eventually):
    first = site.job(placed("first"))["job_id"]
    site.make("after", wishes={"dependency": f"afterany:{first}"})
    site.make("later", wishes={"begin-time": "+1h"})
    eventually("one waits for the other job", lambda: waits_for(site, "after", "Dependency"))
    eventually("one waits for its time", lambda: waits_for(site, "later", "BeginTime"))
    site.delete("first")
    eventually("the first one is placed", lambda: site.placed("after"))
    assert site.job_state(first) != "RUNNING"
    site.api.merge(f"{site.pods_path}/later", {"metadata": {"annotations": {f"{WISH}begin-time": None}}})
    eventually("so is the other, whose time is now", lambda: site.placed("later"))


# --- where -----------------------------------------------------------------------------------------------------------


def rather(*terms: tuple[int, dict[str, list[str]]]) -> dict:
    """An affinity that prefers nodes with such labels, by weight."""
    def term(weight: int, labels: dict[str, list[str]]) -> dict:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": values}
                                                                      for key, values in labels.items()]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term(*one) for one in terms]}}


WEST = rather((1, {ZONE: ["west", "nowhere"]}))


def test_labels_of_nodes_are_features_to_ask_for_and_to_prefer(site, placed):
    """Slurm refuses a job whose preferred nodes are all excluded, and would forget constraints beside a preference."""
    assert placed("choosy", wishes={"constraints": "west&nvme"})["spec"]["nodeName"] == "row-3"
    assert placed("required", affinity=WEST, nodeSelector={ZONE: "east"})["spec"]["nodeName"] in ("row-0", "row-2")
    assert placed("both", affinity=WEST, wishes={"constraints": "east&nvme"})["spec"]["nodeName"] == "row-2"
    site.empty()
    got = [placed(f"eager-{index}", cpu=ONE_EACH, affinity=WEST)["spec"]["nodeName"] for index in range(3)]
    assert sorted(got[:2]) == ["row-1", "row-3"] and got[2] in ("row-0", "row-2")


def test_a_job_that_waits_outlives_what_it_prefers(site, placed, eventually):
    """Slurm holds a job whose preference no node can meet any more; the bridge takes the preference back."""
    for name in ROWS:
        placed(f"on-{name}", cpu=ONE_EACH, nodeSelector={"kubernetes.io/hostname": name})
    uid = site.make("patient", cpu=ONE_EACH, affinity=WEST)["metadata"]["uid"]
    eventually("its job waits", lambda: [job for job in site.live_jobs_of(uid) if job["prefer"] == "west"])
    try:
        for name in ("row-1", "row-3"):
            site.api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {ZONE: "north"}}})
        eventually("the preference is taken back", lambda: [job for job in site.live_jobs_of(uid) if job["prefer"] == "" and not job["hold"]])
        site.delete("on-row-0", 0)
        assert eventually("it is placed", lambda: site.placed("patient"))["spec"]["nodeName"] == "row-0"
    finally:
        for name in ("row-1", "row-3"):
            site.api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {ZONE: "west"}}})
        eventually("the nodes are as before", lambda: all("west" in site.slurm_node(name)["features"] for name in ("row-1", "row-3")))


def test_a_gang_runs_in_its_reservation_and_nobody_else_does(site, gang, eventually):
    site.scontrol("create", "ReservationName=ours", "StartTime=now", "Duration=60", "Users=slurm", f"Nodes={','.join(ROWS[2:])}")
    try:
        assert sorted(nodes_of(gang("inside", 2, wishes={"reservation": "ours"}))) == ROWS[2:]
        site.start("podgroup", "outside", 3, cpu=ONE_EACH)
        eventually("others wait", lambda: condition(site.team("outside")[0], "SlurmPending")["reason"] in ("Resources", "ReqNodeNotAvail"))
        site.disband("podgroup", "inside", gracePeriodSeconds=0)
        eventually("the first one goes", lambda: not site.team("inside"))
        assert not any("nodeName" in pod["spec"] for pod in site.team("outside"))
    except BaseException:
        site.clear_pods()  # or it could not go
        raise
    finally:
        eventually("nobody is in it", lambda: site.scontrol("delete", "ReservationName=ours") == "")
    eventually("then they start", lambda: site.team_placed("outside", 3))


def test_a_gang_stays_at_one_switch_or_in_one_block_where_it_asks_to(site, eventually):
    """A pod is at one of the two already; so the gang, which would be near it, goes to the other."""
    assert site.slurm_node("switched-1")["topology"] == "topo-switch:leaf-2"
    assert site.slurm_node("blocked-2")["topology"] == "topo-block:b1"
    kinds = {"switched": {"switches": "1"}, "blocked": {"segment-size": "2"}}
    for partition in kinds:
        site.make(f"on-{partition}", cpu=ONE_EACH, wishes={"partition": partition}, nodeSelector={"kubernetes.io/hostname": f"{partition}-0"})
    eventually("both are placed", lambda: all(site.placed(f"on-{partition}") for partition in kinds))
    for partition, wish in kinds.items():
        site.start("podgroup", partition, 2, cpu=ONE_EACH, wishes={"partition": partition} | wish)
    for partition in kinds:
        pods = eventually(f"{partition} is placed", lambda: site.team_placed(partition, 2))
        assert sorted(nodes_of(pods)) == [f"{partition}-1", f"{partition}-3"]


# --- what is done to a job or a node ---------------------------------------------------------------------------------


def test_a_gang_that_is_preempted_goes_as_a_whole_and_comes_back_as_one(site, gang, eventually):
    site.scontrol("create", "PartitionName=express", f"Nodes={','.join(ROWS)}", "PriorityTier=10")
    try:
        before = gang("low", 4)
        site.make("high", cpu=ONE_EACH, wishes={"partition": "express"})
        winner = eventually("the other one gets its place", lambda: site.placed("high"))
        eventually("all pods of the gang go", lambda: not any(site.see(pod["metadata"]["name"]) for pod in before))
        assert "was preempted" in eventually("there is an event", lambda: site.events("low-0").get("SlurmJobPreempted"))
        assert winner["spec"]["nodeName"] in ROWS and site.job(before[0])["job_state"] != ["RUNNING"]
        for path, body in WORKLOADS["podgroup"](site, "low", 4, (), {}, {"cpu": ONE_EACH})[1:]:  # as their owner would; the group is there
            site.api.post(path.format(f"namespaces/{site.namespace}"), body)
        eventually("its next pods wait for all of the nodes", lambda: waits_for(site, "low-0", "Resources"))
        site.delete("high", 0)
        eventually("and get them", lambda: site.team_placed("low", 4))
        settled(site)
    finally:
        site.clear_pods()
        eventually("the partition goes", lambda: site.scontrol("delete", "PartitionName=express") == "")


def test_a_node_is_given_on_only_when_the_pod_before_is_really_gone(site, placed, eventually):
    """It takes two seconds to end, of the thirty that it may take."""
    whole = {"exclusive": "true"}
    placed("leaving", *LINGERS, wishes=whole, terminationGracePeriodSeconds=30)
    eventually("it runs", lambda: site.runs("leaving"))
    site.make("next", "sleep", "600", wishes=whole)
    eventually("the other one waits", lambda: waits_for(site, "next", "Resources"))
    began = time.monotonic()
    site.delete("leaving")
    while site.see("leaving") is not None:
        overlap = site.placed("next")  # asked first: what is seen of the other after it is newer
        before = site.see("leaving")
        assert not overlap or not before or not any("running" in one["state"] for one in before["status"]["containerStatuses"])
        time.sleep(0.1)
    assert time.monotonic() - began > 1.5
    eventually("then it has the node", lambda: site.runs("next"))
