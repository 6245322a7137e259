"""make demo, from its first line to its last: it tells the whole story, and nothing of it is left. After the others, when the machine is
free of their cluster."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from conftest import NAME as CLUSTER, REPO, machine_state
from slincdev.cluster import find, free_slot
from slincdev.common import state_root

pytestmark = pytest.mark.last
NAME = f"{CLUSTER}-demo"


def run_demo(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run([REPO / "dev/demo", *words], text=True, capture_output=True, env=os.environ | {"SLINC_DEMO_NAME": NAME}, timeout=1200)


def test_the_demo_tells_its_story_to_the_end_and_leaves_nothing_behind():
    wrong = run_demo("--forever")
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (1, "", "error: usage: dev/demo [--keep]\n")
    slot = free_slot()
    done = run_demo()
    told = done.stdout
    assert done.returncode == 0, told[-3000:] + done.stderr
    assert re.findall(r"^(\d+)\. ", told, re.M) == [str(number) for number in range(1, 12)]
    assert told.index("\n5. ") < min(told.index(f"{part}: running") for part in ("jobset", "lws")), "what only the fifth chapter needs holds up no other"
    assert re.search(r"hello from a container on node-0, job \d+ of Slurm", told)
    for words in ("a Slurm cluster from nothing", "$ ssh root@login srun hostname\n     cpu-0", "cpu-2 drains and waits for job", "then: COMPLETED",
                  "none of the three starts; each says: job", "0/5 nodes are available", "was preempted in Slurm", "nightly-0 is back",
                  "pods are where they were", "a job of Slurm's own", "All of it"):
        assert words in told, words
    picture = re.search(r"A picture of it: (\S+)", told)[1]
    assert (REPO / picture).read_bytes().startswith(b"\x89PNG")
    assert re.search(r"a live page: http://\S+/ui/", told)
    assert len(re.findall(r"^     (Pod|Job|JobSet|LeaderWorkerSet|PodGroup): .* bound after", told, re.M)) == 5
    assert [line for line in told.splitlines() if len(line) > 100] == []
    assert told.splitlines()[-1].startswith(f"cluster '{NAME}' is gone")
    left = machine_state(NAME, slot)  # other clusters may have come into its network meanwhile, so what has its name counts
    assert find(NAME) is None and not any(left[kind] for kind in ("processes", "mounts", "cgroups")), left
    assert not list(state_root().glob(f"*{NAME}*"))
