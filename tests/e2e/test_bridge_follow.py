"""A job that waits follows its pods: what their annotations say, and how many they are. It stays the same job, where Slurm can change it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from bridge import TEAM, WISH, Bridge, Site, at_work, condition
from waits import wait_for

NODE, FULL, LONG_S = "followed-0", "8", 60


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "following")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    site.add_node(NODE, cpus=8, partitions="slurm-bridge")
    with at_work(site, Bridge(cluster, slurm, tmp_path_factory.mktemp("following")), [NODE]) as bridge:
        yield bridge


@pytest.fixture(autouse=True)
def bridge(site, one) -> Iterator[Bridge]:
    """The partition is full: whatever else comes waits."""
    site.make("full", cpu=FULL)
    wait_for("the node is full", LONG_S, lambda: site.placed("full"), hint=one.said)
    yield one
    site.empty()


def annotate(site: Site, path: str, **wishes: str | None) -> None:
    site.api.merge(path, {"metadata": {"annotations": {WISH + key.replace("_", "-"): value for key, value in wishes.items()}}})


def note(job: dict) -> str:
    """What it was asked with, as its comment says it; a question mark is of what an update may have changed."""
    return json.loads(job["admin_comment"])["note"]


def only_job(site: Site, find: Callable[[], list[dict]]) -> dict | None:
    found = find()
    assert len(found) < 2, "a second job"
    return found[0] if found else None


@pytest.fixture
def waiting(site, eventually) -> Callable[..., tuple[str, Callable[[], dict]]]:
    """A pod whose job waits: its path, and its one job as it is now."""
    def make(name: str, **wishes: str) -> tuple[str, Callable[[], dict]]:
        uid = site.make(name, wishes=wishes)["metadata"]["uid"]
        first = eventually(f"the job of {name} waits", lambda: only_job(site, lambda: site.live_jobs_of(uid)), LONG_S)

        def look() -> dict:
            job = only_job(site, lambda: site.live_jobs_of(uid))
            assert job and job["job_id"] == first["job_id"]
            return job
        return f"{site.pods_path}/{name}", look
    return make


def test_a_waiting_job_follows_the_annotations_of_its_pod(site, waiting, eventually):
    path, job = waiting("changing", timelimit="60", comment="first")
    assert (job()["time_limit"]["number"], job()["comment"]) == (60, "first")
    annotate(site, path, timelimit="30", comment="second", nice="7", constraints="slurm-bridge", job_name="renamed", begin_time="+1000h")
    eventually("the job follows", lambda: (job()["time_limit"]["number"], job()["comment"], job()["nice"], job()["features"], job()["name"])
               == (30, "second", 7, "slurm-bridge", "renamed"), LONG_S)
    assert job()["eligible_time"]["number"] > job()["submit_time"]["number"] + 3600
    annotate(site, path, timelimit=None, comment=None, nice=None, constraints=None, job_name=None, begin_time=None)
    eventually("it is as if nothing had been said", lambda: (job()["time_limit"]["infinite"], job()["comment"], job()["nice"], job()["features"],
               job()["name"]) == (True, "", 0, "", "changing"), LONG_S)
    assert job()["eligible_time"]["number"] < job()["submit_time"]["number"] + 3600


def test_a_job_is_held_and_let_go_by_its_priority(site, waiting, eventually):
    path, job = waiting("held")
    annotate(site, path, priority="0")
    eventually("the job is held", lambda: job()["hold"], LONG_S)
    annotate(site, path, priority="123")
    eventually("it is let go, and has its priority", lambda: not job()["hold"] and job()["priority"]["number"] == 123, LONG_S)


def test_what_slurm_refuses_is_told_and_mended(site, waiting, eventually):
    path, job = waiting("picky", timelimit="60")
    annotate(site, path, constraints="nosuch", timelimit="50")
    eventually("the pod says why", lambda: "Invalid feature" in condition(site.see("picky"), "SlurmPending")["message"], LONG_S)
    assert condition(site.see("picky"), "SlurmPending")["reason"] == "Refused" and job()["features"] == ""
    assert job()["time_limit"]["number"] == 50  # Slurm makes what it can of a change before it refuses it
    annotate(site, path, constraints=None, timelimit="60")
    eventually("it is as it was asked for first", lambda: job()["time_limit"]["number"] == 60, LONG_S)
    eventually("the pod says what it waits for", lambda: condition(site.see("picky"), "SlurmPending")["reason"] != "Refused", LONG_S)
    annotate(site, path, timelimit="soon", comment="not alone")
    eventually("the pod says that this is none", lambda: condition(site.see("picky"), "SlurmPending")["reason"] == "Invalid", LONG_S)
    assert (job()["time_limit"]["number"], job()["comment"]) == (60, "")


def test_people_may_change_a_job_that_waits(site, waiting, eventually):
    path, job = waiting("peoples", timelimit="60")
    site.set_job(job()["job_id"], time_limit={"set": True, "number": 45})
    annotate(site, path, comment="seen")
    eventually("the bridge has looked", lambda: job()["comment"] == "seen", LONG_S)
    assert job()["time_limit"]["number"] == 45


def test_people_may_change_a_job_that_waits_whoever_leads(site, bridge, waiting, eventually):
    path, job = waiting("whoever", timelimit="60", priority="0", comment="first")
    annotate(site, path, comment="second")
    eventually("the job follows", lambda: job()["comment"] == "second" and "?" not in note(job()), LONG_S)
    bridge.stop()
    site.scontrol("update", f"job={job()['job_id']}", "timelimit=90", "comment=ours")
    site.scontrol("release", job()["job_id"])
    annotate(site, path, job_name="renamed", begin_time="+1000h")
    bridge.start().wait_until_it_leads()
    eventually("the new leader says what is new", lambda: job()["name"] == "renamed" and "?" not in note(job()), LONG_S)
    assert job()["eligible_time"]["number"] > job()["submit_time"]["number"] + 3600
    assert (job()["time_limit"]["number"], job()["comment"], job()["hold"]) == (90, "ours", False)


def test_a_new_leader_says_again_what_slurm_refused(site, bridge, waiting, eventually):
    path, job = waiting("refused")
    annotate(site, path, dependency="afterok:99999999")
    eventually("the pod says why", lambda: "dependency" in condition(site.see("refused"), "SlurmPending")["message"], LONG_S)
    eventually("its note leaves it open", lambda: ":?" in note(job()), LONG_S)  # Slurm takes the comment all the same
    bridge.stop()
    site.api.merge(f"{path}/status", {"status": {"conditions": None}})
    bridge.start().wait_until_it_leads()
    eventually("the pod says why again", lambda: condition(site.see("refused"), "SlurmPending").get("reason") == "Refused", LONG_S)


def test_a_gang_that_shares_a_node_says_how_many_it_is(site, eventually):
    path = f"/apis/batch/v1/namespaces/{site.namespace}/jobs"
    site.api.post(path, {"metadata": {"name": "gang", "annotations": {f"{WISH}max-nodes": "1"}}, "spec": {
        "parallelism": 3, "completions": 3, "completionMode": "Indexed",
        "template": site.template("gang", (), notes={f"{WISH}gang": "2"}, cpu="2")}})

    def size() -> tuple:
        job = only_job(site, lambda: site.live_jobs_of_team("gang"))
        return (job["job_id"], job["tasks"]["number"], job["tasks_per_node"]["number"], job["memory_per_node"]["number"],
                job["minimum_cpus_per_node"]["number"], job["max_nodes"]["number"]) if job else ()

    number = eventually("a job waits for three", lambda: size()[1:] == (3, 3, 48, 6, 1) and size(), LONG_S)[0]
    for count in (4, 2):
        site.api.merge(f"{path}/gang", {"spec": {"parallelism": count, "completions": count}})
        eventually(f"it is for {count}", lambda: size() == (number, count, count, 16 * count, 2 * count, 1), LONG_S)
    assert len(site.team("gang")) == 2 and all(pod["metadata"]["labels"][TEAM] == "gang" for pod in site.team("gang"))
    site.delete("full", 0)
    eventually("both are placed", lambda: site.team_placed("gang", 2), LONG_S)


def test_the_annotations_of_an_owner_are_followed_and_mended(site, eventually):
    path = f"/apis/batch/v1/namespaces/{site.namespace}/jobs"
    site.start("job", "owner", 1, wishes={"timelimit": "soon"})

    def reason() -> str:
        team = site.team("owner")
        return condition(team[0], "SlurmPending")["reason"] if team else ""

    def limit() -> int | None:
        job = only_job(site, lambda: site.live_jobs_of_team("owner"))
        return job["time_limit"]["number"] if job else None

    eventually("its pod says that this is none", lambda: reason() == "Invalid", LONG_S)
    annotate(site, f"{path}/owner", timelimit="20")
    eventually("it is asked for", lambda: limit() == 20, LONG_S)
    annotate(site, f"{path}/owner", timelimit="25")
    eventually("its job follows", lambda: limit() == 25, LONG_S)


def test_what_slurm_changes_of_no_job_has_a_new_one(site, waiting, eventually):
    path, job = waiting("alone", exclusive="false")
    first = job()
    annotate(site, path, exclusive="true")

    def replaced() -> dict | None:
        found = only_job(site, lambda: site.live_jobs_of(site.see("alone")["metadata"]["uid"]))
        return found if found and found["job_id"] != first["job_id"] else None

    eventually("another job waits", replaced, LONG_S)
    assert "exclusive" in eventually("an event says why", lambda: site.events("alone").get("SlurmJobReplaced"), LONG_S)
    site.delete("full", 0)
    pod = eventually("it is placed", lambda: site.placed("alone"), LONG_S)
    assert site.job(pod)["cpus"]["number"] == 8, "the whole node"
