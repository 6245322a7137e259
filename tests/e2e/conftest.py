"""Fixtures of the end-to-end tests: one real cluster with Slurm, shared; what the machine looked like before it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "dev"), str(REPO / "tests")]
os.environ.setdefault("SLINC_PATIENCE", "3")  # here, and in the commands that tests run
from slincdev import up as life  # noqa: E402
from slincdev.cluster import Cluster, find, free_slot  # noqa: E402
from slincdev.common import Fail  # noqa: E402
from slincdev.slurm import Slurm  # noqa: E402
from tools.pytest_plugin import order_by_marks  # noqa: E402
from waits import PASSING, stop_waiting, wait_for  # noqa: E402

NAME = os.environ.get("SLINC_E2E_NAME", "e2e")  # with another name, a second run has a cluster of its own beside this one


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order_by_marks(items)
    if "soak" not in config.getoption("-m"):
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_keyboard_interrupt() -> None:
    """Ctrl-C: all that is left to do is to take the cluster down, whatever the open test still had to see."""
    stop_waiting()


def _lines(*argv: str) -> set[str]:
    return set(subprocess.run(argv, text=True, capture_output=True).stdout.splitlines())


def _processes_of(name: str) -> set[str]:
    """The cluster's programs name its folder on their command lines; its pods live below its control group."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            groups = (folder / "cgroup").read_text()
        except OSError:
            continue
        if f"/slinc/{name}" in command and "pytest" not in command or f"/slinc-{name}/" in groups:
            found.add(f"{folder.name} {command[:80]}")
    return found


def machine_state(name: str, slot: int) -> dict[str, set[str]]:
    """All that this cluster could leave behind on the machine; other clusters may come and go meanwhile."""
    network = Cluster(name, slot).network
    return {
        "processes": _processes_of(name),
        "mounts": {line for line in Path("/proc/self/mounts").read_text().splitlines() if f"/slinc/{name}" in line or "kubelet" in line},
        "interfaces": {link["ifname"] for link in json.loads("".join(_lines("ip", "-j", "link")))} & {Cluster(name, slot).interface},
        "routes": {line for line in _lines("ip", "route") if line.startswith(f"{network}.")},
        "nft tables": _lines("nft", "list", "tables"),
        "namespaces": _lines("ip", "netns", "list"),
        "cgroups": {str(path) for pattern in (f"slinc-{name}", f"*/slinc-{name}") for path in Path("/sys/fs/cgroup").glob(pattern)},
        "files": {str(path) for pattern in (f"/var/lib/slinc/{name}*", f"/var/lib/slinc/.{name}*", "/var/lib/kubelet", "/var/lib/cni",
                                            "/var/log/pods", "/run/containerd") for path in Path("/").glob(pattern[1:])},
        "settings": {f"{setting} {Path('/proc/sys', setting).read_text()}" for setting in ("vm/overcommit_memory", "kernel/panic",
                                                                                          "net/ipv4/ip_forward")},
    }


@pytest.fixture(scope="session")
def machine_before() -> dict[str, set[str]]:
    if find(NAME):
        life.down(NAME)
    return machine_state(NAME, free_slot())


def keep_logs(cluster: Cluster, started_here: Path) -> None:
    """The logs of the cluster's programs and of those that tests started, beside those of the tests that failed."""
    if "SLINC_TEST_LOGS" not in os.environ:
        return
    folder = Path(os.environ["SLINC_TEST_LOGS"])
    if (cluster.folder / "logs").exists():
        shutil.copytree(cluster.folder / "logs", folder / "cluster", symlinks=True, dirs_exist_ok=True)
    (folder / "programs").mkdir(parents=True, exist_ok=True)
    for log in started_here.rglob("*.log"):
        shutil.copy(log, folder / "programs" / f"{log.parent.name}-{log.name}")


@pytest.fixture(scope="session")
def cluster(machine_before: dict, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    up = life.up(NAME, node_count=3, with_parts=["slurm"])
    yield up
    if request.session.testsfailed:
        keep_logs(up, tmp_path_factory.getbasetemp())
    if find(NAME):
        life.down(NAME)


@pytest.fixture(scope="session")
def slurm(cluster: Cluster) -> Slurm:
    return Slurm(cluster)


@pytest.fixture
def placed(site, eventually) -> Callable:
    """Makes a pod at the module's site and waits until it has a place."""
    def make(name: str, *command: str, **options) -> dict:
        site.make(name, *command, **options)
        return eventually(f"{name} is placed", lambda: site.placed(name))
    return make


@pytest.fixture
def eventually() -> Callable:
    """wait_for, with the limit last; a program that fails is asked again, too."""
    def wait(what: str, check: Callable[[], object], calm_s: float = 60) -> object:
        return wait_for(what, calm_s, check, forgiven=(*PASSING, Fail))
    return wait
