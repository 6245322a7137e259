"""Our chart in a development cluster: our image loaded, Slurm's key as a Secret, and what a person does with helm."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timezone

from . import components, parts
from .build import bin_dir
from .cluster import Cluster
from .common import PATIENCE, REPO, Fail, run, slow_step
from .kube import ApiError, b64
from .slurm import Slurm

CHART = REPO / "charts/slurm-bridge"
NAME, HOME, SCHEDULER = "bridge", components.BRIDGE_HOME, "slurm-bridge-scheduler"
# The image is in the node's store, there is no cert-manager, and the one node that can run the bridge is lent to Slurm as well.
VALUES = ["admission.certManager.enabled=false",
          "nodePolicy.namespaces={kube-system,slurm,slinky,cert-manager,jobset-system,lws-system}"] + [f"{part}.{value}" for part in ("scheduler", "admission") for value in (
    "image.repository=localhost/slinc/slinc", "image.pullPolicy=Never",
    "tolerations[0].key=slinky.slurm.net/managed-node", "tolerations[0].operator=Exists")]
KEY = ["sharedConfig.slurmJwtKey.name=slurm-jwt-key", "sharedConfig.slurmJwtKey.key=jwt.key"]


def build_slinc() -> None:
    """What has changed, unless SLINC_BUILD names a folder that has the program."""
    if "SLINC_BUILD" not in os.environ:
        with slow_step("slinc (dev/build plain)"):
            if subprocess.run([REPO / "dev/build", "plain", "src/cmd/slinc", "src/dra/slinc-cpuset-hook"]).returncode != 0:
                raise Fail("build/plain could not be built")


def ensure_image() -> None:
    build_slinc()
    parts.ensure_images(["slinc"])


def settings(*values: str) -> list[str]:
    """Words for helm."""
    return [word for value in [*VALUES, *values] for word in ("--set", value)]


class Release:
    """The chart, installed once."""

    def __init__(self, cluster: Cluster, slurm: Slurm) -> None:
        self.cluster, self.slurm, self.api = cluster, slurm, cluster.api()

    def helm(self, *words: object) -> str:
        return run([bin_dir() / "helm", f"--kubeconfig={self.cluster.admin_config}", "-n", HOME, *words], timeout=400 * PATIENCE)

    def prepare(self) -> None:
        """What the chart needs to be there: our image, its namespace, Slurm's key."""
        for node in self.cluster.nodes():
            components.import_image(node, parts.image_archive("slinc"))
        for path, body in (("/api/v1/namespaces", {"metadata": {"name": HOME}}),
                           (f"/api/v1/namespaces/{HOME}/secrets",
                            {"metadata": {"name": "slurm-jwt-key"}, "data": {"jwt.key": b64(self.slurm.key)}})):
            if not self.api.exists(f"{path}/{body['metadata']['name']}"):
                self.api.post(path, body)

    def apply(self, verb: str, *values: str) -> None:
        """Returns when all replicas are ready."""
        self.helm(verb, NAME, CHART, "--wait", "--timeout", f"{120 * PATIENCE:.0f}s", *settings(*values))

    def install(self, *values: str) -> None:
        self.prepare()
        self.apply("install", *KEY, *values)

    def found(self, name: str) -> list[dict]:
        """All pods of this part, those that end too."""
        return self.api.get(f"/api/v1/namespaces/{HOME}/pods?labelSelector=app.kubernetes.io%2Fname%3D{name}")["items"]

    def pods(self, name: str = SCHEDULER) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.found(name) if not pod["metadata"].get("deletionTimestamp")]

    def lease(self) -> dict:
        """Its spec; empty while there is none."""
        try:
            return self.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/{SCHEDULER}")["spec"]
        except ApiError as error:
            if error.status == 404:
                return {}
            raise

    def leader(self) -> str:
        """The replica that acts; "" while there is none."""
        holder = self.lease().get("holderIdentity") or ""
        return next((pod for pod in self.pods() if holder.startswith(pod)), "")

    def leads_for(self) -> float:
        """Seconds since it has the lease."""
        since = datetime.fromisoformat(self.lease()["acquireTime"].replace("Z", "+00:00"))
        return (datetime.now(timezone.utc) - since).total_seconds()

    def log_tail(self, lines: int = 15) -> str:
        """Of the leader, or of every replica while there is none: for a person who looks for what went wrong."""
        leader, shown = self.leader(), []
        for pod in [leader] if leader else self.pods():
            try:
                text = parts.kubectl(self.cluster, "-n", HOME, "logs", pod, f"--tail={lines}")
            except Fail as fail:
                text = f"no log: {fail}\n"
            shown.append(f"--- the last lines of {pod}\n{text}")
        return "".join(shown) or f"there is no pod of the bridge in namespace {HOME}\n"
