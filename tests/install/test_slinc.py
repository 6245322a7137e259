"""The program slinc at a terminal and in a pipe: its version, an error at start, and the doctor of an API server that gives a few answers."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import pty
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SLINC = REPO / "build/plain/src/cmd/slinc"
NO_CONFIG = ["bridge", "--config=/nowhere/config.yaml"]


def at_terminal(*words: str) -> tuple[int, str]:
    """The exit code, and what a terminal shows of stderr."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as shown:
        code = subprocess.run([SLINC, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, timeout=30).returncode
        text = shown.read(65536).decode()
        os.close(theirs)
    return code, text


OWN_VERSION = re.search(r"^ *version: '([^']+)'", (REPO / "meson.build").read_text(), re.M)[1]


@pytest.mark.parametrize("words", [["version"], ["version", "--client"], ["--version"]], ids=" ".join)
def test_it_prints_the_version_of_the_build_file(words: list[str]) -> None:
    nowhere = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")} | {"HOME": "/nowhere"}
    done = subprocess.run([SLINC, *words], text=True, capture_output=True, timeout=30, env=nowhere)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"slinc {OWN_VERSION}\n", "")
    assert re.fullmatch(r"\d+\.\d+\.\d+(-rc\.\d+)?", OWN_VERSION)


def test_a_kubeconfig_that_was_named_must_be_there() -> None:
    done = subprocess.run([SLINC, "version", "--kubeconfig=/nowhere/config"], text=True, capture_output=True, timeout=30)
    assert (done.returncode, done.stdout) == (1, "") and "/nowhere/config" in done.stderr


def test_an_error_at_start_is_a_sentence_at_a_terminal() -> None:
    code, text = at_terminal(*NO_CONFIG)
    assert code == 1
    assert text.startswith("slinc bridge: cannot start: --config /nowhere/config.yaml") and text.count("\n") == 1
    assert "{" not in text and "error=" not in text and "\033" not in text


@pytest.mark.parametrize("words", [["queue"], ["why", "pod", "x"], ["drain", "x"]])
def test_no_text_drives_the_terminal(words: list[str]) -> None:
    done = subprocess.run([SLINC, *words, "--kubeconfig", "/nowhere/\u009b31m\u202ered\u2066"], capture_output=True, timeout=30)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 1 and "/nowhere/31mred" in said


@pytest.mark.parametrize("command", ["bridge", "dra", "exporter", "keys", "operator"])
def test_an_unknown_flag_is_named_and_help_is_printed(command: str) -> None:
    wrong = subprocess.run([SLINC, command, "--bogus"], text=True, capture_output=True, timeout=30)
    assert (wrong.returncode, wrong.stderr) == (2, f"slinc {command}: unknown flag --bogus; see --help\n")
    shown = subprocess.run([SLINC, command, "--help"], text=True, capture_output=True, timeout=30)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"slinc {command}: ") and "--zap-log-level" in shown.stdout
    assert "](" not in shown.stdout, "a link of Markdown leads nowhere at a terminal"


def test_an_error_at_start_is_a_line_of_json_in_a_pipe_or_when_asked_for() -> None:
    piped = subprocess.run([SLINC, *NO_CONFIG], text=True, capture_output=True, timeout=30).stderr
    for text in (piped, at_terminal(*NO_CONFIG, "--zap-encoder=json")[1]):
        line = json.loads(text)
        assert (line["level"], line["msg"]) == ("error", "cannot start") and "/nowhere/config.yaml" in line["error"]


def test_as_a_plugin_of_kubectl_it_is_called_so(tmp_path: Path) -> None:
    for name in ("kubectl-slinc", "kubectl_complete-slinc"):
        (tmp_path / name).symlink_to(SLINC)
    shown = subprocess.run([tmp_path / "kubectl-slinc", "why", "--help"], text=True, capture_output=True, timeout=30).stdout
    assert "usage: kubectl slinc why [pod|nodeset] NAME | job ID [flags]" in shown
    wrong = subprocess.run([tmp_path / "kubectl-slinc", "why"], text=True, capture_output=True, timeout=30,
                           env=os.environ | {"KUBECONFIG": "/nowhere"})
    assert wrong.stderr.startswith("kubectl slinc why: ")
    completed = subprocess.run([tmp_path / "kubectl_complete-slinc", "why", ""], text=True, capture_output=True, timeout=30).stdout
    assert completed.splitlines() == ["pod", "job", "nodeset", ":4"]


COMPLETED = [
    (["q"], ["queue"]),
    (["queue", "--pa"], ["--partition"]),
    (["queue", "-o", ""], ["json"]),
    (["why", ""], ["pod", "job", "nodeset"]),
    (["drain", "n"], ["node"]),
    (["completion", ""], ["bash", "zsh", "fish"]),
    (["nonsense", ""], []),
]


@pytest.mark.parametrize("words,expected", COMPLETED, ids=[" ".join(words) for words, _ in COMPLETED])
def test_bash_completes_commands_words_and_flags(words: list[str], expected: list[str]) -> None:
    script = subprocess.run([SLINC, "completion", "bash"], text=True, capture_output=True, timeout=30, check=True).stdout
    typed = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=('{SLINC}' {typed}); COMP_CWORD={len(words)}; _slinc; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], text=True, capture_output=True, timeout=30, check=True)
    assert [line for line in done.stdout.split("\n") if line] == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_can_be_read_by_them(shell: str) -> None:
    script = subprocess.run([SLINC, "completion", shell], text=True, capture_output=True, timeout=30, check=True).stdout
    assert "slinc" in script and "__complete" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, timeout=30, check=True)


def test_a_shell_that_is_not_known_is_refused() -> None:
    done = subprocess.run([SLINC, "completion", "tcsh"], text=True, capture_output=True, timeout=30)
    assert done.returncode == 2 and "wants bash, zsh or fish" in done.stderr


def test_every_check_of_the_doctor_is_documented() -> None:
    rows = json.loads(subprocess.run([SLINC, "doctor", "--list", "-o", "json"], text=True, capture_output=True, timeout=30, check=True).stdout)
    documented = (REPO / "docs/cli.md").read_text()
    assert len(rows) >= 25
    for row in rows:
        assert f"| SD{row['id']} | {row['area']} | {row['title']} | {row['fix']} |" in documented
    shown = subprocess.run([SLINC, "doctor", "--help"], text=True, capture_output=True, timeout=30, check=True).stdout
    assert all(f"SD{row['id']} " in shown for row in rows)


def shown_by(command: str) -> str:
    return subprocess.run([SLINC, command, "--help"], text=True, capture_output=True, timeout=30, check=True).stdout


def test_the_table_of_rules_is_documented() -> None:
    table = re.search(r"in which they are looked for:\n\n(\| phase.*?)\n\n", shown_by("bridge"), re.S)
    assert table and table[1].count("\n") > 60
    assert table[1] in (REPO / "docs/internals/bridge.md").read_text(), "copy it there again"


def test_every_annotation_of_a_job_is_documented() -> None:
    listed = re.search(r"\| about \| annotations \|\n(.*?)\n\n", (REPO / "docs/bridge.md").read_text(), re.S)
    shown = re.findall(r"^\| `slurmjob\.slinky\.slurm\.net/([a-z-]+)`", shown_by("bridge"), re.M)
    assert listed and len(shown) > 20
    assert [name for name in shown if f"`{name}`" not in listed[1]] == []


def test_why_lists_every_reason_of_the_bridge_and_what_helps() -> None:
    told = r"\b(?:WAITING|TROUBLE|OUTAGE)\(\s*\"([A-Z]\w+)\"|struct report report = {[^}]*\.reason = \"(\w+)\""
    reasons = {one or other for file in (REPO / "src/bridge").rglob("*.c") for one, other in re.findall(told, file.read_text())}
    shown = shown_by("why")
    assert {"ClaimRefused", "Invalid", "SlurmUnavailable", "TooBig", "VolumesNotBound"} <= reasons
    assert {one for one in reasons if f"| `{one}` | " not in shown} == set()


def test_what_helps_a_pod_is_an_annotation_that_the_bridge_reads() -> None:
    shown = shown_by("why")
    renamed = dict(re.findall(r"`(\w+)` \(annotation ([a-z-]+)\)", shown))
    helps = "".join(line.rsplit(" | ", 1)[1] for line in shown.splitlines() if line.startswith("| `"))
    fields = set(re.findall(r"`([a-z-]+)`", helps)) - {"id"}
    annotations = set(re.findall(r"^\| `slurmjob\.slinky\.slurm\.net/([a-z-]+)`", shown_by("bridge"), re.M))
    assert {"features", "timelimit"} <= fields and renamed.keys() <= fields
    assert {renamed.get(field, field) for field in fields} - annotations == set()


@contextlib.contextmanager
def api_server(folder: Path, pages: dict[str, str], status: int = 404) -> Iterator[Path]:
    """The kubeconfig of an API server that has these pages, and answers anything else with the status."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            page = pages.get(self.path.split("?")[0])
            if "/proxy/debug/" in self.path and self.headers["X-Slinc-Token"] != "made":  # the pod itself, which is no API server
                self.send_response(401)
                self.send_header("Content-Length", "13")
                self.end_headers()
                self.wfile.write(b"not for you\n\n")
                return
            body = (page if page is not None else json.dumps({"kind": "Status", "code": status, "message": "not for you"})).encode()
            self.send_response(200 if page is not None else status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *words: object) -> None:
            pass

    config = folder / "kubeconfig"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
            "users": [{"name": "it", "user": {}}], "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield config
        finally:
            server.shutdown()


def doctor(config: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([SLINC, "doctor", *words, "--kubeconfig", config], text=True, capture_output=True, timeout=60)


VERSION = {"/version": json.dumps({"minor": "36", "gitVersion": "v1.36.3"})}


def test_the_doctor_reads_the_page_of_the_exporter_that_no_flag_moves(tmp_path: Path) -> None:
    pod = {"metadata": {"name": "exporter", "namespace": "slurm"}, "status": {"phase": "Running"},
           "spec": {"containers": [{"args": ["exporter", "--legacy-path=/metrics"], "ports": [{"name": "metrics", "containerPort": 8080}]}]}}
    proxy = "/api/v1/namespaces/slurm/pods/exporter:8080/proxy"
    pages = {"/api/v1/pods": json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod]}),
             f"{proxy}/metrics": "slurm_jobs_total 4\n", f"{proxy}/metrics/cluster": 'slinc_slurm_up{kind="jobs"} 0\n'}
    with api_server(tmp_path, VERSION | pages) as config:
        done = doctor(config, "--only=SD203")
    assert done.returncode == 6 and "x SD203 the exporter cannot read jobs\n" in done.stdout, done


def pod_of(command: str) -> dict:
    return {"metadata": {"name": command, "namespace": "home"}, "status": {"phase": "Running"},
            "spec": {"containers": [{"args": [command], "ports": [{"name": "metrics", "containerPort": 8080}]}]}}


STATE = json.dumps({"ready": True, "checks": [{"name": "slurmrestd", "result": "good", "what": "fine", "fix": ""}]})
PAGE, TOKEN = "/api/v1/namespaces/home/pods/{}bridge:8080/proxy/debug/state", "/api/v1/namespaces/home/serviceaccounts/bridge-account-debug/token"
MADE = {TOKEN: json.dumps({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "status": {"token": "made"}})}


@pytest.mark.parametrize("flags,scheme", [([], ""), (["--metrics-secure"], "https:"), (["--metrics-secure=false"], "")], ids=["plain", "secure", "not secure"])
@pytest.mark.parametrize("pages,status,why", [
    (MADE, 404, ""),
    ({}, 403, "needs the right to create serviceaccounts/token in namespace home (Role bridge-account-debug)"),
    ({}, 404, "there is no ServiceAccount bridge-account-debug in namespace home, by which it could be asked"),
], ids=["with a token", "without the right to make one", "without the account"])
def test_the_doctor_asks_the_bridge_by_a_token_that_is_made_for_that(tmp_path: Path, pages: dict, status: int, why: str, flags: list, scheme: str) -> None:
    pod = pod_of("bridge")
    pod["spec"]["serviceAccountName"] = "bridge-account"
    pod["spec"]["containers"][0]["args"] += flags
    listed = {"/api/v1/pods": json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod]}), PAGE.format(scheme): STATE}
    with api_server(tmp_path, VERSION | listed | pages, status) as config:
        found = {one["id"]: one for one in json.loads(doctor(config, "-o", "json", "--fail-on=never").stdout)["checks"]}[201]
    assert (found["result"] == "skipped", found["found"] == why) == (bool(why), bool(why)), found


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_why_names_the_right_by_which_the_bridge_could_be_asked(tmp_path: Path, phase: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks", "namespace": "default"}, "status": {"phase": phase},
           "spec": {"schedulerName": "mine", "containers": []} | ({"nodeName": "n"} if phase == "Running" else {})}
    bridge = pod_of("bridge")
    bridge["spec"]["serviceAccountName"] = "bridge-account"
    pages = {"/api/v1/namespaces/default/pods/asks": json.dumps(pod),
             "/api/v1/pods": json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [bridge]})}
    with api_server(tmp_path, pages, 403) as config:
        done = subprocess.run([SLINC, "why", "asks", "-n", "default", "--kubeconfig", config], text=True, capture_output=True, timeout=60)
    assert "to ask the bridge itself needs the right to create serviceaccounts/token in namespace home (Role bridge-account-debug)" in " ".join(done.stdout.split()), done


def test_the_version_is_told_of_every_server_that_runs(tmp_path: Path) -> None:
    pods = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod_of("operator"), pod_of("bridge"), pod_of("exporter")]}
    pages = VERSION | {"/api/v1/pods": json.dumps(pods), "/api/v1/namespaces/home/pods/operator:8080/proxy/version": '{"version":"1.0.0"}',
                       "/api/v1/namespaces/home/pods/exporter:8080/proxy/version": '{"version":"1.0.1","slurm":"26.05.5"}'}
    with api_server(tmp_path, pages) as config:
        shown = subprocess.run([SLINC, "version", "--kubeconfig", config], text=True, capture_output=True, timeout=60, check=True).stdout
        told = subprocess.run([SLINC, "version", "-o", "json", "--kubeconfig", config], text=True, capture_output=True, timeout=60, check=True).stdout
    assert shown == (f"slinc {OWN_VERSION}\nKubernetes v1.36.3\nSlurm 26.05.5\noperator 1.0.0  home/operator\n"
                     "bridge not known: it is older than 1.0.0, or no server of Slinc\nexporter 1.0.1  home/exporter\n")
    assert json.loads(told)["servers"][:3] == [{"name": "Kubernetes", "version": "v1.36.3"}, {"name": "Slurm", "version": "26.05.5"},
                                               {"name": "operator", "version": "1.0.0", "pod": "home/operator"}]


def test_servers_that_may_not_be_asked_are_named_with_the_right_that_is_missing(tmp_path: Path) -> None:
    with api_server(tmp_path, VERSION, 403) as config:
        shown = subprocess.run([SLINC, "version", "--kubeconfig", config], text=True, capture_output=True, timeout=60, check=True).stdout
    assert shown == f"slinc {OWN_VERSION}\nKubernetes v1.36.3\nservers not known: needs the right to list pods in all namespaces\n"


@pytest.mark.parametrize("pages,status,why", [({}, 401, "401: not for you"), ({"/version": "<html>log in</html>"}, 404, "its answer to /version is no JSON")],
                         ids=["a token that ended", "a page for people"])
def test_the_doctor_fails_when_the_api_server_tells_nothing(tmp_path: Path, pages: dict[str, str], status: int, why: str) -> None:
    with api_server(tmp_path, pages, status) as config:
        done = doctor(config, "-o", "json")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"slinc doctor: the API server cannot be read: {why}\n")


def test_the_doctor_fails_when_there_is_no_api_server(tmp_path: Path) -> None:
    with api_server(tmp_path, {}) as config:
        pass
    done = doctor(config)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("slinc doctor: the API server cannot be read: "), done


def test_the_doctor_of_somebody_without_any_right_skips_all_and_finds_nothing_in_order(tmp_path: Path) -> None:
    with api_server(tmp_path, {}, 403) as config:
        done = doctor(config, "-o", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["result"], {one["result"] for one in found["checks"]}) == (0, "skipped", {"skipped"})


def test_a_check_that_the_doctor_does_not_know_is_a_wrong_word(tmp_path: Path) -> None:
    with api_server(tmp_path, VERSION) as config:
        done = doctor(config, "--only=slum")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("slinc doctor: --only: no check is called 'slum'; wants ids or kubernetes, slurm, "), done
