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
    annotate(site, path, timelimit="30", comment="second", nice="7", constraints="slurm-bridge", job_name="renamed", begin_time="+1000h",
             priority="0")
    eventually("the job follows", lambda: (job()["time_limit"]["number"], job()["comment"], job()["nice"], job()["features"], job()["name"],
               job()["hold"]) == (30, "second", 7, "slurm-bridge", "renamed", True), LONG_S)
    assert job()["eligible_time"]["number"] > job()["submit_time"]["number"] + 3600

    annotate(site, path, constraints="nosuch", timelimit="50", priority="123")
    eventually("the pod says what Slurm refuses", lambda: "Invalid feature" in condition(site.see("changing"), "SlurmPending")["message"], LONG_S)
    assert condition(site.see("changing"), "SlurmPending")["reason"] == "Refused"
    annotate(site, path, timelimit=None, comment=None, nice=None, constraints=None, job_name=None, begin_time=None)
    eventually("it is as if nothing else had been said", lambda: (job()["time_limit"]["infinite"], job()["comment"], job()["nice"], job()["features"],
               job()["name"], job()["hold"], job()["priority"]["number"]) == (True, "", 0, "", "changing", False, 123), LONG_S)
    eventually("the pod says what it waits for", lambda: condition(site.see("changing"), "SlurmPending")["reason"] != "Refused", LONG_S)
    assert job()["eligible_time"]["number"] < job()["submit_time"]["number"] + 3600


def test_people_may_change_a_job_that_waits_whoever_leads(site, bridge, waiting, eventually):
    path, job = waiting("whoever", timelimit="60", priority="0", comment="first")
    other, refused = waiting("refused")
    site.scontrol("update", f"job={job()['job_id']}", "timelimit=90")
    annotate(site, path, comment="second")
    annotate(site, other, dependency="afterok:99999999")
    eventually("the job follows", lambda: job()["comment"] == "second" and "?" not in note(job()), LONG_S)
    eventually("the other pod says why it does not", lambda: "dependency" in condition(site.see("refused"), "SlurmPending")["message"], LONG_S)
    eventually("its note leaves that open", lambda: ":?" in note(refused()), LONG_S)  # Slurm takes the comment all the same
    bridge.stop()
    site.scontrol("update", f"job={job()['job_id']}", "comment=ours")
    site.scontrol("release", job()["job_id"])
    annotate(site, path, job_name="renamed", begin_time="+1000h")
    site.api.merge(f"{other}/status", {"status": {"conditions": None}})
    bridge.start().wait_until_it_leads()
    eventually("the new leader says what is new", lambda: job()["name"] == "renamed" and "?" not in note(job()), LONG_S)
    assert job()["eligible_time"]["number"] > job()["submit_time"]["number"] + 3600
    assert (job()["time_limit"]["number"], job()["comment"], job()["hold"]) == (90, "ours", False)
    eventually("and again what Slurm refuses", lambda: condition(site.see("refused"), "SlurmPending")["reason"] == "Refused", LONG_S)


def test_a_waiting_gang_follows_its_job_in_number_and_in_words(site, eventually):
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
    annotate(site, f"{path}/gang", timelimit="25")
    eventually("its time limit follows too", lambda: site.live_jobs_of_team("gang")[0]["time_limit"]["number"] == 25, LONG_S)
    assert len(site.team("gang")) == 2 and all(pod["metadata"]["labels"][TEAM] == "gang" for pod in site.team("gang"))
    site.delete("full", 0)
    eventually("both are placed", lambda: site.team_placed("gang", 2), LONG_S)


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
