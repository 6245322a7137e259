"""Many nodes cheaply: Node objects played by kwok, with heartbeats while they are few, without when they are many."""

from __future__ import annotations

from . import components
from .cluster import Cluster
from .common import wait_for
from .kube import Api

HEARTBEATS_UP_TO = 100  # each heartbeat is a write every 10 s; thousands of them starve two cores
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}


def node_object(name: str, cpus: int = 64, memory: str = "256Gi") -> dict:
    """Ordinary pods must not land on a node that cannot run them, hence the taint."""
    amounts = {"cpu": str(cpus), "memory": memory, "pods": "500", "ephemeral-storage": "1Ti"}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"},
                     "labels": {"type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}},
        "spec": {"taints": [TAINT]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def kwok_names(api: Api) -> set[str]:
    listed = api.get("/api/v1/nodes?labelSelector=type%3Dkwok&resourceVersion=0")
    return {node["metadata"]["name"] for node in listed["items"]}


def _are_ready(api: Api, names: set[str]) -> bool:
    """Ready, and the node controller has taken the not-ready taint off."""
    ready = set()
    for node in api.get("/api/v1/nodes?labelSelector=type%3Dkwok&resourceVersion=0")["items"]:
        conditions = {c["type"]: c["status"] for c in node.get("status", {}).get("conditions", [])}
        tainted = any(t["key"] == "node.kubernetes.io/not-ready" for t in node["spec"].get("taints", []))
        if conditions.get("Ready") == "True" and not tainted:
            ready.add(node["metadata"]["name"])
    return names <= ready


def ensure_nodes(cluster: Cluster, count: int) -> None:
    """Brings the number of kwok nodes to `count`."""
    api = cluster.api()
    present = kwok_names(api)
    wanted = {f"kwok-{index}" for index in range(count)}
    if wanted and not any(p["name"] == "kwok" for p in cluster.programs()):
        components.start_kwok(cluster, heartbeats=count <= HEARTBEATS_UP_TO)
    api.post_many("/api/v1/nodes", [node_object(name) for name in sorted(wanted - present)])
    for name in sorted(present - wanted):
        api.delete(f"/api/v1/nodes/{name}")
    wait_for(f"{count} kwok nodes are Ready", 60 + count / 20, lambda: _are_ready(api, wanted), every=0.5)
