"""What a person types: wrong input gets one clear line, and a cluster goes without a trace."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest
from conftest import REPO, machine_state
from slincdev import cluster as clusters, up as life
from slincdev.common import state_root


def dev_cluster(*words: str, user: str | None = None, **environment: str) -> subprocess.CompletedProcess:
    command = [str(REPO / "dev/cluster"), *words]
    if user:
        command = ["setpriv", "--reuid", user, "--clear-groups", "--", *command]
    return subprocess.run(command, text=True, capture_output=True, env=dict(os.environ) | environment, timeout=120)


def error_of(done: subprocess.CompletedProcess) -> str:
    assert done.returncode == 1, done
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    return lines[0]


WRONG = [
    (["up", "--with", "nonsense"], "WITH=nonsense: there is no such part; known: accounting, certmanager, jobset, lws, podgroup, slurm, wide"),
    (["up", "--name", "Not Good"], "'Not Good' cannot be a cluster's name"),
    (["up", "--nodes", "-3"], "NODES=-3 is not between 0 and 20000"),
    (["up", "--name", "far", "--slot", "999"], "SLOT=999 is not between"),
    (["kubectl", "--name", "nobody-home", "get", "pods"], "no cluster 'nobody-home' is up"),
    (["logs", "--name", "nobody-home", "etcd"], "no cluster 'nobody-home' is up"),
]


def test_wrong_input_gets_one_clear_line(cluster):
    for words, expected in WRONG:
        assert expected in error_of(dev_cluster(*words))
    assert "make up needs 9999999 GB free" in error_of(dev_cluster("up", "--name", "big", SLINC_NEED_GB="9999999"))
    assert f"(SLOT={cluster.slot}) is in use: cluster '{cluster.name}' has it" in \
        error_of(dev_cluster("up", "--name", f"{cluster.name}-second", "--slot", str(cluster.slot)))
    assert clusters.find(f"{cluster.name}-second") is None


def test_a_route_of_the_machine_is_not_taken(cluster):
    slot = clusters.free_slot(clusters.SLOTS - 1)  # which nobody gets who does not ask for it
    network = f"10.{clusters.FIRST_NET + slot}.7.0/24"
    subprocess.run(["ip", "route", "add", "blackhole", network], check=True)
    try:
        assert "this machine has a route there" in error_of(dev_cluster("up", "--name", f"{cluster.name}-second", "--slot", str(slot)))
    finally:
        subprocess.run(["ip", "route", "del", "blackhole", network], check=True)


def test_somebody_without_root_is_told(tmp_path):
    tmp_path.chmod(0o755)
    done = dev_cluster("up", user="65534", HOME=str(tmp_path), SLINC_CACHE=str(tmp_path), SLINC_STATE=str(tmp_path / "state"))
    if "Permission denied" in done.stderr:
        pytest.skip("this checkout cannot be read by other users")
    assert "needs root" in error_of(done)


def test_status_names_what_runs_and_down_of_nothing_is_quiet(cluster):
    shown = dev_cluster("status").stdout
    assert cluster.name in shown and "kube-apiserver" in shown and "nodes Ready" in shown
    done = dev_cluster("down", "--name", "never-was")
    assert (done.returncode, done.stdout) == (0, "no cluster 'never-was'\n")


def test_two_clusters_side_by_side_and_a_crash(cluster, eventually):
    """A second cluster does not touch the first; killed without warning, it is cleared away by the next up."""
    two = f"{cluster.name}-two"
    other = life.up(two)
    try:
        assert other.network != cluster.network
        assert len(other.api().get("/api/v1/nodes")["items"]) == 1
        assert len(cluster.api().get("/api/v1/nodes")["items"]) > 1
        os.kill(other.pid, signal.SIGKILL)
        eventually("it is dead", lambda: not other.is_alive())
        assert "dead (make down clears it)" in dev_cluster("status").stdout
        again = life.up(two)
        assert again.is_alive() and again.pid != other.pid
    finally:
        life.down(two)
    left = machine_state(two, other.slot)
    assert not any(left[kind] for kind in ("processes", "mounts", "interfaces", "routes", "cgroups")), left
    assert not list(state_root().glob(f"*{two}*"))
    assert cluster.is_alive()


@pytest.mark.last
def test_down_leaves_nothing_behind(cluster, machine_before):
    """It ends the shared cluster."""
    during = machine_state(cluster.name, cluster.slot)
    for kind in ("processes", "interfaces", "routes", "cgroups", "files"):
        assert during[kind] - machine_before[kind], f"the check for {kind} sees nothing while the cluster is up"
    life.down(cluster.name)
    after = machine_state(cluster.name, cluster.slot)
    left = {kind: found - machine_before[kind] for kind, found in after.items() if found - machine_before[kind]}
    assert not left, f"left behind: {left}"
