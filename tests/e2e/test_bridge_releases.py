"""Two bridges in one cluster, on one Slurm: each touches its own pods, jobs, nodes and taints, and a node that both claim is the older claim's."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from bridge import SCHEDULER, TAINT, Bridge, Site, at_work, uid_of
from slincdev.common import PATIENCE
from waits import wait_for

FIRST, SECOND = "shared-0", "second-0"
OTHER = "second-bridge"


class Other(Bridge):
    lease = OTHER


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "releases")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("releases")


@pytest.fixture(scope="module")
def first(site, cluster, slurm, folder) -> Iterator[Bridge]:
    site.add_node(FIRST, cpus=8)
    one = Bridge(cluster, slurm, folder)
    with at_work(site, one, [FIRST]):
        yield one


@pytest.fixture(scope="module")
def second(site, cluster, slurm, folder, first) -> Iterator[Bridge]:
    # A taint that is there before any bridge came says whose the node is.
    site.add_node(SECOND, cpus=8, taints=[{"key": TAINT, "value": OTHER, "effect": "NoExecute"}])
    other = Other(cluster, slurm, folder, OTHER, schedulerName=OTHER)
    try:
        yield other.start().wait_until_it_leads()
    finally:
        other.end()
        site.api.delete(f"/api/v1/nodes/{SECOND}")


def owner(site: Site, node: str) -> str | None:
    found = site.slurm_node(node)
    return json.loads(found["extra"] or "{}").get("release") if found else None


def as_ever(site: Site, first: Bridge, uid: str, job: int) -> None:
    """What the first bridge has."""
    assert (owner(site, FIRST), site.taint(FIRST)) == (f"default/{SCHEDULER}", SCHEDULER), first.said()
    assert site.see("ours")["metadata"]["uid"] == uid and "RUNNING" in site.slurm.job(job)["job_state"]
    assert [found["job_id"] for found in site.live_jobs_of(uid)] == [job]


def test_each_of_two_bridges_keeps_to_its_own(site, first, second):
    site.make("ours")
    pod = wait_for("a pod of the first is placed", 60, lambda: site.placed("ours"), hint=first.said)
    uid, job = pod["metadata"]["uid"], site.job(pod)["job_id"]
    site.make("theirs", schedulerName=OTHER)
    wait_for("a pod of the second is placed", 60, lambda: site.placed("theirs"), hint=second.said)
    theirs = site.placed("theirs")
    assert pod["spec"]["nodeName"] == FIRST and theirs["spec"]["nodeName"] == SECOND
    assert (owner(site, SECOND), site.taint(SECOND)) == (f"default/{OTHER}", OTHER)
    as_ever(site, first, uid, job)

    def told() -> set[str]:
        """By each about the other's node."""
        events = site.api.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
        return {event["regarding"]["name"] for event in events if event["reason"] == "SlurmNodeClaimed"}
    wait_for("each says that a node which both claim is the other's", 30, lambda: told() >= {FIRST, SECOND})

    second.stop()
    number = site.job(theirs)["job_id"]
    assert second.start("--uninstall", "--webhook-port=0").process.wait(150 * PATIENCE) == 0, second.said()
    assert owner(site, SECOND) != f"default/{OTHER}" and site.taint(SECOND) != OTHER  # the first may have it by now
    wait_for("the job of the second is gone", 30, lambda: "CANCELLED" in site.slurm.job(number)["job_state"])
    as_ever(site, first, uid, job)
    assert uid_of(site.slurm.job(job), site.uid) == uid
    wait_for("the first gets the node that nobody claims any more", 60, lambda: site.is_registered(SECOND), hint=first.said)
