"""The exporter as a user gets it, by its chart."""

from __future__ import annotations

import urllib.request

from slincdev import parts
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, REPO, run

CHART, NAME = REPO / "charts/slurm-exporter", "slurm-exporter"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
API_SERVICE = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"
VALUES = ["exporter.image.repository=localhost/slinc/slinc", "exporter.imagePullPolicy=Never", "exporter.cacheFrequency=1s",
          "exporter.jobListSeconds=2", "externalMetrics.enabled=true"]


class Exporter:
    """The release, and its one pod as the host reaches it."""

    def __init__(self, cluster: Cluster, home: str, *values: str) -> None:
        self.cluster, self.api, self.home, self.values = cluster, cluster.api(), home, [*VALUES, *values]

    def helm(self, *words: object) -> str:
        return run([bin_dir() / "helm", f"--kubeconfig={self.cluster.admin_config}", *words], timeout=200 * PATIENCE)

    def install(self, name: str = "exporter", home: str = "") -> None:
        parts.ensure_images(["slinc"])
        parts.import_images(self.cluster, ["slinc"])
        values = [word for value in self.values for word in ("--set", value)]
        self.helm("install", name, CHART, "-n", home or self.home, "--wait", "--timeout", f"{60 * PATIENCE:.0f}s", *values)

    def uninstall(self) -> None:
        self.helm("uninstall", "exporter", "-n", self.home, "--wait")
        assert not self.api.exists(API_SERVICE)

    @property
    def host(self) -> str:
        found = self.api.get(f"/api/v1/namespaces/{self.home}/pods?labelSelector=app.kubernetes.io%2Fname%3D{NAME}")["items"]
        return next(pod["status"]["podIP"] for pod in found if not pod["metadata"].get("deletionTimestamp"))

    @property
    def address(self) -> str:
        return f"{self.host}:8080"

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10 * PATIENCE) as answer:
            return answer.read().decode()

    def shows(self, line: str) -> bool:
        return line in self.get("/metrics").splitlines()

    def wanted(self, partition: str) -> list[str]:
        """As a HorizontalPodAutoscaler in this namespace reads it."""
        path = f"{EXTERNAL}/namespaces/{self.home}/slinc_nodes_wanted?labelSelector=partition%3D{partition}"
        return [item["value"] for item in self.api.get(path)["items"]]
