"""A replica of a program of ours, as a process of this machine: it answers at a port of its own, and says whether it leads.

The programs are those of the sanitizer build ($SLINC_BUILD: of another folder)."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Self

from conftest import REPO
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, Fail
from waits import wait_for

BUILD = Path(os.environ.get("SLINC_BUILD", REPO / "build/asan"))
PROGRAM = BUILD / "src/cmd/slinc"
SANITIZERS = re.compile(r"ERROR: (Address|Leak|UndefinedBehavior)Sanitizer|runtime error:")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
HURRIED = 3  # its exit code when it could not hear what became of all that it asked for
ENDS_S = 40 * PATIENCE  # it promises to end within 30 s


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def debug_token(cluster: Cluster) -> str:
    """Of an account that may read /debug and nothing else, for the audience of our programs alone."""
    api, name = cluster.api(), "debug-reader"
    if not api.exists(f"/api/v1/namespaces/default/serviceaccounts/{name}"):
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        api.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
        api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [{"nonResourceURLs": ["/debug/*"], "verbs": ["get"]}]})
        api.post(f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": role,
                                                 "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]})
    return token_of(cluster, "default", name)


def token_of(cluster: Cluster, namespace: str, account: str, audience: str = "slinc.slurm.net") -> str:
    """Audience "": for the API server."""
    wish = {"spec": {"expirationSeconds": 600} | ({"audiences": [audience]} if audience else {})}
    return cluster.api().post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", wish)["status"]["token"]


def answer_of(host: str, port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, port, timeout=5 * PATIENCE)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


class Replica:
    lease: str  # by this name the replicas choose one

    def __init__(self) -> None:
        self.port = free_port()

    def ask(self, path: str, token: str = "") -> tuple[int, str]:
        return answer_of("127.0.0.1", self.port, path, **({"Authorization": f"Bearer {token}"} if token else {}))

    def debug(self, cluster: Cluster, path: str = "/debug/state") -> dict:
        """A page that needs a right."""
        status, text = self.ask(path, debug_token(cluster))
        assert status == 200, f"{path}: {status} {text}"
        return json.loads(text)

    def leads(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return f'leader_election_master_status{{name="{self.lease}"}} 1' in self.ask("/metrics")[1]
        return False


class Command(Replica):
    """A subcommand of slinc: started, looked at, ended in one way or another. Its log grows over restarts."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__()
        self.name, self.log = name, folder / f"{name}.log"
        self.process: subprocess.Popen | None = None

    def run(self, *words: object, **variables: str) -> Self:
        surroundings = os.environ | {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"} | variables
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([PROGRAM, *words], env=surroundings, stdout=log, stderr=log)
        return self

    def said(self) -> str:
        return self.log.read_text()

    def wait_until_it_leads(self) -> Self:
        wait_for(f"{self.name} leads", 40, lambda: self.leads() or self._check_alive(), hint=self.said)
        return self

    def _check_alive(self) -> bool:
        if self.process.poll() is not None:
            raise Fail(f"{self.name} has ended with {self.process.returncode}: {self.said()[-2000:]}")
        return False

    def stop(self, may_hurry: bool = False) -> None:
        """As Kubernetes does it. It ends in time, finishes what it does, and leaves nothing behind in memory."""
        if self.process is None:
            return
        process, self.process = self.process, None
        process.terminate()
        try:
            code = process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = f"no end within {ENDS_S} s"
        found = SANITIZERS.search(self.said())
        assert not found, self.said()[found.start():][:4000]
        assert code in ((0, HURRIED) if may_hurry else (0,)), f"{self.name} ended with {code}: {self.said()[-2000:]}"

    def kill(self) -> None:
        process, self.process = self.process, None
        process.kill()
        process.wait()
        assert not SANITIZERS.search(self.said()), self.said()[-4000:]

    def end(self) -> None:
        """After a test, whatever became of it."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
