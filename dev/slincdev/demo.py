"""make demo: the whole system on a real Kubernetes and a real Slurm, told in chapters. The workloads and values are in dev/story."""

from __future__ import annotations

import http.client
import os
import time

from . import cluster as clusters, up as life
from .build import bin_dir
from .cluster import Cluster
from .common import REPO, Fail, run, say, wait_for
from .components import NODE
from .kube import ApiError
from .lives import Life, Lives
from .prepare import Preparation
from .release import SCHEDULER, build_slinc
from .system import GROUP, HOME, IMAGES, OPERATOR_HOME, WORKERS, System, slinc
from .telling import Telling, answer, command, fold, side_by_side

NAME = os.environ.get("SLINC_DEMO_NAME", "demo")  # another name does not meet a demo that was kept
NAMESPACE = "slurm-bridge"  # the chart of the bridge manages it by default
KWOK = [f"kwok-{index}" for index in range(4)]
PARTS = ["jobset", "lws", "podgroup"]
LABEL, PARTITIONS = "scheduler.slinky.slurm.net/external-node", "scheduler.slinky.slurm.net/external-node-partitions"
SLURM_NAME = "slinky.slurm.net/slurm-nodename"
UNTIL_TOLD = "while [ ! -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.1; done"  # a job that ends when it is told to
SCREENSHOT = REPO / "build/demo-page.png"
# Kind, file, the label of its pods, how many they are, whether it runs to its end in real containers alone.
WORKLOADS = [("Pod", "pod", "hello", 1, True), ("Job", "job", "pi", 2, True), ("JobSet", "jobset", "train", 3, False),
             ("LeaderWorkerSet", "lws", "serve", 3, False), ("PodGroup", "podgroup", "ring", 2, False)]


class Demo:
    """The system, and each chapter as a function."""

    def __init__(self, cluster: Cluster, telling: Telling, ready: Preparation) -> None:
        self.cluster, self.telling, self.system, self.ready = cluster, telling, System(cluster), ready
        self.lives: Lives | None = None
        self.native = ""  # a job of Slurm's own, which runs through half of the demo

    # --- what a person would type ---

    def kubectl(self, text: str) -> str:
        command(f"kubectl {text}")
        return self.system.kubectl(*text.split())

    def apply(self, file: str) -> None:
        self.kubectl(f"apply -f dev/story/{file}.yaml")

    def delete(self, pod: str) -> float:
        """Since when it is wished."""
        since = time.monotonic()
        self.kubectl(f"-n {NAMESPACE} delete pod {pod} --wait=false")
        return since

    def ssh(self, text: str) -> str:
        command(f"ssh root@login {text}")
        return self.system.ssh(text)

    def slurm(self, text: str) -> str:
        command(text)
        return self.system.slurm(text)

    def slinc(self, text: str) -> str:
        command(f"slinc {text}")
        return run([slinc(), *text.split(), "--color=never", f"--kubeconfig={self.cluster.admin_config}"], what=f"slinc {text}")

    def wait(self, what: str, seconds: float, check) -> object:
        """A question that fails in a bad moment is asked again."""
        def ask() -> object:
            try:
                return check()
            except (Fail, ApiError, OSError, http.client.HTTPException):
                return None
        return wait_for(what, seconds, ask, every=0.2)

    def columns(self, *columns: str, kinds: tuple[str, ...]) -> str:
        """Of custom resources. A column without a path is a condition: its message, or its status where the message says no more."""
        field = {"READY": "status", "DRAINING": "message"}
        words = [word if ":" in word else f'{word}:.status.conditions[?(@.type=="{word.title()}")].{field[word]}' for word in columns]
        return self.system.kubectl("-n", HOME, "get", ",".join(f"{kind}.{GROUP}" for kind in kinds), "-o", f"custom-columns={','.join(words)}")

    def what_is_known(self) -> str:
        """For a person who looks for what went wrong."""
        said = [f"pod {one.name} waits: {one.says('SlurmPending') or 'it does not say why'}" for one in (self.lives.all() if self.lives else []) if not one.bound]
        for words in (("-n", HOME, "get", f"pods,controllers.{GROUP},nodesets.{GROUP},tokens.{GROUP}"), ("-n", HOME, "logs", f"deployment/{SCHEDULER}", "--tail=15"),
                      ("-n", OPERATOR_HOME, "logs", "deployment/slurm-operator", "--tail=15")):
            try:
                said.append(self.system.kubectl(*words))
            except Fail as fail:
                said.append(str(fail))
        return "\n".join(said)

    # --- chapters ---

    def install(self) -> None:
        system, begun = self.system, time.monotonic()
        command("helm install slurm-operator charts/slurm-operator -n slinky -f values/operator.yaml --wait")
        system.install_operator()
        command("helm install slurm charts/slurm -n slurm -f values/slurm.yaml")
        system.install_slurm()
        command("helm install slurm-bridge charts/slurm-bridge -n slurm -f values/bridge.yaml")
        system.install("slurm-bridge", "slurm-bridge", HOME)
        command("helm install slurm-exporter charts/slurm-exporter -n slurm -f values/exporter.yaml")
        system.install("slurm-exporter", "slurm-exporter", HOME)
        for plural, name in (("controllers", "slurm"), ("restapis", "slurm"), ("loginsets", "slurm-login-main"), ("nodesets", WORKERS), ("tokens", "slurm-bridge")):
            self.wait(f"{plural} {name} is ready", 90, lambda plural=plural, name=name: system.is_ready(plural, name))
        self.wait("the worker is idle", 60, lambda: system.are_idle("cpu-0"))
        seconds = time.monotonic() - begun
        command("kubectl -n slurm get controllers,restapis,loginsets,nodesets,tokens")
        answer(self.columns("KIND:.kind", "NAME:.metadata.name", "READY", kinds=("controllers", "restapis", "loginsets", "nodesets", "tokens")))
        answer(f"a Slurm cluster from nothing in {seconds:.1f} s")
        self.telling.note("first helm install to a worker that takes jobs", seconds)

    def log_in(self) -> None:
        self.wait("sshd answers", 30, self.system.answers_ssh)
        begun = time.monotonic()
        said = self.ssh("srun hostname")
        answer(f"{said}          ({time.monotonic() - begun:.2f} s)")
        self.telling.note("ssh, srun, and the answer of the worker", time.monotonic() - begun)

    def scale_workers(self) -> None:
        system, begun = self.system, time.monotonic()
        command(f"kubectl -n slurm scale nodeset {WORKERS} --replicas=3")
        system.scale(3)
        self.wait("three workers are idle", 90, lambda: system.are_idle("cpu-0", "cpu-1", "cpu-2"))
        answer(f"cpu-[0-2] take jobs after {time.monotonic() - begun:.1f} s")
        self.telling.note("two more workers, until they take jobs", time.monotonic() - begun)
        job = self.sbatch("cpu-2", UNTIL_TOLD, "simulation")
        command(f"kubectl -n slurm scale nodeset {WORKERS} --replicas=1")
        begun = time.monotonic()
        system.scale(1)
        self.wait("the idle worker is gone, the busy one drains", 60,
                  lambda: system.worker_pods().keys() == {"cpu-0", "cpu-2"} and "drain" in system.node_states()["cpu-2"])
        answer(f"cpu-1 was idle: gone after {time.monotonic() - begun:.1f} s. cpu-2 drains and waits for job {job}: {system.job_states()[job]}")
        command("kubectl -n slurm get nodesets")
        answer(self.columns("NAME:.metadata.name", "REPLICAS:.status.replicas", "DRAINING", kinds=("nodesets",)))
        system.end_job("cpu-2", job)
        self.wait("the job has ended", 30, lambda: "JobState=COMPLETED" in system.slurm(f"scontrol show job {job}"))
        begun = time.monotonic()
        self.wait("the worker is gone", 60, lambda: system.worker_pods().keys() == {"cpu-0"})
        answer(f"the job ran to its end, then: COMPLETED; {time.monotonic() - begun:.1f} s later cpu-2 is gone")
        self.telling.note("its job ends to the worker is gone", time.monotonic() - begun)

    def sbatch(self, worker: str, script: str, name: str) -> str:
        """It runs when this returns."""
        command(f"ssh root@login sbatch --job-name={name} --mem=64 -w {worker} ...")
        job = self.system.ssh(f"sbatch --parsable -D /tmp -o /dev/null --mem=64 -J {name} -w {worker} --wrap '{script}'")
        self.wait(f"job {job} runs", 30, lambda: self.system.job_states()[job] == "RUNNING")
        answer(f"job {job} runs on {worker}")
        return job

    def share_nodes(self) -> None:
        self.kubectl(f"create namespace {NAMESPACE}")
        self.lives = Lives(self.cluster.api(), NAMESPACE)
        self.kubectl(f"annotate node {' '.join(KWOK)} {PARTITIONS}=slurm-bridge")
        self.kubectl(f"label node {' '.join(KWOK)} {LABEL}=true")
        self.kubectl(f"label node {NODE} {SLURM_NAME}=cpu-0")
        self.wait("Slurm has the nodes", 60, lambda: self.system.are_idle(*KWOK) and self.is_shared(NODE))
        answer(self.slurm("sinfo -p slurm-bridge,cpu"))

    def is_shared(self, node: str) -> bool:
        taints = self.cluster.api().get(f"/api/v1/nodes/{node}")["spec"].get("taints", [])
        return any(taint["key"] == "slinky.slurm.net/managed-node" for taint in taints)

    def place_each_kind(self) -> None:
        life.add_parts(self.cluster, PARTS, self.ready)
        self.native = self.sbatch("cpu-0", UNTIL_TOLD, "native")
        for kind, file, story, size, ends in WORKLOADS:
            self.apply(file)
            found = self.lives.placed(story, size)
            seconds = max(one.bound for one in found) - min(one.made for one in found)
            answer(f"{kind}: {counted(size, 'pod')} on {nodes_of(found)} by {jobs_of(found)}, bound after {seconds:.2f} s")
            self.telling.note(f"{kind}: first pod made to last pod bound", seconds)
            if ends:  # the next one gets the cores of the real node for itself
                self.lives.wait(f"{story} has run", lambda: all(one.phase == "Succeeded" for one in found))
        answer(self.kubectl(f"-n {NAMESPACE} logs hello"))
        answer(self.slurm(f"squeue -j {self.native} -o '%i %j %T %N'"))

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
        answer(self.slinc(f"why later -n {NAMESPACE}"))
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
        self.slurm(f"scontrol create PartitionName=urgent Nodes={nightly.node} PriorityTier=10")
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

    def kill_slurmctld(self) -> None:
        pods = {one.pod["metadata"]["uid"]: one.node for one in self.lives.all() if one.bound}
        command("kill -9 $(pidof slurmctld)          # on the node")
        begun = time.monotonic()
        self.cluster.inside(["pkill", "-9", "slurmctld"])
        self.wait("slurmctld answers again", 60, lambda: "UP" in self.system.slurm("scontrol ping"))
        back = time.monotonic() - begun
        self.wait("every pod has its job, and the native one runs", 90, self.all_have_jobs)
        left = {one.pod["metadata"]["uid"]: one.node for one in self.lives.all() if one.bound}
        if left.items() < pods.items():
            raise Fail(f"pods were lost: {sorted(pods.keys() - left.keys())}")
        answer(f"slurmctld answers again after {back:.1f} s; {len(pods)} pods are where they were, each by a running job; native job {self.native} runs on")
        self.telling.note("slurmctld killed to everything as before", time.monotonic() - begun)

    def all_have_jobs(self) -> bool:
        states = self.system.job_states()
        running = {job for job, state in states.items() if state == "RUNNING"}
        return self.native in running and all(one.job in running for one in self.lives.all() if one.bound and one.phase == "Running")

    def compare(self) -> None:
        shown = self.system.slurm("squeue -h -o '%i|%j|%T|%R' --sort=i --states=PENDING,RUNNING").splitlines()
        command(f"squeue; kubectl -n {NAMESPACE} get pods")
        left, right = [f"{'JOB':<4} {'NAME':<10} {'STATE':<9} NODES (REASON)"], [f"{'POD':<11} {'STATUS':<9} NODE"]
        for job, name, state, where in (line.split("|", 3) for line in shown):
            if job == self.native:
                left, right = [*left, f"{job:<4} {name:<10} {state:<9} {where}"], [*right, "a job of Slurm's own"]
                continue
            pods = self.lives.wait(f"job {job} has pods", lambda: [one for one in self.lives.all() if job in (one.job, waits_for(one))])
            left += [f"{job:<4} {name:<10} {state:<9} {where}", *[""] * (len(pods) - 1)]
            right += [f"{one.name:<11} {one.phase:<9} {one.node}" for one in pods]
        side_by_side(left, right)
        self.system.screenshot(SCREENSHOT)
        say("")
        answer(f"The same as a live page: {self.system.page_address()}\nA picture of it: {SCREENSHOT.relative_to(REPO)}")


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


# Title, text, what happens.
CHAPTERS = (
    ("Four charts", "The operator turns custom resources into a Slurm cluster. The bridge finds that Slurm and its token by itself. The exporter shows what "
     "goes on. The values are in dev/story/values.", Demo.install),
    ("A person logs in", "By ssh to a login pod. srun runs on a worker, which is a pod, too.", Demo.log_in),
    ("Workers come and go", "Three workers, a job on the last one, then one worker: who is idle goes at once, who works is drained and goes when its job has "
     "ended.", Demo.scale_workers),
    ("Kubernetes shares its nodes", "Four nodes become nodes of Slurm by a label. The fifth has a worker already: there, pods share what Slurm counts with "
     "jobs of Slurm's own.", Demo.share_nodes),
    ("Slurm places pods", "Plain manifests in a managed namespace: none asks for Slurm. A pod becomes a job of Slurm, and is bound where Slurm gives it a "
     "place; a gang becomes one job. A job of Slurm's own runs beside them.", Demo.place_each_kind),
    ("A gang starts together or not at all", "Three pods want a node each. Two nodes are free, so none starts.", Demo.start_a_gang),
    ("Why does my pod wait?", "It says so itself, in its condition SlurmPending. `slinc why` tells the whole story. A wish that cannot be read is refused at "
     "once.", Demo.tell_why),
    ("The urgent goes first", "A partition of a higher tier may take the places of others.", Demo.preempt),
    ("slurmctld is killed", "No pod ends, no job is lost: the bridge waits, and compares both sides before it acts.", Demo.kill_slurmctld),
    ("Both sides see the same", "What Slurm counts as used is what runs: each job, and its pods beside it.", Demo.compare),
)


def tell_all(telling: Telling) -> None:
    with telling.chapter("A cluster on this machine", "A real Kubernetes with one real node, four more nodes that kwok plays. Controllers for "
                         "JobSets and LeaderWorkerSets come along as soon as they are built."):
        ready = life.prepare(PARTS, IMAGES, build_slinc)
        demo = Demo(life.up(NAME, node_count=len(KWOK), images=IMAGES, ready=ready), telling, ready)
    try:
        for title, text, act in CHAPTERS:
            with telling.chapter(title, text):
                act(demo)
    except (Fail, ApiError, OSError, http.client.HTTPException) as error:
        say(f"\n{demo.what_is_known()}")
        raise Fail(f"chapter {telling.count}: {error}") from error


def look_around(cluster: Cluster) -> None:
    system = System(cluster)
    say(f"\nIt still runs. Look around:\n"
        f"  export KUBECONFIG={cluster.admin_config} PATH={bin_dir()}:{slinc().parent}:$PATH\n"
        f"  kubectl -n {NAMESPACE} get pods -o wide -L scheduler.slinky.slurm.net/slurm-jobid\n"
        f"  slinc queue; slinc nodes; slinc why giant -n {NAMESPACE}\n"
        f"  ssh -i {system.ssh_key} root@{system.login_address()}     # then: sinfo, squeue, srun hostname\n"
        f"  kubectl -n {HOME} scale nodesets.{GROUP}/{WORKERS} --replicas=2\n"
        f"  {system.page_address()}     # the live page\n"
        f"  make down NAME={NAME}       # and nothing is left")


def demo(arguments: list[str]) -> None:
    keep = arguments == ["--keep"]
    if arguments and not keep:
        raise Fail("usage: dev/demo [--keep]")
    begun, telling = time.monotonic(), Telling()
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
