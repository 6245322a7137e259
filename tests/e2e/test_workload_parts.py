"""The kinds of workload that others bring: JobSet, LeaderWorkerSet and both PodGroups work here with the stock scheduler."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from conftest import NAME
from pods import BUSYBOX, pod
from slincdev import nodes, up as life
from slincdev.cluster import Cluster
from slincdev.components import NODE
from slincdev.kube import Api

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
LEADERWORKERSETS = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
PODGROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
WORKLOADS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads"
COSCHEDULING = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
PODS = "/api/v1/namespaces/default/pods"
REAL = {"kubernetes.io/hostname": NODE}
KWOK = {"type": "kwok"}


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Api:
    return life.up(NAME, node_count=3, with_parts=["slurm", "jobset", "lws", "podgroup"]).api()


@contextlib.contextmanager
def made(api: Api, eventually: Callable, collection: str, body: dict) -> Iterator[str]:
    """The object exists inside the block; after it, it and its pods are gone. Gives its path."""
    path = f"{collection}/{body['metadata']['name']}"
    api.post(collection, body)
    try:
        yield path
    finally:
        api.delete(path, {"propagationPolicy": "Foreground"})
        eventually(f"{path} is gone", lambda: not api.exists(path))


def work(selector: dict, *command: str, **spec) -> dict:
    """What a pod template says: a small pod for the nodes named."""
    return pod("", BUSYBOX, *command, nodeSelector=selector, tolerations=[{"key": nodes.TAINT["key"], "operator": "Exists"}],
               container={"resources": {"requests": {"cpu": "10m", "memory": "8Mi"}}}, **spec)["spec"]


def pods_of(api: Api, selector: str) -> list[dict]:
    found = api.get(f"{PODS}?labelSelector={selector.replace('=', '%3D')}")["items"]
    return sorted((one for one in found if "deletionTimestamp" not in one["metadata"]), key=lambda one: one["metadata"]["name"])


def owner(found: dict) -> tuple[str, str]:
    one = next(reference for reference in found["metadata"]["ownerReferences"] if reference.get("controller"))
    return one["kind"], one["name"]


def condition(found: dict, kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in found.get("status", {}).get("conditions", []))


# --- JobSet ---------------------------------------------------------------------------------------------------------


def jobset(name: str, command: list[str], **spec) -> dict:
    """Two replicated Jobs of two pods: one on the real node, one on kwok nodes."""
    def replicated(job: str, selector: dict) -> dict:
        wanted = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": {"spec": work(selector, *command, restartPolicy="Never")}}
        return {"name": job, "replicas": 1, "template": {"spec": wanted}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": [replicated("real", REAL), replicated("played", KWOK)], **spec}}


def test_a_jobset_runs_to_completion_on_real_and_kwok_nodes(api, eventually):
    with made(api, eventually, JOBSETS, jobset("short", ["true"])) as path:
        eventually("the JobSet is complete", lambda: condition(api.get(path), "Completed"))
        members = pods_of(api, "jobset.sigs.k8s.io/jobset-name=short")
        assert [one["status"]["phase"] for one in members] == ["Succeeded"] * 4
        assert [owner(one) for one in members] == [("Job", "short-played-0")] * 2 + [("Job", "short-real-0")] * 2
        assert [one["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for one in members] == ["0", "1"] * 2
        assert {one["spec"]["nodeName"] for one in members[2:]} == {NODE}
        assert all(one["spec"]["nodeName"].startswith("kwok-") for one in members[:2])


# --- LeaderWorkerSet ------------------------------------------------------------------------------------------------


def leaderworkerset(name: str, groups: int, size: int, leader: dict, worker: dict) -> dict:
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": name},
            "spec": {"replicas": groups, "leaderWorkerTemplate": {
                "size": size, "leaderTemplate": {"spec": leader}, "workerTemplate": {"spec": worker}}}}


def test_a_leaderworkerset_has_ready_groups_on_real_and_kwok_nodes(api, eventually):
    wanted = leaderworkerset("serve", 2, 3, work(REAL, "sleep", "600"), work(KWOK))
    with made(api, eventually, LEADERWORKERSETS, wanted) as path:
        eventually("two groups are ready", lambda: api.get(path).get("status", {}).get("readyReplicas") == 2)
        members = pods_of(api, "leaderworkerset.sigs.k8s.io/name=serve")
        keys = ("group-index", "worker-index", "group-key")
        marks = [{key: one["metadata"]["labels"][f"leaderworkerset.sigs.k8s.io/{key}"] for key in keys} for one in members]
        assert [one["metadata"]["name"] for one in members] == ["serve-0", "serve-0-1", "serve-0-2", "serve-1", "serve-1-1", "serve-1-2"]
        assert [(mark["group-index"], mark["worker-index"]) for mark in marks] == [(group, worker) for group in "01" for worker in "012"]
        assert len({mark["group-key"] for mark in marks}) == 2
        assert [owner(one) for one in members[:3]] == [("StatefulSet", "serve"), ("StatefulSet", "serve-0"), ("StatefulSet", "serve-0")]
        assert members[0]["spec"]["nodeName"] == NODE and members[1]["spec"]["nodeName"].startswith("kwok-")


# --- PodGroups ------------------------------------------------------------------------------------------------------


def test_a_gang_of_the_built_in_kind_starts_when_it_is_complete(api, eventually):
    policy = {"gang": {"minCount": 2}}
    source = {"workload": {"workloadName": "train", "podGroupTemplateName": "workers"}}
    first, second = (pod(name, BUSYBOX, "true", restartPolicy="Never", schedulingGroup={"podGroupName": "train-0"})
                     for name in ("train-a", "train-b"))
    workload = {"metadata": {"name": "train"}, "spec": {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": policy}]}}
    group = {"metadata": {"name": "train-0"}, "spec": {"podGroupTemplateRef": source, "schedulingPolicy": policy}}
    with contextlib.ExitStack() as all_made:
        all_made.enter_context(made(api, eventually, WORKLOADS, workload))
        path = all_made.enter_context(made(api, eventually, PODGROUPS, group))
        lone = all_made.enter_context(made(api, eventually, PODS, first))
        other = all_made.enter_context(made(api, eventually, PODS, pod("ordinary", BUSYBOX, "true", restartPolicy="Never")))
        eventually("an ordinary pod that came later is done", lambda: api.get(other)["status"]["phase"] == "Succeeded")
        assert "nodeName" not in api.get(lone)["spec"] and not condition(api.get(path), "PodGroupScheduled")
        late = all_made.enter_context(made(api, eventually, PODS, second))
        eventually("both are done", lambda: all(api.get(one)["status"]["phase"] == "Succeeded" for one in (lone, late)))
        eventually("the group says so", lambda: condition(api.get(path), "PodGroupScheduled"))


def test_a_coscheduling_group_is_kept_and_its_pods_run(api, eventually):
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "pair"},
             "spec": {"minMember": 2, "minResources": {"cpu": "20m"}}}
    member = pod("pair-a", BUSYBOX, "true", labels={"scheduling.x-k8s.io/pod-group": "pair"}, restartPolicy="Never")
    with made(api, eventually, COSCHEDULING, group) as path, made(api, eventually, PODS, member) as lone:
        eventually("its pod is done", lambda: api.get(lone)["status"]["phase"] == "Succeeded")
        assert api.merge(f"{path}/status", {"status": {"phase": "Running"}})["status"]["phase"] == "Running"
        assert api.get(path)["spec"]["minMember"] == 2
