"""The bridge under load while the systems around it fail, and while it fails itself. After each fault the rules hold again: no job without
its pod, no bound pod without a job, no unit with two jobs, nothing of others touched; and no pod was lost that nobody deleted."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bridge import Bridge, Site, Strangers, condition, frozen, processes, settled
from pair import leader, other, pair_at_work, start_missing
from slincdev import supervisor
from slincdev.cluster import Cluster
from slincdev.kube import ApiError
from slincdev.slurm import SlurmError
from waits import wait_for

pytestmark = pytest.mark.faults
RACK = [f"rack-{index}" for index in range(10)]
PODS, COMPLETIONS, SECONDS = 60, 10, 5.0
MESSAGE_TIMEOUT_S = 10  # of slurmctld, in dev/parts/slurm
LEASE_S = 15
POLL_S = 2  # at least so often the bridge asks slurmctld


class Load:
    """Sixty pods over some seconds, every fourth deleted at some point of its life, and a Job whose pods end by themselves. It keeps on
    through errors, and knows what must be left."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.dice, self.name = site, random.Random(seed), f"load-{seed}"
        self.wanted: dict[str, str] = {}
        self.unwanted: set[str] = set()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.began, self.stop = time.monotonic(), False
        self.thread.start()

    def _insist(self, act) -> dict:
        while not self.stop:
            with contextlib.suppress(OSError, http.client.HTTPException):
                try:
                    return act()
                except ApiError as error:
                    if error.status in (404, 409):
                        return {}
            time.sleep(0.1)
        return {}

    def _create(self, index: int) -> None:
        name = f"{self.name}-{index}"
        self._insist(lambda: self.site.make(name, cpu=self.dice.choice(["100m", "1", "4"])))
        found = self._insist(lambda: self.site.see(name))
        self.wanted[name] = found["metadata"]["uid"] if found else ""

    def _delete(self) -> None:
        name = self.dice.choice(list(self.wanted))
        del self.wanted[name]
        self.unwanted.add(name)
        self._insist(lambda: self.site.delete(name, self.dice.choice([None, 0])) or {})

    def _run(self) -> None:
        template = {"spec": self.site.pod("x")["spec"]}
        self._insist(lambda: self.site.api.post(f"/apis/batch/v1/namespaces/{self.site.namespace}/jobs", {
            "metadata": {"name": self.name}, "spec": {"completions": COMPLETIONS, "parallelism": COMPLETIONS // 2, "template": template}}))
        for index in range(PODS):
            self._create(index)
            if index % 4 == 3:
                self._delete()
            time.sleep(self.dice.uniform(0, 2 * SECONDS / PODS))

    def sleep_into(self) -> None:
        """To a random moment of it."""
        time.sleep(self.dice.uniform(0.2, 0.8) * SECONDS)

    def shortfall(self) -> list[str]:
        """What is not as it should be in the end."""
        if self.thread.is_alive():
            return ["pods are still being made"]
        pods = {pod["metadata"]["name"]: pod for pod in self.site.api.get(self.site.pods_path)["items"]}
        found = [f"{name} is gone though nobody deleted it" for name, uid in self.wanted.items()
                 if name not in pods or pods[name]["metadata"]["uid"] != uid or "deletionTimestamp" in pods[name]["metadata"]]
        found += [f"{name} has no place" for name in self.wanted if name in pods and "nodeName" not in pods[name]["spec"]]
        found += [f"{name} is still there" for name in self.unwanted if name in pods]
        job = self.site.api.get(f"/apis/batch/v1/namespaces/{self.site.namespace}/jobs/{self.name}")
        if job["status"].get("succeeded", 0) != COMPLETIONS:
            found.append(f"the Job has {job['status']}")
        return found

    def end(self) -> None:
        self.stop = True
        self.thread.join()


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "faults")


@pytest.fixture(scope="module")
def pair(site, tmp_path_factory) -> Iterator[list[Bridge]]:
    for name in RACK:
        site.add_node(name, cpus=256)  # after a loss of jobs new ones may take the room of old pods, and both must fit
    with pair_at_work(site, tmp_path_factory.mktemp("pair"), RACK) as pair:
        yield pair


@pytest.fixture(scope="module")
def strangers(site, pair) -> Iterator[Strangers]:
    """slurmctld has written them down, and our nodes: a kill -9 does not take them away."""
    found, now = Strangers(site), time.time()
    site.set_slurm_node("stranger-1", comment="something to save")  # or it may have saved all of it just before
    site.slurm.cancel(site.slurm.submit("something to save", partition="all", required_nodes=["stranger-0"]))
    folder = Path(f"/proc/{processes(site.cluster, 'slurmctld')[0]}/root/var/spool/slurmctld/slinc")
    wait_for("slurmctld has saved its state", 60, lambda: all((folder / name).stat().st_mtime > now for name in ("job_state", "node_state")))
    yield found
    found.remove()


@pytest.fixture
def load(site, pair, strangers) -> Iterator[Load]:
    """Pods come and go while the test does its worst; then all must be as if nothing had happened."""
    start_missing(pair)
    wait_for("one of them leads", 40, lambda: leader(pair))
    one = Load(site, random.SystemRandom().randrange(10000))
    try:
        yield one
        settled(site, also=lambda: one.shortfall() + strangers.changes())
        print(f"{one.name}: settled {time.monotonic() - one.began:.1f} s after its begin")
    finally:
        one.end()
        site.see_pods_off()
    settled(site)


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it went with the one before
            os.kill(pid, signal.SIGKILL)


def kill_slurmctld(cluster: Cluster, site: Site) -> None:
    """And wait until the next one answers."""
    old = processes(cluster, "slurmctld")
    kill(old)

    def is_back() -> bool:
        with contextlib.suppress(SlurmError, OSError, http.client.HTTPException):
            return bool(set(processes(cluster, "slurmctld")) - set(old)) and site.slurm.ping()[0]["responding"]
        return False
    wait_for("slurmctld is back", 60, is_back)


def test_slurmctld_stands_still_for_longer_than_its_clients_wait(cluster, load):
    load.sleep_into()
    with frozen(processes(cluster, "slurmctld")):
        time.sleep(MESSAGE_TIMEOUT_S + 3)


def test_pods_whose_jobs_slurmctld_forgot_keep_their_room(cluster, site, pair, strangers, eventually):
    """It forgets the jobs of its last seconds when it is killed, and would give their nodes to whoever asks first."""
    old, young = [f"old-{index}" for index in range(8)], [f"young-{index}" for index in range(4)]
    try:
        for name in old:
            site.make(name, wishes={"exclusive": "true"})
        eventually("all have a node", lambda: all(site.placed(name) for name in old))
        with frozen(processes(cluster, "slurmctld")):
            time.sleep(POLL_S + 1)  # a question of the bridge is open when it dies
            kill_slurmctld(cluster, site)
        for name in young:
            site.make(name, wishes={"exclusive": "true"})

        def shortfall() -> list[str]:
            """What is left of the nodes is given out, and each node once."""
            pods = {pod["metadata"]["name"]: pod for pod in site.api.get(site.pods_path)["items"]}
            held = sorted(pod["spec"]["nodeName"] for pod in pods.values() if "nodeName" in pod["spec"])
            wrong = [] if held == sorted(RACK) else [f"the nodes given out are {held}"]
            says = {name: condition(pod, "SlurmPending")["message"] for name, pod in pods.items()}
            return wrong + strangers.changes() + [str(says) for _ in wrong]
        settled(site, also=shortfall)
        assert all(site.placed(name) for name in old)
    finally:
        site.see_pods_off()


def test_slurmctld_slurmrestd_and_the_api_server_are_killed(cluster, load, site, eventually):
    load.sleep_into()
    old = processes(cluster, "slurmrestd")
    kill(old)
    supervisor.ask(cluster.folder, {"do": "signal", "name": "kube-apiserver", "signal": signal.SIGKILL})
    kill_slurmctld(cluster, site)
    eventually("slurmrestd is back", lambda: set(processes(cluster, "slurmrestd")) - set(old))
    eventually("the API server answers", lambda: cluster.api().get("/readyz?x=1") or True)
    # Unlike a kubelet, kwok does not repeat a write whose connection broke: a pod would stay half deleted. A new kwok looks at all of them.
    supervisor.ask(cluster.folder, {"do": "signal", "name": "kwok", "signal": signal.SIGKILL})


def test_a_leader_that_loses_its_lease_in_its_sleep_does_no_harm(load, pair, eventually):
    load.sleep_into()
    first = wait_for("one leads", 40, lambda: leader(pair))
    second = other(pair, first)
    with frozen([first.process.pid]):
        eventually("the other one leads", second.leads, LEASE_S + 10)
        time.sleep(load.dice.uniform(0, 2))
    eventually("the first one sees that", lambda: first.ask("/metrics")[0] == 200 and not first.leads())
