"""The rights that the chart gives are those that the program uses: no call without a right, no right without a call.

The calls are recorded. Of the bridge, and of the process that gives everything back, by the simulator, where answers get lost and all
kinds of workload come and go; of the webhook alone at a server that answers with nothing. How many seeds suffice: the set is full at a
third of SEEDS, and was no larger at 150. tests/e2e/test_bridge_chart.py looks at a real server's audit log beside that."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BUILD, REPO, render
from slincdev.rights import GIVEN_TO_ALL, Right, right_for, rights_given

CHART = REPO / "charts/slurm-bridge"
SEEDS = 42
HOME = "slinc"  # the simulated bridge's own namespace
JOBSETS = Right("list", "jobset.x-k8s.io", "jobsets", "cluster", "")
ACCOUNTS = {"scheduler": "slurm-bridge-scheduler", "uninstall": "slurm-bridge-uninstall", "admission": "slurm-bridge-admission"}


@pytest.fixture(scope="module")
def given() -> dict[str, set[Right]]:
    rights = rights_given(render(CHART, "--set", "admission.separate=true"))
    assert rights.keys() == set(ACCOUNTS.values())
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
    return found


@pytest.mark.parametrize("account", ["scheduler", "uninstall"])
def test_the_bridge_has_the_rights_that_it_uses(account: str, given: dict[str, set[Right]], used: dict[str, set[Right]]) -> None:
    assert sorted(used[account] - given[ACCOUNTS[account]]) == [], "calls without a right"
    assert sorted(given[ACCOUNTS[account]] - used[account]) == [], "rights without a call"


class EmptyServer(http.server.ThreadingHTTPServer):
    """An API server that has every kind and no objects, and notes what it is asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.used: set[Right] = set()
        self.over = threading.Event()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EmptyServer

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        is_watch = "watch=true" in query.split("&")
        right = right_for("WATCH" if is_watch else self.command, path, HOME)
        if right:
            self.server.used.add(right)
        body = {"metadata": {"resourceVersion": "1"}, "items": [], "resources": [{"name": "jobsets"}], "status": {"userInfo": {"username": "us"}}}
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header(*(("Transfer-Encoding", "chunked") if is_watch else ("Content-Length", str(len(text)))))
        self.end_headers()
        if is_watch:
            self.server.over.wait()  # nothing happens
            self.close_connection = True
        else:
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[EmptyServer]:
    with EmptyServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.over.set()
        server.shutdown()


@pytest.fixture
def webhook(server: EmptyServer, tmp_path: Path) -> Iterator[subprocess.Popen]:
    """Alone, and without a certificate: it looks around all the same."""
    known, config = tmp_path / "kubeconfig", tmp_path / "config.yaml"
    known.write_text(json.dumps({"clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}], "users": [{"name": "u", "user": {}}],
                                 "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}))
    config.write_text("schedulerName: slurm-bridge-scheduler\n")
    process = subprocess.Popen([BUILD / "src/cmd/slinc", "bridge", "--roles=webhook", "--config", config, "--kubeconfig", known, "--metrics-bind-address=0",
                                "--health-probe-bind-address=0", "--webhook-cert-dir", tmp_path / "none"], stderr=subprocess.DEVNULL)
    yield process
    process.terminate()
    assert process.wait(30) == 0


def is_at_rest(used: set[Right]) -> bool:
    """It has asked who it is, and watches all that it has listed; JobSets come last, for their kind must be asked for."""
    return GIVEN_TO_ALL <= used and JOBSETS in used and all(right._replace(verb="watch") in used for right in used if right.verb == "list")


def test_the_webhook_alone_has_the_rights_that_it_uses(given: dict[str, set[Right]], server: EmptyServer, webhook: subprocess.Popen) -> None:
    wanted = given[ACCOUNTS["admission"]] | GIVEN_TO_ALL
    until = time.monotonic() + 60
    while not is_at_rest(set(server.used)) and time.monotonic() < until and webhook.poll() is None:
        time.sleep(0.05)
    assert sorted(server.used - wanted) == [], "calls without a right"
    assert sorted(wanted - server.used) == [], "rights without a call"
