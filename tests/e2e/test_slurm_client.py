"""libslinc-slurm against a real slurmrestd: its example program lists, asks for a job and follows it to its end."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from conftest import REPO

SJOBS = REPO / "build/plain/examples/sjobs/sjobs"


@pytest.fixture(scope="module")
def sjobs(slurm):
    if not SJOBS.exists():
        subprocess.run([REPO / "dev/build", "plain"], cwd=REPO, check=True)

    def run(*words: str, **environment: str) -> subprocess.CompletedProcess:
        where = {"SLURM_REST_URL": f"http://{slurm.host}:{slurm.port}", "SLURM_JWT": slurm.token()}
        return subprocess.run([SJOBS, *words], env={**os.environ, **where, **environment}, text=True, capture_output=True, timeout=60)
    return run


@pytest.fixture
def node(slurm, eventually):
    slurm.create_nodes("sjobs-1", cpus=4, memory_mib=8000)
    yield "sjobs-1"
    eventually("the node can be deleted", lambda: slurm.delete_node("sjobs-1") or True)


def test_a_node_is_listed_and_a_job_followed_to_its_end(sjobs, node, slurm):
    shown = sjobs("nodes")
    assert shown.returncode == 0, shown.stderr
    line = next(line for line in shown.stdout.splitlines() if line.startswith(node))
    assert {"IDLE", "EXTERNAL", "DYNAMIC_NORM"} <= set(line.split()[1].split("+"))  # and PLANNED, if something waits
    shown = sjobs("run", "slurm-bridge", "2")
    assert shown.returncode == 0, shown.stderr
    number = shown.stdout.splitlines()[0].removeprefix("job ")
    states = [line.split()[2] for line in shown.stdout.splitlines() if line.strip().startswith(f"{number} ")]
    assert states[-2:] == ["RUNNING", "CANCELLED"], shown.stdout
    assert "cores 0x" in shown.stdout
    job = slurm.job(int(number))
    comment = json.loads(job["admin_comment"])
    assert comment["release"] == "sjobs" and comment["unit"].startswith("sjobs-")
    assert number in sjobs("jobs").stdout


def test_a_token_file_and_a_key_serve_as_well_and_errors_are_told_in_slurms_words(sjobs, slurm, tmp_path):
    token, key = tmp_path / "token", tmp_path / "key"
    token.write_text(f"SLURM_JWT={slurm.token()}\n")
    key.write_bytes(slurm.key)
    without = {"SLURM_JWT": ""}
    assert sjobs("nodes", SLURM_JWT_FILE=str(token), **without).returncode == 0
    assert sjobs("nodes", SLURM_JWT_KEY_FILE=str(key), **without).returncode == 0
    for words, environment, told in (
            (["run", "no-such-partition", "1"], {}, "Slurm refused the job: Batch job submission failed: Invalid partition name"),
            (["nodes"], {"SLURM_JWT": "nonsense"}, "denied: list nodes: Failure to query nodes: Protocol authentication error"),
            (["run", "all", "1"], {"SLURM_REST_URL": "http://127.0.0.1:1"}, "Slurm was not asked"),
            (["dance"], {}, "usage")):
        shown = sjobs(*words, **environment)
        assert shown.returncode == 1 and told in shown.stderr, shown.stderr
