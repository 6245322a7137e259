"""The cluster's Slurm from the host: tokens and REST calls, for the demo, tests and benches."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import time
from collections.abc import Callable
from threading import local
from urllib.parse import quote

from .cluster import Cluster
from .common import PATIENCE, Fail, versions
from .kube import ApiError

API = {"25.11": "v0.0.44"}.get(versions()["SLURM_VERSION"], "v0.0.45")


def with_token(command: Callable[[], str]) -> str:
    """Of a login node. While sackd takes a new slurm.conf a command gets no token and asks Slurm nothing, so it is run again."""
    end = time.monotonic() + 30 * PATIENCE
    while True:
        try:
            return command()
        except Fail as fail:
            if "failed to create token" not in str(fail) or time.monotonic() > end:
                raise
            time.sleep(0.5)


class SlurmError(Exception):
    """slurmrestd answered with an error, whatever the HTTP status was."""

    def __init__(self, status: int, errors: list[dict]) -> None:
        first = errors[0] if errors else {}
        words = [first[key] for key in ("description", "error") if first.get(key)]
        super().__init__(f"{status}: {': '.join(words) or 'no reason given'} ({first.get('error_number', 0)})")
        self.status, self.number = status, first.get("error_number", 0)


def _segment(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class Slurm:
    """Calls to slurmrestd through its Service, as SlurmUser. Each thread has its own connection."""

    def __init__(self, cluster: Cluster, namespace: str = "slurm", secret: str = "slurm-auth") -> None:
        try:
            secret = cluster.api().get(f"/api/v1/namespaces/{namespace}/secrets/{secret}")
            service = cluster.api().get(f"/api/v1/namespaces/{namespace}/services/slurm-restapi")
        except ApiError:
            raise Fail(f"no Slurm in cluster '{cluster.name}': make up WITH=slurm NAME={cluster.name}") from None
        self.key = base64.b64decode(secret["data"]["jwt.key"])
        self.host, self.port = service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"]
        self.mine = local()

    def token(self, user: str = "slurm", seconds: int = 3600, claim: str = "sun") -> str:
        now = int(time.time())
        head = _segment(b'{"alg":"HS256","typ":"JWT"}')
        body = _segment(json.dumps({"iat": now, "exp": now + seconds, claim: user}).encode())
        return f"{head}.{body}." + _segment(hmac.new(self.key, f"{head}.{body}".encode(), hashlib.sha256).digest())

    def call(self, method: str, path: str, body: object = None) -> dict:
        """One call; never repeated by itself, since a submit that was sent may have happened."""
        if not hasattr(self.mine, "token"):
            self.mine.token = self.token(seconds=6 * 3600)  # outlasts all tests
            self.mine.connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        headers = {"X-SLURM-USER-TOKEN": self.mine.token, "X-SLURM-USER-NAME": "slurm", "Content-Type": "application/json"}
        try:
            self.mine.connection.request(method, path.replace("{api}", API), None if body is None else json.dumps(body), headers)
            answer = self.mine.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self.mine.connection.close()
            raise
        try:
            parsed = json.loads(content or b"{}")
        except ValueError:
            raise SlurmError(answer.status, [{"description": content[:200].decode(errors="replace")}]) from None
        if answer.status >= 300 or parsed.get("errors"):
            raise SlurmError(answer.status, parsed.get("errors", []))
        return parsed

    def ping(self) -> list[dict]:
        return self.call("GET", "/slurm/{api}/ping/")["pings"]

    def create_nodes(self, names: str, cpus: int, memory_mib: int, feature: str = "slurm-bridge") -> None:
        """External nodes: known to Slurm, run by somebody else. Without NodeAddr each job start would ask the DNS."""
        self.call("POST", "/slurm/{api}/new/node/", {
            "node_conf": f"NodeName={names} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory_mib} Feature={feature} State=EXTERNAL"})

    def delete_node(self, name: str) -> None:
        """One node or a hostlist: slurmrestd answers 404 to a path with brackets that are not quoted."""
        self.call("DELETE", f"/slurm/{{api}}/node/{quote(name)}")

    def submit(self, name: str, cpus: int = 1, memory_mib: int = 1, partition: str = "slurm-bridge", **more) -> int:
        """An external job: Slurm allocates and keeps time, and starts nothing."""
        job = {"name": name, "partition": partition, "cpus_per_task": cpus, "tasks": 1, "memory_per_node": {"set": True, "number": memory_mib},
               "flags": ["EXTERNAL_JOB"], "current_working_directory": "/tmp", "environment": ["A=1"], **more}
        return self.call("POST", "/slurm/{api}/job/submit", {"job": job})["job_id"]

    def job(self, number: int) -> dict:
        return self.call("GET", f"/slurm/{{api}}/job/{number}")["jobs"][0]

    def cancel(self, number: int) -> None:
        self.call("DELETE", f"/slurm/{{api}}/job/{number}")
