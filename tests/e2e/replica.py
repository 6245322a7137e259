"""A replica of a program of ours, as a process of this machine: it answers at a port of its own, and says whether it leads.

The programs are those of the sanitizer build ($SLINC_BUILD: of another folder)."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
from pathlib import Path

from conftest import REPO
from slincdev.common import PATIENCE

BUILD = Path(os.environ.get("SLINC_BUILD", REPO / "build/asan"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Replica:
    lease: str  # by this name the replicas choose one

    def __init__(self) -> None:
        self.port = free_port()

    def ask(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5 * PATIENCE)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def leads(self) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return f'leader_election_master_status{{name="{self.lease}"}} 1' in self.ask("/metrics")[1]
        return False
