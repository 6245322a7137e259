"""The release build as a process of this machine: what it says of itself, and what it costs."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
from pathlib import Path

from slincdev.common import REPO, wait_for

PROGRAM = REPO / "build/plain/src/cmd/slinc"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Daemon:
    """A subcommand that chooses a leader and serves metrics at its port."""

    program = PROGRAM  # a bench against another commit runs the program of that commit, too

    def __init__(self, folder: Path) -> None:
        self.port, self.log = free_port(), folder / "log"

    def run(self, *words: object) -> None:
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([self.program, *words], stderr=log)
        wait_for(f"slinc {words[0]} leads", 40, lambda: self.metric("leader_election_master_status") == 1, hint=lambda: self.log.read_text()[-2000:])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(40)

    def metrics(self) -> str:
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()
        return ""

    def metric(self, name: str, *parts: str) -> float:
        """The sum over series whose labels hold all the parts."""
        found = re.findall(rf"^{name}(\{{[^}}]*\}})? (\S+)$", self.metrics(), re.M)
        return sum(float(value) for labels, value in found if all(part in labels for part in parts))

    def kube_writes(self) -> float:
        return sum(self.metric("rest_client_requests_total", f'method="{method}"') for method in ("POST", "PATCH", "PUT", "DELETE"))

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
