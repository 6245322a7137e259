"""A cluster by name: its folder, its addresses, its real nodes, and whether it is alive."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import secrets
import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import supervisor
from .common import PATIENCE, Fail, run, state_root
from .kube import Api

FIRST_NET, SLOTS = 128, 64  # cluster networks are 10.128.0.0/16 to 10.191.0.0/16
MAX_REAL = 2


class Namespaces:
    """A process 1, the namespaces it owns, and the programs it keeps running in them."""

    folder: Path
    pid: int  # seen from the host
    birth: str

    def is_alive(self) -> bool:
        return self.pid > 0 and supervisor.process_birth(self.pid) == self.birth

    def inside(self, argv: list[object], **options) -> str:
        """Runs a command in the namespaces."""
        return run(["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "-u", "-i", "--", *map(str, argv)], **options)

    def programs(self) -> list[dict]:
        return supervisor.ask(self.folder, {"do": "list"})["programs"]

    def start(self, name: str, argv: list[object]) -> None:
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "GOGC": "100"}
        supervisor.ask(self.folder, {"do": "start", "name": name, "argv": [str(a) for a in argv], "environment": environment})


@dataclass
class Cluster(Namespaces):
    """What is remembered in <folder>/cluster.json."""

    name: str
    slot: int
    pid: int = 0
    birth: str = ""
    second_pid: int = 0  # process 1 of the second real node; 0: there is none
    second_birth: str = ""
    parts: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return state_root() / self.name

    @property
    def network(self) -> str:
        return f"10.{FIRST_NET + self.slot}"

    @property
    def host_ip(self) -> str:
        return f"{self.network}.0.1"

    @property
    def node_ip(self) -> str:
        return f"{self.network}.0.2"

    @property
    def pod_range(self) -> str:
        return f"{self.network}.64.0/18"

    @property
    def service_range(self) -> str:
        return f"{self.network}.128.0/17"

    @property
    def dns_ip(self) -> str:
        return f"{self.network}.128.10"

    @property
    def slurmctld_ip(self) -> str:
        return f"{self.network}.128.17"

    @property
    def interface(self) -> str:
        return f"slinc{self.slot}"

    @property
    def cgroup(self) -> str:
        return f"slinc-{self.name}"

    @property
    def admin_config(self) -> Path:
        return self.folder / "admin.kubeconfig"

    @property
    def shared(self) -> Path:
        """A folder that pods on every real node reach as a hostPath: the volume that many may write."""
        return self.folder / "shared"

    def nodes(self) -> list[Node]:
        """The real ones."""
        return [Node(self, index) for index in range(2 if self.second_pid else 1)]

    def api(self) -> Api:
        return Api.of(self.admin_config)

    def token(self, user: str) -> str:
        """A random bearer token per user, made on first use."""
        return self.tokens.setdefault(user, secrets.token_hex(24))

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = self.folder / "cluster.json.part"
        with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(self), file, indent=1)
        scratch.replace(self.folder / "cluster.json")


@dataclass
class Node(Namespaces):
    """A kubelet and a containerd. The first node lives in the cluster's namespaces; the second one's are inside the cluster's
    process namespace, so it ends with the cluster, and its link leads to the first node."""

    cluster: Cluster
    index: int

    @property
    def name(self) -> str:
        return f"node-{self.index}"

    @property
    def folder(self) -> Path:
        return self.cluster.folder / self.name if self.index else self.cluster.folder

    @property
    def pid(self) -> int:
        return self.cluster.second_pid if self.index else self.cluster.pid

    @property
    def birth(self) -> str:
        return self.cluster.second_birth if self.index else self.cluster.birth

    @property
    def ip(self) -> str:
        return f"{self.cluster.network}.0.6" if self.index else self.cluster.node_ip

    @property
    def gateway(self) -> str:
        return f"{self.cluster.network}.0.5" if self.index else self.cluster.host_ip

    @property
    def pod_range(self) -> str:
        return f"{self.cluster.network}.32.0/19" if self.index else self.cluster.pod_range

    @property
    def cgroup(self) -> str:
        return f"{self.cluster.cgroup}/{self.name}" if self.index else self.cluster.cgroup


def check_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?", name):
        raise Fail(f"'{name}' cannot be a cluster's name: up to 20 lower-case letters, digits and dashes")
    return name


def find(name: str) -> Cluster | None:
    try:
        return Cluster(**json.loads((state_root() / check_name(name) / "cluster.json").read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise Fail(f"{state_root() / name}/cluster.json cannot be read ({error}); 'make down NAME={name}' clears it") from None


def find_alive(name: str) -> Cluster:
    cluster = find(name)
    if not cluster or not cluster.is_alive():
        raise Fail(f"no cluster '{name}' is up; 'make up NAME={name}' starts it")
    return cluster


def all_clusters() -> list[Cluster]:
    found = (find(path.parent.name) for path in sorted(state_root().glob("*/cluster.json")))
    return [cluster for cluster in found if cluster]


def _routed_networks() -> list[ipaddress.IPv4Network]:
    routes = json.loads(run(["ip", "-j", "-4", "route", "show", "table", "all"]))
    taken = []
    for route in routes:
        destination = route.get("dst", "default")
        if destination != "default":
            taken.append(ipaddress.ip_network(destination, strict=False))
    return taken


def free_slot(wanted: int | None = None) -> int:
    """A network slot that no other cluster and no route of this machine uses."""
    held = {cluster.slot: cluster.name for cluster in all_clusters()}
    routed = _routed_networks()
    for slot in [wanted] if wanted is not None else range(SLOTS):
        if not 0 <= slot < SLOTS:
            raise Fail(f"SLOT={slot} is not between 0 and {SLOTS - 1}")
        network = ipaddress.ip_network(f"10.{FIRST_NET + slot}.0.0/16")
        if slot in held:
            problem = f"cluster '{held[slot]}' has it"
        elif any(network.overlaps(other) for other in routed):
            problem = "this machine has a route there"
        else:
            return slot
        if wanted is not None:
            raise Fail(f"network {network} (SLOT={slot}) is in use: {problem}")
    raise Fail(f"all {SLOTS} cluster networks (10.{FIRST_NET}.0.0/16 and up) are in use on this machine")


def end_process_one(place: Namespaces, what: str) -> None:
    """Ends a process 1, gently first; the kernel ends the rest."""
    for number, seconds in ((signal.SIGTERM, 25), (signal.SIGKILL, 10)):
        if not place.is_alive():
            return
        os.kill(place.pid, number)
        end = time.monotonic() + seconds * PATIENCE
        while place.is_alive() and time.monotonic() < end:
            time.sleep(0.05)
    if place.is_alive():
        raise Fail(f"process {place.pid} of {what} does not end")
