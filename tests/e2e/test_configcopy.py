"""The engine on a real API server: the example controller copies, mends, and stops cleanly. How engines hand over and outlive
an API server: test_bridge_ha.py and test_bridge_faults.py."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from replica import BUILD, Replica
from slincdev.common import PATIENCE
from slincdev.kube import ApiError

PROGRAM = BUILD / "examples/configcopy/configcopy"
SOURCE, TARGETS = "copy-source", ("copy-a", "copy-b")
COPY, TARGET = {"configcopy.slinc.dev/copy": "true"}, {"configcopy.slinc.dev/target": "true"}


class Copier(Replica):
    """One running configcopy, with its log."""

    lease = "configcopy"

    def __init__(self, cluster, log: Path) -> None:
        super().__init__()
        self.log = log
        self.process = subprocess.Popen([PROGRAM, "--source-namespace", SOURCE, "--kubeconfig", cluster.admin_config, "--port", str(self.port)],
                                        stderr=open(log, "w"), stdout=subprocess.DEVNULL)

    def end(self) -> None:
        """Gently, so that the next one need not wait for the lease to run out."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def replica(cluster, tmp_path, namespaces) -> Iterator[Copier]:
    with started(cluster, tmp_path / "one.log") as one:
        yield one


@contextlib.contextmanager
def started(cluster, log: Path) -> Iterator[Copier]:
    one = Copier(cluster, log)
    try:
        yield one
    finally:
        one.end()
        assert "Sanitizer" not in log.read_text(), log.read_text()[-3000:]


@pytest.fixture(scope="module")
def namespaces(cluster):
    api = cluster.api()
    api.post("/api/v1/namespaces", {"metadata": {"name": SOURCE}})
    for name in TARGETS:
        api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": TARGET}})
    yield
    for name in (SOURCE, *TARGETS):
        api.delete(f"/api/v1/namespaces/{name}")


def put_source(cluster, name: str, **data: str) -> None:
    cluster.api().post(f"/api/v1/namespaces/{SOURCE}/configmaps", {"metadata": {"name": name, "labels": COPY}, "data": data})


def copy_of(cluster, name: str, ns: str = TARGETS[0]) -> dict | None:
    try:
        return cluster.api().get(f"/api/v1/namespaces/{ns}/configmaps/{name}").get("data", {})
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def test_a_configmap_is_copied_kept_equal_and_taken_away(cluster, replica, eventually):
    api = cluster.api()
    api.post(f"/api/v1/namespaces/{TARGETS[0]}/configmaps", {"metadata": {"name": "theirs"}, "data": {"mine": "yes"}})
    put_source(cluster, "theirs", text="ours")
    put_source(cluster, "motd", text="hello")
    for ns in TARGETS:
        eventually(f"{ns} has the copy", lambda: copy_of(cluster, "motd", ns) == {"text": "hello"})
    api.merge(f"/api/v1/namespaces/{SOURCE}/configmaps/motd", {"data": {"text": "goodbye", "more": "1"}})
    eventually("the copy follows its source", lambda: copy_of(cluster, "motd") == {"text": "goodbye", "more": "1"})
    api.merge(f"/api/v1/namespaces/{TARGETS[0]}/configmaps/motd", {"data": {"text": "spoiled"}})
    eventually("a spoiled copy is mended", lambda: copy_of(cluster, "motd") == {"text": "goodbye", "more": "1"})
    eventually("the other namespace has its copy", lambda: copy_of(cluster, "theirs", TARGETS[1]) == {"text": "ours"})
    eventually("it says which one is not its own", lambda: f"namespace {TARGETS[0]} has one of its own" in json.dumps(replica.debug(cluster)))
    for name in ("motd", "theirs"):
        api.delete(f"/api/v1/namespaces/{SOURCE}/configmaps/{name}")
    for name, ns in (("motd", TARGETS[0]), ("motd", TARGETS[1]), ("theirs", TARGETS[1])):
        eventually(f"the copy in {ns} goes with its source", lambda: copy_of(cluster, name, ns) is None)
    assert copy_of(cluster, "theirs") == {"mine": "yes"}, "what is not ours stays as it is"


def test_it_is_measured_and_a_clean_stop_gives_the_lease_back(cluster, replica, eventually):
    def holder() -> str:
        return cluster.api().get("/apis/coordination.k8s.io/v1/namespaces/default/leases/configcopy")["spec"].get("holderIdentity", "")

    eventually("it is ready", lambda: replica.ask("/readyz")[0] == 200)
    assert replica.ask("/healthz")[0] == 200
    put_source(cluster, "measured", text="1")
    eventually("it has planned", lambda: copy_of(cluster, "measured"))
    # A key is counted when its work has ended, a moment after its effect.
    eventually("that is counted", lambda: "# TYPE controller_runtime_reconcile_total " in replica.ask("/metrics")[1])
    metrics = replica.ask("/metrics")[1]
    for family in ("controller_runtime_reconcile_total", "workqueue_depth", "rest_client_requests_total", "leader_election_master_status",
                   "process_resident_memory_bytes", "slinc_cache_objects"):
        assert f"# TYPE {family} " in metrics, family
    assert replica.ask("/debug/state")[0] == 401 and replica.debug(cluster)
    assert replica.leads() and holder()
    replica.process.send_signal(signal.SIGTERM)
    assert replica.process.wait(30 * PATIENCE) == 0  # not by its own deadline
    assert holder() == ""
