"""Two replicas of the bridge under a steady load of gangs and single pods, while whichever leads is killed: work goes on, and in the end
every pod has one place, every unit has had one job, and nothing of others was touched."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from bridge import JOB_LABEL, TEAM, Bridge, Site, Strangers, condition, settled, unit_of
from pair import leader, other, pair_at_work
from waits import wait_for

pytestmark = pytest.mark.faults
HALL = [f"hall-{index}" for index in range(12)]
KILLS = int(os.environ.get("SLINC_KILLS", "1"))  # of leaders; make soak asks for more
GOES_ON_S = 25  # after the death of a leader: its lease of 15 s, a retry after 2 s, a look at Slurm; and what a sanitizer costs on two busy cores
FENCE_S = 15  # for that long after a take-over nothing is asked again that the leader before may have asked for
PAUSE_S = 0.7  # between two workloads
MOST = 60  # workloads at a time: there is room for all of them, however long it takes
BURST = 12  # pods that are made just before a leader dies


class Traffic:
    """Workloads come and go until it is told to stop; it knows which must be there then."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.dice, self.began = site, random.Random(seed), int(time.time())
        self.wanted: dict[str, tuple[str, int]] = {}
        self.is_over, self.trouble = threading.Event(), []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _start(self, index: int) -> None:
        kind, name = self.dice.choice(["pods", "podgroup", "podgroup", "job gang"]), f"t{index}"
        size = self.dice.randint(2, 4)
        self.site.start(kind, name, size, cpu=self.dice.choice(["100m", "2", "8"]))
        self.wanted[name] = kind, size

    def _stop(self) -> None:
        name = self.dice.choice([name for name in list(self.wanted) if not name.startswith("burst")])
        self.site.disband(self.wanted.pop(name)[0], name)

    def _run(self) -> None:
        try:
            for index in range(1000):
                self._start(index)
                if index % 3 == 2 or len(self.wanted) > MOST:
                    self._stop()
                if self.is_over.wait(self.dice.uniform(0, 2 * PAUSE_S)):
                    return
        except Exception as error:  # a test's thread: whatever it is, the test must hear of it
            self.trouble.append(repr(error))

    def burst(self, name: str) -> None:
        """So that something is under way at this moment."""
        for kind in ("pods", "podgroup"):
            self.site.start(kind, f"{name}-{kind}", BURST // 2)
            self.wanted[f"{name}-{kind}"] = kind, BURST // 2

    def stop(self) -> None:
        self.is_over.set()
        self.thread.join()

    def shortfall(self) -> list[str]:
        pods: dict[str, list[dict]] = {}
        for pod in self.site.api.get(self.site.pods_path)["items"]:
            if TEAM in pod["metadata"].get("labels", {}):
                pods.setdefault(pod["metadata"]["labels"][TEAM], []).append(pod)
        found = self.trouble + [f"{name} is still there" for name in pods if name not in self.wanted]
        for name, (kind, size) in self.wanted.items():
            alive = [pod for pod in pods.get(name, []) if "deletionTimestamp" not in pod["metadata"]]
            if len(alive) != size:
                found.append(f"{kind} {name} has {len(alive)} of {size} pods")
            found += [f"{pod['metadata']['name']} has no place: {condition(pod, 'SlurmPending')['message']}"
                      for pod in alive if "nodeName" not in pod["spec"]]
        return found


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "replicas")


@pytest.fixture(scope="module")
def pair(site, tmp_path_factory) -> Iterator[list[Bridge]]:
    for name in HALL:
        site.add_node(name, cpus=128)
    with pair_at_work(site, tmp_path_factory.mktemp("replicas"), HALL) as pair:
        yield pair


def job_of_waiting(site: Site, name: str) -> int | None:
    jobs = site.live_jobs_of(site.see(name)["metadata"]["uid"])
    return jobs[0]["job_id"] if jobs else None


def units_with_several_jobs(site: Site, since: int) -> list[str]:
    """Of all that slurmctld remembers; a job that never had a node was refused, or was given up before it began."""
    ran = [unit for job in site.slurm.call("GET", "/slurm/{api}/jobs/")["jobs"]
           if job["nodes"] and job["submit_time"]["number"] >= since and (unit := unit_of(job, site.uid)) and unit.startswith(f"{site.namespace}/")]
    return [f"{unit} had {count} jobs" for unit, count in Counter(ran).items() if count > 1]


def holder(site: Site) -> str:
    lease = site.api.get(f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{Bridge.lease}")
    return lease["spec"].get("holderIdentity", "")


def test_a_leader_that_stops_hands_over_at_once(site, pair, eventually):
    first = wait_for("one leads", 40, lambda: leader(pair))
    site.make("kept")
    eventually("it is placed", lambda: site.placed("kept"))
    before = holder(site)
    first.stop()
    assert before and holder(site) != before, "its lease runs out by itself"
    eventually("the other one leads", other(pair, first).leads)
    site.make("newcomer")
    eventually("it works", lambda: site.placed("newcomer"))
    site.delete("kept", 0)
    eventually("all of it", lambda: site.see("kept") is None)
    first.start()
    site.delete("newcomer", 0)


def test_work_goes_on_when_leaders_are_killed_and_every_unit_has_had_one_job(site, pair, eventually):
    seed = random.SystemRandom().randrange(10000)
    strangers, dice = Strangers(site), random.Random(seed)
    print(f"seed {seed}")
    traffic = None
    try:
        for index in range(KILLS):
            site.make(f"held-{index}", wishes={"priority": "0"})
            site.make(f"ends-{index}")
        held = [eventually("its job is held", lambda: job_of_waiting(site, f"held-{index}")) for index in range(KILLS)]
        eventually("the others run", lambda: all(site.runs(f"ends-{index}") for index in range(KILLS)))
        traffic = Traffic(site, seed)
        for index in range(KILLS):
            time.sleep(dice.uniform(0.5, 2))
            first = wait_for("one leads", 40, lambda: leader(pair))
            traffic.burst(f"burst-{index}")
            time.sleep(dice.uniform(0, 0.3))
            first.kill()
            died = time.monotonic()
            first.start()
            site.delete(f"ends-{index}")
            site.scontrol("release", held[index])
            marks = []
            for what, is_so in (("one leads", lambda: leader(pair)), ("ending goes on", lambda: site.see(f"ends-{index}") is None),
                                ("binding goes on", lambda: site.placed(f"held-{index}"))):
                eventually(what, is_so, GOES_ON_S)
                marks.append(f"{what} after {time.monotonic() - died:.1f} s")
            print(f"kill {index}: {', '.join(marks)}")
            assert int(site.placed(f"held-{index}")["metadata"]["labels"][JOB_LABEL]) == held[index]
        traffic.stop()
        settled(site, FENCE_S + 30, lambda: traffic.shortfall() + strangers.changes())
        assert units_with_several_jobs(site, traffic.began) == []
        print(f"{len(traffic.wanted)} workloads")
    finally:
        if traffic:
            traffic.stop()
        strangers.remove()
