"""Volumes that nobody makes: a claim of a class without provisioner gets one that is free on the node of its pod, and only nodes that have
one are given to the pod. The volume controller binds the two, as it does for the stock scheduler. Volumes that somebody makes: the claim is
told of the node, and the pod waits for its volume. The provisioner is this test."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import pytest
from bridge import Bridge, Site, at_work, condition, settled
from pods import ask
from slincdev import components
from slincdev.kube import ApiError
from waits import wait_for

NODES = [f"disk-{index}" for index in range(3)]  # in Slurm's order, which takes the first that will do
REAL = components.NODE  # the one node with a kubelet
CLASSES, VOLUMES = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
LOCAL, MADE = "local-disks", "disks-made-to-order"
SELECTED = "volume.kubernetes.io/selected-node"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "disks")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    for name in NODES:
        site.add_node(name, cpus=8)
    site.lend(REAL, "kubelet")
    site.api.post(CLASSES, {"metadata": {"name": LOCAL}, "provisioner": "kubernetes.io/no-provisioner",
                            "volumeBindingMode": "WaitForFirstConsumer"})
    site.api.post(CLASSES, {"metadata": {"name": MADE}, "provisioner": "slinc.test/maker", "volumeBindingMode": "WaitForFirstConsumer"})
    with at_work(site, Bridge(cluster, slurm, tmp_path_factory.mktemp("disks")), [*NODES, REAL]) as bridge:
        yield bridge
    for name in (LOCAL, MADE):
        site.api.delete(f"{CLASSES}/{name}")


def claims_path(site: Site) -> str:
    return f"/api/v1/namespaces/{site.namespace}/persistentvolumeclaims"


@pytest.fixture(autouse=True)
def bridge(site, one) -> Iterator[Bridge]:
    yield one
    site.see_pods_off()
    site.api.delete(claims_path(site))
    wait_for("its claims are gone", 30, lambda: not site.api.get(claims_path(site))["items"], every=0.2)
    for volume in site.api.get(VOLUMES)["items"]:
        with contextlib.suppress(ApiError):
            site.api.delete(f"{VOLUMES}/{volume['metadata']['name']}")
    wait_for("its volumes are gone", 30, lambda: not site.api.get(VOLUMES)["items"], every=0.2)


@pytest.fixture
def disk(site, cluster, eventually):
    """A volume on one node, as its controller knows it: bound to whom it was made for; else it can be had, or was already."""
    def make(node: str, size: str = "1Gi", labels: dict | None = None, **spec) -> str:
        name = f"on-{node}-{next(NUMBERS)}"
        where = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        site.api.post(VOLUMES, {"metadata": {"name": name, "labels": labels or {}}, "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL,
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": f"{cluster.folder}/{name}", "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}}, **spec}})
        # Its controller tries again what failed only every 15 s.
        phases = ("Bound",) if "claimRef" in spec else ("Available", "Bound")
        eventually(f"it is {' or '.join(phases)}", lambda: site.api.get(f"{VOLUMES}/{name}")["status"].get("phase") in phases)
        return name
    return make


@pytest.fixture
def wanting(site):
    """A pod with a claim for each size; those are named after it."""
    def make(pod: str, *sizes: str, command: tuple = (), selector: dict | None = None, kind: str = LOCAL, **options) -> dict:
        names = [f"{pod}-{index}" for index in range(len(sizes))]
        for name, size in zip(names, sizes):
            spec = {"storageClassName": kind, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
            site.api.post(claims_path(site), {"metadata": {"name": name}, "spec": spec | ({"selector": selector} if selector else {})})
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        body = site.pod(pod, *command, volumes=volumes, **options)
        body["spec"]["containers"][0]["volumeMounts"] = [{"name": name, "mountPath": f"/{name}"} for name in names]
        return site.api.post(site.pods_path, body)
    return make


def claim(site: Site, name: str) -> dict:
    return site.api.get(f"{claims_path(site)}/{name}")


def bound_to(site: Site, name: str) -> str:
    """The volume of a claim; each knows the other."""
    found = wait_for(f"{name} is bound", 60, lambda: (found := claim(site, name))["status"]["phase"] == "Bound" and found)
    volume = site.api.get(f"{VOLUMES}/{found['spec']['volumeName']}")
    ref = volume["spec"]["claimRef"]
    assert volume["status"]["phase"] == "Bound"
    assert (ref["kind"], ref["namespace"], ref["name"], ref["uid"]) == ("PersistentVolumeClaim", site.namespace, name, found["metadata"]["uid"])
    assert volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"] == "yes"
    return volume["metadata"]["name"]


def test_a_pod_runs_with_a_volume_of_its_node(site, cluster, disk, wanting, eventually):
    disk(NODES[0])
    mine = disk(REAL)
    wanting("writer", "1Gi", command=("sh", "-c", "echo here > /writer-0/note; while :; do sleep 1; done"))
    eventually("it runs", lambda: site.runs("writer"))
    assert bound_to(site, "writer-0") == mine
    eventually("it has written", lambda: ask(cluster, "writer", "cat", "/writer-0/note", namespace=site.namespace) == "here\n")
    settled(site)


def test_pods_that_come_together_take_different_volumes_and_one_that_needs_a_larger_one_waits_for_it(site, disk, wanting, eventually):
    disks = {node: disk(node) for node in NODES}
    names = ["crowd-0", "crowd-1"]
    for name in names:
        wanting(name, "1Gi")
    found = {name: eventually(f"{name} is placed", lambda: site.placed(name))["spec"]["nodeName"] for name in names}
    assert {name: bound_to(site, f"{name}-0") for name in names} == {name: disks[node] for name, node in found.items()}
    assert len(set(found.values())) == 2

    uid = wanting("hungry", "2Gi")["metadata"]["uid"]
    waits = "4 node(s) didn't find available persistent volumes to bind"  # once claim and class are seen, too
    said = eventually("it says why", lambda: waits in (c := condition(site.see("hungry"), "SlurmPending"))["message"] and c)
    assert said["reason"] == "NoNodeFits"
    assert site.live_jobs_of(uid) == []
    mine = disk(NODES[2], "2Gi")
    assert eventually("it is placed", lambda: site.placed("hungry"))["spec"]["nodeName"] == NODES[2]
    assert bound_to(site, "hungry-0") == mine


# --- volumes that are made -------------------------------------------------------------------------------------------


def selected(site: Site, name: str) -> str | None:
    return claim(site, name)["metadata"].get("annotations", {}).get(SELECTED)


def test_a_claim_is_told_of_the_node_of_its_job_and_again_when_its_provisioner_gives_up(site, disk, wanting, eventually):
    uid = wanting("choosy", "1Gi", kind=MADE)["metadata"]["uid"]
    node = eventually("its claim is told of a node", lambda: selected(site, "choosy-0"))
    job = site.live_jobs_of(uid)[0]["job_id"]
    site.api.merge(f"{claims_path(site)}/choosy-0", {"metadata": {"annotations": {SELECTED: None}}})  # as a provisioner that gives up
    assert eventually("it is told again", lambda: selected(site, "choosy-0")) == node
    said = eventually("it says so", lambda: (c := condition(site.see("choosy"), "SlurmPending"))["reason"] == "VolumesNotBound" and c)
    assert 'its volumes are being made on its node: persistentvolumeclaim "choosy-0" waits' in said["message"]
    ref = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": site.namespace, "name": "choosy-0",
           "uid": claim(site, "choosy-0")["metadata"]["uid"]}
    made = disk(node, storageClassName=MADE, claimRef=ref)
    assert eventually("it is placed", lambda: site.placed("choosy"))["spec"]["nodeName"] == node
    assert claim(site, "choosy-0")["spec"]["volumeName"] == made
    assert job in [found["job_id"] for found in site.live_jobs_of(uid)]
    settled(site)
