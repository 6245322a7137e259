"""A small client for the cluster's API server, for set-up, tests and benches: JSON over one kept connection."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local

IDLE_S = 60  # the API server closes a connection that was silent for 90 s, and what changes something is not sent twice


class ApiError(Exception):
    """The API server refused; status and its own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """Calls as one user. Each thread has its own connection."""

    def __init__(self, host: str, port: int, ca: Path, token: str) -> None:
        self.host, self.port, self.token = host, port, token
        self.headers = {"Authorization": f"Bearer {token}"}
        self.context = ssl.create_default_context(cafile=str(ca))
        self.mine = local()

    @staticmethod
    def of(kubeconfig: Path) -> Api:
        """From a kubeconfig this package wrote (JSON is YAML)."""
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        host, port = cluster["server"].removeprefix("https://").split(":")
        return Api(host, int(port), Path(cluster["certificate-authority"]), user["token"])

    def call(self, method: str, path: str, body: object = None, kind: str = "application/json", timeout: float = 30) -> dict:
        text = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        for attempt in (1, 2):
            connection = getattr(self.mine, "connection", None)
            if connection and time.monotonic() - self.mine.used > IDLE_S:
                connection.close()
                connection = None
            fresh = connection is None
            if fresh:
                connection = self.mine.connection = http.client.HTTPSConnection(
                    self.host, self.port, context=self.context, timeout=timeout)
            self.mine.used = time.monotonic()
            try:
                connection.request(method, path, text, self.headers | {"Content-Type": kind})
                answer = connection.getresponse()
                content = answer.read()
                break
            except (OSError, http.client.HTTPException):
                connection.close()
                self.mine.connection = None
                if fresh or attempt == 2 or method not in ("GET", "DELETE"):
                    raise
        try:
            parsed = json.loads(content or b"{}")
        except ValueError:
            parsed = {"message": content.decode(errors="replace")}
        if answer.status >= 300:
            raise ApiError(answer.status, parsed.get("message", ""))
        return parsed

    def get(self, path: str) -> dict:
        return self.call("GET", path)

    def post(self, path: str, body: dict) -> dict:
        return self.call("POST", path, body)

    def delete(self, path: str, body: dict | None = None) -> dict:
        return self.call("DELETE", path, body)

    def merge(self, path: str, body: dict) -> dict:
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
            return True
        except ApiError as error:
            if error.status == 404:
                return False
            raise

    def post_many(self, path: str, bodies: list[dict], threads: int = 8) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda body: self.post(path, body), bodies))


def kubeconfig(server: str, ca: Path, user: str, token: str) -> str:
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "slinc",
        "clusters": [{"name": "slinc", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "slinc", "context": {"cluster": "slinc", "user": user}}],
    }, indent=1)


def b64(text: bytes) -> str:
    return base64.b64encode(text).decode()
