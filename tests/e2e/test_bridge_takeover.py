"""Coming from the bridge that was there before, and going back: what it left, nodes, pods and jobs, is taken over as it is, and what we
leave is what it knows."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from bridge import FINALIZER, JOB_LABEL, NODE_LABEL, SCHEDULER, TAINT, Bridge, Site, condition, settled, unit_of
from slincdev import nodes
from waits import wait_for

NODES = ["old-0", "old-1"]
NODE_ANNOTATION = "slinky.slurm.net/slurm-node"


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "inherited")


class Former:
    """What the other bridge does, as far as it can be seen: nodes without a mark and by capacity, jobs that name pods and nothing else,
    pods with label, annotation and finalizer."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def node(self, name: str) -> None:
        """Its size is the capacity, though some of that is the system's own."""
        node = nodes.node_object(name, 8)
        node["metadata"]["labels"] |= {NODE_LABEL: "true"}
        node["metadata"]["annotations"] |= {"scheduler.slinky.slurm.net/external-node-partitions": "slurm-bridge"}
        node["spec"]["taints"] = [*node["spec"]["taints"], {"key": TAINT, "value": SCHEDULER, "effect": "NoExecute"}]
        node["status"]["allocatable"] = node["status"]["allocatable"] | {"cpu": "7"}
        self.site.api.post("/api/v1/nodes", node)
        self.site.slurm.create_nodes(name, cpus=8, memory_mib=200000, feature="slurm-bridge")

    def job(self, pod: str, node: str) -> int:
        answer = self.site.slurm.call("POST", "/slurm/{api}/job/submit", {"job": {
            "admin_comment": json.dumps({"pods": [f"{self.site.namespace}/{pod}"]}, separators=(",", ":")), "name": pod,
            "current_working_directory": "/tmp", "flags": ["EXTERNAL_JOB"], "mcs_label": "kubernetes", "partition": "slurm-bridge",
            "nodes": "1", "maximum_nodes": 1, "tasks_per_node": 1, "cpus_per_task": 1, "required_nodes": [node], "shared": ["none"],
            "memory_per_node": {"set": True, "infinite": False, "number": 100}}})
        return answer["job_id"]

    def pod(self, name: str, node: str, job: int) -> dict:
        body = self.site.pod(name)
        body["metadata"] |= {"labels": {JOB_LABEL: str(job)}, "finalizers": [FINALIZER]}
        body["metadata"]["annotations"] |= {NODE_ANNOTATION: node}
        body["spec"]["tolerations"].append({"key": TAINT, "operator": "Equal", "value": SCHEDULER, "effect": "NoExecute"})
        made = self.site.api.post(self.site.pods_path, body)
        self.site.api.post(f"{self.site.pods_path}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}})
        return made


@pytest.fixture(scope="module")
def before(site) -> Iterator[dict[str, tuple[int, str]]]:
    """Two nodes, each with a pod and its job: uid of the pod and id of the job, by name."""
    former, found = Former(site), {}
    for name in NODES:
        former.node(name)
    wait_for("its nodes are ready", 30, lambda: all(condition(site.node(name), "Ready")["status"] == "True" for name in NODES))
    for node in NODES:
        job = former.job(f"pod-on-{node}", node)
        wait_for("its job runs", 30, lambda: "RUNNING" in site.slurm.job(job)["job_state"])
        found[f"pod-on-{node}"] = (job, former.pod(f"pod-on-{node}", node, job)["metadata"]["uid"])
    yield found


@pytest.fixture(scope="module")
def bridge(site, cluster, slurm, before, tmp_path_factory) -> Iterator[Bridge]:
    bridge = Bridge(cluster, slurm, tmp_path_factory.mktemp("takeover"))
    try:
        yield bridge.start().wait_until_it_leads()
        site.clear(NODES)
        bridge.stop()
    finally:
        bridge.end()


def label(pod: dict) -> int:
    return int(pod["metadata"].get("labels", {}).get(JOB_LABEL, 0))


def keys(site: Site, job: int) -> tuple[dict, str]:
    shown = site.slurm.job(job)
    return json.loads(shown["admin_comment"]), shown["extra"]


def test_what_the_other_bridge_left_is_taken_over_as_it_is(site, before, bridge):
    for name, (job, uid) in before.items():
        wait_for(f"job {job} has our key", 30, lambda job=job: keys(site, job)[1] != "", hint=bridge.said)
        comment, extra = keys(site, job)
        assert comment["unit"] == f"{site.namespace}/{uid}.1" and extra.startswith(f"{comment['unit']} {site.uid} ") and comment["release"] == extra.split(" ")[2]
        assert comment["cluster"] == site.uid
        assert list(comment)[0] == "pods" and comment["pods"] == [f"{site.namespace}/{name}"]  # where the other bridge looks
        assert "RUNNING" in site.slurm.job(job)["job_state"]
        pod = site.see(name)
        assert pod["metadata"]["uid"] == uid and pod["metadata"]["labels"][JOB_LABEL] == str(job) and not pod["metadata"].get("deletionTimestamp")
    assert len([job for job in site.live_jobs() if (unit_of(job, site.uid) or "").startswith(f"{site.namespace}/")]) == len(before)
    for node in NODES:
        assert "DRAIN" not in site.slurm_node(node)["state"], "it is busy, and of another size than ours"


@pytest.fixture(scope="module")
def renewed(site, before, bridge) -> None:
    """The first node, whose pod has ended: it has the size that our bridge gives it."""
    name, node = f"pod-on-{NODES[0]}", NODES[0]
    site.delete(name)
    wait_for("the pod is gone", 30, lambda: site.see(name) is None, hint=bridge.said)
    wait_for("its job has ended", 30, lambda: "CANCELLED" in site.slurm.job(before[name][0])["job_state"])
    wait_for("the node was made anew", 60, lambda: (site.slurm_node(node) or {}).get("cpus") == 7 and site.is_registered(node), hint=bridge.said)


def test_the_way_back_is_open(site, before, bridge, renewed):
    """The other bridge finds the job by the pod's label, the pods by the comment's first member, and takes away the finalizer by its name.
    As docs/bridge.md has it: it asks again for a pod without the label, and deletes a bound one whose job does not run. A pod that waits has
    the label, too."""
    site.make("newcomer")
    pod = wait_for("it is placed beside old ones", 30, lambda: site.placed("newcomer"), hint=bridge.said)
    assert site.see(f"pod-on-{NODES[1]}")["metadata"]["uid"] == before[f"pod-on-{NODES[1]}"][1]
    settled(site)
    job = int(pod["metadata"]["labels"][JOB_LABEL])
    assert json.loads(site.slurm.job(job)["admin_comment"])["pods"] == [f"{site.namespace}/newcomer"]
    assert pod["metadata"]["annotations"][NODE_ANNOTATION] == pod["spec"]["nodeName"]
    assert FINALIZER in pod["metadata"]["finalizers"]
    assert {"key": TAINT, "operator": "Equal", "value": SCHEDULER, "effect": "NoExecute"} in pod["spec"]["tolerations"]
    assert "EXTERNAL_JOB" in site.slurm.job(job)["flags"]

    uid = site.make("waiting", wishes={"begin-time": "+1h"})["metadata"]["uid"]
    wait_for("its label names the job that waits", 30, lambda: label(site.see("waiting")) in [job["job_id"] for job in site.live_jobs_of(uid)], hint=bridge.said)
    bridge.stop()
    named = {pod["metadata"]["name"]: label(pod) for pod in site.api.get(site.pods_path)["items"]}
    ours = [job["job_id"] for job in site.live_jobs() if "EXTERNAL_JOB" in job["flags"] and f" {site.uid} " in job["extra"]]
    assert sorted(named.values()) == sorted(ours)  # every pod names its job, and there is no other
    waiting = named.pop("waiting")
    assert all("RUNNING" in site.slurm.job(job)["job_state"] for job in named.values())
    site.slurm.cancel(waiting)
    wait_for("it is gone", 30, lambda: not site.live_jobs_of(uid))
    bridge.start().wait_until_it_leads()
    wait_for("ours asks anew, once", 60, lambda: len(site.live_jobs_of(uid)) == 1, hint=bridge.said)
