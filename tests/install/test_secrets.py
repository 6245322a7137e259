"""What a program of ours leaves of its keys and tokens: no core dump, nothing for a debugger, and no old copy in its memory."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SLINC = REPO / "build/plain/src/cmd/slinc"
HOOK = REPO / "build/plain/src/dra/slinc-cpuset-hook"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}


class Server(http.server.ThreadingHTTPServer):
    """Of Slurm or of Kubernetes: it notes the tokens that it sees and has nothing to tell."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.tokens: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.tokens.add(self.headers.get("X-SLURM-USER-TOKEN") or "")
        text = json.dumps({"meta": {"slurm": {"version": {"major": "26"}}}, "jobs": [], "nodes": [], "errors": [], "last_update": {"set": True, "number": 1}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@contextlib.contextmanager
def running(*words: object, **more: object) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def until(what: str, is_so: object, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def is_closed(process: subprocess.Popen) -> bool:
    """No core is written, and nobody but root may look into it: then the files of /proc belong to root."""
    assert process.poll() is None, "it has ended"
    limits = Path(f"/proc/{process.pid}/limits").read_text()
    return re.search(r"^Max core file size +0 ", limits, re.M) is not None and os.stat(f"/proc/{process.pid}/mem").st_uid == 0


def kubeconfig(server: Server, folder: Path) -> Path:
    file = folder / "kubeconfig"
    file.write_text(json.dumps({"clusters": [{"name": "c", "cluster": {"server": server.url}}], "users": [{"name": "u", "user": {}}],
                                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}))
    file.chmod(0o644)
    for parent in (folder, *folder.parents[:3]):
        if str(parent).startswith("/tmp/"):
            parent.chmod(0o755)
    return file


@pytest.mark.parametrize("words", [["operator", "--metrics-addr=0", "--health-addr=0", "--leader-elect-namespace=a"], ["exporter", "--metrics-bind-address=0", "--health-probe-bind-address=0"]], ids=lambda words: words[0])
def test_a_program_writes_no_core_and_lets_nobody_look(server: Server, tmp_path: Path, words: list[str]) -> None:
    known = kubeconfig(server, tmp_path)
    more = ["--kubeconfig", known] if words[0] == "operator" else ["--server", server.url]
    with running(SLINC, *words, *more, env={"SLURM_JWT": "x"}, **NOBODY) as process:
        until("closed", lambda: is_closed(process))


def test_so_does_the_hook_that_pins() -> None:
    with running(HOOK, "/nowhere", "claim", "0", **NOBODY) as process:
        until("closed", lambda: is_closed(process))


def memory_of(process: subprocess.Popen) -> bytes:
    """All that it may write to."""
    found = []
    with open(f"/proc/{process.pid}/maps") as maps, open(f"/proc/{process.pid}/mem", "rb", 0) as memory:
        for line in maps:
            begin, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if rights.startswith("rw"):
                memory.seek(int(begin, 16))
                with contextlib.suppress(OSError):
                    found.append(memory.read(int(end, 16) - int(begin, 16)))
    return b"".join(found)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into the memory of such a process")
def test_a_token_that_was_replaced_is_nowhere_in_memory(server: Server, tmp_path: Path) -> None:
    first, second = (f"eyJ.{secrets.token_hex(40)}.{secrets.token_hex(20)}" for _ in range(2))
    file = tmp_path / "token"
    file.write_text(first)
    with running(SLINC, "exporter", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--cache-freq=1s", "--server", server.url,
                 env=os.environ | {"SLURM_JWT_FILE": str(file)}) as process:
        until("the first token is used", lambda: first in server.tokens)
        is_found = first[10:60].encode() in memory_of(process)
        assert is_found, "this test cannot find anything"
        replacement = tmp_path / "next"
        replacement.write_text(second)
        replacement.rename(file)
        until("the second token is used", lambda: second in server.tokens, 90)
        server.tokens.clear()
        until("and used again", lambda: second in server.tokens, 60)
        is_found = first[10:60].encode() in memory_of(process)
        assert not is_found
