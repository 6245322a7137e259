"""With real accounting: whom Slurm takes a pod for and what it is charged to, the limits of accounts and QOS, and preemption by QOS.

A cluster of its own, since the one with slurmdbd takes nobody's jobs but those of whom it knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bridge import STAYS, WISH, Bridge, Site, at_work, condition, settled
from conftest import NAME
from slincdev import up as life
from slincdev.cluster import Cluster, find
from slincdev.parts import kubectl
from slincdev.slurm import Slurm
from waits import wait_for

DESK, WHOLE = "desk-0", "6"  # the only node, with eight CPUs, and how many of them leave no room for another pod
LEDGER = (  # users are those that every Debian knows
    "add qos low",
    "add qos high Preempt=low Priority=1000",
    "add account house",
    "add user slurm Account=house QOS=normal,low,high",
    "add account press GrpTRES=cpu=4",
    "add user news Account=press",
    "add user lp Account=press",
)
USERS = [
    {"namespace": "newsroom", "user": "news", "group": "news", "account": "press"},
    {"namespace": "printers", "user": "lp", "group": "lp"},  # charged to the account that Slurm has for it
    {"namespace": "nobodies", "user": "nobody-knows", "account": "press"},  # a user that slurmrestd cannot look up
]
NAMESPACES = ("house", *(rule["namespace"] for rule in USERS))  # the pods of the first are those of the token's user
REFUSED_ACCOUNT, REFUSED_QOS = "Invalid account or account/partition combination specified", "Invalid qos specification"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    name = f"{NAME}-acct"
    if find(name):
        life.down(name)
    yield life.up(name, node_count=1, with_parts=["slurm", "accounting"])
    life.down(name)


@pytest.fixture(scope="module")
def slurm(cluster) -> Slurm:
    return Slurm(cluster)


def sacctmgr(cluster: Cluster, *commands: str) -> None:
    script = " && ".join(f"sacctmgr --immediate --quiet {command}" for command in commands)
    kubectl(cluster, "-n", "slurm", "exec", "slurm-controller-0", "-c", "slurmctld", "--", "sh", "-c", script)


@pytest.fixture(scope="module")
def sites(cluster, slurm) -> dict[str, Site]:
    sacctmgr(cluster, *LEDGER)
    return {name: Site(cluster, slurm, name) for name in NAMESPACES}


@pytest.fixture(scope="module")
def site(sites) -> Site:
    return sites["house"]


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    site.add_node(DESK, cpus=8)
    with at_work(site, Bridge(cluster, slurm, tmp_path_factory.mktemp("accounting"), users=USERS), [DESK]) as bridge:
        yield bridge


@pytest.fixture(autouse=True)
def bridge(sites, one) -> Iterator[Bridge]:
    yield one
    for place in sites.values():
        place.see_pods_off()
    wait_for("their jobs too", 60, lambda: not sites["house"].live_jobs(), every=0.2)


@pytest.fixture
def placed_at(eventually):
    def make(place: Site, name: str, **options) -> dict:
        place.make(name, **options)
        return eventually(f"{name} is placed", lambda: place.placed(name))
    return make


def record(site: Site, number: int) -> dict:
    """What slurmdbd has about a job; it hears of it and of what becomes of it a moment later."""
    found = site.slurm.call("GET", f"/slurmdb/{{api}}/job/{number}")["jobs"]
    return found[-1] if found else {"state": {"current": []}, "nodes": "", "time": {"end": 0}}


def waits(site: Site, name: str, *reasons: str) -> dict | None:
    """What the pod says, while it does."""
    said = condition(site.see(name), "SlurmPending")
    return said if said["status"] == "True" and said["reason"] in reasons else None


def test_a_pod_of_a_higher_qos_takes_the_place_of_one_of_a_lower_which_gets_it_back_later(site, eventually):
    low = site.pod("low", cpu=WHOLE, wishes={"qos": "low"})
    low["metadata"]["finalizers"] = [STAYS]
    uid = site.api.post(site.pods_path, low)["metadata"]["uid"]
    try:
        number = site.job(eventually("it is placed", lambda: site.placed("low")))["job_id"]
        site.make("high", cpu=WHOLE, wishes={"qos": "high"})
        leaving = eventually("the low one goes", lambda: "deletionTimestamp" in (pod := site.see("low"))["metadata"] and pod)
        said = condition(leaving, "SlurmJobEnded")
        assert (said["status"], said["reason"]) == ("True", "SlurmJobPreempted")
        assert said["message"].startswith(f"job {number} was preempted in Slurm")
        eventually("so says an event", lambda: site.events("low").get("SlurmJobPreempted") == said["message"])
        eventually("only the look at it holds it", lambda: site.see("low")["metadata"]["finalizers"] == [STAYS])
    finally:
        site.let_go("low")

    winner = site.job(eventually("the high one has its place", lambda: site.placed("high")))
    assert (winner["nodes"], winner["qos"]) == (DESK, "high")
    eventually("slurmdbd knows it too", lambda: record(site, number)["state"]["current"] == ["PREEMPTED"])
    assert record(site, number)["qos"] == "low"
    assert site.live_jobs_of(uid) == [], "a pod that nobody owns does not come back"
    eventually("its name is free", lambda: site.see("low") is None)
    site.make("low", cpu=WHOLE, wishes={"qos": "low"})  # as its owner would
    eventually("the next one waits", lambda: waits(site, "low", "Resources", "Priority"))
    settled(site)
    site.delete("high", 0)
    again = site.job(eventually("it has its place again", lambda: site.placed("low")))
    assert (again["qos"], again["job_state"]) == ("low", ["RUNNING"])


def test_a_pod_is_charged_to_the_user_and_the_account_of_its_namespace(sites, placed_at, eventually):
    jobs = {}
    for namespace, user, account in (("newsroom", "news", "press"), ("printers", "lp", "press"), ("house", "slurm", "house")):
        job = sites[namespace].job(placed_at(sites[namespace], "worker", cpu="2"))
        assert (job["user_name"], job["group_name"], job["account"]) == (user, user, account)
        jobs[namespace] = job["job_id"], user, account
    for namespace, (number, user, account) in jobs.items():
        place = sites[namespace]
        charged = eventually("slurmdbd knows where it runs", lambda: (found := record(place, number))["nodes"] == DESK and found)
        assert (charged["user"], charged["account"]) == (user, account)
        assert {one["type"]: one["count"] for one in charged["tres"]["allocated"]}["cpu"] == 2
        place.delete("worker", 0)
    for namespace, (number, _, _) in jobs.items():
        eventually("and its end", lambda: record(sites[namespace], number)["time"]["end"])
        assert record(sites[namespace], number)["state"]["current"] in (["CANCELLED"], ["COMPLETED"])


def test_pods_of_two_namespaces_share_the_limit_of_their_account(cluster, sites, placed_at, eventually):
    news, printers = sites["newsroom"], sites["printers"]
    first = placed_at(news, "first", cpu="3")
    printers.make("second", cpu="3")
    said = eventually("it says which limit", lambda: waits(printers, "second", "AssocGrpCpuLimit"))
    assert said["message"].startswith("job ") and "waits: AssocGrpCpuLimit" in said["message"]
    sacctmgr(cluster, "modify account press set GrpTRES=cpu=6")
    try:
        eventually("it starts when the limit is raised", lambda: printers.placed("second"))
        assert news.see("first")["metadata"]["uid"] == first["metadata"]["uid"]
    finally:
        sacctmgr(cluster, "modify account press set GrpTRES=cpu=4")


def test_whom_slurm_does_not_take_is_told_in_its_words_and_placed_when_that_is_mended(sites, site, eventually):
    refused = {"nobodies": ({}, "Unable to resolve user: nobody-knows"), "newsroom": ({"qos": "high"}, REFUSED_QOS),
               "house": ({"account": "no-such"}, REFUSED_ACCOUNT)}
    for namespace, (wishes, _) in refused.items():
        sites[namespace].make("nobody", wishes=wishes)
    for namespace, (_, words) in refused.items():
        place = sites[namespace]
        said = eventually("it says so", lambda: waits(place, "nobody", "Refused"))
        assert said["message"].startswith("Slurm refused the job: ") and words in said["message"]
        eventually("so does an event", lambda: place.events("nobody").get("FailedScheduling") == said["message"])
        assert place.live_jobs_of(place.see("nobody")["metadata"]["uid"]) == []
    site.api.merge(f"{site.pods_path}/nobody", {"metadata": {"annotations": {f"{WISH}account": "house"}}})
    assert site.job(eventually("it is placed", lambda: site.placed("nobody")))["account"] == "house"
