"""The operator beside definitions that are older than it wants: it says so, and that they are not any more."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from test_slinc import SLINC, VERSION, api_server

KINDS = ("accountings", "controllers", "loginsets", "nodesets", "restapis", "tokens")
OLDER, AS_NEW = "a definition is older than this operator wants", "the definition is as new as this operator wants"


def definition(plural: str, level: str) -> tuple[str, str]:
    name = f"{plural}.slinky.slurm.net"
    return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}", json.dumps({"metadata": {"name": name, "annotations": {"slinc.slurm.net/definitions": level} if level else {}}})


def wait(said: Callable[[], list[str]], text: str, count: int) -> list[str]:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        found = [line for line in said() if text in line]
        if len(found) >= count:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{text!r} was not said {count} times:\n" + "\n".join(said()))


def test_the_operator_says_which_definitions_are_older_and_when_they_are_not(tmp_path: Path) -> None:
    pages = VERSION | dict(definition(plural, "" if plural == "nodesets" else "1000000") for plural in KINDS)
    log = tmp_path / "log"
    with api_server(tmp_path, pages) as config, log.open("w") as out:
        off = [f"--{name}-addr=0" for name in ("health", "metrics", "server")]
        process = subprocess.Popen([SLINC, "operator", "--kubeconfig", config, "--leader-elect-namespace=default", *off], stdout=out, stderr=out)

        def said() -> list[str]:
            return log.read_text().splitlines()
        try:
            [warning] = wait(said, OLDER, 1)
            assert "nodesets.slinky.slurm.net" in warning and '"level":0' in warning.replace(" ", ""), warning
            pages.update([definition("nodesets", "1000000")])
            [line] = wait(said, AS_NEW, 1)
            assert "nodesets.slinky.slurm.net" in line and sum(OLDER in each for each in said()) == 1
        finally:
            process.terminate()
            assert process.wait(30) in (0, 1)
