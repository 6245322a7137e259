"""The chart slurm-operator-crds in a cluster, and objects of its kinds in one namespace."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, run
from slincdev.crds import CHART, KINDS
from slincdev.kube import ApiError
from slincdev.parts import kubectl
from waits import wait_for

RELEASE = "slurm-operator-crds"
GROUP = "/apis/slinky.slurm.net/v1beta1"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}.slinky.slurm.net"
KIND = dict(zip(KINDS, ("Controller", "RestApi", "Accounting", "LoginSet", "NodeSet", "Token")))



def older_chart(folder: Path) -> Path:
    """The definitions without what 1.2.1 of the Slinky operator does not have in them."""
    older = Path(shutil.copytree(CHART, folder / "older"))
    spec, template = older / "specs/controllers.json", older / "templates/controllers.yaml"
    found = json.loads(spec.read_text())
    del found["properties"]["ha"]
    spec.write_text(json.dumps(found))
    text = template.read_text()
    template.write_text(text[:text.index("    - rule: >-")] + text[text.index("status: {}"):])
    return older


class Definitions:
    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.api, self.namespace = cluster, cluster.api(), namespace

    def helm(self, *words: object) -> str:
        return run([bin_dir() / "helm", f"--kubeconfig={self.cluster.admin_config}", "-n", self.namespace, *words], timeout=60 * PATIENCE)

    def kubectl(self, *words: object) -> str:
        return kubectl(self.cluster, "-n", self.namespace, *words)

    def path(self, plural: str, name: str = "") -> str:
        return f"{GROUP}/namespaces/{self.namespace}/{plural}/{name}".rstrip("/")

    def is_installed(self, plural: str) -> bool:
        return self.api.exists(DEFINITION.format(plural))

    def install(self) -> None:
        self.helm("install", RELEASE, CHART)
        for plural in KINDS:
            wait_for(f"{plural} are served", 30, lambda plural=plural: self.api.exists(f"{GROUP}/{plural}"))

    def upgrade(self, chart: Path) -> None:
        self.helm("upgrade", RELEASE, chart)

    def serve_ha(self) -> bool:
        """Whether the served definition of Controllers keeps the field `ha`."""
        key = {"name": "keys", "key": "k"}
        return "ha" in self.api.post(f"{self.path('controllers')}?dryRun=All", {
            "apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": "probe"},
            "spec": {"slurmKeyRef": key, "jwtKeyRef": key, "ha": {"enabled": False}}})["spec"]

    def make(self, plural: str, name: str, spec: dict | None) -> dict:
        one = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": KIND[plural], "metadata": {"name": name}}
        return self.api.post(self.path(plural), one if spec is None else one | {"spec": spec})

    def server_side_apply(self, path: str, manager: str, part: dict) -> None:
        one = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller"} | part
        self.api.call("PATCH", f"{path}?fieldManager={manager}&force=true", one, "application/apply-patch+yaml")

    def refusal(self, plural: str, spec: dict) -> str:
        with pytest.raises(ApiError) as caught:
            self.make(plural, "refused", spec)
        assert caught.value.status == 422
        return str(caught.value)

    def remove(self) -> None:
        """The definitions go with all of their objects, and with the namespace."""
        self.api.delete(f"/api/v1/namespaces/{self.namespace}")
        for plural in filter(self.is_installed, KINDS):
            self.api.delete(DEFINITION.format(plural))
        wait_for("the definitions and the namespace are gone", 60,
                 lambda: not any(map(self.is_installed, KINDS)) and not self.api.exists(f"/api/v1/namespaces/{self.namespace}"))


@contextlib.contextmanager
def installed(cluster: Cluster, namespace: str) -> Iterator[Definitions]:
    """In a new namespace. The modules that need the chart run one after the other: each installs it and removes it."""
    found = Definitions(cluster, namespace)
    found.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
    try:
        found.install()
        yield found
    finally:
        found.remove()
