"""A tenant who makes more pods than slurmctld keeps jobs (MaxJobCount): native jobs are taken all the same, and the pods that wait say why."""

from __future__ import annotations

import json
import urllib.request

from bridge import JOB_LABEL, Bridge, Site, at_work, condition, configured
from slincdev.slurm import API
from waits import wait_for

NODES = ["crowd-0", "crowd-1"]
USER = "games"  # whom Slurm knows and Kubernetes does not
ROOM = 30  # for jobs, beside those that slurmctld keeps from before


def all_jobs(site: Site) -> list[dict]:
    """Those that have ended count until slurmctld forgets them."""
    return site.slurm.call("GET", "/slurm/{api}/jobs/")["jobs"]


def sbatch(site: Site) -> int:
    """A job of a user's own. It waits: no slurmd stands behind these nodes."""
    job = {"name": "native", "partition": "slurm-bridge", "script": "#!/bin/sh\ntrue\n", "current_working_directory": "/tmp", "environment": ["A=1"], "hold": True}
    request = urllib.request.Request(
        f"http://{site.slurm.host}:{site.slurm.port}/slurm/{API}/job/submit", json.dumps({"job": job}).encode(),
        {"X-SLURM-USER-TOKEN": site.slurm.token(USER), "X-SLURM-USER-NAME": USER, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["job_id"]


def test_pods_leave_a_tenth_of_maxjobcount_to_native_jobs_and_say_so(cluster, slurm, tmp_path):
    site = Site(cluster, slurm, "crowd")
    for name in NODES:
        site.add_node(name, cpus=32)
    most = len(all_jobs(site)) + ROOM
    left = most // 10
    told = f"Slurm keeps {most} jobs at most (MaxJobCount), and pods leave a tenth of them to others"
    with configured(site, f"MaxJobCount={most}\n"), at_work(site, Bridge(cluster, slurm, tmp_path), NODES):
        site.start("pods", "crowd", most)
        has_job = lambda pod: JOB_LABEL in pod["metadata"].get("labels", {})  # noqa: E731
        waits = lambda pod: condition(pod, "SlurmPending")  # noqa: E731
        wait_for("each has a job or says why not", 60, lambda: all(
            has_job(pod) or (waits(pod)["reason"], waits(pod)["message"]) == ("TooManyJobs", told) for pod in site.team("crowd")))
        with_jobs = sum(map(has_job, site.team("crowd")))
        assert 0 < with_jobs < most and len(all_jobs(site)) <= most - left, f"{with_jobs} of {most} pods have jobs, Slurm has {len(all_jobs(site))}"

        native = [sbatch(site) for _ in range(left)]
        assert len(set(native)) == left
        assert {site.job_state(number) for number in native} == {"PENDING"}
        for number in native:
            slurm.cancel(number)
