"""For the charts' tests: where things are, and helm without a cluster."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SLINC_BUILD", REPO / "build/plain"))
sys.path[:0] = [str(REPO / "dev")]
from slincdev.build import bin_dir  # noqa: E402
from slincdev.common import versions  # noqa: E402
from slincdev.rights import Right, right_for  # noqa: E402

# Values that two charts share: how to change each, and what must be set before for it to matter.
MONITORING = {"serviceMonitor.enabled": ("=true", []), "serviceMonitor.labels": (".a=b", ["serviceMonitor.enabled=true"]), "serviceMonitor.interval": ("=9s", ["serviceMonitor.enabled=true"]),
              "networkPolicy.enabled": ("=true", []), "networkPolicy.from": ("[0].podSelector.matchLabels.a=b", ["networkPolicy.enabled=true"])}


TOLD = REPO / "tests/charts/told.yaml"


def helm(*words: object, values: str = "") -> subprocess.CompletedProcess:
    """`values` is the text of one more values file. No cluster is asked, so the chart of the bridge is told what it would learn there."""
    more = ("-f", "-") if values else ()
    at = next((at for at, word in enumerate(words, 1) if isinstance(word, Path) and word.name == "slurm-bridge"), 0)
    told = ("-f", TOLD) if at and words[0] != "package" else ()
    return subprocess.run([str(word) for word in (bin_dir() / "helm", *words[:at], *told, *words[at:], *more)], text=True, capture_output=True, timeout=60, input=values)


def render(chart: Path, *words: object) -> str:
    """All objects, hooks too."""
    done = helm("template", "bridge", chart, "--namespace", "slinky", "--kube-version", versions()["KUBERNETES_VERSION"],
                "--api-versions", "monitoring.coreos.com/v1/ServiceMonitor", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_notes(chart: Path, folder: Path) -> Path:
    """A copy of the chart that renders what the user is told as one more object: without a cluster helm shows it nowhere."""
    copy = Path(shutil.copytree(chart, folder / chart.name))
    notes = copy / "templates/NOTES.txt"
    (copy / "templates/told.yaml").write_text(f'{{{{- define "told" }}}}{notes.read_text()}{{{{ end -}}}}\ntold: |\n  {{{{- include "told" . | nindent 2 }}}}\n')
    return copy


def leaves(values: Path) -> set[str]:
    """The dotted keys of a values.yaml that are no mapping; lists and {} count as values. Enough of YAML for a file of ours."""
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in values.read_text().splitlines():
        text = line.strip()
        if not text or text[0] in "#-":
            continue
        depth = len(line) - len(line.lstrip())
        above = [one for one in above if one[0] < depth]
        key, _, value = text.partition(":")
        above.append((depth, key))
        found[".".join(name for _, name in above)] = value.strip()
    return {key for key in found if not any(other.startswith(f"{key}.") for other in found)}


def sets(words: list[str]) -> list[str]:
    return [part for word in words for part in ("--set", word)]


def spell(name: str) -> list[str]:
    """`a.{b,c}.d` is a.b.d and a.c.d."""
    found = re.search(r"\{([^}]*)\}", name)
    if not found:
        return [name]
    return [whole for word in found[1].split(",") for whole in spell(name[:found.start()] + word + name[found.end():])]


class EmptyServer(http.server.ThreadingHTTPServer):
    """An API server that has every kind and no objects, and notes what it is asked."""

    daemon_threads = True
    home = "slinc"  # of whoever calls

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.used: set[Right] = set()
        self.over = threading.Event()

    def kubeconfig(self, folder: Path) -> Path:
        """For programs that are to call it."""
        file = folder / "kubeconfig"
        file.write_text(json.dumps({"clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}], "users": [{"name": "u", "user": {}}],
                                    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}))
        return file


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EmptyServer

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        is_watch = "watch=true" in query.split("&")
        right = right_for("WATCH" if is_watch else self.command, path, self.server.home)
        if right:
            self.server.used.add(right)
        body = {"metadata": {"resourceVersion": "1"}, "items": [], "resources": [{"name": name} for name in ("jobsets", "leaderworkersets", "podgroups", "workloads")], "status": {"userInfo": {"username": "us"}}}
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header(*(("Transfer-Encoding", "chunked") if is_watch else ("Content-Length", str(len(text)))))
        self.end_headers()
        if is_watch:
            self.server.over.wait()  # nothing happens
            self.close_connection = True
        else:
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[EmptyServer]:
    with EmptyServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.over.set()
        server.shutdown()
