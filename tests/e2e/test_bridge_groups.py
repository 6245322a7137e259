"""Groups of pods with a real Slurm: every kind of workload runs on a real kubelet; gangs start together or not at all, in the order of
their ranks; members that come late, are replaced or start again find their place; and no group is taken for another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from bridge import GANGS, JOB_LABEL, OWN_JOB, PODGROUPS, WORKLOADS, Bridge, Site, at_work, condition, hosts, settled
from conftest import NAME
from slincdev import components, up as life
from waits import wait_for

NODES = [f"team-{index}" for index in range(4)]
REAL = components.NODE
ONE_EACH = "6"  # CPUs of a pod, so that a node of eight holds one
STAY = ("sleep", "600")


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    life.up(NAME, node_count=3, with_parts=["slurm", "jobset", "lws", "podgroup"])
    return Site(cluster, slurm, "groups")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    for name in NODES:
        site.add_node(name, cpus=8)
    site.lend(REAL, "kubelet")
    with at_work(site, Bridge(cluster, slurm, tmp_path_factory.mktemp("groups")), [*NODES, REAL]) as bridge:
        yield bridge


@pytest.fixture(autouse=True)
def bridge(site, one) -> Iterator[Bridge]:
    """Nothing of a test is left after it."""
    yield one
    site.empty()


@pytest.fixture
def placed(site, eventually):
    """Starts a workload and waits until all of it has a place."""
    def start(kind: str, name: str, size: int, *command: str, **options) -> list[dict]:
        site.start(kind, name, size, *command, **options)
        return eventually(f"{kind} {name} is placed", lambda: site.team_placed(name, size))
    return start


def job_ids(pods: list[dict]) -> set[str]:
    return {pod["metadata"]["labels"][JOB_LABEL] for pod in pods}


def nodes_of(pods: list[dict]) -> list[str]:
    return [pod["spec"]["nodeName"] for pod in pods]


def says(pods: list[dict], reason: str) -> list[str] | None:
    """What they all wait for."""
    found = [condition(pod, "SlurmPending") for pod in pods]
    return [one["message"] for one in found] if found and all((one["status"], one["reason"]) == ("True", reason) for one in found) else None


# --- every kind of gang ------------------------------------------------------------------------------------------------


def test_a_gang_runs_on_a_real_node_to_its_end(site, placed, eventually):
    """Both pods on the one node with a kubelet: the gang says that it is content with one."""
    pods = placed("job gang", "real", 2, "true", wishes={"max-nodes": "1"})
    assert nodes_of(pods) == [REAL, REAL] and len(job_ids(pods)) == 1
    done = eventually("they have run", lambda: site.team_in("real", 2, "Succeeded"))
    assert [status["state"]["terminated"]["exitCode"] for pod in done for status in pod["status"]["containerStatuses"]] == [0, 0]
    eventually("their job ends", lambda: site.job(pods[0])["job_state"] != ["RUNNING"])


def test_a_gang_of_each_kind_gets_a_node_for_each_pod_in_the_order_of_their_ranks(site, eventually):
    for kind in GANGS:
        site.start(kind, kind.replace(" ", "-"), 4)
    for kind in GANGS:
        name = kind.replace(" ", "-")
        pods = eventually(f"{name} is placed", lambda: site.team_placed(name, 4))
        job = site.job(pods[0])
        assert len(job_ids(pods)) == 1
        assert nodes_of(pods) == hosts(job["nodes"]) and sorted(nodes_of(pods)) == NODES
        assert job["name"] == {"lws": "lws-0"}.get(kind, name)
    path = PODGROUPS.format(f"namespaces/{site.namespace}") + "/podgroup"
    said = eventually("the built-in group is told", lambda: (c := condition(site.api.get(path), "PodGroupScheduled"))["status"] == "True" and c)
    assert (said["reason"], said["message"]) == ("Scheduled", "Pod group admitted by slurm-bridge-scheduler")


# --- all or none -----------------------------------------------------------------------------------------------------


def test_a_gang_waits_until_all_of_it_has_room_and_whoever_is_deleted_takes_its_job_along(site, placed, eventually):
    placed("pods", "before", 2, cpu=ONE_EACH)
    site.start("podgroup", "crew", 3, cpu=ONE_EACH)
    said = eventually("all say what they wait for", lambda: len(site.team("crew")) == 3 and says(site.team("crew"), "Resources"))
    numbers = {re.match(r"job (\d+) waits: Resources", words)[1] for words in said}  # when it is expected to start, they hear one by one
    assert len(numbers) == 1 and not any("nodeName" in pod["spec"] for pod in site.team("crew"))
    site.delete("before-0")
    pods = eventually("all are placed", lambda: site.team_placed("crew", 3))
    assert job_ids(pods) == numbers and len(set(nodes_of(pods))) == 3
    assert site.job(pods[0])["state_reason"] == "None"
    site.start("podgroup", "second", 3, cpu=ONE_EACH)
    waiting = eventually("another waits", lambda: site.live_jobs_of_team("second"))
    for name, number in (("second", waiting[0]["job_id"]), ("crew", site.job(pods[0])["job_id"])):
        site.disband("podgroup", name)
        eventually(f"{name} is gone", lambda: not site.team(name) and site.job_state(number) == "CANCELLED")


def test_a_gang_that_is_not_complete_takes_nothing_and_says_what_is_missing(site, eventually):
    """And no two namespaces make one group, though it has the same name in both."""
    other = Site(site.cluster, site.slurm, "groups-two")
    (collection, group), *pods = WORKLOADS["coscheduling"](site, "same", 2, (), {}, {})
    for place, members in ((site, pods[:1]), (other, pods[1:])):
        for path, body in [(collection, group), *members]:
            place.api.post(path.format(f"namespaces/{place.namespace}"), body)
    said = eventually("it says so", lambda: says(site.team("same"), "GroupIncomplete"))
    assert said == ["not enough pending pods to create external job: 1 of 2 pods of its PodGroup are there"]
    assert not site.live_jobs_of_team("same") and not other.live_jobs_of_team("same")
    for place, (path, body) in ((site, pods[1]), (other, pods[0])):
        place.api.post(path.format(f"namespaces/{place.namespace}"), body)
    both = [eventually("all are placed", lambda: place.team_placed("same", 2)) for place in (site, other)]
    assert [len(job_ids(pods)) for pods in both] == [1, 1] and job_ids(both[0]) != job_ids(both[1])
    other.see_pods_off()
    eventually("the job of the other namespace is gone", lambda: not [job for job in site.live_jobs() if str(job["job_id"]) in job_ids(both[1])])
    assert site.job(both[0][0])["job_state"] == ["RUNNING"]


# --- members come and go ---------------------------------------------------------------------------------------------


def join(site: Site, name: str, pod: str, **options) -> None:
    """One pod more for the built-in group of this name."""
    _, _, (path, body) = WORKLOADS["podgroup"](site, name, 2, (), {}, options)
    body["metadata"]["name"] = pod
    site.api.post(path.format(f"namespaces/{site.namespace}"), body)


def test_a_late_member_goes_where_its_group_has_room_or_gets_a_job_of_its_own(site, placed, eventually):
    first = placed("podgroup", "crew", 2, cpu="2", wishes={"exclusive": "true"})
    join(site, "crew", "late", cpu="2")
    late = eventually("it is placed", lambda: site.placed("late"))
    assert late["metadata"]["labels"][JOB_LABEL] == first[0]["metadata"]["labels"][JOB_LABEL]
    assert late["spec"]["nodeName"] in nodes_of(first) and OWN_JOB not in late["metadata"]["annotations"]
    join(site, "crew", "large", cpu="7")
    large = eventually("one without room is placed, too", lambda: site.placed("large"))
    assert large["metadata"]["annotations"][OWN_JOB] == "true"
    assert large["metadata"]["labels"][JOB_LABEL] not in job_ids(first) and large["spec"]["nodeName"] not in nodes_of(first)
    settled(site)
    site.delete("large", 0)
    eventually("its job ends with it", lambda: site.job(large)["job_state"] != ["RUNNING"])
    assert site.job(first[0])["job_state"] == ["RUNNING"]


def test_a_lost_pod_of_a_leaderworkerset_comes_back_alone_or_with_its_group(site, eventually):
    groups = {"alone": ("None", 1), "whole": ("RecreateGroupOnPodRestart", 3)}
    for name, (policy, _) in groups.items():
        site.start("lws", name, 3, cpu="2", more={"restartPolicy": policy})
    before = {name: eventually(f"{name} is placed", lambda: site.team_placed(name, 3)) for name in groups}
    for name in groups:
        site.delete(before[name][1]["metadata"]["name"])
    for name, (_, lost) in groups.items():
        old = {pod["metadata"]["uid"] for pod in before[name]}

        def back() -> list[dict] | None:
            now = site.team_placed(name, 3)
            return now if now and len({pod["metadata"]["uid"] for pod in now} - old) == lost else None
        after = eventually(f"{name} has all of its pods again", back)
        assert len(job_ids(after)) == 1 and len(set(nodes_of(after))) == 3
        if name == "alone":
            assert job_ids(after) == job_ids(before[name]) and nodes_of(after) == nodes_of(before[name])
    settled(site)
    assert [len(site.live_jobs_of_team(name)) for name in groups] == [1, 1]


def test_a_jobset_that_starts_again_does_so_as_one(site, placed, eventually):
    before = placed("jobset gang", "crew", 2, *STAY, wishes={"max-nodes": "1"}, more={"failurePolicy": {"maxRestarts": 1}})
    eventually("it runs", lambda: site.team_in("crew", 2, "Running"))
    site.delete(before[0]["metadata"]["name"])

    def again() -> list[dict] | None:
        now = site.team_in("crew", 2, "Running")
        return now if now and not {pod["metadata"]["uid"] for pod in now} & {pod["metadata"]["uid"] for pod in before} else None
    after = eventually("all of it runs again", again)
    assert len(job_ids(after)) == 1 and job_ids(after) != job_ids(before)
    eventually("the first job has ended", lambda: site.job(before[0])["job_state"] != ["RUNNING"])
    settled(site)


# --- many ------------------------------------------------------------------------------------------------------------

FARM = [f"farm-{index}" for index in range(8)]
EACH, SIZE, ALL = 2, 4, 100  # workloads of each kind, pods of each, and single pods to make it so many
SINGLES = ALL - EACH * SIZE * len(WORKLOADS)


def answers(bridge: Bridge) -> Counter:
    """Of the API server, by status."""
    found = re.findall(r'rest_client_requests_total\{code="([^"]*)".*\} (\d+)', bridge.ask("/metrics")[1])
    return sum((Counter({code: int(count)}) for code, count in found), Counter())


def test_a_hundred_pods_of_all_kinds_are_placed_and_leave_nothing(site, bridge, eventually):
    for name in FARM:
        site.add_node(name, cpus=64)
    try:
        eventually("the nodes are in Slurm", lambda: site.are_registered(FARM))
        before = eventually("it answers", lambda: answers(bridge))
        teams = [(kind, f"{kind.replace(' ', '-')}-{index}", SIZE) for index in range(EACH) for kind in WORKLOADS]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda team: site.start(*team), [*teams, ("pods", "singles", SINGLES)]))

        def unplaced() -> list[str]:
            pods = site.api.get(site.pods_path)["items"]
            return [f"{len(pods)} of {ALL} pods"] * (len(pods) != ALL) + \
                [pod["metadata"]["name"] for pod in pods if "nodeName" not in pod["spec"]]
        settled(site, also=unplaced)
        for kind, name, size in teams:
            assert len(job_ids(site.team(name))) == (1 if kind in GANGS else size), name
        site.empty()
        after = eventually("it answers", lambda: answers(bridge)) - before
        refused = sum(count for code, count in after.items() if not code.startswith("2"))
        assert after.total() > ALL and refused <= after.total() // 50, after
        assert not re.search(r"^slinc_bridge_duplicate_jobs_total.* [1-9]", eventually("it answers", lambda: bridge.ask("/metrics")[1]),
                             re.MULTILINE)
    finally:
        site.clear_pods()
        for name in FARM:
            site.api.delete(f"/api/v1/nodes/{name}")
        wait_for("the nodes are gone", 60, lambda: not any(node["name"] in FARM for node in site.slurm.call("GET", "/slurm/{api}/nodes/")["nodes"]),
                 every=0.5)
