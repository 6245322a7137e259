"""Slurm in the cluster is a real one: reachable from the host, runs external jobs, real workers register."""

from __future__ import annotations

import pytest
from pods import ask, pod, running
from slincdev.parts import facts, import_images, ensure_images
from slincdev.slurm import SlurmError


def test_slurmctld_answers_through_slurmrestd_and_refuses_in_words(slurm):
    assert [p["responding"] for p in slurm.ping()] == [True]
    with pytest.raises(SlurmError, match="[Pp]artition"):
        slurm.submit("nowhere", partition="no-such-partition")
    good = slurm.mine.token
    slurm.mine.token = slurm.token()[:-4] + "AAAA"
    try:
        with pytest.raises(SlurmError) as refused:
            slurm.call("GET", "/slurm/{api}/nodes/")
        assert (refused.value.status, refused.value.number) == (511, 1007), "signed with another key"
    finally:
        slurm.mine.token = good


def test_an_external_job_runs_on_an_external_node(slurm, eventually):
    slurm.create_nodes("ext-[1-2]", cpus=4, memory_mib=8000)
    job = slurm.submit("placeholder", cpus=3, memory_mib=500)
    eventually("the job runs", lambda: slurm.job(job)["job_state"] == ["RUNNING"])
    assert slurm.job(job)["nodes"] in ("ext-1", "ext-2")
    second = slurm.submit("too wide for what is left there", cpus=3, memory_mib=500)
    eventually("the second job runs", lambda: slurm.job(second)["job_state"] == ["RUNNING"])
    assert {slurm.job(job)["nodes"], slurm.job(second)["nodes"]} == {"ext-1", "ext-2"}
    third = slurm.submit("must wait", cpus=3, memory_mib=500)
    eventually("Slurm says why it waits", lambda: slurm.job(third)["state_reason"] == "Resources")
    for number in (job, second, third):
        slurm.cancel(number)
        assert slurm.job(number)["job_state"][0] == "CANCELLED"
    for name in ("ext-1", "ext-2"):
        eventually(f"{name} can be deleted", lambda: slurm.delete_node(name) or True)


def test_a_worker_pod_registers_and_runs_a_step(cluster, slurm, eventually):
    ensure_images(["slurmd", "login"])
    import_images(cluster, ["slurmd", "login"])
    tag = facts(cluster)["SLURM_TAG"]
    keys = [{"name": "keys", "secret": {"secretName": "slurm-auth", "defaultMode": 0o600, "items": [{"key": "slurm.key", "path": "slurm.key"}]}}]
    mount = {"volumeMounts": [{"name": "keys", "mountPath": "/etc/slurm"}]}
    server = "slurm-controller.slurm:6817"
    worker = pod("worker-0", f"localhost/slinc/slurmd:{tag}", volumes=keys, hostname="worker-0",
                 container=mount | {"securityContext": {"privileged": True}, "args": ["-Z", "--conf-server", server, "--conf", "Feature=worker"]})
    login = pod("login", f"localhost/slinc/login:{tag}", volumes=[dict(keys[0], secret=dict(keys[0]["secret"], defaultMode=0o440))],
                securityContext={"fsGroup": 401}, container=mount | {"env": [{"name": "SACKD_OPTIONS", "value": f"--conf-server {server}"}]})
    with running(cluster, eventually, worker, login, namespace="slurm"):
        eventually("the worker is idle in Slurm", lambda: "worker-0 idle" in ask(cluster, "login", "sinfo", "-hN", "-o", "%N %t", namespace="slurm"))
        eventually("a step runs there", lambda: ask(cluster, "login", "srun", "-p", "all", "hostname", namespace="slurm").strip() == "worker-0")
