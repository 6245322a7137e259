"""Slurm users who write what the bridge writes: jobs with its flag, its keys, and copies of what stands in its own jobs. None of them counts,
with and without PrivateData, and where a plugin of the site rewrites admin comments."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest
from bridge import Bridge, Site, at_work, configured, uid_of
from slincdev.release import SCHEDULER
from slincdev.slurm import API
from waits import wait_for

NODES = ["forge-0", "forge-1"]
MALLORY = "games"  # a user that Slurm knows and Kubernetes does not
MADE_UP = "0123456789012345678901234567890123456789abc"
# As a site would: every comment that somebody writes is the site's then.
PLUGIN = """function slurm_job_submit(job, parts, uid) job.admin_comment = "seen by the site" return slurm.SUCCESS end
function slurm_job_modify(job, rec, parts, uid) job.admin_comment = "seen by the site" return slurm.SUCCESS end
return slurm.SUCCESS
"""


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "forged")


@pytest.fixture(scope="module")
def bridge(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    for name in NODES:
        site.add_node(name, cpus=32)
    one = Bridge(cluster, slurm, tmp_path_factory.mktemp("forged"))
    with at_work(site, one, NODES):
        site.make("first")  # it may wait for whoever led before
        wait_for("a first pod is placed", 40, lambda: site.placed("first"), hint=one.said)
        site.empty()
        yield one


class Forger:
    """An ordinary Slurm user, with a token of their own."""

    def __init__(self, site: Site) -> None:
        self.site, self.jobs = site, {}

    def submit(self, extra: str, **more: object) -> int:
        job = {"name": "forged", "partition": "slurm-bridge", "cpus_per_task": 1, "tasks": 1, "memory_per_node": {"set": True, "number": 1},
               "flags": ["EXTERNAL_JOB"], "current_working_directory": "/tmp", "environment": ["A=1"], "extra": extra, **more}
        request = urllib.request.Request(
            f"http://{self.site.slurm.host}:{self.site.slurm.port}/slurm/{API}/job/submit", json.dumps({"job": job}).encode(),
            {"X-SLURM-USER-TOKEN": self.site.slurm.token(MALLORY), "X-SLURM-USER-NAME": MALLORY, "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            number = json.load(answer)["job_id"]
        self.jobs[number] = extra
        return number

    def texts(self, uid: str, attempts: tuple[int, ...] = (1, 2)) -> list[str]:
        """All that can be known of a pod's key, in the forms of today and of before."""
        release = f"default/{SCHEDULER}"
        keys = [f"{self.site.namespace}/{uid}.{attempt}" for attempt in attempts]
        return [f"{key} {self.site.uid}{rest}" for key in keys for rest in ("", f" {release}", f" {release} {MADE_UP}")]

    def untouched(self) -> list[str]:
        """What became of those that nobody but their user may end."""
        shown = {number: self.site.slurm.job(number) for number in self.jobs}
        return [f"job {number} is {job['job_state']}, with {job['extra']}" for number, job in shown.items()
                if job["job_state"][0] not in ("RUNNING", "PENDING") or job["extra"] != self.jobs[number] or job["user_name"] != MALLORY]

    def scancel(self) -> None:
        for number in self.jobs:
            self.site.slurm.cancel(number)


@pytest.fixture
def forger(site) -> Iterator[Forger]:
    one = Forger(site)
    yield one
    one.scancel()


def own_job(site: Site, pod: dict) -> dict:
    """The one that the pod is bound by, of the bridge's own user."""
    job = site.job(pod)
    assert job["user_name"] == "slurm" and "RUNNING" in job["job_state"], job
    return job


def nothing_forged_counts(site: Site, forger: Forger, name: str) -> None:
    """Marks of a pod that waits and of one that runs, made up and copied: the pods have one job each, which their user's scancel does not
    reach, and no forged job is touched."""
    gated = site.make(name, schedulingGates=[{"name": "example.org/later"}])
    uid = gated["metadata"]["uid"]
    before = [forger.submit(text) for text in forger.texts(uid)]
    wait_for("the forged jobs run", 30, lambda: all(site.job_state(number) == "RUNNING" for number in before))
    site.api.merge(f"{site.pods_path}/{name}", {"spec": {"schedulingGates": []}})
    job = own_job(site, wait_for("the pod is placed by a job of its own", 40, lambda: site.placed(name)))
    assert job["job_id"] not in forger.jobs

    copies = [forger.submit(job["extra"]) for _ in range(3)] + [forger.submit(text) for text in forger.texts(uid)]
    wait_for("the copies run", 30, lambda: all(site.job_state(number) == "RUNNING" for number in copies))
    other = site.make(f"{name}-other")  # the bridge plans on, and reads the jobs meanwhile
    wait_for("another pod is placed", 40, lambda: site.placed(f"{name}-other"))
    assert forger.untouched() == []
    for number in copies:
        site.slurm.cancel(number)
        del forger.jobs[number]
    assert site.see(name)["metadata"].get("deletionTimestamp") is None and own_job(site, site.see(name))["job_id"] == job["job_id"]
    assert site.see(f"{name}-other")["metadata"]["uid"] == other["metadata"]["uid"]

    site.delete(name)
    wait_for("the pod is gone", 30, lambda: site.see(name) is None)
    wait_for("its own job is cancelled", 30, lambda: "CANCELLED" in site.slurm.job(job["job_id"])["job_state"])
    assert forger.untouched() == []


def test_forged_and_copied_marks_are_none(site, bridge, forger):
    nothing_forged_counts(site, forger, "plain")
    assert [job for job in site.live_jobs() if uid_of(job, site.uid) and job["job_id"] in forger.jobs] == []


def test_a_plugin_that_rewrites_comments_and_private_data_change_nothing(site, bridge, forger):
    with configured(site, "JobSubmitPlugins=lua\nPrivateData=jobs\n", PLUGIN):
        site.make("rewritten")
        pod = wait_for("a pod is placed though its job's comment was rewritten", 40, lambda: site.placed("rewritten"), hint=bridge.said)
        job = own_job(site, pod)
        assert job["admin_comment"] == "seen by the site" and len(job["extra"].split(" ")) == 4
        nothing_forged_counts(site, forger, "beside")
        site.delete("rewritten")
        wait_for("the job is known by its HMAC, and cancelled", 30, lambda: "CANCELLED" in site.slurm.job(job["job_id"])["job_state"])
        a_token_that_names_its_user_by_another_claim(site, bridge)


def a_token_that_names_its_user_by_another_claim(site: Site, bridge: Bridge) -> None:
    """As some identity providers sign it. A job that could not be proven ours would be submitted again and again."""
    bridge.config.write_text(json.dumps({key: value for key, value in json.loads(bridge.config.read_text()).items() if key != "jwtKeyFile"}))
    bridge.token.write_text(site.slurm.token(claim="username"))
    bridge.kill()
    bridge.start().wait_until_it_leads()
    uid = site.make("claimed")["metadata"]["uid"]
    pod = wait_for("a pod is placed", 60, lambda: site.placed("claimed"), hint=bridge.said)
    job = own_job(site, pod)
    assert job["admin_comment"] == "seen by the site" and len(job["extra"].split(" ")) == 4
    assert [found["job_id"] for found in site.slurm.call("GET", "/slurm/{api}/jobs/")["jobs"] if uid in found["extra"]] == [job["job_id"]]
