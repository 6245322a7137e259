"""The operator as a process of this machine, and a site: a namespace with custom resources for it."""

from __future__ import annotations

import base64
import http.client
import re
import secrets
from pathlib import Path

from definitions import Definitions
from pods import BUSYBOX
from replica import Command
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE
from slincdev.kube import b64
from slincdev.parts import facts
from waits import wait_for

WORKLOADS = ("/apis/apps/v1/namespaces/{}/deployments", "/apis/apps/v1/namespaces/{}/statefulsets")
CHILDREN = (*WORKLOADS, "/api/v1/namespaces/{}/services", "/api/v1/namespaces/{}/configmaps", "/api/v1/namespaces/{}/secrets")


class Operator(Command):
    lease = "slurm-operator"

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(folder, "operator")
        self.cluster = cluster

    def start(self, *flags: str) -> Operator:
        address = f"127.0.0.1:{self.port}"
        return self.run("operator", "--kubeconfig", self.cluster.admin_config, "--leader-elect-namespace", "default", "--metrics-addr", address,
                        "--health-addr", address, "--zap-encoder", "console", *flags)

    def actions(self) -> int:
        """All that it has asked the API server to write."""
        return sum(int(value) for value in re.findall(r'^slinc_actions_total\{type="kube"\S* (\d+)$', self.ask("/metrics")[1], re.M))


class Site(Definitions):
    """Custom resources in one namespace. The images are those of this cluster."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        super().__init__(cluster, namespace)
        self.tag = facts(cluster)["SLURM_TAG"]
        if not self.api.exists(f"/api/v1/namespaces/{namespace}"):
            self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})

    def image(self, name: str) -> dict:
        return {"image": f"localhost/slinc/{name}:{self.tag}", "imagePullPolicy": "Never"}

    @property
    def busybox(self) -> dict:
        return {"image": BUSYBOX, "imagePullPolicy": "Never"}

    def core(self, plural: str, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/{plural}/{name}".rstrip("/")

    def apps(self, plural: str, name: str = "") -> str:
        return f"/apis/apps/v1/namespaces/{self.namespace}/{plural}/{name}".rstrip("/")

    def make_keys(self) -> dict:
        """As the fields of a Controller or an Accounting name them."""
        self.api.post(self.core("secrets"), {"metadata": {"name": "keys"}, "data": {
            "slurm.key": b64(secrets.token_bytes(1024)), "jwt.key": b64(secrets.token_bytes(32))}})
        return {"slurmKeyRef": {"name": "keys", "key": "slurm.key"}, "jwtKeyRef": {"name": "keys", "key": "jwt.key"}}

    def conditions(self, plural: str, name: str) -> dict[str, dict]:
        return {one["type"]: one for one in self.api.get(self.path(plural, name)).get("status", {}).get("conditions", [])}

    def is_ready(self, plural: str, name: str) -> bool:
        """All conditions but that of the database are good, and of the object as it is now."""
        found = {kind: one for kind, one in self.conditions(plural, name).items() if kind != "DatabaseReachable"}
        wanted = {"Ready": "True", "Progressing": "False", "Degraded": "False"} | ({"SlurmReachable": "True"} if plural == "controllers" else {})
        return {kind: one["status"] for kind, one in found.items()} == wanted and \
            all(one["observedGeneration"] == self.api.get(self.path(plural, name))["metadata"]["generation"] for one in found.values())

    def wait_until_ready(self, plural: str, name: str, seconds: float = 60) -> None:
        wait_for(f"{plural} {name} is ready", seconds, lambda: self.is_ready(plural, name), hint=lambda: self.kubectl("get", "pods,events"))

    def secret(self, name: str, key: str) -> bytes:
        return base64.b64decode(self.api.get(self.core("secrets", name))["data"][key])

    def rest_status(self, token: str) -> int:
        """The status with which slurmrestd answers to a token."""
        address = self.api.get(self.core("services", "slurm-restapi"))["spec"]["clusterIP"]
        connection = http.client.HTTPConnection(address, 6820, timeout=10 * PATIENCE)
        connection.request("GET", "/slurm/v0.0.44/nodes/", headers={"X-SLURM-USER-TOKEN": token})
        return connection.getresponse().status

    def children(self) -> dict[tuple[str, str], dict]:
        """What the operator makes: objects by path and name."""
        return {(path.rsplit("/", 1)[1], one["metadata"]["name"]): one for path in CHILDREN
                for one in self.api.get(path.format(self.namespace))["items"] if one["metadata"].get("ownerReferences")}

    def versions(self) -> dict[tuple[str, str], str]:
        return {key: one["metadata"]["resourceVersion"] for key, one in self.children().items()}

    def end_pods(self) -> None:
        """While no operator runs; a namespace is gone sooner when its pods need no grace period."""
        for path in WORKLOADS:
            self.api.delete(path.format(self.namespace), {"propagationPolicy": "Background"})

        def are_gone() -> bool:
            self.api.delete(self.core("pods"), {"gracePeriodSeconds": 0})
            return not self.api.get(self.core("pods"))["items"]
        wait_for("all pods are gone", 30, are_gone)

    def events(self, name: str) -> dict[str, str]:
        """About one object: reason and message."""
        found = self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events?fieldSelector=regarding.name%3D{name}")
        return {event["reason"]: event.get("note", "") for event in found["items"]}
