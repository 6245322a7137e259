"""Two slurmctld on two real nodes, with one state: when the active one is away the other takes over, and clients follow."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from definitions import installed
from pods import is_ready
from slincdev.cluster import Cluster
from slincdev.parts import ensure_images, import_images
from slincdev.real_nodes import second_node
from slurm_operator import Operator, Site

HOME = "operator-ha"
IMAGES = ["slurmctld", "slurmrestd", "busybox"]
SLURM_UID = 401
PODS = ["slurm-controller-0", "slurm-controller-1"]
ACTIVE = "controller.slinky.slurm.net/active"
SOON_S = 15  # slurmctld is asked every 2 s; a name that is gone costs a few more


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory) -> Iterator[Site]:
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    with second_node(cluster, IMAGES), installed(cluster, HOME):
        found, operator = Site(cluster, HOME), Operator(cluster, tmp_path_factory.mktemp("operator"))
        try:
            make_claim(found)
            operator.start().wait_until_it_leads()
            keys = found.make_keys()
            found.make("controllers", "slurm", keys | {
                "slurmctld": found.image("slurmctld"), "logfile": found.busybox, "ha": {"enabled": True, "backups": 1},
                "persistence": {"enabled": True, "existingClaim": "state"},
                "extraConf": "SlurmctldTimeout=5\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity"})
            found.make("restapis", "slurm", {"controllerRef": {"name": "slurm"}, "slurmrestd": found.image("slurmrestd")})
            found.make("tokens", "client", {"username": "slurm", "jwtKeyRef": keys["jwtKeyRef"], "lifetime": "1h"})
            found.wait_until_ready("controllers", "slurm", 120)
            make_client(found)
            yield found
            operator.stop()
        finally:
            operator.end()
            found.end_pods()
            cluster.api().delete("/api/v1/persistentvolumes/state")


def make_claim(site: Site) -> None:
    """A volume that pods on both nodes may write."""
    folder = site.cluster.shared / "state"
    folder.mkdir(exist_ok=True)
    os.chown(folder, SLURM_UID, SLURM_UID)
    shape = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    site.api.post("/api/v1/persistentvolumes", {"metadata": {"name": "state"}, "spec": shape | {
        "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(folder)}, "claimRef": {"namespace": HOME, "name": "state"}}})
    site.api.post(site.core("persistentvolumeclaims"), {"metadata": {"name": "state"}, "spec": shape | {
        "volumeName": "state", "resources": {"requests": {"storage": "1Gi"}}}})


def make_client(site: Site) -> None:
    """A pod that has Slurm's configuration and asks by the Service of clients."""
    site.api.post(site.core("pods"), {"metadata": {"name": "client"}, "spec": {
        "enableServiceLinks": False, "terminationGracePeriodSeconds": 0,
        "containers": [site.image("slurmctld") | {
            "name": "main", "command": ["sleep", "3600"], "volumeMounts": [{"name": "etc", "mountPath": "/etc/slurm"}],
            "env": [{"name": "SLURM_JWT", "valueFrom": {"secretKeyRef": {"name": "client-jwt-slurm", "key": "SLURM_JWT"}}}]}],
        "volumes": [{"name": "etc", "projected": {"sources": [{"configMap": {"name": "slurm-config"}}, {"secret": {"name": "keys"}}]}}]}})


def pods(site: Site) -> dict[str, dict]:
    return {one["metadata"]["name"]: one for one in site.api.get(site.core("pods"))["items"] if one["metadata"]["name"] in PODS}


def active(site: Site) -> list[str]:
    return sorted(name for name, one in pods(site).items() if one["metadata"]["labels"].get(ACTIVE) == "true")


def endpoints(site: Site) -> list[str]:
    slices = site.api.get(f"/apis/discovery.k8s.io/v1/namespaces/{HOME}/endpointslices?labelSelector=kubernetes.io/service-name%3Dslurm-controller")
    return [end["targetRef"]["name"] for one in slices["items"] for end in one["endpoints"] or []]


def sinfo(site: Site) -> str:
    return site.kubectl("exec", "client", "--", "timeout", "30", "sinfo")


def test_both_run_apart_and_the_first_is_active(site, eventually):
    found = pods(site)
    assert sorted(found) == PODS and all(map(is_ready, found.values()))
    assert {one["spec"]["nodeName"] for one in found.values()} == {"node-0", "node-1"}
    eventually("the first is active", lambda: active(site) == PODS[:1])
    eventually("clients reach it alone", lambda: endpoints(site) == PODS[:1])
    eventually("sinfo answers", lambda: "PARTITION" in sinfo(site))


def test_the_backup_takes_over_while_the_first_is_away_and_gives_it_back(site, eventually):
    """Once the operator has seen that the active pod is gone, there is always a pod with the label."""
    node, labels = pods(site)[PODS[0]]["spec"]["nodeName"], []

    def is_active(wanted: list[str]) -> bool:
        labels.append(active(site))
        return labels[-1] == wanted
    site.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})  # so it stays away
    try:
        site.api.delete(site.core("pods", PODS[0]), {"gracePeriodSeconds": 0})
        eventually("the backup is active", lambda: is_active(PODS[1:]), SOON_S)
        eventually("sinfo answers", lambda: "PARTITION" in sinfo(site))
        assert endpoints(site) == PODS[1:]
        seen = site.conditions("controllers", "slurm")
        assert (seen["Ready"]["status"], seen["SlurmReachable"]["status"]) == ("False", "True"), seen
        assert seen["Ready"]["message"] == "1 of 2 pods of StatefulSet slurm-controller are ready"
        labels = labels[-1:]
    finally:
        site.api.merge(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})
    eventually("the first is active again", lambda: is_active(PODS[:1]))
    assert all(labels), labels
    site.wait_until_ready("controllers", "slurm")
    eventually("sinfo answers", lambda: "PARTITION" in sinfo(site))
    eventually("clients reach it alone", lambda: endpoints(site) == PODS[:1])
