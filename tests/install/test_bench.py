"""`make bench` keeps the figures of every row that worked, and measures a Slurm only once it answers."""

from __future__ import annotations

import base64
import http.server
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "dev"), str(REPO / "tests/bench")]
from frame import ready_slurm  # noqa: E402
from slincdev.slurm import Slurm, SlurmError  # noqa: E402

ROWS = '''
from frame import Bench, Figure, full_row, row

@row
def before(bench): return [Figure("first", "any", 1, 2, "s", True)]

@row
def broken(bench): raise RuntimeError("404: no such path")

@full_row
def behind(bench): return [Figure("third", "under 1 s", None, 3, "s", False)]
'''


def test_a_row_that_fails_loses_no_figures_of_other_rows(tmp_path: Path) -> None:
    folder = tmp_path / "tests/bench"
    folder.mkdir(parents=True)
    (tmp_path / "dev").symlink_to(REPO / "dev")
    for name in ("run", "frame.py", "daemon.py"):
        shutil.copy(REPO / "tests/bench" / name, folder)
    (folder / "rows_fake.py").write_text(ROWS)
    done = subprocess.run([sys.executable, folder / "run"], text=True, capture_output=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert [figure["name"] for figure in json.loads((tmp_path / "build/bench.json").read_text())] == ["first", "third"]
    assert "The row broken has no figures, because it failed: 404: no such path" in done.stdout
    assert "1 of 2 figures miss their goal: third" in done.stdout
    assert subprocess.run([sys.executable, folder / "run", "before"], capture_output=True, timeout=60).returncode == 0
    quick = subprocess.run([sys.executable, folder / "run", "--quick"], text=True, capture_output=True, timeout=60).stdout
    assert "A quick run leaves out: behind" in quick and "third" not in quick
    assert "third" in subprocess.run([sys.executable, folder / "run", "--quick", "behind"], text=True, capture_output=True, timeout=60).stdout


class Restd(http.server.BaseHTTPRequestHandler):
    """slurmrestd as it starts: no answer of slurmctld at first, then no path of our version, then all of it."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        seen = self.server.seen
        seen.append((self.command, self.path))
        pings = sum(path.endswith("/ping/") for _, path in seen)
        known = "[" not in self.path and (pings > 2 or self.path.endswith("/ping/"))
        answer = {"pings": [{"responding": pings > 1}]} if known else {"errors": [{"description": "Invalid or unknown URL path"}]}
        content = json.dumps(answer).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def restd() -> Iterator[tuple[SimpleNamespace, list[tuple[str, str]]]]:
    """A cluster whose API server knows where such a slurmrestd listens, and what slurmrestd is asked."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Restd) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        service = {"data": {"jwt.key": base64.b64encode(b"key").decode()},
                   "spec": {"clusterIP": "127.0.0.1", "ports": [{"port": server.server_port}]}}
        yield SimpleNamespace(name="fake", api=lambda: SimpleNamespace(get=lambda _: service)), server.seen
        server.shutdown()
        thread.join()


def test_rows_get_a_slurm_whose_slurmctld_answers_and_whose_paths_are_known(restd) -> None:
    cluster, seen = restd
    with pytest.raises(SlurmError):
        Slurm(cluster).call("GET", "/slurm/{api}/jobs/state/")
    ready_slurm(cluster).call("GET", "/slurm/{api}/jobs/state/")
    assert sum(path.endswith("/ping/") for _, path in seen) == 3


def test_nodes_are_deleted_by_a_hostlist(restd) -> None:
    cluster, seen = restd
    ready_slurm(cluster).delete_node("ground-[1-20]")
    assert seen[-1][0] == "DELETE" and seen[-1][1].endswith("/node/ground-%5B1-20%5D")
