"""What a person types at a terminal: the commands of slinc, with the rights of an administrator or of somebody with a role in one namespace."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from replica import PROGRAM
from slincdev import parts
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE


def slinc(kubeconfig: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *words, "--kubeconfig", kubeconfig], text=True, capture_output=True, timeout=30 * PATIENCE)


def config_of(cluster: Cluster, folder: Path, namespace: str, account: str = "default") -> Path:
    """A kubeconfig for this service account: it may do what is bound to it, and no more."""
    token = parts.kubectl(cluster, "-n", namespace, "create", "token", account).strip()
    given = json.loads(Path(cluster.admin_config).read_text())
    given["users"][0]["user"] = {"token": token}
    config = folder / f"{namespace}-{account}.kubeconfig"
    config.write_text(json.dumps(given))
    return config


class Terminal:
    """Somebody who types; what is answered is kept for the failed test's hint."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig, self.said = kubeconfig, ""
        self.seconds = 0.0  # that the last command took

    def run(self, *words: str, code: int = 0) -> str:
        begun = time.monotonic()
        done = slinc(self.kubeconfig, *words)
        self.seconds = time.monotonic() - begun
        self.said = f"$ slinc {' '.join(words)}\n{done.stdout}{done.stderr}"
        print(self.said, f"({self.seconds:.2f} s)")
        assert done.returncode == code, self.said
        return done.stdout if code in (0, 6, 10, 11, 12) else done.stderr

    def json(self, *words: str, code: int = 0) -> dict:
        return json.loads(self.run(*words, "-o", "json", code=code))
