"""`slinc doctor --takeover` over the recorded objects of the old operator: what it tells before anything is changed, and what it never tells."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from slincdev.crds import from_yaml
from install.test_slinc import VERSION, api_server, doctor

RECORDED = Path(__file__).resolve().parents[1] / "fixtures/slinky-main"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HOST_KEYS = "ed86f25e4397694a9a39a7829fd6071188a68ee01fdbb5fe4f9426bddf965ed0"  # of the placeholder, which stands where keys were
OURS = ("controllers", "accountings", "restapis", "loginsets", "nodesets")
PATHS = {"services": "/api/v1", "configmaps": "/api/v1", "secrets": "/api/v1", "pods": "/api/v1", "persistentvolumeclaims": "/api/v1",
         "deployments": "/apis/apps/v1", "statefulsets": "/apis/apps/v1", "controllerrevisions": "/apis/apps/v1",
         "poddisruptionbudgets": "/apis/policy/v1"} | {plural: "/apis/slinky.slurm.net/v1beta1" for plural in (*OURS, "tokens")}
FROM, TO = "ghcr.io/slinkyproject/slurmd:26.05-ubuntu26.04", "registry.example/slinc/slurmd:26.05-debian"


@functools.cache
def recorded(plural: str) -> list[dict]:
    file = RECORDED / f"{plural}.yaml"
    if not file.exists():
        return []
    return from_yaml(re.sub(r"(ssh-host-keys-hash: )[0-9a-f]{64}", rf"\g<1>{HOST_KEYS}", file.read_text()))


def secrets() -> list[dict]:
    """What the fixtures leave out, as their hashes tell that it was."""
    found = recorded("secrets")
    for one in found:
        if one["metadata"]["name"] == "slurm-sssd-conf":
            one["data"] = {"sssd.conf": base64.b64encode(json.loads(one["metadata"]["annotations"][APPLIED])["stringData"]["sssd.conf"].encode()).decode()}
    password = {"metadata": {"name": "mariadb-password", "namespace": "site", "uid": "p", "resourceVersion": "1"}, "data": {"password": "eA=="}}
    return [one for one in found if one["metadata"]["name"] != "mariadb-password"] + [password]


def pages() -> dict[str, str]:
    found = {f"{group}/namespaces/site/{plural}": json.dumps({"items": secrets() if plural == "secrets" else recorded(plural)}) for plural, group in PATHS.items()}
    return VERSION | found | {"/api/v1/nodes": '{"items": []}'}


def release(folder: Path, name: str, change: Callable[[str], str] = str) -> Path:
    """As helm prints it: what the other chart rendered, changed."""
    objects = [one["metadata"]["annotations"][APPLIED] for plural in OURS for one in recorded(plural)]
    file = folder / name
    file.write_text(json.dumps({"name": "slurm", "namespace": "site", "manifest": "".join(f"---\n{change(one)}\n" for one in objects)}))
    return file


def ask(tmp_path: Path, change: Callable[[str], str] = str, without: str = "") -> tuple[int, dict]:
    files = f"--from={release(tmp_path, 'live.json')}", f"--takeover={release(tmp_path, 'next.json', change)}"
    with api_server(tmp_path, {path: page for path, page in pages().items() if not without or not path.endswith(without)}, 403) as config:
        done = doctor(config, *files, "-o", "json")
    hidden = [value for one in secrets() for value in one["data"].values()]
    assert not any(value in done.stdout + done.stderr for value in hidden if len(value) > 16), "nothing of a Secret is told"
    return done.returncode, json.loads(done.stdout)


def test_a_switch_that_changes_nothing_replaces_nothing(tmp_path: Path) -> None:
    code, told = ask(tmp_path)
    assert told == {"summary": told["summary"], "refused": [], "rolls": [], "ignored": [], "images": [], "changes": [], "unknown": []}
    assert code == 0 and told["summary"].startswith("release site/slurm: slurm-")


def test_it_tells_which_workers_another_image_replaces_and_which_image_is_needed(tmp_path: Path) -> None:
    code, told = ask(tmp_path, lambda text: text.replace(FROM, TO))
    assert code == 0 and told["refused"] == []
    assert told["images"] == [f"{TO} (NodeSet slurm-worker-slinky, in place of {FROM})"]
    assert [text for text in told["rolls"] if text.startswith(
        f"NodeSet site/slurm-worker-slinky: its 2 workers are replaced, each after its drain: spec.slurmd.image ({FROM} becomes {TO})")]


def test_it_tells_what_the_webhook_will_refuse(tmp_path: Path) -> None:
    code, told = ask(tmp_path, lambda text: text.replace('"maxUnavailable":"25%"', '"maxUnavailable":"many"'))
    assert code == 6 and [text for text in told["refused"] if text.startswith("NodeSet site/slurm-worker-slinky: spec.updateStrategy")], told


def test_it_says_what_it_could_not_look_at(tmp_path: Path) -> None:
    code, told = ask(tmp_path, without="/statefulsets")
    assert code == 0 and told["rolls"] == []
    assert told["unknown"] == ["which pods are replaced: needs the right to list statefulsets.apps in namespace site"]


@pytest.mark.parametrize("text", ["", "no JSON", '{"info": {}}'])
def test_it_refuses_what_helm_did_not_write(tmp_path: Path, text: str) -> None:
    (tmp_path / "next.json").write_text(text)
    with api_server(tmp_path, pages()) as config:
        done = doctor(config, f"--from={release(tmp_path, 'live.json')}", f"--takeover={tmp_path / 'next.json'}")
    assert done.returncode == 2 and done.stdout == "" and "next.json: " in done.stderr
