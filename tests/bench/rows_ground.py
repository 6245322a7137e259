"""What the machine's own engines reach here: the figures that later rows stand beside."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles

from frame import Bench, Figure, row
from slincdev.cluster import Cluster
from slincdev.common import wait_for
from slincdev.slurm import API, Slurm, SlurmError

TOLERATE_FAKE = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
GROUND = "ground for later rows"


class BindWatch:
    """Notes when each pod of a namespace is first seen with a node. The API server ends the watch of a reader that falls
    behind, as this one may on a busy machine: it then goes on from where it was."""

    def __init__(self, cluster: Cluster, namespace: str, wanted: int) -> None:
        self.bound: dict[str, float] = {}
        self.wanted, self.done = wanted, threading.Event()
        self.api, self.namespace, self.version = cluster.api(), namespace, "0"
        self.answer = self._open()
        threading.Thread(target=self._read, daemon=True).start()

    def _open(self) -> http.client.HTTPResponse:
        connection = http.client.HTTPSConnection(self.api.host, self.api.port, context=self.api.context, timeout=120)
        connection.request("GET", f"/api/v1/namespaces/{self.namespace}/pods?watch=1&resourceVersion={self.version}",
                           headers={"Authorization": f"Bearer {self.api.token}"})
        return connection.getresponse()

    def _read(self) -> None:
        while not self.done.is_set():
            for line in self.answer:
                self._see(json.loads(line))
                if self.done.is_set():
                    return
            self.answer = self._open()

    def _see(self, event: dict) -> None:
        if event["type"] == "ERROR":
            self.version = "0"
            return
        pod = event["object"]
        self.version, name = pod["metadata"]["resourceVersion"], pod["metadata"]["name"]
        if pod.get("spec", {}).get("nodeName") and name not in self.bound:
            self.bound[name] = time.monotonic()
            if len(self.bound) == self.wanted:
                self.done.set()


def _pod(index: int) -> dict:
    return {"metadata": {"name": f"p{index}"}, "spec": {
        "tolerations": TOLERATE_FAKE, "nodeSelector": {"type": "kwok"}, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "none/none:1", "resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}]}}


@row
def kube_scheduler(bench: Bench) -> list[Figure]:
    """Pods of one core bound by the stock scheduler on 20 nodes of 64 cores."""
    count = 1000
    api = bench.cluster.api()
    api.post("/api/v1/namespaces", {"metadata": {"name": "burst"}})
    watch = BindWatch(bench.cluster, "burst", count)
    created: dict[str, float] = {}

    def create(index: int) -> None:
        created[f"p{index}"] = time.monotonic()
        api.post("/api/v1/namespaces/burst/pods", _pod(index))

    begun = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(count)))
    if not watch.done.wait(120):
        raise RuntimeError(f"only {len(watch.bound)} of {count} pods were bound in 120 s")
    seconds = max(watch.bound.values()) - begun
    waits = sorted(watch.bound[name] - created[name] for name in created)
    api.delete("/api/v1/namespaces/burst")
    cuts = quantiles(waits, n=100)
    return [
        Figure("kube-scheduler: 1,000 pods on 20 nodes", GROUND, count / seconds, None, "pods/s"),
        Figure("kube-scheduler: create to bound, p50", GROUND, cuts[49], None, "s"),
        Figure("kube-scheduler: create to bound, p99", GROUND, cuts[98], None, "s"),
    ]


def _submit_plainly(slurm: Slurm, count: int) -> list[int]:
    """`count` submits over one connection, the request made once: what is measured is slurmrestd, not this script."""
    body = json.dumps({"job": {"name": "ground", "partition": "slurm-bridge", "cpus_per_task": 1, "tasks": 1, "flags": ["EXTERNAL_JOB"],
                               "memory_per_node": {"set": True, "number": 64}, "current_working_directory": "/tmp"}}).encode()
    request = (f"POST /slurm/{API}/job/submit HTTP/1.1\r\nHost: slurm\r\nX-SLURM-USER-TOKEN: {slurm.token()}\r\n"
               f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    numbers = []
    with socket.create_connection((slurm.host, slurm.port), timeout=30) as connection, connection.makefile("rb") as answers:
        for _ in range(count):
            connection.sendall(request)
            status, length = answers.readline(), 0
            while (line := answers.readline().strip()):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            content = answers.read(length)
            if b" 200 " not in status:
                raise RuntimeError(f"submit: {status.decode().strip()}: {content[:300].decode(errors='replace')}")
            numbers.append(int(re.search(rb'"job_id":\s*(\d+)', content)[1]))
    return numbers


def _deleted(slurm: Slurm, nodes: str) -> bool:
    """False as long as slurmctld says that jobs still end on them."""
    try:
        slurm.delete_node(nodes)
    except SlurmError as error:
        if error.status == 404:  # no wait mends a path that slurmrestd does not know
            raise
        return False
    return True


@row
def slurmrestd_submits(bench: Bench) -> list[Figure]:
    """External jobs submitted over eight connections, and how soon they run."""
    slurm, count = bench.slurm, 400 if bench.quick else 1200
    slurm.create_nodes("ground-[1-20]", cpus=64, memory_mib=262144)
    begun = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        numbers = [number for made in pool.map(lambda _: _submit_plainly(slurm, count // 8), range(8)) for number in made]
    submitted = time.monotonic() - begun

    def running() -> int:
        states = slurm.call("GET", "/slurm/{api}/jobs/state/")["jobs"]
        return sum("RUNNING" in job["state"] for job in states)

    while running() < count:
        if time.monotonic() - begun > 120:
            raise RuntimeError("not all jobs run after 120 s")
        time.sleep(0.02)
    all_running = time.monotonic() - begun
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(slurm.cancel, numbers))
    wait_for("the nodes can be deleted", 60, lambda: _deleted(slurm, "ground-[1-20]"))
    return [
        Figure("slurmrestd: submits over 8 connections", GROUND, count / submitted, None, "jobs/s"),
        Figure(f"slurmctld: {count} jobs, first submit to all RUNNING", GROUND, all_running, None, "s"),
    ]
