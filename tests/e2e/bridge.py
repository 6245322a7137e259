"""The bridge on a real cluster: as a process of this machine, with nodes to place pods on, and what must hold of them all.

A report of a sanitizer or an exit code that is not 0 fails the test that stops it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pods import BUSYBOX
from replica import Command
from slincdev import components, nodes
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, Fail
from slincdev.kube import ApiError
from slincdev.parts import kubectl
from slincdev.slurm import Slurm, SlurmError
from waits import wait_for

SCHEDULER = "slurm-bridge-scheduler"
JOB_LABEL, FINALIZER = "scheduler.slinky.slurm.net/slurm-jobid", "scheduler.slinky.slurm.net/finalizer"
OWN_JOB = "scheduler.slinky.slurm.net/own-job"  # of a late member whom its group's job has no place for
NODE_LABEL, PARTITIONS = "scheduler.slinky.slurm.net/external-node", "scheduler.slinky.slurm.net/external-node-partitions"
TOPOLOGY = "topology.slinky.slurm.net/spec"
TAINT = "slinky.slurm.net/managed-node"
TEAM = "team"  # the label by which a test knows the pods of one workload, whatever its kind
WISH = "slurmjob.slinky.slurm.net/"  # begins every annotation about the job
STAYS = "slinc.dev/let-me-look"  # a finalizer: the pod can be seen on its way out
LIVE = {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT"}
MARK_KEY = "the secret of all bridges that tests start"
CONFIG = "/api/v1/namespaces/slurm/configmaps/slurm-config"
SETTLE_S = 60  # a take-over with its fence, and a round of work


class Bridge(Command):
    """One replica."""

    lease = SCHEDULER

    def __init__(self, cluster: Cluster, slurm: Slurm, folder: Path, name: str = "bridge", **config: object) -> None:
        super().__init__(folder, name)
        self.cluster, self.folder = cluster, folder
        self.config, self.token = folder / f"{name}.yaml", folder / f"{name}.token"
        key = folder / "jwt.key"
        key.write_bytes(slurm.key)
        (folder / "mark.key").write_text(MARK_KEY)
        base = {"slurmRestApi": f"http://{slurm.host}:{slurm.port}", "sharedNodes": True, "jwtKeyFile": str(key), "nodeResizeSeconds": 1}
        self.config.write_text(json.dumps(base | config))

    def start(self, *flags: str) -> Bridge:
        return self.run("bridge", "--config", self.config, "--kubeconfig", self.cluster.admin_config, "--lease-namespace", "default",
                        "--mark-key", self.folder / "mark.key", "--metrics-bind-address", f"127.0.0.1:{self.port}", "--health-probe-bind-address", f"127.0.0.1:{self.port}",
                        "--zap-encoder", "console", *flags, SLURM_JWT_FILE=str(self.token))


class Site:
    """A namespace with pods for the bridge, and the nodes it gives to Slurm."""

    def __init__(self, cluster: Cluster, slurm: Slurm, namespace: str) -> None:
        self.cluster, self.slurm, self.api, self.namespace = cluster, slurm, cluster.api(), namespace
        self.pods_path = f"/api/v1/namespaces/{namespace}/pods"
        self.uid = self.api.get("/api/v1/namespaces/kube-system")["metadata"]["uid"]
        if not self.api.exists(f"/api/v1/namespaces/{namespace}"):
            self.api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        wait_for("pods have an account there", 30, lambda: self.api.exists(f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))

    # --- nodes ---

    def add_node(self, name: str, cpus: int = 64, partitions: str = "slurm-bridge", labels: dict | None = None,
                 annotations: dict | None = None, taints: list[dict] | None = None, **resources: str) -> None:
        node = nodes.node_object(name, cpus)
        node["metadata"]["labels"] |= {NODE_LABEL: "true"} | (labels or {})
        node["metadata"]["annotations"] |= {PARTITIONS: partitions} | (annotations or {})
        node["spec"]["taints"] = node["spec"]["taints"] + (taints or [])
        for amounts in ("capacity", "allocatable"):
            node["status"][amounts] = node["status"][amounts] | resources
        self.api.post("/api/v1/nodes", node)

    def lend(self, name: str, partitions: str) -> None:
        """A node that is there gets the label."""
        self.api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {NODE_LABEL: "true"}, "annotations": {PARTITIONS: partitions}}})

    def take_back(self, name: str) -> None:
        self.api.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": {NODE_LABEL: None}, "annotations": {PARTITIONS: None}}})

    def node(self, name: str) -> dict:
        return self.api.get(f"/api/v1/nodes/{name}")

    def taint(self, name: str) -> str | None:
        return next((taint.get("value", "") for taint in self.node(name)["spec"].get("taints", []) if taint["key"] == TAINT), None)

    def slurm_node(self, name: str) -> dict | None:
        """None: Slurm says that there is no such node."""
        return next((node for node in self.slurm.call("GET", "/slurm/{api}/nodes/")["nodes"] if node["name"] == name), None)

    def set_slurm_node(self, name: str, **fields: object) -> None:
        self.slurm.call("POST", f"/slurm/{{api}}/node/{name}", fields)

    def is_registered(self, name: str) -> bool:
        found = self.slurm_node(name)
        return bool(found and found["extra"] and self.taint(name) == SCHEDULER)

    def are_registered(self, names: list[str]) -> bool:
        """The same of many, in two questions."""
        known = {node["name"] for node in self.slurm.call("GET", "/slurm/{api}/nodes/")["nodes"] if node["extra"]}
        ours = {node["metadata"]["name"] for node in self.api.get("/api/v1/nodes")["items"]
                if any(taint["key"] == TAINT and taint.get("value") == SCHEDULER for taint in node["spec"].get("taints", []))}
        return set(names) <= known & ours

    # --- pods ---

    def make(self, name: str, *command: str, wishes: dict | None = None, **spec: object) -> dict:
        """A pod for the bridge. With a command it is real: it goes to the partition of the node with the kubelet."""
        return self.api.post(self.pods_path, self.pod(name, *command, wishes=wishes, **spec))

    def pod(self, name: str, *command: str, wishes: dict | None = None, cpu: str = "100m", **spec: object) -> dict:
        wishes = ({"partition": "kubelet"} if command else {}) | (wishes or {})
        container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never",
                     "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}}} | ({"command": list(command)} if command else {})
        return {"metadata": {"name": name, "annotations": {WISH + key: value for key, value in wishes.items()}},
                "spec": {"schedulerName": SCHEDULER, "enableServiceLinks": False, "terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
                         "tolerations": [{"key": nodes.TAINT["key"], "operator": "Exists"}], "containers": [container], **spec}}

    def see(self, name: str) -> dict | None:
        """None: the API server says that it is gone."""
        try:
            return self.api.get(f"{self.pods_path}/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def delete(self, name: str, grace: int | None = None) -> None:
        self.api.delete(f"{self.pods_path}/{name}", None if grace is None else {"gracePeriodSeconds": grace})

    def let_go(self, name: str) -> None:
        """Of a pod that was held to be looked at; what the bridge has to do with it stays."""
        if found := self.see(name):
            kept = [one for one in found["metadata"].get("finalizers", []) if one != STAYS]
            self.api.merge(f"{self.pods_path}/{name}", {"metadata": {"finalizers": kept}})

    def placed(self, name: str) -> dict | None:
        found = self.see(name)
        return found if found and found["spec"].get("nodeName") else None

    def runs(self, name: str) -> dict | None:
        found = self.see(name)
        return found if found and found["status"]["phase"] == "Running" else None

    def events(self, name: str) -> dict[str, str]:
        """Of one object: reason and message."""
        found = self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events?fieldSelector=regarding.name%3D{name}")
        return {event["reason"]: event.get("note", "") for event in found["items"]}

    # --- workloads: the pods of each carry the label of its name ---

    def start(self, kind: str, name: str, size: int, *command: str, wishes: dict | None = None, **options: object) -> None:
        """A workload of this kind with so many pods at once. With a command they are real, as those of make()."""
        wishes = ({"partition": "kubelet"} if command else {}) | (wishes or {})
        for collection, body in WORKLOADS[kind](self, name, size, command, wishes, options):
            self.api.post(collection.format(f"namespaces/{self.namespace}"), body)

    def template(self, name: str, command: tuple, labels: dict | None = None, notes: dict | None = None, **options: object) -> dict:
        """Of pods; what they wish of Slurm stands on whatever owns them."""
        spec = self.pod("", *command, **options)["spec"]
        return {"metadata": {"labels": {TEAM: name} | (labels or {}), "annotations": notes or {}}, "spec": spec}

    def team(self, name: str) -> list[dict]:
        """The pods of a workload that are not on their way out, by rank."""
        found = self.api.get(f"{self.pods_path}?labelSelector={TEAM}%3D{name}")["items"]
        return sorted((pod for pod in found if "deletionTimestamp" not in pod["metadata"]), key=rank_of)

    def team_placed(self, name: str, size: int) -> list[dict] | None:
        """All of them, once they all have a place."""
        found = self.team(name)
        return found if len(found) == size and all(pod["spec"].get("nodeName") for pod in found) else None

    def team_in(self, name: str, size: int, *phases: str) -> list[dict] | None:
        found = self.team(name)
        return found if len(found) == size and all(pod["status"]["phase"] in phases for pod in found) else None

    def live_jobs_of_team(self, name: str) -> list[dict]:
        """Jobs say which pods they were asked for."""
        uids = {pod["metadata"]["uid"] for pod in self.team(name)}
        keys = {key for pod in self.team(name) for key in keys_of(pod)}
        return [job for job in self.live_jobs() if uid_of(job, self.uid) in uids or unit_of(job, self.uid) in keys]

    def disband(self, kind: str, name: str, **how: object) -> None:
        """Deletes what was made, the owner first; its pods go after it."""
        for collection, body in WORKLOADS[kind](self, name, 1, (), {}, {}):
            where = collection.format(f"namespaces/{self.namespace}")
            if not where.endswith("/pods"):
                self.api.delete(f"{where}/{body['metadata']['name']}", {"propagationPolicy": "Background"} | how)
        if kind in ("pods", "podgroup", "coscheduling"):
            self.api.delete(f"{self.pods_path}?labelSelector={TEAM}%3D{name}", how or None)

    # --- jobs ---

    def job(self, pod: dict) -> dict:
        """The one that the pod names."""
        return self.slurm.job(int(pod["metadata"]["labels"][JOB_LABEL]))

    def job_state(self, number: int) -> str:
        return self.slurm.job(number)["job_state"][0]

    def set_job(self, number: int, **fields: object) -> None:
        self.slurm.call("POST", f"/slurm/{{api}}/job/{number}", fields)

    def live_jobs(self) -> list[dict]:
        return [job for job in self.slurm.call("GET", "/slurm/{api}/jobs/")["jobs"] if LIVE & set(job["job_state"])]

    def live_jobs_of(self, uid: str) -> list[dict]:
        return [job for job in self.live_jobs() if uid_of(job, self.uid) == uid]

    def scontrol(self, *words: object) -> str:
        """What no REST call does."""
        return kubectl(self.cluster, "-n", "slurm", "exec", "slurm-controller-0", "-c", "slurmctld", "--", "scontrol", *words)

    # --- the end ---

    def owners(self) -> list[str]:
        """The paths of what makes pods or groups them. Not every cluster has every kind."""
        paths = [kind.format(f"namespaces/{self.namespace}") for kind in OWNERS]
        return [path for path in paths if self.api.exists(path)]

    def clear_pods(self) -> None:
        """With whatever would make them again."""
        for path in self.owners():
            self.api.delete(path, {"propagationPolicy": "Background"})
        self.api.delete(self.pods_path, {"gracePeriodSeconds": 0})

    def see_pods_off(self) -> None:
        """While a bridge runs, which lets them go. Their owners go too, so that names are free again: a built-in PodGroup stays until
        its last pod was seen to be gone."""
        self.clear_pods()
        paths = [*self.owners(), self.pods_path]
        wait_for("all pods are gone", 60, lambda: not any(self.api.get(path)["items"] for path in paths), every=0.2)

    def empty(self) -> None:
        """The same, and their jobs are gone too."""
        self.see_pods_off()
        wait_for("the jobs are gone", 60, lambda: not [job for job in self.live_jobs() if key_of(job)[0] == self.uid], every=0.2)

    def clear(self, node_names: list[str]) -> None:
        """While a bridge runs: all pods go, then the nodes."""
        self.see_pods_off()
        for name in node_names:
            if name == components.NODE:
                self.take_back(name)
            else:
                with contextlib.suppress(ApiError):
                    self.api.delete(f"/api/v1/nodes/{name}")
        wait_for("Slurm has none of the nodes", 60,
                 lambda: not {node["name"] for node in self.slurm.call("GET", "/slurm/{api}/nodes/")["nodes"]} & set(node_names), every=0.5)
        wait_for("the taint is gone", 30, lambda: self.taint(components.NODE) is None)


# --- kinds of workload -----------------------------------------------------------------------------------------------


JOBS, PODGROUPS, COSCHEDULING = "/apis/batch/v1/{}/jobs", "/apis/scheduling.k8s.io/v1alpha2/{}/podgroups", \
    "/apis/scheduling.x-k8s.io/v1alpha1/{}/podgroups"
JOBSETS, LEADERWORKERSETS = "/apis/jobset.x-k8s.io/v1alpha2/{}/jobsets", "/apis/leaderworkerset.x-k8s.io/v1/{}/leaderworkersets"
OWNERS = ["/apis/batch/v1/{}/cronjobs", JOBSETS, LEADERWORKERSETS, JOBS, "/apis/apps/v1/{}/deployments", "/apis/apps/v1/{}/replicasets",
          "/apis/apps/v1/{}/statefulsets", PODGROUPS, COSCHEDULING]  # who makes others first
GANG = {f"{WISH}gang": "true"}


def _named(name: str, wishes: dict) -> dict:
    return {"name": name, "annotations": {WISH + key: value for key, value in wishes.items()}}


def _pods(site: Site, name: str, size: int, command: tuple, wishes: dict, options: dict, labels: dict | None = None) -> list:
    def one(index: int) -> dict:
        pod = site.pod(f"{name}-{index}", *command, wishes=wishes, **options)
        pod["metadata"]["labels"] = {TEAM: name} | (labels or {})
        return pod
    return [("/api/v1/{}/pods", one(index)) for index in range(size)]


def _job(site: Site, name: str, size: int, command: tuple, wishes: dict, options: dict, notes: dict | None = None) -> list:
    """All of its pods at once; "more" is what else its spec says."""
    more = options.pop("more", {})
    return [(JOBS, {"metadata": _named(name, wishes), "spec": {
        "parallelism": size, "completions": size, "completionMode": "Indexed", "backoffLimit": 0,
        "template": site.template(name, command, notes=notes, **options), **more}})]


def _deployment(site: Site, name: str, size: int, command: tuple, wishes: dict, options: dict) -> list:
    return [("/apis/apps/v1/{}/deployments", {"metadata": _named(name, wishes), "spec": {
        "replicas": size, "selector": {"matchLabels": {TEAM: name}},
        "template": site.template(name, command, restartPolicy="Always", **options)}})]


def _jobset(site: Site, name: str, size: int, command: tuple, wishes: dict, options: dict, notes: dict | None = None) -> list:
    """As many Jobs as pods."""
    more = options.pop("more", {})
    job = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": site.template(name, command, notes=notes, **options)}
    return [(JOBSETS, {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": _named(name, wishes), "spec": {
        "replicatedJobs": [{"name": "work", "replicas": size, "template": {"spec": job}}], **more}})]


def _lws(site: Site, name: str, size: int, command: tuple, wishes: dict, options: dict) -> list:
    """One group."""
    more = options.pop("more", {})
    template = site.template(name, command, restartPolicy="Always", **options)
    return [(LEADERWORKERSETS, {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": _named(name, wishes),
                                "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": size, "workerTemplate": template, **more}}})]


def _podgroup(site: Site, name: str, size: int, command: tuple, wishes: dict, options: dict) -> list:
    group = {"metadata": _named(name, wishes), "spec": {"schedulingPolicy": {"gang": {"minCount": size}}}}
    return [(PODGROUPS, group), *_pods(site, name, size, command, {}, options | {"schedulingGroup": {"podGroupName": name}})]


def _coscheduling(site: Site, name: str, size: int, command: tuple, wishes: dict, options: dict) -> list:
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": _named(name, wishes), "spec": {"minMember": size}}
    return [(COSCHEDULING, group), *_pods(site, name, size, command, {}, options, {"scheduling.x-k8s.io/pod-group": name})]


WORKLOADS: dict[str, Callable[..., list]] = {
    "pods": _pods, "job": _job, "deployment": _deployment, "jobset": _jobset,
    "job gang": lambda *words: _job(*words, notes=GANG), "jobset gang": lambda *words: _jobset(*words, notes=GANG),
    "lws": _lws, "podgroup": _podgroup, "coscheduling": _coscheduling}
GANGS = ("job gang", "jobset gang", "lws", "podgroup", "coscheduling")  # one job of Slurm for all pods; of the others one each


def condition(thing: dict | None, kind: str) -> dict:
    """Of a pod or a node; all of it empty when there is none, or no such thing."""
    empty = {"status": "", "reason": "", "message": ""}
    return next((empty | one for one in (thing or {}).get("status", {}).get("conditions", []) if one["type"] == kind), empty)


def key_of(job: dict) -> tuple[str, str]:
    """The cluster and the unit that a job says it belongs to."""
    try:
        comment = json.loads(job["admin_comment"] or "{}")
        return comment.get("cluster", ""), comment.get("unit", "")
    except (ValueError, AttributeError):
        return "", ""


def unit_of(job: dict, cluster_uid: str) -> str | None:
    """The key without its attempt and the UID of its group; None when the job is not this cluster's."""
    cluster, unit = key_of(job)
    return unit.rsplit(".", 1)[0].split("@", 1)[0] if cluster == cluster_uid and unit else None


def uid_of(job: dict, cluster_uid: str) -> str | None:
    """Of the pod; None when the job is not this cluster's."""
    unit = unit_of(job, cluster_uid)
    return unit.rsplit("/", 1)[-1] if unit else None


def keys_of(pod: dict) -> list[str]:
    """Of the units that a pod may be planned with: itself, and its group."""
    space, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels", {})
    owner = next((one for one in pod["metadata"].get("ownerReferences", []) if one.get("controller")), {})
    jobset, gang = "jobset.sigs.k8s.io/", pod["metadata"].get("annotations", {}).get(f"{WISH}gang", "false") != "false"
    keys = [f"{space}/{pod['metadata']['uid']}"]
    if group := pod["spec"].get("schedulingGroup"):
        keys.append(f"{space}/podgroup/{group['podGroupName']}")
    elif "scheduling.x-k8s.io/pod-group" in labels:
        keys.append(f"{space}/coscheduling/{labels['scheduling.x-k8s.io/pod-group']}")
    elif "leaderworkerset.sigs.k8s.io/group-key" in labels:
        keys.append(f"{space}/lws/{labels['leaderworkerset.sigs.k8s.io/group-key']}")
    elif gang and f"{jobset}jobset-uid" in labels:
        keys.append(f"{space}/jobset/{labels[f'{jobset}jobset-uid']}/{labels[f'{jobset}restart-attempt']}")
    elif gang and owner.get("kind") == "Job":
        keys.append(f"{space}/job/{owner['uid']}")
    return keys


def hosts(text: str) -> list[str]:
    """Slurm's folded list of nodes, in its order: "a-[0,2-3],b"."""
    names = []
    for head, ranges in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", text):
        for one in ranges.split(",") if ranges else []:
            first, _, last = one.partition("-")
            names += [f"{head}{number:0{len(first)}}" for number in range(int(first), int(last or first) + 1)]
        names += [] if ranges else [head]
    return names


def rank_of(pod: dict) -> tuple:
    """Which Job of a JobSet, which pod of it, which worker; else by name."""
    labels = pod["metadata"].get("labels", {})
    numbers = [int(labels.get(key, -1)) for key in ("jobset.sigs.k8s.io/job-global-index", "batch.kubernetes.io/job-completion-index",
                                                    "leaderworkerset.sigs.k8s.io/worker-index")]
    return (*numbers, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", pod["metadata"]["name"])])


@contextlib.contextmanager
def at_work(site: Site, bridge: Bridge, names: list[str], *flags: str) -> Iterator[Bridge]:
    """It leads, and Slurm has the nodes; after the block all of it is gone, and the rules hold."""
    try:
        bridge.start(*flags).wait_until_it_leads()
        wait_for("the nodes are in Slurm", 30, lambda: site.are_registered(names))
        yield bridge
        site.clear(names)
        settled(site)
        bridge.stop()
    finally:
        bridge.end()


@contextlib.contextmanager
def configured(site: Site, more: str, script: str = "") -> Iterator[None]:
    """slurmctld with these lines too. Its pod is touched, so that its kubelet brings the files at once."""
    kept = site.api.get(CONFIG)["data"]
    files = kept | {"slurm.conf": kept["slurm.conf"] + more} | ({"job_submit.lua": script} if script else {})
    removed = {name: None for name in files if name not in kept}
    changed = more.splitlines()[0]

    def bring(data: dict, is_there: bool) -> None:
        site.api.merge(CONFIG, {"data": data})
        site.api.merge("/api/v1/namespaces/slurm/pods/slurm-controller-0", {"metadata": {"annotations": {"slinc.dev/touched": str(is_there)}}})

        def taken() -> bool:
            with contextlib.suppress(Fail):
                site.scontrol("reconfigure")
                name, value = changed.split("=", 1)
                said = next(line for line in site.scontrol("show", "config").splitlines() if line.startswith(name))
                return (said.split("=", 1)[1].strip() == value) == is_there
            return False
        wait_for(f"slurmctld has {changed}: {is_there}", 120, taken, every=2)
    try:
        bring(files, True)
        yield
    finally:
        bring(kept | removed, False)


# --- what must hold, always again after a while ----------------------------------------------------------------------


def may_run(pod: dict) -> bool:
    return bool(pod["spec"].get("nodeName")) and pod["status"]["phase"] not in ("Succeeded", "Failed")


def broken_rules(site: Site) -> list[str]:
    """No job without a pod, no bound pod without a job on its node, no unit with two live jobs."""
    jobs: dict[str, list[dict]] = {}
    for job in site.live_jobs():
        if (unit := unit_of(job, site.uid)) is not None and job["job_state"] != ["COMPLETING"]:
            jobs.setdefault(unit, []).append(job)
    pods = site.api.get(f"/api/v1/pods?fieldSelector=spec.schedulerName%3D{SCHEDULER}")["items"]
    wanted = {key for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed") for key in keys_of(pod)}
    broken = []
    for unit, found in jobs.items():
        numbers = [job["job_id"] for job in found]
        if unit not in wanted:
            broken.append(f"jobs {numbers} have no pod that may run")
        if len(found) > 1:
            broken.append(f"jobs {numbers} are all of one unit")
    for pod in filter(may_run, pods):
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        own = [job for key in keys_of(pod) for job in jobs.get(key, [])]
        if not any("RUNNING" in job["job_state"] and node in hosts(job["nodes"]) for job in own):
            broken.append(f"pod {name} on {node} has no running job there")
    return broken


class Strangers:
    """What is there and not ours: jobs, a node, pods. It must stay as it is."""

    def __init__(self, site: Site) -> None:
        self.site, slurm = site, site.slurm
        slurm.create_nodes("stranger-[0-1]", cpus=16, memory_mib=8000, feature="strangers")
        site.set_slurm_node("stranger-0", extra=json.dumps({"v": 1, "cluster": "another-cluster", "node": "stranger-0"}))
        site.set_slurm_node("stranger-1", state=["DRAIN"], reason="slurm-bridge? no: an administrator")
        comment = {"pods": ["default/web"], "v": 1, "cluster": "another-cluster", "unit": "default/11111111-2222-3333-4444-555555555555.1"}
        where = {"partition": "all", "required_nodes": ["stranger-0"]}
        self.jobs = [slurm.submit("native", **where), slurm.submit("json", **where, admin_comment='{"pods":["default/web"]}'),
                     slurm.submit("theirs", **where, admin_comment=json.dumps(comment), extra=comment["unit"]),
                     slurm.submit("null", **where, admin_comment="null")]
        wait_for("the strangers' jobs run", 30, lambda: all(site.job_state(number) == "RUNNING" for number in self.jobs))
        self.pod = site.api.post("/api/v1/namespaces/default/pods", {
            "metadata": {"name": "stranger", "labels": {JOB_LABEL: "4000000"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never"}]}})
        self.before = self.look()

    def look(self) -> dict:
        jobs = {number: self.site.slurm.job(number) for number in self.jobs}
        kept = ("job_state", "admin_comment", "extra", "nodes", "name", "submit_time")
        found = {f"job {number}": {key: job[key] for key in kept} for number, job in jobs.items()}
        for name in ("stranger-0", "stranger-1"):
            node = self.site.slurm_node(name)
            found[name] = node and {key: node[key] for key in ("reason", "extra", "features", "cpus", "real_memory", "address")} | \
                {"state": set(node["state"]) - {"PLANNED"}}  # for somebody, by Slurm
        pod = self.site.api.get("/api/v1/namespaces/default/pods/stranger")
        found["pod"] = {"uid": pod["metadata"]["uid"], "version": pod["metadata"]["resourceVersion"]}
        return found

    def changes(self) -> list[str]:
        return [f"{name}: {was} became {now.get(name)}" for now in [self.look()] for name, was in self.before.items() if now.get(name) != was]

    def remove(self) -> None:
        self.site.api.delete("/api/v1/namespaces/default/pods/stranger", {"gracePeriodSeconds": 0})
        for number in self.jobs:
            self.site.slurm.cancel(number)

        def are_gone() -> bool:
            left = [name for name in ("stranger-0", "stranger-1") if self.site.slurm_node(name)]
            for name in left:  # one by one: Slurm may delete a part of a range and refuse the rest
                with contextlib.suppress(SlurmError):
                    self.site.slurm.delete_node(name)
            return not left
        wait_for("the strangers are gone", 30, are_gone)


# --- processes of the cluster ----------------------------------------------------------------------------------------


def processes(cluster: Cluster, name: str) -> list[int]:
    """Of the cluster's pods, by the name that they were started with: slurmctld has another one after it took a new configuration."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_text().split("\0")[0].rpartition("/")[2] == name and f"slinc-{cluster.name}/" in (folder / "cgroup").read_text():
                found.append(int(folder.name))
    return found


@contextlib.contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """Alive, and silent."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def settled(site: Site, seconds: float = SETTLE_S, also: Callable[[], list[str]] = list) -> None:
    """Whatever happened, the rules hold again within a bound."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        try:
            broken = broken_rules(site) + also()
        except (ApiError, SlurmError, OSError, http.client.HTTPException) as error:
            broken = [repr(error)]
        if not broken:
            return
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds:g} s: " + "; ".join(broken[:10]) + f" ({len(broken)} in all)")
        time.sleep(0.5)
