"""Fixtures of the end-to-end tests: one real cluster with Slurm, shared; what the machine looked like before it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "dev"))
from slincdev import up as life  # noqa: E402
from slincdev.cluster import Cluster, find  # noqa: E402
from slincdev.kube import ApiError  # noqa: E402
from slincdev.slurm import Slurm  # noqa: E402

NAME = "e2e"


def machine_state() -> dict[str, set[str]]:
    """All that a cluster could leave behind on the machine."""
    def lines(*argv: str) -> set[str]:
        return set(subprocess.run(argv, text=True, capture_output=True).stdout.splitlines())

    processes = set()
    for stat in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = stat.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if any(word in command for word in ("kube", "etcd", "containerd", "slurm", "coredns", "kwok", "/pause")) and "pytest" not in command:
            processes.add(f"{stat.parent.name} {command[:80]}")
    return {
        "processes": processes,
        "mounts": {line for line in Path("/proc/self/mounts").read_text().splitlines() if "slinc" in line or "kubelet" in line},
        "interfaces": {link["ifname"] for link in json.loads("".join(lines("ip", "-j", "link")))},
        "routes": lines("ip", "route"),
        "nft tables": lines("nft", "list", "tables"),
        "namespaces": lines("ip", "netns", "list"),
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").glob("**/slinc-*")},
        "files": {str(path) for pattern in ("/var/lib/slinc/*", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/run/containerd")
                  for path in Path("/").glob(pattern[1:])},
        "settings": {Path(f"/proc/sys/{name}").read_text() for name in ("vm/overcommit_memory", "kernel/panic", "net/ipv4/ip_forward")},
    }


@pytest.fixture(scope="session")
def machine_before() -> dict[str, set[str]]:
    left_over = find(NAME)
    if left_over:
        life.down(NAME)
    return machine_state()


@pytest.fixture(scope="session")
def cluster(machine_before: dict) -> Iterator[Cluster]:
    yield life.up(NAME, node_count=3, with_parts=["slurm"])
    if find(NAME):
        life.down(NAME)


@pytest.fixture(scope="session")
def slurm(cluster: Cluster) -> Slurm:
    return Slurm(cluster)


@pytest.fixture
def eventually() -> Callable:
    """Polls a check until it gives something true; a failed expectation names what it waited for."""
    def wait(what: str, check: Callable[[], object], seconds: float = 60) -> object:
        end = time.monotonic() + seconds
        last: object = None
        while time.monotonic() < end:
            try:
                last = check()
            except (ApiError, OSError) as error:
                last = error
            else:
                if last:
                    return last
            time.sleep(0.1)
        pytest.fail(f"{what}: not after {seconds:g} s; last seen: {last!r}")
    return wait
