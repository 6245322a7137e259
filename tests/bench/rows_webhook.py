"""The webhook as the API server meets it: 200 reviews a second over kept connections, beside a bare answer of the same server.

It needs no cluster: which namespaces are managed is a list, and nobody has to be asked about these pods."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from daemon import PROGRAM, free_port
from frame import Bench, Figure, build_programs, row
from rows_bridge import SCHEDULER
from slincdev import pki
from slincdev.common import Fail, wait_for

CONNECTIONS, PER_SECOND, TURN_S = 8, 200, 2


def container(index: int) -> dict:
    return {"name": f"worker-{index}", "image": "registry.example/team/solver:1.2.3", "command": ["/usr/bin/solver", "--steps", "1000000"],
            "env": [{"name": f"SETTING_{number}", "value": f"value of setting {number}"} for number in range(20)],
            "resources": {"requests": {"cpu": "4", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "8Gi"}},
            "volumeMounts": [{"name": f"volume-{number}", "mountPath": f"/data/{number}"} for number in range(5)],
            "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent"}


def review(stored: bool) -> str:
    """A pod of usual size; stored: as the validating hook sees it, with all that the mutating one gave it."""
    tolerations = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                   for key in ("not-ready", "unreachable")]
    pod = {"metadata": {"name": "solver-0", "namespace": "slurm-bridge", "labels": {"app": "solver", "team": "physics"},
                        "annotations": {"slurmjob.slinky.slurm.net/timelimit": "60", "slurmjob.slinky.slurm.net/account": "physics"}},
           "spec": {"schedulerName": SCHEDULER if stored else "default-scheduler", "containers": [container(index) for index in range(2)],
                    "volumes": [{"name": f"volume-{number}", "emptyDir": {}} for number in range(5)], "tolerations": tolerations}}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "operation": "CREATE", "namespace": "slurm-bridge",
        "userInfo": {"username": "somebody", "groups": ["system:authenticated"]}, "object": pod}})


REVIEWS = [("POST", "/mutate--v1-pod", review(False), b'"patchType"'), ("POST", "/validate--v1-pod", review(True), b'"allowed":true')]
BARE = [("GET", "/healthz", None, b"ok")]


class Caller:
    """Asks by a timetable, over its connections in turn. One thread: with more, they would wait for each other."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self.connections = [http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context) for _ in range(CONNECTIONS)]

    def turn(self, questions: list[tuple]) -> list[float]:
        """Percentiles of the answers' times in milliseconds, each from the moment at which the question was due."""
        begun, times = time.monotonic(), []
        for index in range(PER_SECOND * TURN_S):
            due = begun + index / PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
            self._ask(self.connections[index % CONNECTIONS], *questions[index // CONNECTIONS % len(questions)])
            times.append(time.monotonic() - due)
        return [1e3 * cut for cut in quantiles(times, n=100)]

    def _ask(self, connection: http.client.HTTPSConnection, method: str, path: str, body: str | None, wanted: bytes) -> None:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200 or wanted not in text:
            raise Fail(f"{path}: {answer.status} {text[:200]!r}")


@contextlib.contextmanager
def webhook() -> Iterator[tuple[int, ssl.SSLContext]]:
    build_programs()
    with tempfile.TemporaryDirectory() as name:
        folder, port, health = Path(name), free_port(), free_port()
        pki.make_ca(folder, "ca")
        pki.make_cert(folder, "tls", "/CN=webhook", names=["127.0.0.1"])
        (folder / "config.yaml").write_text("{}")
        (folder / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "none", "users": [{"name": "none", "user": {"token": "none"}}],
            "clusters": [{"name": "none", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
            "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}]}))
        process = subprocess.Popen([PROGRAM, "bridge", "--roles=webhook", "--config", folder / "config.yaml", "--kubeconfig",
                                    folder / "kubeconfig", "--metrics-bind-address", "0", "--health-probe-bind-address",
                                    f"127.0.0.1:{health}", "--webhook-port", str(port), "--webhook-cert-dir", folder],
                                   stderr=open(folder / "log", "w"))
        try:
            wait_for("the webhook is served", 20, lambda: "the webhook is served" in (folder / "log").read_text(),
                     hint=lambda: (folder / "log").read_text()[-1000:])
            yield port, ssl.create_default_context(cafile=str(folder / "ca.crt"))
        finally:
            process.terminate()
            process.wait(40)


@row
def webhook_answers(bench: Bench) -> list[Figure]:
    """Turns of bare answers and of reviews, one after the other; of each figure the median over the turns."""
    with webhook() as (port, context):
        caller = Caller(port, context)
        caller.turn(BARE)  # connections are made
        turns = [(caller.turn(BARE), caller.turn(REVIEWS)) for _ in range(3 if bench.quick else 7)]

    def figure(percent: int, limit_ms: float) -> Figure:
        reference, ours = (median(cuts[percent - 1] for cuts in kind) for kind in zip(*turns))
        return Figure(f"webhook: {PER_SECOND} reviews/s, p{percent}, beside a bare answer", f"under {limit_ms:g} ms", reference, ours, "ms",
                      ours < limit_ms)
    return [figure(50, 2), figure(99, 5)]
