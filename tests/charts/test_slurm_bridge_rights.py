"""The rights that the chart gives are those that the program uses: no call without a right, no right without a call.

The calls are recorded. Of the bridge, and of the process that gives everything back, by the simulator, where answers get lost and all
kinds of workload come and go; of the webhook alone at a server that answers with nothing. How many seeds suffice: the set is full after 80 seeds (the claim of a
pod that waits again is rare), and was no larger at 150. tests/e2e/test_bridge_chart.py looks at a real server's audit log beside that."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BUILD, REPO, EmptyServer, render
from slincdev.rights import GIVEN_TO_ALL, Right, right_for, rights_given

CHART = REPO / "charts/slurm-bridge"
SEEDS = 100
HOME = EmptyServer.home  # the simulated bridge's own namespace
# Kinds that must be asked for, so that they come last.
ASKED_FOR = {Right("list", group, plural, "cluster", "") for group, plural in (
    ("jobset.x-k8s.io", "jobsets"), ("leaderworkerset.x-k8s.io", "leaderworkersets"), ("scheduling.k8s.io", "podgroups"),
    ("scheduling.k8s.io", "workloads"), ("scheduling.x-k8s.io", "podgroups"))}
ACCOUNTS = {"scheduler": "slurm-bridge-scheduler", "uninstall": "slurm-bridge-uninstall", "admission": "slurm-bridge-admission"}
DEBUG = "slurm-bridge-scheduler-debug"  # for people


@pytest.fixture(scope="module")
def given() -> dict[str, set[Right]]:
    rights = rights_given(render(CHART, "--set", "admission.separate=true"))
    keys = rights.pop("slurm-bridge-keys")  # of the hook before an install: what keys_ensure does, as in the chart slurm
    assert {(right.verb, right.resource) for right in keys} == {("get", "secrets"), ("patch", "secrets"), ("create", "secrets")}
    assert rights.keys() == {*ACCOUNTS.values(), DEBUG}
    return rights


def simulated(folder: Path) -> Iterator[tuple[str, Right | None]]:
    """Who called what. Whether promises held is asked by others."""
    for scenario in ("bridge", "leaving"):
        file = folder / scenario
        subprocess.run([BUILD / "tests/sim/sim", "--scenario", scenario, "--seeds", f"0:{SEEDS}", "--calls", file], capture_output=True, timeout=300)
        for line in file.read_text().splitlines():
            user, method, path = line.split()
            yield "uninstall" if user == "replica-leaving" else "scheduler", right_for(method, path, HOME)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Right]]:
    found: dict[str, set[Right]] = {"scheduler": set(), "uninstall": set()}
    for account, right in simulated(tmp_path_factory.mktemp("calls")):
        if right:
            found[account].add(right)
    for rights in found.values():  # whoever writes an allocation needs this, too; nobody calls it
        rights |= {right._replace(resource="resourceclaims/binding") for right in rights if right.resource == "resourceclaims/status"}
    return found


@pytest.mark.parametrize("account", ["scheduler", "uninstall"])
def test_the_bridge_has_the_rights_that_it_uses(account: str, given: dict[str, set[Right]], used: dict[str, set[Right]]) -> None:
    assert sorted(used[account] - given[ACCOUNTS[account]]) == [], "calls without a right"
    assert sorted(given[ACCOUNTS[account]] - used[account]) == [], "rights without a call"


@pytest.fixture
def webhook(server: EmptyServer, tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Alone, and without a certificate: it looks around all the same."""
    known, config = server.kubeconfig(tmp_path), tmp_path / "config.yaml"
    config.write_text("schedulerName: slurm-bridge-scheduler\n")
    process = subprocess.Popen([BUILD / "src/cmd/slinc", "bridge", "--roles=webhook", "--config", config, "--kubeconfig", known, "--metrics-bind-address=0",
                                "--health-probe-bind-address=0", "--webhook-cert-dir", tmp_path / "none"], stderr=subprocess.DEVNULL)
    yield process
    process.terminate()
    assert process.wait(30) == 0


def is_at_rest(used: set[Right]) -> bool:
    """It has asked who it is, and watches all that it has listed."""
    return GIVEN_TO_ALL <= used and ASKED_FOR <= used and all(right._replace(verb="watch") in used for right in used if right.verb == "list")


def test_the_webhook_alone_has_the_rights_that_it_uses(given: dict[str, set[Right]], server: EmptyServer, webhook: subprocess.Popen) -> None:
    wanted = given[ACCOUNTS["admission"]] | GIVEN_TO_ALL
    until = time.monotonic() + 60
    while not is_at_rest(set(server.used)) and time.monotonic() < until and webhook.poll() is None:
        time.sleep(0.05)
    assert sorted(server.used - wanted) == [], "calls without a right"
    assert sorted(wanted - server.used) == [], "rights without a call"
