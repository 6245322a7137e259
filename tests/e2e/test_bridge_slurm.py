"""What Slurm can do for pods, by a real slurmctld: begin times, dependencies, features, reservations, switches and blocks, preemption,
time limits; and what it does to a node while pods are on it.

Preemption is by the tier of partitions (PreemptType=preempt/partition_prio); by QOS it is in test_bridge_accounting.py."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from bridge import TOPOLOGY, Bridge, Site, at_work, condition, hosts, settled
from conftest import NAME
from slincdev import components, up as life
from waits import wait_for

ZONE, NVME = "topology.kubernetes.io/zone", "example.org/nvme"
ROWS = [f"row-{index}" for index in range(4)]  # even ones in the east; the last two have disks
SWITCHED = [f"switched-{index}" for index in range(4)]  # in turn at one leaf and at the other
BLOCKED = [f"blocked-{index}" for index in range(4)]
REAL = components.NODE
ONE_EACH = "6"  # CPUs of a pod, so that a node of eight holds one
LINGERS = ("sh", "-c", "trap 'sleep 4; exit 0' TERM; while :; do sleep 0.1; done")


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    life.up(NAME, node_count=3, with_parts=["slurm", "lws"])
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


def test_a_pod_does_not_begin_before_its_time(site, eventually):
    for seconds in (20, 90):  # should it be placed before it was seen to wait
        name, began = f"later-{seconds}", time.time()
        site.make(name, wishes={"begin-time": f"+{seconds}s"})
        said = eventually("it waits, or is placed", lambda: waits_for(site, name, "BeginTime") and "waits" or site.placed(name) and "placed",
                          60 + seconds)
        eventually("it is placed", lambda: site.placed(name), 60 + seconds)
        assert time.time() - began >= seconds - 1  # the API server cuts the time of creation to seconds
        if said == "waits":
            return
    pytest.fail("it never says that it waits for its time")


def test_a_pod_waits_for_the_job_that_it_depends_on(site, placed, eventually):
    first = site.job(placed("first"))["job_id"]
    site.make("after", wishes={"dependency": f"afterany:{first}"})
    eventually("it says so", lambda: waits_for(site, "after", "Dependency"))
    assert "nodeName" not in site.see("after")["spec"]
    site.delete("first")
    eventually("it is placed", lambda: site.placed("after"))
    assert site.job_state(first) != "RUNNING"


def test_the_deadline_of_a_job_is_its_time_limit_in_slurm(site, eventually):
    for kind in ("job", "job gang"):
        name = kind.replace(" ", "-")
        site.start(kind, name, 2, more={"activeDeadlineSeconds": 90})
        pods = eventually(f"{name} is placed", lambda: site.team_placed(name, 2))
        assert {site.job(pod)["time_limit"]["number"] for pod in pods} == {2}


# --- where -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish, able", [("west", ["row-1", "row-3"]), ("east&nvme", ["row-2"]), ("west&nvme", ["row-3"])])
def test_labels_of_nodes_are_features_to_ask_for(placed, wish, able):
    assert placed("choosy", wishes={"constraints": wish})["spec"]["nodeName"] in able


def rather(*terms: tuple[int, dict[str, list[str]]]) -> dict:
    """An affinity that prefers nodes with such labels, by weight."""
    def term(weight: int, labels: dict[str, list[str]]) -> dict:
        return {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": values}
                                                                      for key, values in labels.items()]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term(*one) for one in terms]}}


WEST = rather((1, {ZONE: ["west", "nowhere"]}))


def test_a_pod_gets_what_it_prefers_while_there_is_room(placed):
    got = [placed(f"eager-{index}", cpu=ONE_EACH, affinity=WEST)["spec"]["nodeName"] for index in range(3)]
    assert sorted(got[:2]) == ["row-1", "row-3"] and got[2] in ("row-0", "row-2")


def test_the_heaviest_preference_that_features_can_say_counts(placed):
    by_name = (100, {"kubernetes.io/hostname": ["row-0"]})  # no feature
    assert placed("one", affinity=rather((1, {ZONE: ["east"]}), by_name, (9, {ZONE: ["west"], NVME: ["true"]})))["spec"]["nodeName"] == "row-3"
    assert placed("two", affinity=rather((9, {ZONE: ["east"], NVME: ["true"]}), (1, {ZONE: ["west"]})))["spec"]["nodeName"] == "row-2"


def test_a_preference_that_slurm_cannot_be_told_is_ignored(site, placed):
    assert site.job(placed("ignored", affinity=rather((1, {"kubernetes.io/hostname": ["row-3"]}), (1, {ZONE: ["nowhere"]}))))["features"] == ""


def test_a_preference_is_beside_what_is_required(site, placed):
    """Slurm refuses the first, whose preferred nodes are all excluded, and would forget the constraints of the second."""
    assert placed("east", affinity=WEST, nodeSelector={ZONE: "east"})["spec"]["nodeName"] in ("row-0", "row-2")
    assert "FailedScheduling" not in site.events("east")
    assert placed("fast", affinity=WEST, wishes={"constraints": "east&nvme"})["spec"]["nodeName"] == "row-2"


def test_a_gang_gets_what_it_prefers_if_it_can_as_a_whole(gang):
    assert sorted(nodes_of(gang("pair", 2, affinity=WEST))) == ["row-1", "row-3"]


def test_a_gang_too_large_for_what_it_prefers_gets_other_nodes(gang):
    assert len(set(nodes_of(gang("trio", 3, affinity=WEST)))) == 3


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
        time.sleep(2)
        assert not any("nodeName" in pod["spec"] for pod in site.team("outside"))
    except BaseException:
        site.clear_pods()  # or it could not go
        raise
    finally:
        eventually("nobody is in it", lambda: site.scontrol("delete", "ReservationName=ours") == "")
    eventually("then they start", lambda: site.team_placed("outside", 3))


def test_a_gang_stays_at_one_switch_where_it_asks_to(site, gang, placed, eventually):
    assert site.slurm_node("switched-1")["topology"] == "topo-switch:leaf-2"
    here = {"partition": "switched"}
    placed("before", cpu=ONE_EACH, wishes=here | {"constraints": "switched"}, nodeSelector={"kubernetes.io/hostname": "switched-0"})
    assert sorted(nodes_of(gang("near", 2, wishes=here | {"switches": "1"}))) == ["switched-1", "switched-3"]
    site.start("podgroup", "next", 2, cpu=ONE_EACH, wishes=here | {"switches": "1"})
    time.sleep(2)
    assert not any("nodeName" in pod["spec"] for pod in site.team("next")), "one node is free at one switch, none at the other"
    site.delete("before", 0)
    assert sorted(nodes_of(eventually("it starts at the other", lambda: site.team_placed("next", 2)))) == ["switched-0", "switched-2"]


def test_a_gang_lies_in_one_block_where_it_asks_to(site, gang, placed):
    assert site.slurm_node("blocked-2")["topology"] == "topo-block:b1"
    here = {"partition": "blocked"}
    placed("before", cpu=ONE_EACH, wishes=here, nodeSelector={"kubernetes.io/hostname": "blocked-0"})
    assert sorted(nodes_of(gang("near", 2, wishes=here | {"segment-size": "2"}))) == ["blocked-1", "blocked-3"]


# --- what is done to a job or a node ---------------------------------------------------------------------------------


def test_a_gang_that_is_preempted_goes_as_a_whole_and_comes_back_as_one(site, eventually):
    site.scontrol("create", "PartitionName=express", f"Nodes={','.join(ROWS)}", "PriorityTier=10")
    try:
        site.start("lws", "low", 4, cpu=ONE_EACH)
        before = eventually("it is placed", lambda: site.team_placed("low", 4))
        site.make("high", cpu=ONE_EACH, wishes={"partition": "express"})
        winner = eventually("the other one gets its place", lambda: site.placed("high"))
        eventually("all pods of the gang go", lambda: not {pod["metadata"]["uid"] for pod in site.team("low")} &
                   {pod["metadata"]["uid"] for pod in before})
        assert "was preempted" in eventually("there is an event", lambda: site.events("low-0").get("SlurmJobPreempted"))
        assert winner["spec"]["nodeName"] in ROWS and site.job(before[0])["job_state"] != ["RUNNING"]
        eventually("its next pods wait for all of the nodes", lambda: waits_for(site, "low-0", "Resources"))
        site.delete("high", 0)
        eventually("and get them", lambda: site.team_placed("low", 4))
        settled(site)
    finally:
        site.clear_pods()
        eventually("the partition goes", lambda: site.scontrol("delete", "PartitionName=express") == "")


def test_a_node_that_is_drained_under_a_gang_loses_nothing_and_gets_nothing_new(site, gang):
    first = gang("first", 2)
    away, here = nodes_of(first)
    site.set_slurm_node(away, state=["DRAIN"], reason="a fan is broken")
    try:
        second = gang("second", 2)
        assert sorted(nodes_of(first) + nodes_of(second)) == ROWS
        assert [pod["metadata"]["uid"] for pod in site.team("first")] == [pod["metadata"]["uid"] for pod in first]
        assert site.job(first[0])["job_state"] == ["RUNNING"] and hosts(site.job(first[0])["nodes"]) == [away, here]
        settled(site)
        for name in ("first-0", "first-1"):
            site.delete(name, 0)
        assert nodes_of(gang("third", 1)) == [here]
    finally:
        site.set_slurm_node(away, state=["RESUME"])


def test_a_node_is_given_on_only_when_the_pod_before_is_really_gone(site, placed, eventually):
    """It takes four seconds to say goodbye, of the thirty that it may take."""
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
    assert time.monotonic() - began > 3
    eventually("then it has the node", lambda: site.runs("next"))
