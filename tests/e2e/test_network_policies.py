"""Who reaches whom, by the NetworkPolicies of the charts, where a controller of the field enforces them: kube-router's. Pods with the labels of
Slurm's and ours listen on their ports; others try to connect, before it runs and while it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pods import BUSYBOX, is_ready, pod
from slincdev import supervisor
from slincdev.build import bin_dir, ensure_program
from slincdev.cluster import Cluster
from slincdev.common import REPO, run, versions
from slincdev.components import NODE
from slincdev.parts import kubectl
from waits import wait_for

pytestmark = pytest.mark.last  # it filters the packets of the whole node

HOME, ELSEWHERE = "policies", "policies-elsewhere"
NAME = "app.kubernetes.io/name"
OF_SLURM = {"app.kubernetes.io/instance": "slurm"}
WORKER = {NAME: "slurmd", "slinky.slurm.net/cluster": "slurm"}
BRIDGE = {NAME: "slurm-bridge-scheduler", "app.kubernetes.io/instance": "slurm-bridge"}
# Who listens: labels, and ports by name.
SERVERS: dict[str, tuple[dict, dict[str, int]]] = {
    "slurmctld": (OF_SLURM | {NAME: "slurmctld"}, {"slurmctld": 6817}),
    "slurmdbd": (OF_SLURM | {NAME: "slurmdbd"}, {"slurmdbd": 6819}),
    "slurmrestd": (OF_SLURM | {NAME: "slurmrestd"}, {"slurmrestd": 6820}),
    "bridge": (BRIDGE, {"webhook": 9443, "health": 8081, "other": 7777}),
}
SLURM = {"slurmctld", "slurmdbd", "slurmrestd"}
EVERYBODYS = {"webhook", "health"}  # the API server and kubelets have no address that a policy could name
# Who connects: namespace, labels, and what they reach.
CLIENTS: dict[str, tuple[str, dict, set[str]]] = {
    "worker": (HOME, WORKER, SLURM | EVERYBODYS),
    "operator": (ELSEWHERE, {NAME: "slurm-operator"}, {"slurmrestd"} | EVERYBODYS),
    "exporter": (ELSEWHERE, {NAME: "slurm-exporter"}, {"slurmrestd"} | EVERYBODYS),
    "neighbour": (HOME, {}, EVERYBODYS),
    "stranger": (ELSEWHERE, {NAME: "slurmd"}, EVERYBODYS),
}
EVERYTHING = {port for _, ports in SERVERS.values() for port in ports}


def server(name: str) -> dict:
    labels, ports = SERVERS[name]
    listen = "".join(f"httpd -p {port} -h /; " for port in ports.values())
    made = pod(name, BUSYBOX, "sh", "-c", f"{listen} sleep 100000", labels=labels)
    made["spec"]["containers"][0]["ports"] = [{"name": port, "containerPort": number} for port, number in ports.items()]
    return made


def policies(chart: str, *words: str) -> list[str]:
    text = run([bin_dir() / "helm", "template", chart, REPO / "charts" / chart, "-n", HOME, "--kube-version", versions()["KUBERNETES_VERSION"],
                "--set", "networkPolicy.enabled=true", *words])
    return [part for part in text.split("\n---\n") if "\nkind: NetworkPolicy\n" in part]


class Net:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.api = cluster, cluster.api()
        wanted = [*((HOME, server(name)) for name in SERVERS),
                  *((namespace, pod(name, BUSYBOX, "sleep", "100000", labels=labels)) for name, (namespace, labels, _) in CLIENTS.items())]
        for namespace in (HOME, ELSEWHERE):
            self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
            wait_for("pods have an account there", 30, lambda: self.api.exists(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
        for namespace, one in wanted:
            self.api.post(f"/api/v1/namespaces/{namespace}/pods", one)
        for namespace, one in wanted:
            wait_for("the pod runs", 60, lambda: is_ready(self.api.get(f"/api/v1/namespaces/{namespace}/pods/{one['metadata']['name']}")))
        file = folder / "policies.yaml"
        file.write_text("\n---\n".join([*policies("slurm"), *policies("slurm-bridge", "--set", "trustAnnotations=own,nodePolicy.mode=Deny")]))
        kubectl(cluster, "apply", "-f", file)
        self.addresses = {name: self.api.get(f"/api/v1/namespaces/{HOME}/pods/{name}")["status"]["podIP"] for name in SERVERS}

    def reached(self) -> dict[str, set[str]]:
        """What each client connects to."""
        tries = [f"nc -w 2 {self.addresses[name]} {number} < /dev/null > /dev/null 2>&1 && echo {port}"
                 for name, (_, ports) in SERVERS.items() for port, number in ports.items()]
        return {client: set(kubectl(self.cluster, "-n", namespace, "exec", client, "--", "sh", "-c", "; ".join([*tries, "true"])).split())
                for client, (namespace, _, _) in CLIENTS.items()}


@pytest.fixture(scope="module")
def net(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    made = Net(cluster, tmp_path_factory.mktemp("policies"))
    try:
        yield made
    finally:
        for namespace in (HOME, ELSEWHERE):
            made.api.delete(f"/api/v1/namespaces/{namespace}")


def test_only_those_whom_a_policy_names_reach_slurm_and_our_ports(net: Net) -> None:
    wait_for("without a controller everybody reaches everything", 30, lambda: net.reached() == dict.fromkeys(CLIENTS, EVERYTHING))
    ensure_program("kube-router")
    net.cluster.start("kube-router", [bin_dir() / "kube-router", "--kubeconfig", net.cluster.admin_config, "--node", NODE,
                                      "--service-cidr", net.cluster.service_range])
    last: dict[str, set[str]] = {}

    def is_enforced() -> bool:
        last.update(net.reached())
        return last == {client: reach for client, (_, _, reach) in CLIENTS.items()}
    try:
        wait_for("each reaches what the policies let it reach", 60, is_enforced, every=1,
                 hint=lambda: json.dumps({client: sorted(reach) for client, reach in last.items()}))
    finally:
        supervisor.ask(net.cluster.folder, {"do": "remove", "name": "kube-router"})
    wait_for("it leaves nothing behind", 30, lambda: net.reached() == dict.fromkeys(CLIENTS, EVERYTHING))
