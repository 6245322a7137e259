"""libslinc-slurm inside a loop that is not its own: the example on plain epoll sees a job come, run and end."""

from __future__ import annotations

import os
import subprocess

import pytest
from conftest import REPO
from slincdev.common import PATIENCE

JOBWATCH = REPO / "build/plain/examples/jobwatch/jobwatch"


@pytest.fixture
def node(slurm, eventually):
    slurm.create_nodes("watch-1", cpus=4, memory_mib=8000)
    yield "watch-1"
    eventually("the node can be deleted", lambda: slurm.delete_node("watch-1") or True)


def test_changes_of_a_job_are_shown_until_the_input_ends(slurm, node, tmp_path, eventually):
    where = {"SLURM_REST_URL": f"http://{slurm.host}:{slurm.port}", "SLURM_JWT": slurm.token()}
    shown = tmp_path / "shown"
    with shown.open("w") as output, subprocess.Popen([JOBWATCH], env={**os.environ, **where}, text=True, stdin=subprocess.PIPE,
                                                     stdout=output, stderr=output) as program:
        try:
            job = slurm.submit("watched")
            eventually("the job runs", lambda: f"job {job} watched: RUNNING " in shown.read_text())
            slurm.cancel(job)
            eventually("the job ends", lambda: f"job {job} watched: CANCELLED " in shown.read_text())
            program.communicate("something else for its loop\n", timeout=30 * PATIENCE)
        finally:
            program.kill()
    assert program.returncode == 0
