"""The API server model of the simulator against a real API server: the same calls, the same answers.

What may differ stands in the script, with a reason. Numbers and times that no two servers share are
replaced by their order first.
"""

from __future__ import annotations

import copy
import http.client
import json
import re
import subprocess
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest

from slincdev.kube import Api, ApiError

REPO = Path(__file__).resolve().parents[2]
SCRIPT = REPO / "tests/sim/conformance/script.json"
NAMESPACE = "conformance"
PATIENCE_S = 180
GADGETS = {"metadata": {"name": "gadgets.conformance.slinc.dev"}, "spec": {
    "group": "conformance.slinc.dev", "scope": "Namespaced", "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
    "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
        "type": "object", "properties": {part: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                                         for part in ("spec", "status")}}}}]}}
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIMES = {"creationTimestamp", "deletionTimestamp", "lastTransitionTime"}


def at(value: object, path: str) -> object:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


class Player:
    """Plays the script against a real server."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.values = {"NS": NAMESPACE}

    def fill_in(self, text: str) -> str:
        names = sorted(self.values, key=len, reverse=True)
        return re.sub(r"\$(" + "|".join(map(re.escape, names)) + ")", lambda found: self.values[found[1]], text)

    def send(self, row: dict) -> tuple[int, object]:
        method, target = self.fill_in(row["call"]).split(" ", 1)
        watching = method == "WATCH"
        if watching:
            method, target = "GET", target + ("&" if "?" in target else "?") + "watch=1&timeoutSeconds=2"
        body = self.fill_in(json.dumps(row["body"], separators=(",", ":"))) if "body" in row else row.get("raw")
        connection = http.client.HTTPSConnection(self.api.host, self.api.port, context=self.api.context, timeout=30)
        connection.request(method, target, body, {
            "Authorization": f"Bearer {self.api.token}", "Content-Type": row.get("type", "application/json")})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if watching and answer.status == 200:
            return 200, {"events": [json.loads(line) for line in text.splitlines()]}
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def play(self, row: dict) -> dict:
        until, end = row.get("until"), time.monotonic() + PATIENCE_S
        while True:
            status, body = self.send(row)
            come = until is None or (status == until if isinstance(until, int) else at(body, until) is not None)
            if come:
                break
            assert time.monotonic() < end, f"{row['name']}: never came; last {status} {body}"
            time.sleep(0.2)
        for name, path in row.get("save", {}).items():
            value = at(body, path)
            self.values[name] = urllib.parse.quote(value, safe="") if name == "token" else value
        return {"name": row["name"], "status": status, "body": body}


def eventually(check: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            if check():
                return
        except ApiError as error:  # a new resource is "(re)initializing" for a moment
            assert error.status in (404, 429, 503), error
        assert time.monotonic() < end, f"{what}: not after {PATIENCE_S} s"
        time.sleep(0.1)


def of_real_server(script: list[dict], api: Api) -> list[dict]:
    gadgets = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{GADGETS['metadata']['name']}"
    namespace = f"/api/v1/namespaces/{NAMESPACE}"
    api.post(gadgets.rsplit("/", 1)[0], GADGETS)
    api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    try:
        eventually(lambda: api.exists(f"/apis/conformance.slinc.dev/v1/namespaces/{NAMESPACE}/gadgets"), "custom resource")
        eventually(lambda: api.exists(f"{namespace}/serviceaccounts/default"), "service account")
        player = Player(api)
        return [player.play(row) for row in script]
    finally:
        api.delete(namespace)
        api.delete(gadgets)
        eventually(lambda: not api.exists(gadgets) and not api.exists(namespace), "clean up")


def of_model(program: Path) -> list[dict]:
    shown = subprocess.run([program, SCRIPT], text=True, capture_output=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    return [json.loads(line) for line in shown.stdout.splitlines()]


def versions_in(value: object) -> set[int]:
    """Versions of objects; those of lists lie between them and need not be the same."""
    found = set()
    if isinstance(value, dict):
        metadata = value.get("metadata")
        if isinstance(metadata, dict) and "name" in metadata and str(metadata.get("resourceVersion", "")).isdigit():
            found.add(int(metadata["resourceVersion"]))
        for part in value.values():
            found |= versions_in(part)
    elif isinstance(value, list):
        for part in value:
            found |= versions_in(part)
    return found


def plain(value: object, ranks: list[int]) -> object:
    """Without what differs between any two servers."""
    if isinstance(value, dict):
        out = {}
        for key, part in value.items():
            if key == "resourceVersion" and str(part).isdigit():
                out[key] = f"version {sum(version <= int(part) for version in ranks)}"
            elif key in TIMES:
                out[key] = "a time"
            elif key not in ("managedFields", "selfLink", "remainingItemCount") and not (key == "continue" and part == ""):
                out[key] = plain(part, ranks)
        return out
    if isinstance(value, list):
        return [plain(part, ranks) for part in value]
    if isinstance(value, str):
        return re.sub(r"in record \(\d+\)", "in record (N)", UUID.sub("UID", value))
    return value


def remove(value: object, path: str) -> None:
    *keys, last = path.split(".")
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value.pop(last, None)


def only(value: dict, paths: list[str]) -> dict:
    return {path: at(value, path) for path in paths}


def compared(row: dict, answer: dict) -> dict:
    """What of an answer counts, by the script's word."""
    body = copy.deepcopy(answer["body"])
    if isinstance(body, dict):
        for path in [*row.get("omit", []), *row.get("differs", {})]:
            remove(body, path)
        if "only" in row and body.get("kind") != "Status":
            body = only(body, row["only"])
        if "items_only" in row and "events" in body:
            body["events"] = [{"type": event["type"], "object": only(event["object"], row["items_only"])} for event in body["events"]]
        elif "items_only" in row:
            body["items"] = [only(item, row["items_only"]) for item in body["items"]]
    return {"status": answer["status"], "body": body}


def differences(script: list[dict], real: list[dict], model: list[dict]) -> list[str]:
    ranks = [sorted(versions_in([answer["body"] for answer in side])) for side in (real, model)]
    found = []
    for row, *answers in zip(script, real, model, strict=True):
        one, other = (compared(row, plain(answer, rank)) for answer, rank in zip(answers, ranks, strict=True))
        if one != other:
            found.append(f"{row['name']}\n  real  {json.dumps(one, sort_keys=True)}\n  model {json.dumps(other, sort_keys=True)}")
    return found


def test_the_model_answers_like_the_real_api_server(cluster) -> None:
    program = REPO / "build/asan/tests/sim/run_store"
    if not program.exists():
        pytest.fail("build/asan has no run_store: dev/build asan makes it")
    script = json.loads(SCRIPT.read_text())
    found = differences(script, of_real_server(script, cluster.api()), of_model(program))
    assert not found, f"{len(found)} of {len(script)} calls differ:\n" + "\n".join(found)


def test_the_comparison_notices_a_difference() -> None:
    row = {"name": "x"}
    one = [{"name": "x", "status": 200, "body": {"metadata": {"name": "a", "resourceVersion": "7"}, "data": {"k": "v"}}}]
    same = [{"name": "x", "status": 200, "body": {"metadata": {"name": "a", "resourceVersion": "99"}, "data": {"k": "v"}}}]
    other = [{"name": "x", "status": 200, "body": {"metadata": {"name": "a", "resourceVersion": "99"}, "data": {"k": "w"}}}]
    assert differences([row], one, same) == []
    assert len(differences([row], one, other)) == 1
