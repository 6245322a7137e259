"""A registry of a cluster's own: a program in its namespaces, which its nodes and the commands of a test reach under the name that a release
has for it. Its certificate is signed by the cluster's CA."""

from __future__ import annotations

import os
import ssl
import urllib.request
from pathlib import Path

from . import pki
from .build import bin_dir, ensure_program
from .cluster import Cluster
from .common import run, wait_for

CONFIG = """version: 0.1
log: {{level: warn, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}/registry}}}}
http: {{addr: "{address}:443", tls: {{certificate: {folder}/pki/registry.crt, key: {folder}/pki/registry.key}}}}
"""
# For containerd: where to ask for images of this name. It is read at each pull.
HOSTS = """server = "https://{name}"
[host."https://{address}"]
  capabilities = ["pull", "resolve"]
  ca = "{folder}/pki/ca.crt"
"""


class Registry:
    """Of the name `name`, which no name server knows."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name, self.hosts = cluster, name, cluster.folder / "registry.hosts"

    def start(self) -> None:
        ensure_program("registry")
        folder, address = self.cluster.folder, self.cluster.node_ip
        facts = {"folder": folder, "address": address, "name": self.name}
        pki.make_cert(folder / "pki", "registry", f"/CN={self.name}", names=[self.name, address])
        (folder / "registry.yaml").write_text(CONFIG.format(**facts))
        for node in self.cluster.nodes():
            about = node.folder / "registries" / self.name
            about.mkdir(parents=True, exist_ok=True)
            (about / "hosts.toml").write_text(HOSTS.format(**facts))
        self.hosts.write_text(f"{Path('/etc/hosts').read_text()}\n{address} {self.name}\n")
        self.cluster.start("registry", [bin_dir() / "docker-registry", "serve", folder / "registry.yaml"])
        wait_for("the registry answers", 30, self.answers, hint=lambda: f"see {folder}/logs/registry.log")

    def answers(self) -> bool:
        trust = ssl.create_default_context(cafile=str(self.cluster.folder / "pki/ca.crt"))
        try:
            with urllib.request.urlopen(f"https://{self.cluster.node_ip}/v2/", timeout=2, context=trust) as answer:
                return answer.status == 200
        except OSError:
            return False

    def run(self, script: str, **environment: str) -> str:
        """A script of bash on this machine, for which the registry's name and its CA are known."""
        own = {"SSL_CERT_FILE": str(self.cluster.folder / "pki/ca.crt"), "KUBECONFIG": str(self.cluster.admin_config), "PATH": f"{bin_dir()}:{os.environ['PATH']}"}
        inner = f"mount --bind {self.hosts} /etc/hosts\nset -euo pipefail\n{script}"
        return run(["unshare", "--mount", "--propagation", "private", "bash", "-ec", inner], env=os.environ | own | environment, what=script.strip())
