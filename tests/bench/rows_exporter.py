"""A scrape of the exporter, and its live page, at 5,000 nodes and 5,000 jobs; a scrape beside a bare answer of the same server.

A server of the row's own answers as slurmrestd does, with objects of the usual size: real nodes of that number would need a machine of
their own, and what they cost slurmctld is another row's business (slurm-poll-idle)."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median

from daemon import PROGRAM, free_port
from frame import Bench, Figure, build_programs, full_row, row
from slincdev.common import REPO, Fail, wait_for

sys.path.append(str(REPO / "tests/e2e"))
from browser import Browser  # noqa: E402

NODES, JOBS, USERS = 5000, 5000, 400
RECORDED = REPO / "tests/unit/slurm/data"
PAGES = ("/metrics", "/metrics/nodes", "/metrics/slinky")
VIEWERS = 10


def recorded(name: str) -> dict:
    return json.loads((RECORDED / f"{name}.json").read_text())["body"]


def node(index: int) -> dict:
    return recorded_node | {"name": f"n{index:04}", "hostname": f"n{index:04}", "cpus": 64, "effective_cpus": 64, "alloc_cpus": index % 64,
                            "state": ["MIXED"] if index % 64 else ["IDLE", "DRAIN"], "reason": "" if index % 64 else "ECC errors",
                            "partitions": ["all", f"p{index % 10}"], "gres": "gpu:h100:8(S:0-1)", "gres_used": "gpu:h100:3(IDX:0-2)"}


def job(index: int) -> dict:
    runs = index % 2 == 0
    amounts = "cpu=8,mem=32G,node=1,billing=8,gres/gpu=1"
    return recorded_job | {"job_id": index + 1, "job_state": ["RUNNING" if runs else "PENDING"], "state_reason": "None" if runs else "Resources",
                           "partition": f"p{index % 10}" if runs else "all,p1", "account": f"a{index % 50}", "user_name": f"u{index % USERS}",
                           "flags": ["EXTERNAL_JOB"] if index % 4 == 0 else [], "nodes": f"n{index:04}" if runs else "",
                           "tres_alloc_str": amounts if runs else "", "tres_req_str": amounts, "array_task_string": "",
                           "array_job_id": {"set": True, "infinite": False, "number": 0}}


recorded_node = recorded("nodes_list")["nodes"][0]
recorded_job = recorded("job_get_array")["jobs"][0]


def bodies() -> dict[str, bytes]:
    end = {"errors": [], "last_update": {"set": True, "infinite": False, "number": 9}}
    jobs = [job(index) for index in range(JOBS)]
    answers = {
        "/jobs/state/": {"jobs": [{"job_id": str(one["job_id"]), "state": one["job_state"]} for one in jobs]} | end,
        "/jobs/": {"jobs": jobs} | end,
        "/nodes/": {"nodes": [node(index) for index in range(NODES)]} | end,
        "/partitions/": {"partitions": []} | end,
        "/reservations/": {"reservations": []} | end,
        "/diag/": recorded("diag"),
        "/licenses/": recorded("licenses"),
        "/conf": recorded("conf"),
        "/ping/": recorded("ping"),
    }
    return {path: json.dumps(answer).encode() for path, answer in answers.items()}


@contextlib.contextmanager
def slurmrestd() -> Iterator[tuple[int, list[str]]]:
    answers, asked = bodies(), []
    unchanged = {kind: json.dumps(recorded(f"{kind}_unchanged")).encode() for kind in ("nodes", "partitions", "reservations")}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            path = self.path.partition("?")[0]
            body = next((body for key, body in answers.items() if path.endswith(key)), None)
            if "update_time=9" in self.path and path.endswith(("/nodes/", "/partitions/", "/reservations/")):
                body = unchanged[path.rstrip("/").rsplit("/", 1)[1]]
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "application/json" if body else "text/plain")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()


@contextlib.contextmanager
def exporter(port: int, *flags: str) -> Iterator[tuple[subprocess.Popen, http.client.HTTPConnection]]:
    build_programs()
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "key").write_text("0123456789abcdef0123456789abcdef")
        metrics = free_port()
        process = subprocess.Popen([PROGRAM, "exporter", f"--server=http://127.0.0.1:{port}", f"--jwt-key-file={name}/key",
                                    f"--metrics-bind-address=127.0.0.1:{metrics}", "--health-probe-bind-address=0", *flags],
                                   stderr=open(f"{name}/log", "w"), env=dict(os.environ))
        connection = http.client.HTTPConnection("127.0.0.1", metrics, timeout=30)
        try:
            wait_for("the exporter has all nodes and jobs", 60, lambda: is_complete(connection), hint=lambda: Path(f"{name}/log").read_text()[-1000:])
            yield process, connection
        finally:
            process.terminate()
            process.wait(40)


def get(connection: http.client.HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise Fail(f"{path}: {answer.status} {text[:200]!r}")
    return text


def is_complete(connection: http.client.HTTPConnection) -> bool:
    try:
        text = get(connection, "/metrics").decode()
    except (OSError, http.client.HTTPException):
        connection.close()
        return False
    counts = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(("slinc_cluster_jobs{", "slinc_cluster_nodes{"))]
    return sum(counts) == NODES + JOBS


def peak_mib(process: subprocess.Popen) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@row
def exporter_scrape(bench: Bench) -> list[Figure]:
    """Of each page the median over scrapes that are more than a second apart: each is computed anew."""
    times: dict[str, list[float]] = {path: [] for path in (*PAGES, "/healthz")}
    with slurmrestd() as (port, _), exporter(port) as (process, connection):
        for _ in range(3 if bench.quick else 10):
            for path, taken in times.items():
                begun = time.monotonic()
                get(connection, path)
                taken.append(1e3 * (time.monotonic() - begun))
            time.sleep(1.1)
        memory = peak_mib(process)
    bare = median(times.pop("/healthz"))
    figures = [Figure(f"exporter: {path}, {NODES:,} nodes, {JOBS:,} jobs, beside a bare answer", "under 100 ms", bare, median(taken), "ms",
                      median(taken) < 100) for path, taken in times.items()]
    return [*figures, Figure("exporter: memory at that size", "under 200 MiB", None, memory, "MiB", memory < 200)]


def cpu_s(process: subprocess.Popen) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def viewers(port: int, count: int) -> Iterator[list[int]]:
    """Streams of the page that are read as they come; how many bytes each has read."""
    read, connections = [0] * count, [http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(count)]

    def follow(index: int, answer: http.client.HTTPResponse) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            while piece := answer.read1(1 << 16):
                read[index] += len(piece)
    for index, connection in enumerate(connections):
        connection.request("GET", "/ui/?watch=1")
        threading.Thread(target=follow, args=(index, connection.getresponse()), daemon=True).start()
    try:
        yield read
    finally:
        for connection in connections:
            connection.close()


def first_paint_ms(port: int) -> float:
    """From the request to the first picture, as the browser itself measures it; and the tiles are there soon after."""
    browser = Browser(free_port(), Path(tempfile.gettempdir()) / "slinc-bench-driver.log")
    try:
        browser.open(f"http://127.0.0.1:{port}/ui/")
        wait_for("the page has all nodes", 30, lambda: browser.run("return state.nodes.length;") == NODES)
        return browser.run("return performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint').startTime;")
    finally:
        browser.end()


@full_row
def exporter_page(bench: Bench) -> list[Figure]:
    """With viewers the exporter also polls, so what it takes without them stands beside. Jobs do not change meanwhile."""
    seconds, port = (5 if bench.quick else 60), free_port()
    with slurmrestd() as (slurm, asked), exporter(slurm, f"--ui-bind-address=127.0.0.1:{port}") as (process, _):
        if not bench.quick:
            wait_for("the cores of all jobs were asked for", 400, lambda: idle_for(asked, "/resources/", 5))
        paint = median(first_paint_ms(port) for _ in range(1 if bench.quick else 3))
        shares = []
        for count in (0, VIEWERS):
            with viewers(port, count) as read:
                time.sleep(2)
                begun, used = time.monotonic(), cpu_s(process)
                time.sleep(seconds)
                shares.append(100 * (cpu_s(process) - used) / (time.monotonic() - begun))
            if any(amount == 0 for amount in read):
                raise Fail("a viewer was told nothing")
    alone, watched = shares
    return [Figure(f"exporter: first paint of the page, {NODES:,} nodes, {JOBS:,} jobs", "under 1 s", None, paint, "ms", paint < 1000),
            Figure(f"exporter: CPU with {VIEWERS} viewers at that size, beside none", "under 5 % of a core", alone, watched, "%", watched < 5)]


def idle_for(asked: list[str], part: str, seconds: float) -> bool:
    """Nothing with this part has been asked for so long."""
    before = sum(part in path for path in asked)
    time.sleep(seconds)
    return sum(part in path for path in asked) == before
