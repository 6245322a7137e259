"""Pods for tests: made, waited for, asked, removed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from slincdev.cluster import Cluster
from slincdev.parts import kubectl

BUSYBOX = "localhost/slinc/busybox:1"


def pod(name: str, image: str, *command: str, labels: dict | None = None, **spec) -> dict:
    container = {"name": "main", "image": image, "imagePullPolicy": "Never"} | spec.pop("container", {})
    if command:
        container["command"] = list(command)
    return {"metadata": {"name": name, "labels": labels or {}},
            "spec": {"terminationGracePeriodSeconds": 0, "enableServiceLinks": False, "containers": [container], **spec}}


@contextlib.contextmanager
def running(cluster: Cluster, eventually: Callable, *wanted: dict, namespace: str = "default") -> Iterator[None]:
    """The pods run inside the block and are gone after it."""
    api, path = cluster.api(), f"/api/v1/namespaces/{namespace}/pods"
    try:
        for one in wanted:
            api.post(path, one)
        for one in wanted:
            name = one["metadata"]["name"]
            eventually(f"pod {name} runs", lambda: is_ready(api.get(f"{path}/{name}")))
        yield
    finally:
        for one in wanted:
            api.delete(f"{path}/{one['metadata']['name']}", {"gracePeriodSeconds": 0})


def is_ready(found: dict) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", []))


def ask(cluster: Cluster, name: str, *command: str, namespace: str = "default") -> str:
    """Runs a command in a pod, through the API server and the kubelet, as kubectl exec does."""
    return kubectl(cluster, "-n", namespace, "exec", name, "--", *command)
