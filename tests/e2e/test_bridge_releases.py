"""Two bridges in one cluster, on one Slurm and on two: each touches its own pods, jobs, nodes and taints, and a node that both claim is the
older claim's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from bridge import SCHEDULER, TAINT, Bridge, Site, at_work, uid_of
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE
from slincdev.slurm import Slurm
from waits import wait_for

FIRST, OTHER = "shared-0", "second-bridge"
SLURM, COPY = "slurm", "slurm-copy"  # namespaces


class Other(Bridge):
    lease = OTHER


class Second(NamedTuple):
    bridge: Other
    site: Site  # as its Slurm sees it
    node: str


def copy_of_slurm(cluster: Cluster) -> Slurm:
    """The pods and files of the cluster's Slurm again, in another namespace, without a node and with a state of its own."""
    api = cluster.api()
    kinds = {"configmaps": "/api/v1", "secrets": "/api/v1", "services": "/api/v1", "statefulsets": "/apis/apps/v1", "deployments": "/apis/apps/v1"}
    parts = {"slurm-config", "slurm-without-accounting", "slurm-auth", "slurm-controller", "slurm-restapi"}
    address = api.get(f"/api/v1/namespaces/{SLURM}/services/slurm-controller")["spec"]["clusterIP"]
    api.post("/api/v1/namespaces", {"metadata": {"name": COPY}})
    service = {"metadata": {"name": "slurm-controller"}, "spec": {"selector": {"app.kubernetes.io/name": "slurmctld"}, "publishNotReadyAddresses": True, "ports": [{"port": 6817}]}}
    other = api.post(f"/api/v1/namespaces/{COPY}/services", service)["spec"]["clusterIP"]
    for plural, group in kinds.items():
        for one in api.get(f"{group}/namespaces/{SLURM}/{plural}")["items"]:
            name = one["metadata"]["name"]
            if name not in parts or (plural, name) == ("services", "slurm-controller"):
                continue
            made = json.loads(json.dumps({key: value for key, value in one.items() if key not in ("metadata", "status", "kind", "apiVersion")})
                              .replace(address, other).replace("ClusterName=slinc", "ClusterName=copy").replace("slurm-with-accounting", "slurm-without-accounting"))
            if plural == "services":
                made["spec"] = {key: made["spec"][key] for key in ("selector", "ports")}
            elif plural == "statefulsets":
                next(volume for volume in made["spec"]["template"]["spec"]["volumes"] if volume["name"] == "state").update({"hostPath": None, "emptyDir": {}})
            api.post(f"{group}/namespaces/{COPY}/{plural}", made | {"metadata": {"name": name}})
    for plural, name in (("statefulsets", "slurm-controller"), ("deployments", "slurm-restapi")):
        wait_for(f"{name} is ready", 60, lambda plural=plural, name=name: api.get(f"/apis/apps/v1/namespaces/{COPY}/{plural}/{name}")["status"].get("readyReplicas") == 1)
    return Slurm(cluster, COPY)


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


@pytest.fixture(params=["one", "two"])
def second(request, site, cluster, slurm, folder, first) -> Iterator[Second]:
    """On the Slurm of the first, and on one of its own."""
    node, is_alone = f"second-{request.param}", request.param == "two"
    # A taint that is there before any bridge came says whose the node is.
    site.add_node(node, cpus=8, taints=[{"key": TAINT, "value": OTHER, "effect": "NoExecute"}])
    other = None
    try:
        its = copy_of_slurm(cluster) if is_alone else slurm
        other = Other(cluster, its, folder, OTHER, schedulerName=OTHER)
        yield Second(other.start().wait_until_it_leads(), Site(cluster, its, site.namespace), node)
    finally:
        if other:
            other.end()
        site.empty()
        site.api.delete(f"/api/v1/nodes/{node}")
        if is_alone:
            site.api.delete(f"/api/v1/namespaces/{COPY}")


def owner(site: Site, node: str) -> str | None:
    found = site.slurm_node(node)
    return json.loads(found["extra"] or "{}").get("release") if found else None


def as_ever(site: Site, first: Bridge, uid: str, job: int) -> None:
    """What the first bridge has."""
    assert (owner(site, FIRST), site.taint(FIRST)) == (f"default/{SCHEDULER}", SCHEDULER), first.said()
    assert site.see("ours")["metadata"]["uid"] == uid and "RUNNING" in site.slurm.job(job)["job_state"]
    assert [found["job_id"] for found in site.live_jobs_of(uid)] == [job]


def test_each_of_two_bridges_keeps_to_its_own(site, first, second):
    bridge, there, node = second
    site.make("ours")
    pod = wait_for("a pod of the first is placed", 60, lambda: site.placed("ours"), hint=first.said)
    uid, job = pod["metadata"]["uid"], site.job(pod)["job_id"]
    site.make("theirs", schedulerName=OTHER)
    wait_for("a pod of the second is placed", 60, lambda: site.placed("theirs"), hint=bridge.said)
    theirs = site.placed("theirs")
    assert pod["spec"]["nodeName"] == FIRST and theirs["spec"]["nodeName"] == node
    assert (owner(there, node), there.taint(node)) == (f"default/{OTHER}", OTHER)
    as_ever(site, first, uid, job)

    def told() -> set[str]:
        """By each about the other's node."""
        events = site.api.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
        return {event["regarding"]["name"] for event in events if event["reason"] == "SlurmNodeClaimed"}
    wait_for("each says that a node which both claim is the other's", 30, lambda: told() >= {FIRST, node})

    if there.slurm is not site.slurm:
        assert site.slurm_node(node) is None and there.slurm_node(FIRST) is None, "each Slurm has the nodes of its bridge alone"

    bridge.stop()
    number = there.job(theirs)["job_id"]
    assert bridge.start("--uninstall", "--webhook-port=0").process.wait(150 * PATIENCE) == 0, bridge.said()
    assert owner(there, node) != f"default/{OTHER}" and there.taint(node) != OTHER  # the first may have it by now
    wait_for("the job of the second is gone", 30, lambda: "CANCELLED" in there.slurm.job(number)["job_state"])
    as_ever(site, first, uid, job)
    assert uid_of(site.slurm.job(job), site.uid) == uid
    wait_for("the first gets the node that nobody claims any more", 60, lambda: site.is_registered(node), hint=first.said)
