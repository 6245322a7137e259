"""make demo: what the bridge does, on a real Kubernetes and a real Slurm, told in seven chapters. The workloads lie in dev/story."""

from __future__ import annotations

import http.client
import os
import time

from . import cluster as clusters, parts, up as life
from .build import bin_dir
from .cluster import Cluster
from .common import REPO, Fail, say, wait_for
from .components import NODE
from .kube import ApiError
from .lives import Life, Lives
from .release import HOME, SCHEDULER, Release, ensure_image
from .slurm import Slurm, SlurmError
from .telling import Telling, answer, command, fold, side_by_side

NAME = os.environ.get("SLINC_DEMO_NAME", "demo")  # another name does not meet a demo that was kept
NAMESPACE = "slurm-bridge"  # the chart manages it by default
KWOK = [f"kwok-{index}" for index in range(4)]
PARTS = ["slurm", "jobset", "lws", "podgroup"]
LABEL, PARTITIONS = "scheduler.slinky.slurm.net/external-node", "scheduler.slinky.slurm.net/external-node-partitions"
CAUTION_S = 3  # an earlier leader may have asked for pods that are older than that: they would wait, and the first be the slowest
# Kind, file, the label of its pods, how many they are, whether it runs to its end in real containers alone.
WORKLOADS = [("Pod", "pod", "hello", 1, True), ("Job", "job", "pi", 2, True), ("JobSet", "jobset", "train", 3, False),
             ("LeaderWorkerSet", "lws", "serve", 3, False), ("PodGroup", "podgroup", "ring", 2, False)]


class Demo:
    """The cluster, and each chapter as a function."""

    def __init__(self, cluster: Cluster, telling: Telling) -> None:
        self.cluster, self.telling, self.api, self.slurm = cluster, telling, cluster.api(), Slurm(cluster)
        self.release = Release(cluster, self.slurm)
        self.lives: Lives | None = None

    # --- what a person would type ---

    def kubectl(self, text: str) -> str:
        command(f"kubectl {text}")
        return parts.kubectl(self.cluster, *text.split(), cwd=REPO)

    def apply(self, file: str) -> None:
        self.kubectl(f"apply -f dev/story/{file}.yaml")

    def delete(self, pod: str) -> float:
        """Since when it is wished."""
        since = time.monotonic()
        self.kubectl(f"-n {NAMESPACE} delete pod {pod} --wait=false")
        return since

    def slurm_command(self, text: str) -> str:
        """One of Slurm's own, where slurmctld runs; a format is nothing to show."""
        command(text.partition(" --format")[0])
        return parts.kubectl(self.cluster, "-n", "slurm", "exec", "slurm-controller-0", "-c", "slurmctld", "--", *text.split())

    def what_is_known(self) -> str:
        """For a person who looks for what went wrong."""
        waiting = [one for one in self.lives.all() if not one.bound] if self.lives else []
        words = [f"pod {one.name} waits: {one.says('SlurmPending') or 'it does not say why'}\n" for one in waiting]
        return "".join(words) + self.release.log_tail()

    # --- chapters ---

    def install(self) -> None:
        begun = time.monotonic()
        command("helm install bridge charts/slurm-bridge -n slinky --set bridgeConfig.sharedNodes=true ...")
        self.release.install("bridgeConfig.sharedNodes=true")
        leader = wait_for("a replica leads", 40, self.release.leader)
        answer(f"{len(self.release.pods())} replicas serve the webhook, {leader} leads; {time.monotonic() - begun:.1f} s")
        self.kubectl(f"create namespace {NAMESPACE}")
        self.lives = Lives(self.api, NAMESPACE)
        nodes = " ".join([NODE, *KWOK])
        self.kubectl(f"annotate node {nodes} {PARTITIONS}=slurm-bridge")
        self.kubectl(f"label node {nodes} {LABEL}=true")
        wait_for("Slurm has the nodes", 40, self.nodes_are_idle)
        wait_for("the leader is no longer new", 20, lambda: self.release.leads_for() > CAUTION_S)
        answer(self.slurm_command("sinfo -p slurm-bridge"))

    def nodes_are_idle(self) -> bool:
        found = {node["name"] for node in self.slurm.call("GET", "/slurm/{api}/nodes/")["nodes"]
                 if "slurm-bridge" in node["partitions"] and "IDLE" in node["state"]}
        return found >= {NODE, *KWOK}

    def place_each_kind(self) -> None:
        for kind, file, story, size, ends in WORKLOADS:
            self.apply(file)
            found = self.lives.placed(story, size)
            seconds = max(one.bound for one in found) - min(one.made for one in found)
            answer(f"{kind}: {counted(size, 'pod')} on {nodes_of(found)} by {jobs_of(found)}, bound after {seconds:.2f} s")
            self.telling.note(f"{kind}: first pod made to last pod bound", seconds)
            if ends:  # the next one gets the cores of the real node for itself
                self.lives.wait(f"{story} has run", lambda: all(one.phase == "Succeeded" for one in found))
        answer(self.kubectl(f"-n {NAMESPACE} logs hello"))

    def start_a_gang(self) -> None:
        self.apply("tenants")
        found = self.lives.placed("tenants", 2)
        answer(f"{' and '.join(one.name for one in found)} take 60 of 64 cores of {nodes_of(found)}; two nodes are free")
        self.apply("gang")
        waiting = self.lives.wait("each of the gang says what it waits for", lambda: self.all_wait_in_slurm("trio"), 30)
        answer(f"none of the three starts; each says: {waiting[0].says('SlurmPending')}")
        since = self.delete("tenant")
        trio = self.lives.placed("trio", 3)
        bound = [one.bound for one in trio]
        answer(f"{jobs_of(trio)} starts on {nodes_of(trio)}: all three are bound after {max(bound) - since:.2f} s, "
               f"within {1000 * (max(bound) - min(bound)):.0f} ms")
        self.telling.note("its last node gets free to all three pods bound", max(bound) - since)

    def all_say_why(self, story: str) -> list[Life] | None:
        found = self.lives.story(story)
        return found if len(found) == 3 and all(one.says("SlurmPending") for one in found) else None

    def all_wait_in_slurm(self, story: str) -> list[Life] | None:
        found = self.all_say_why(story)
        return found if found and all(waits_for(one) for one in found) else None

    def tell_why(self) -> None:
        self.apply("puzzles")
        for one in self.lives.wait("each says why it waits", lambda: self.all_say_why("puzzles"), 30):
            answer(f"{one.name + ':':<7} {one.says('SlurmPending')}")
        try:
            self.apply("typo")
        except Fail as fail:
            _, refused, why = str(fail).partition("denied the request: ")
            if not refused:
                raise
            answer(f"typo:   {why}")
        else:
            raise Fail("the webhook has let a pod in whose time limit is no number")

    def preempt(self) -> None:
        nightly = self.lives.named("nightly-0")
        self.slurm_command(f"scontrol create PartitionName=urgent Nodes={nightly.node} PriorityTier=10")
        self.apply("urgent")
        urgent, = self.lives.placed("urgent", 1)
        seconds = urgent.bound - urgent.made
        answer(f"urgent has {urgent.node} after {seconds:.2f} s, by {jobs_of([urgent])}")
        self.lives.wait("nightly-0 makes way, and says why", lambda: nightly.gone and nightly.says("SlurmJobEnded"))
        answer(f"nightly-0 said before it went: {nightly.says('SlurmJobEnded')}")
        self.telling.note("an urgent pod made to bound in the place of another", seconds)
        waits = self.lives.wait("its successor waits", lambda: (one := self.lives.named("nightly-0")) and one.says("SlurmPending"), 30)
        answer(f"its StatefulSet has made it again, and it says: {waits}")
        since = self.delete("urgent")
        again = self.lives.wait("it is back", lambda: (one := self.lives.named("nightly-0")) and one.bound and one)
        answer(f"nightly-0 is back on {again.node}, {again.bound - since:.1f} s later")

    def compare(self) -> None:
        shown = self.slurm_command("squeue --format=%i|%j|%T|%R --sort=i --states=PENDING,RUNNING").splitlines()[1:]
        command(f"kubectl -n {NAMESPACE} get pods")
        left, right = [f"{'JOB':<4} {'NAME':<10} {'STATE':<9} NODES (REASON)"], [f"{'POD':<11} {'STATUS':<9} NODE"]
        for job, name, state, where in (line.split("|", 3) for line in shown):
            pods = self.lives.wait(f"job {job} has pods", lambda: [one for one in self.lives.all() if job in (one.job, waits_for(one))])
            left += [f"{job:<4} {name:<10} {state:<9} {where}", *[""] * (len(pods) - 1)]
            right += [f"{one.name:<11} {one.phase:<9} {one.node}" for one in pods]
        side_by_side(left, right)


def waits_for(one: Life) -> str:
    """The job that a pod names while it waits: "job 7 waits: ..."."""
    words = one.says("SlurmPending").split()
    return words[1] if words[:1] == ["job"] else ""


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def nodes_of(found: list[Life]) -> str:
    return fold([one.node for one in found])


def jobs_of(found: list[Life]) -> str:
    jobs = sorted({one.job for one in found}, key=int)
    return f"Slurm job{'s' if len(jobs) > 1 else ''} {', '.join(jobs)}"


def tell_all(telling: Telling) -> None:
    with telling.chapter("A cluster on this machine", "A real Kubernetes with one real node, four more nodes that kwok plays, and a real "
                         "Slurm in pods; controllers for JobSets and LeaderWorkerSets come along."):
        demo = Demo(life.up(NAME, node_count=len(KWOK), with_parts=PARTS), telling)
    try:
        with telling.chapter("The bridge comes in", "By its Helm chart (docs/chart.md). Then the nodes are lent to Slurm, with a label."):
            demo.install()
        with telling.chapter("Slurm places pods", "Plain manifests in a managed namespace: none asks for Slurm. A pod becomes a job of Slurm, "
                             "and is bound where Slurm gives it a place; a gang becomes one job, and waits its turn in the queue. Pod, Job "
                             "and the JobSet's driver run in real containers."):
            demo.place_each_kind()
        with telling.chapter("A gang starts together or not at all", "Three pods want a node each. Two nodes are free, so none starts."):
            demo.start_a_gang()
        with telling.chapter("Why does my pod wait?", "It says so itself, in its condition SlurmPending. A wish that cannot be read is refused at once."):
            demo.tell_why()
        with telling.chapter("The urgent goes first", "A partition of a higher tier may take the places of others."):
            demo.preempt()
        with telling.chapter("Both sides see the same", "What Slurm counts as used is what Kubernetes runs: each job, and its pods beside it."):
            demo.compare()
    except (Fail, ApiError, SlurmError, OSError, http.client.HTTPException) as error:
        say(f"\n{demo.what_is_known()}")
        raise Fail(f"chapter {telling.count}: {error}") from error


def look_around(cluster: Cluster) -> None:
    say(f"\nIt still runs. Look around:\n"
        f"  export KUBECONFIG={cluster.admin_config} PATH={bin_dir()}:$PATH\n"
        f"  kubectl -n {NAMESPACE} get pods -o wide -L scheduler.slinky.slurm.net/slurm-jobid\n"
        f"  kubectl -n {NAMESPACE} get pod giant -o yaml | grep -B4 SlurmPending\n"
        f"  kubectl -n slurm exec slurm-controller-0 -- squeue\n"
        f"  kubectl -n {HOME} logs deployment/{SCHEDULER}\n"
        f"  make down NAME={NAME}       # and nothing is left")


def demo(arguments: list[str]) -> None:
    keep = arguments == ["--keep"]
    if arguments and not keep:
        raise Fail("usage: dev/demo [--keep]")
    begun, telling = time.monotonic(), Telling()
    ensure_image()
    if clusters.find(NAME):
        say("an earlier demo is still there: it goes first")
        life.down(NAME)
    try:
        tell_all(telling)
        telling.close(time.monotonic() - begun)
    finally:
        cluster = clusters.find(NAME)
        if keep and cluster:
            look_around(cluster)
        elif cluster:
            say("")
            life.down(NAME)
