"""The slurmctld model of the simulator against a real slurmrestd and slurmctld: the same calls, the same answers.

The script is data: calls, and what is done to slurmctld between them. Compared are the HTTP status, Slurm's error
numbers, and every field that src/slurm reads, as it reads it. What no two servers share (ids, sluids, times) is replaced
by a relation first. What may differ besides stands in the script, with a reason; where the real one has several outcomes,
the script names them and both must be among them.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slincdev.cluster import Cluster
from slincdev.slurm import API, Slurm, SlurmError

REPO = Path(__file__).resolve().parents[2]
SCRIPT = REPO / "tests/sim/conformance/slurm_script.json"
PROGRAM = REPO / "build/asan/tests/sim/run_slurm_store"
CONTROLLER = "/apis/apps/v1/namespaces/slurm/statefulsets/slurm-controller"
POD = "/api/v1/namespaces/slurm/pods/slurm-controller-0"
PATIENCE_S = 180


def at(value: object, path: str) -> object:
    """By dots; a number is an index, `key=text` the first item with that member."""
    for key in path.split("."):
        if isinstance(value, list) and "=" in key:
            name, _, wanted = key.partition("=")
            value = next((item for item in value if item.get(name) == wanted), None)
        elif isinstance(value, list) and key.isdigit():
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def has_come(until: int | dict | None, status: int, body: object) -> bool:
    if isinstance(until, dict):
        return all(at(body, path) == wanted for path, wanted in until.items())
    return until is None or status == until


def wait_for(check: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not check():
        assert time.monotonic() < end, f"{what}: not after {PATIENCE_S} s"
        time.sleep(0.05)


# ---- the real one ----

class Daemon:
    """slurmctld in its pod. It is held down by its StatefulSet, so that no kubelet starts it before it should."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.api = cluster, cluster.api()

    def pid(self) -> int:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                ours = f"/slinc-{self.cluster.name}/" in (folder / "cgroup").read_text()
                if ours and (folder / "cmdline").read_bytes().startswith(b"slurmctld\0"):
                    return int(folder.name)
            except OSError:
                continue
        return 0

    def signal(self, number: signal.Signals) -> None:
        if pid := self.pid():  # 0 would be all of us
            os.kill(pid, number)

    def saved(self) -> float:
        """When it last wrote its jobs down."""
        try:
            return Path(f"/proc/{self.pid()}/root/var/spool/slurmctld/slinc/job_state").stat().st_mtime
        except OSError:  # it takes the old file away before it has the new one
            return 0.0

    def scale(self, replicas: int) -> None:
        self.api.merge(CONTROLLER, {"spec": {"replicas": replicas}})

    def shut_down(self) -> None:
        self.scale(0)
        wait_for(lambda: not self.api.exists(POD), "the pod ends")

    def kill(self) -> None:
        """A stopped process does not hear the polite signal of the kubelet that ends its pod."""
        self.signal(signal.SIGSTOP)
        self.scale(0)
        wait_for(lambda: not self.api.exists(POD) or "deletionTimestamp" in self.api.get(POD)["metadata"], "the pod is to end")
        self.signal(signal.SIGKILL)
        wait_for(lambda: not self.api.exists(POD), "the pod ends")


class Player:
    """Plays the script against a real server."""

    def __init__(self, cluster: Cluster, slurm: Slurm) -> None:
        self.slurm, self.daemon = slurm, Daemon(cluster)
        self.values: dict[str, object] = {"V": API, "RUN": f"{time.time_ns():x}"}
        self.waiting: list[threading.Thread] = []
        self.asked = 0.0  # when something was last written

    def fill_in(self, text: str) -> str:
        values = self.values | {"NOW": int(time.time())}
        names = sorted(values, key=len, reverse=True)
        return re.sub(r"\$(" + "|".join(map(re.escape, names)) + ")", lambda found: str(values[found[1]]), text)

    def headers(self, row: dict) -> dict[str, str]:
        kind = row.get("token", "good")
        lives = {"expired": -60, "short": 5}.get(kind, 3600)
        user = row.get("user", "slurm")
        token = self.slurm.token(user, lives)
        token = token[:-4] + "AAAA" if kind == "bad" else token
        headers = {"Content-Type": row.get("type", "application/json")}
        return headers if kind == "none" else headers | {"X-SLURM-USER-TOKEN": token, "X-SLURM-USER-NAME": user}

    def send(self, row: dict) -> tuple[int, object]:
        method, target = self.fill_in(row["call"]).split(" ", 1)
        body = self.fill_in(json.dumps(row["body"])) if "body" in row else row.get("raw")
        connection = http.client.HTTPConnection(self.slurm.host, self.slurm.port, timeout=PATIENCE_S)
        try:
            connection.request(method, target, body, self.headers(row))
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def is_up(self) -> bool:
        return self.send({"call": f"GET /slurm/{API}/jobs/state/"})[0] == 200  # a list of nodes would be seen by later rows

    def start(self) -> None:
        self.daemon.scale(1)
        wait_for(self.is_up, "slurmctld answers")

    def collect(self) -> None:
        for thread in self.waiting:
            thread.join()
        self.waiting.clear()

    def do(self, what: str) -> None:
        word, _, seconds = what.partition(" ")
        {"stop": lambda: self.daemon.signal(signal.SIGSTOP), "continue": lambda: self.daemon.signal(signal.SIGCONT),
         "kill": self.daemon.kill, "shut": self.daemon.shut_down, "start": self.start, "answers": self.collect,
         "wait": lambda: time.sleep(float(seconds)), "saved": lambda: wait_for(lambda: self.daemon.saved() > self.asked - 0.05, "it is saved")}[word]()

    def send_later(self, row: dict, answer: dict) -> None:
        def run() -> None:
            answer["status"], answer["body"] = self.send(row)
        self.waiting.append(threading.Thread(target=run))
        self.waiting[-1].start()
        time.sleep(0.1)  # the order in which they arrive is the script's

    def play(self, row: dict) -> dict:
        answer: dict = {"name": row["name"]}
        if "do" in row:
            self.do(row["do"])
        elif row.get("later"):
            self.send_later(row, answer)
        else:
            until, end = json.loads(self.fill_in(json.dumps(row.get("until")))), time.monotonic() + PATIENCE_S
            if not row["call"].startswith("GET "):
                self.asked = time.time()
            while True:
                status, body = self.send(row)
                if has_come(until, status, body):
                    break
                assert time.monotonic() < end, f"{row['name']}: never came; last {status} {json.dumps(body)[:2000]}"
                time.sleep(0.05)
            answer |= {"status": status, "body": body}
        for name, path in row.get("save", {}).items():
            self.values[name] = at(body, self.fill_in(path))
        return answer

    def clean_up(self) -> None:
        if self.daemon.pid():
            self.daemon.signal(signal.SIGCONT)
        self.collect()
        self.start()
        for job in self.slurm.call("GET", "/slurm/{api}/jobs/")["jobs"]:
            if job["name"].startswith("conf") and job["job_state"][0] in ("PENDING", "RUNNING"):
                self.slurm.cancel(job["job_id"])
        for node in self.slurm.call("GET", "/slurm/{api}/nodes/").get("nodes", []):
            if node["name"].startswith("conf-"):
                wait_for(lambda: self.deletes(node["name"]), f"{node['name']} can be deleted")

    def deletes(self, node: str) -> bool:
        """Not while a job on it is still ending."""
        try:
            self.slurm.delete_node(node)
        except SlurmError:
            return False
        return True


def of_real_server(script: list[dict], cluster: Cluster, slurm: Slurm) -> tuple[list[dict], dict]:
    player = Player(cluster, slurm)
    partition = slurm.call("GET", "/slurm/{api}/partition/slurm-bridge")["partitions"][0]
    assert partition["nodes"]["total"] == 0, f"earlier tests left nodes: {partition['nodes']['configured']}"
    try:
        return [player.play(row) for row in script], player.values
    finally:
        player.clean_up()


def of_model(program: Path) -> tuple[list[dict], dict]:
    shown = subprocess.run([program, SCRIPT], text=True, capture_output=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    *answers, values = [json.loads(line) for line in shown.stdout.splitlines()]
    return answers, values


# ---- what counts of an answer ----

ROW = re.compile(r'(TEXT|LIST|INT|NUMBER|BOOL|WORDS)\((\w+), (\w+), (?:&(\w+), )?((?:"\w+"(?:, )?)+)\)')
TIMES = {"submit_time", "eligible_time", "start_time", "end_time", "boot_time", "last_busy", "reason_time"}
UNLIMITED_BY_BACKFILL = 365 * 24 * 60  # minutes: what the backfill scheduler makes of no limit when it starts a job; the other does not
LOOSE = {"priority", "latency_us"}  # only whether it is 0
OWNERS, FIRST_OWN_ID = {"user_id", "group_id"}, 100  # below it ids are the same on every system, above only whether there is one counts


def fields_of_client() -> dict[str, list[tuple[str, str, list[str]]]]:
    """The tables of src/slurm/kind.c: what is compared is what the client reads."""
    fields: dict[str, list] = {}
    for form, kind, member, _, path in ROW.findall((REPO / "src/slurm/kind.c").read_text()):
        fields.setdefault(kind, []).append((form, member, re.findall(r'"(\w+)"', path)))
    assert sum(map(len, fields.values())) > 90, "kind.c is no longer read right"
    return fields


FIELDS = fields_of_client()


def number(value: object) -> int | str | None:
    if isinstance(value, dict):
        return "infinite" if value.get("infinite") else int(value["number"]) if value.get("set") else None
    return value


def read_field(form: str, value: object) -> object:
    if form == "NUMBER":
        return number(value)
    if form == "INT":
        return number(value) or 0
    if form == "BOOL":
        return bool(value)
    if form == "WORDS":
        return sorted([value] if isinstance(value, str) else value or [])
    return ",".join(value) if isinstance(value, list) else value or ""


class Side:
    """One server's answers, and what its ids, sluids and times are measured by."""

    def __init__(self, script: list[dict], answers: list[dict], values: dict) -> None:
        self.values, self.first = values, int(values["a"])
        certain = [answer["body"] for row, answer in zip(script, answers, strict=True) if "call" in row and "one_of" not in row]
        jobs = [job for body in certain if isinstance(body, dict) for job in body.get("jobs") or [] if "step_id" in job]
        self.sluids = sorted({job["step_id"]["sluid"] for job in jobs if job["job_id"] >= self.first})

    def id(self, value: object) -> object:
        return f"job {int(value) - self.first}" if value else value

    def object(self, kind: str, value: dict) -> dict:
        found = {member: read_field(form, at(value, ".".join(path))) for form, member, path in FIELDS[kind]}
        for member in found.keys() & TIMES:
            found[member] = "a time" if found[member] else 0
        for member in found.keys() & LOOSE:
            found[member] = bool(found[member])
        for member in found.keys() & OWNERS:
            found[member] = min(found[member], FIRST_OWN_ID)
        return found

    def job(self, value: dict) -> dict:
        found = self.object("job", value)
        times = {name: number(value.get(name)) or 0 for name in ("submit_time", "start_time", "end_time")}
        found["id"], found["name"] = self.id(found["id"]), found["name"].replace(self.values["RUN"], "RUN")
        found["sluid"] = self.sluids.index(found["sluid"]) if found["sluid"] in self.sluids else "another"
        found["flags"] = [word for word in found["flags"] if word == "EXTERNAL_JOB"]  # the one that is looked at
        if found["time_limit"] == UNLIMITED_BY_BACKFILL:
            found["time_limit"] = "infinite"
        if "RUNNING" in found["state"]:
            found["end_time"] = f"start + {times['end_time'] - times['start_time']} s"
        elif "PENDING" in found["state"]:  # a forecast of the backfill scheduler, when it has come by
            for member in ("start_time", "end_time", "scheduled_nodes"):
                del found[member]
        found["order"] = times["submit_time"] <= (times["start_time"] or times["submit_time"])
        return found

    def node(self, value: dict) -> dict:
        found = self.object("node", value)
        found["state"] = [word for word in found["state"] if word != "PLANNED"]  # for a waiting job, when the backfill scheduler has come by
        return found

    def layout(self, value: dict) -> dict:
        gres = [[item["name"], item["type"], item["index"] or "", item["count"]] for item in value["gres"]]
        cores = int(value["core_bitmap"], 16)
        return {"node": value["node"], "sockets": value["sockets_per_node"], "cores_per_socket": value["cores_per_socket"],
                "memory": value["mem_alloc"], "channel": number(value["channel"]), "gres": gres, "cores": cores,
                "core_count": cores.bit_count()}

    def conf(self, body: dict) -> dict:
        """What sight.c reads."""
        conf, meta = body["slurm_conf"], body["slurm_conf_meta"]
        found: dict = {name: read_field("INT", conf.get(name)) for name in ("MessageTimeout", "MinJobAge", "InactiveLimit")}
        found |= {name: read_field("LIST", conf[name]) for name in ("PrivateData", "MCSParameters", "SlurmUser", "ClusterName")}
        found |= {"version": bool(meta["SLURM_VERSION"]), "boot_time": bool(number(meta["BOOT_TIME"]))}
        return found | {"next": self.id(number(meta["NEXT_JOB_ID"]))}

    def parts(self, body: dict, call: str) -> dict:
        """Of a whole answer; what belongs to others on the same server is left out."""
        found: dict = {}
        if "/resources/" in call and body.get("nodes") is not None:
            found["layout"] = [self.layout(node) for node in body["nodes"]]
        elif body.get("nodes") is not None:
            ours = [node for node in body["nodes"] if node["name"].startswith("conf-")]
            found["nodes"] = [self.node(node) for node in sorted(ours, key=lambda node: node["name"])]  # in Slurm's table they have no order
        if "/jobs/state/" in call and body.get("jobs") is not None:
            found["states"] = [[self.id(job["job_id"]), job["state"]] for job in body["jobs"] if int(job["job_id"]) >= self.first]
        elif body.get("jobs") is not None:
            found["jobs"] = [self.job(job) for job in body["jobs"] if job["job_id"] >= self.first]
        if "partitions" in body:
            found["partitions"] = [self.object("partition", one) for one in body["partitions"] if one["name"] == "slurm-bridge"]
        if "reservations" in body:
            found["reservations"] = [self.object("reservation", one) for one in body["reservations"]]
        if "pings" in body:
            found["pings"] = [self.object("ping", one) | {"hostname": "a name"} for one in body["pings"]]
        if "slurm_conf" in body:
            found["conf"] = self.conf(body)
        if body.get("status") is not None:
            found["cancelled"] = sorted([at(one, "error.code"), str(self.id(number(at(one, "job_id"))))] for one in body["status"])
        if "job_id" in body:
            found["id"] = self.id(body["job_id"])
        if "last_update" in body:
            found["last_update"] = "a time" if number(body["last_update"]) else 0
        return found

    def counted(self, row: dict, answer: dict) -> dict:
        body = answer["body"]
        if not isinstance(body, dict):
            return {"status": answer["status"], "text": bool(body)}
        found = self.parts(body, row["call"]) | {
            "status": answer["status"], "errors": [error.get("error_number") for error in body.get("errors", [])],
            "warned": bool(body.get("warnings"))}
        if "only" in row:
            found["jobs"] = [{member: job[member] for member in row["only"]} for job in found["jobs"]]
        for path in [*row.get("omit", []), *row.get("differs", {})]:
            remove(found, path)
        return found

    def outcome(self, row: dict, answer: dict) -> str:
        """Short, for answers that have several right ones."""
        body, since = answer["body"], row.get("since")
        errors = [error["error_number"] for error in body.get("errors", [])]
        if errors:
            return f"{answer['status']} {errors[0]}"
        if since:
            after = body["job_id"] - self.values[since]
            return f"{answer['status']} {since}" + (f"+{after}" if after else "")
        return f"{answer['status']} {at(body, 'jobs.0.job_state.0')}"


def remove(value: object, path: str) -> None:
    """Walks through lists without saying so."""
    key, _, rest = path.partition(".")
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and rest:
            remove(item.get(key), rest)
        elif isinstance(item, dict):
            item.pop(key, None)


def unlike(one: object, other: object, where: str = "") -> list[str]:
    """Where two values differ, deepest first named."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [line for key in sorted(one.keys() | other.keys(), key=str)
                for line in unlike(one.get(key, "absent"), other.get(key, "absent"), f"{where}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [line for i, pair in enumerate(zip(one, other, strict=True)) for line in unlike(*pair, f"{where}[{i}]")]
    return [] if one == other else [f"{where}: real {json.dumps(one)}, model {json.dumps(other)}"]


def differences(script: list[dict], real: tuple[list[dict], dict], model: tuple[list[dict], dict]) -> list[str]:
    sides = [Side(script, *side) for side in (real, model)]
    found = []
    for row, *answers in zip(script, real[0], model[0], strict=True):
        if "do" in row:
            continue
        if answers[1].get("never_came"):
            lines = [f": never came in the model; last {json.dumps(answers[1])[:1000]}"]
        elif "one_of" in row:
            outcomes = [side.outcome(row, answer) for side, answer in zip(sides, answers, strict=True)]
            lines = [f" {who} has '{outcome}', not among {row['one_of']}"
                     for who, outcome in zip(("real", "model"), outcomes, strict=True) if outcome not in row["one_of"]]
        else:
            lines = unlike(*(side.counted(row, answer) for side, answer in zip(sides, answers, strict=True)))
        found += [f"{row['name']} [{row['call']}]{line}" for line in lines]
    return found


def test_the_model_answers_like_the_real_slurm(cluster, slurm) -> None:
    if not PROGRAM.exists():
        pytest.fail("build/asan has no run_slurm_store: dev/build asan makes it")
    script = json.loads(SCRIPT.read_text())
    model = of_model(PROGRAM)
    found = differences(script, of_real_server(script, cluster, slurm), model)
    calls = sum("call" in row for row in script)
    print(f"{calls} calls compared")
    assert not found, f"{len(found)} differences in {calls} calls:\n" + "\n".join(found)


def test_the_comparison_notices_a_difference() -> None:
    job = {"job_id": 7, "name": "conf", "job_state": ["CANCELLED"], "submit_time": 5, "step_id": {"sluid": "s1"}}
    row = {"name": "x", "call": "GET /slurm/v0.0.45/job/$a"}
    for change, noticed in (({}, 0), ({"job_id": 8}, 0), ({"job_state": ["FAILED"]}, 1), ({"extra": "x"}, 1), ({"submit_time": 0}, 1)):
        one, other = ([{"name": "x", "status": 200, "body": {"jobs": [value]}}] for value in (job, job | change))
        values = [{"a": value["job_id"], "RUN": "r"} for value in (job, job | change)]
        found = differences([row], (one, values[0]), (other, values[1]))
        assert len({line.split(":")[0] for line in found}) == noticed, found
