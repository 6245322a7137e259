"""The rules of Kubernetes about where a pod may run hold though Slurm chooses: a node that they forbid is never given, a pod that no node
will do for says which rule it is, and a change that opens a node is seen."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest
from bridge import JOB_LABEL, TEAM, WORKLOADS, Bridge, Site, at_work, condition, settled, uid_of
from slincdev.kube import ApiError

ZONE, DISK, RACK = "topology.kubernetes.io/zone", "disk", "rack"
FPGA = "example.org/fpga"
NODES = {  # in Slurm's order, which is made so: it takes the first that will do
    "rule-0": {"labels": {ZONE: "east", DISK: "slow"}},
    "rule-1": {"labels": {ZONE: "east", DISK: "fast"}, "taints": [{"key": "reserved", "value": "them", "effect": "NoSchedule"}]},
    "rule-2": {"labels": {ZONE: "west", DISK: "slow"}},
    "rule-3": {"labels": {ZONE: "west", DISK: "fast"}, FPGA: "2"},
}
OPEN = [name for name, node in NODES.items() if "taints" not in node]


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "rules")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, tmp_path_factory) -> Iterator[Bridge]:
    for name, node in NODES.items():
        site.add_node(name, cpus=8, **node)
    with at_work(site, Bridge(cluster, slurm, tmp_path_factory.mktemp("rules")), list(NODES)) as bridge:
        for place, name in enumerate(NODES):
            site.scontrol("update", f"NodeName={name}", f"Weight={place + 2}")  # whoever is not named has 1
        yield bridge


@pytest.fixture(autouse=True)
def bridge(site, one) -> Iterator[Bridge]:
    yield one
    site.see_pods_off()


@pytest.fixture
def placed(site, eventually):
    """Makes pods and tells the nodes that they got."""
    def make(*names: str, labels: dict | None = None, **options) -> list[str]:
        for name in names:
            pod = site.pod(name, **options)
            pod["metadata"]["labels"] = labels or {}
            site.api.post(site.pods_path, pod)
        return [eventually(f"{name} is placed", lambda: site.placed(name))["spec"]["nodeName"] for name in names]
    return make


@pytest.fixture
def refused(site, eventually):
    """Makes a pod that has no node, and gives the words that it says about that."""
    def make(name: str, labels: dict | None = None, words: str = "", **options) -> str:
        pod = site.pod(name, **options)
        pod["metadata"]["labels"] = labels or {}
        uid = site.api.post(site.pods_path, pod)["metadata"]["uid"]

        def says_why() -> dict | None:
            said = condition(found := site.see(name), "SlurmPending")
            is_so = said["reason"] == "NoNodeFits" and words in said["message"]
            return found if is_so and site.events(name).get("FailedScheduling") == said["message"] else None
        found = eventually("it says why, and so does an event", says_why)
        said = condition(found, "SlurmPending")["message"]
        assert "nodeName" not in found["spec"] and condition(found, "PodScheduled")["message"] == said
        assert site.live_jobs_of(uid) == []
        return said
    return make


def label(site: Site, node: str, **labels: str | None) -> None:
    site.api.merge(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})


def needs(*expressions: dict) -> dict:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}}


def avoids(topology: str, **labels: str) -> dict:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": topology, "labelSelector": {"matchLabels": labels}}]}}


def on_port(site: Site, number: int, cpu: str = "100m") -> dict:
    container = site.pod("x", cpu=cpu)["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 80, "hostPort": number}]
    return {"containers": [container]}


def spread(topology: str, **labels: str) -> dict:
    return {"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels}}]}


def jobs_of(site: Site, pods: list[dict]) -> list[dict]:
    """All that ever were given nodes for them, as far as Slurm remembers."""
    uids = {pod["metadata"]["uid"] for pod in pods}
    return [job for job in site.slurm.call("GET", "/slurm/{api}/jobs/")["jobs"] if job["nodes"] and uid_of(job, site.uid) in uids]


def tolerant(site: Site, *more: dict) -> list[dict]:
    return [*site.pod("x")["spec"]["tolerations"], *more]


# --- the node by itself ----------------------------------------------------------------------------------------------


def test_a_node_selector_is_kept(placed):
    assert placed("selecting", nodeSelector={DISK: "fast"}) == ["rule-3"], "the other fast one is tainted"


def test_required_node_affinity_is_kept(placed):
    east = needs({"key": ZONE, "operator": "NotIn", "values": ["west"]}, {"key": DISK, "operator": "Exists"})
    west = needs({"key": ZONE, "operator": "In", "values": ["west", "north"]}, {"key": DISK, "operator": "NotIn", "values": ["fast"]})
    assert placed("to-the-east", affinity=east) == ["rule-0"]
    assert placed("to-the-west", affinity=west) == ["rule-2"]


def test_a_taint_is_kept_and_a_toleration_opens_it(site, placed, refused):
    everywhere = f"{len(OPEN)} node(s) didn't match Pod's node affinity/selector"
    said = refused("unwelcome", nodeSelector={"kubernetes.io/hostname": "rule-1"})
    assert said == f"0/4 nodes are available: {everywhere}, 1 node(s) had untolerated taint(s)" or \
        said == f"0/4 nodes are available: 1 node(s) had untolerated taint(s), {everywhere}"
    welcome = tolerant(site, {"key": "reserved", "operator": "Equal", "value": "them"})
    assert placed("welcome", nodeSelector={"kubernetes.io/hostname": "rule-1"}, tolerations=welcome) == ["rule-1"]


def test_a_soft_taint_keeps_nobody_away(site, placed):
    def taint(*soft: dict) -> None:
        others = [one for one in site.node("rule-0")["spec"]["taints"] if one["key"] != "soft"]
        site.api.merge("/api/v1/nodes/rule-0", {"spec": {"taints": [*others, *soft]}})

    taint({"key": "soft", "effect": "PreferNoSchedule"})
    try:
        assert placed("there", nodeSelector={"kubernetes.io/hostname": "rule-0"}) == ["rule-0"]
    finally:
        taint()


def test_a_label_that_a_node_gets_starts_the_pod_that_waits_for_it(site, refused, eventually):
    for attempt in range(3):  # by itself it looks again after 15 s; a machine that stalls for that long does not do so each time
        name = f"patient-{attempt}"
        said = refused(name, nodeSelector={RACK: name})
        assert "3 node(s) didn't match Pod's node affinity/selector" in said
        began = time.monotonic()
        label(site, "rule-2", **{RACK: name})
        try:
            pod = eventually("it is placed", lambda: site.placed(name))
            took = time.monotonic() - began
            assert pod["spec"]["nodeName"] == "rule-2"
            eventually("it waits no more", lambda: condition(site.see(name), "SlurmPending")["status"] == "False")
        finally:
            label(site, "rule-2", **{RACK: None})
        if took < 12:
            return
    pytest.fail("the label wakes nobody")


def test_a_job_that_waits_in_slurm_follows_a_node_that_opens(site, placed, eventually):
    """It was asked for without that node; Slurm is told that it may use it."""
    placed("before-0", "before-1", cpu="6", nodeSelector={ZONE: "west"})
    site.make("waiting", cpu="6", nodeSelector={ZONE: "west"})
    eventually("it waits in Slurm", lambda: condition(site.see("waiting"), "SlurmPending")["reason"] == "Resources")
    label(site, "rule-0", **{ZONE: "west"})
    try:
        assert eventually("it is placed", lambda: site.placed("waiting"))["spec"]["nodeName"] == "rule-0"
    finally:
        label(site, "rule-0", **{ZONE: "east"})


def test_a_job_that_waits_in_slurm_says_so_when_its_last_node_closes_and_goes_on_when_it_opens(site, placed, eventually):
    """Slurm holds a job that no node is left for."""
    east = {"cpu": "6", "nodeSelector": {ZONE: "east"}}
    assert placed("before", **east) == ["rule-0"]
    site.make("waiting", **east)
    eventually("it waits in Slurm", lambda: condition(site.see("waiting"), "SlurmPending")["reason"] == "Resources")
    label(site, "rule-0", **{ZONE: "north"})
    try:
        eventually("it says why", lambda: condition(site.see("waiting"), "SlurmPending")["reason"] == "NoNodeFits")
        job, = site.live_jobs_of(site.see("waiting")["metadata"]["uid"])
        eventually("Slurm holds its job", lambda: site.slurm.job(job["job_id"])["hold"])
        site.delete("before", 0)
    finally:
        label(site, "rule-0", **{ZONE: "east"})
    pod = eventually("it is placed", lambda: site.placed("waiting"))
    assert pod["spec"]["nodeName"] == "rule-0" and site.job(pod)["job_id"] == job["job_id"]


@pytest.mark.parametrize("what, words", [
    ({"cpu": "4000"}, "Insufficient cpu"),
    ({"resources": {"memory": "4Ti"}}, "Insufficient memory"),
    ({"resources": {FPGA: "3"}}, f"Insufficient {FPGA}"),
], ids=["cpu", "memory", "extended"])
def test_a_pod_that_is_too_big_for_any_node_says_what_there_is_too_little_of(site, refused, what, words):
    assert words in refused("giant", **with_resources(site, what))


def with_resources(site: Site, what: dict) -> dict:
    """Of what the pod asks for, also by names that Slurm does not know."""
    if "resources" not in what:
        return what
    container = site.pod("x")["spec"]["containers"][0]
    container["resources"] = {"requests": container["resources"]["requests"] | what["resources"], "limits": what["resources"]}
    return {"containers": [container]}


def test_extended_resources_lead_to_the_node_that_has_them_and_are_counted(site, placed, refused, eventually):
    """Slurm gives the node, not knowing that they are in use; after that it is asked again only when they are free."""
    two = with_resources(site, {"resources": {FPGA: "2"}})
    assert placed("with-fpga", **two) == ["rule-3"]
    said = refused("second", **two)
    assert f"node rule-3: Insufficient {FPGA}" in said, "both are in use"
    assert f"Insufficient {FPGA}" in eventually("there is an event", lambda: site.events("second").get("SlurmNodeMisfit"))
    assert len(jobs_of(site, [site.see("second")])) == 1
    site.delete("with-fpga")
    pod = eventually("it gets them", lambda: site.placed("second"))
    assert pod["spec"]["nodeName"] == "rule-3" and len(jobs_of(site, [pod])) == 2


def test_nodes_that_kubernetes_does_not_have_are_never_given(site, bridge, placed, eventually):
    """Slurm would take them first: they weigh least."""
    site.slurm.create_nodes("guest-[0-1]", cpus=8, memory_mib=8000)
    try:
        count = len(site.slurm.call("GET", "/slurm/{api}/nodes/")["nodes"])
        eventually("the bridge knows of them", lambda: f'slinc_slurm_objects{{kind="nodes"}} {count}\n' in bridge.ask("/metrics")[1])
        assert placed("at-home") == ["rule-0"]
        jobs = jobs_of(site, [site.see("at-home")])
        assert [job["excluded_nodes"] for job in jobs] == ["guest-[0-1],rule-1"], "nothing had to be given back"
    finally:
        site.slurm.delete_node("guest-[0-1]")


def test_a_gang_whose_pods_need_different_nodes_gets_some_of_each(site, eventually):
    zones = ["west", "east", "west"]
    (groups, group), *pods = WORKLOADS["podgroup"](site, "mixed", len(zones), (), {}, {})
    site.api.post(groups.format(f"namespaces/{site.namespace}"), group)
    for zone, (_, pod) in zip(zones, pods, strict=True):
        pod["spec"]["nodeSelector"] = {ZONE: zone}
        site.api.post(site.pods_path, pod)
    found = eventually("it is placed", lambda: site.team_placed("mixed", len(zones)))
    assert [NODES[pod["spec"]["nodeName"]]["labels"][ZONE] for pod in found] == zones
    assert len({pod["metadata"]["labels"][JOB_LABEL] for pod in found}) == 1


# --- the others on it ------------------------------------------------------------------------------------------------


def test_pods_that_avoid_each_other_share_no_node(placed, refused, site, eventually):
    apart = {"labels": {"app": "apart"}, "affinity": avoids("kubernetes.io/hostname", app="apart")}
    assert sorted(placed("apart-0", "apart-1", "apart-2", **apart)) == OPEN
    assert "3 node(s) didn't match pod anti-affinity rules" in refused("apart-3", **apart)
    site.delete("apart-1", 0)
    eventually("the one too many gets its place", lambda: site.placed("apart-3"))


def test_a_gang_that_avoids_itself_gets_a_node_for_each(site, eventually):
    apart = avoids("kubernetes.io/hostname", team="apart")
    site.start("podgroup", "apart", 3, affinity=apart, wishes={"max-nodes": "3"})
    pods = eventually("it is placed", lambda: site.team_placed("apart", 3))
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == OPEN


def in_both_zones(site: Site) -> dict:
    """Open for rule-0 and rule-1 too, which Slurm takes first: both are in one zone."""
    return {"tolerations": tolerant(site, {"key": "reserved", "operator": "Exists"})}


@pytest.mark.parametrize("team, rule", [
    ("foes", {"affinity": avoids(ZONE, team="foes")}),
    ("even", spread(ZONE, team="even")),
])
def test_a_gang_whose_pods_must_be_in_different_zones_is_put_there_though_slurm_chose_one(site, eventually, team, rule):
    site.start("podgroup", team, 2, **rule, **in_both_zones(site))
    pods = eventually("it is placed", lambda: site.team_placed(team, 2))
    assert sorted(NODES[pod["spec"]["nodeName"]]["labels"][ZONE] for pod in pods) == ["east", "west"]
    eventually("Slurm's first choice was wrong", lambda: any("SlurmNodeMisfit" in site.events(pod["metadata"]["name"]) for pod in pods))


def test_a_gang_whose_pods_can_not_go_together_says_why(site, eventually):
    site.start("podgroup", "crowd", 3, affinity=avoids(ZONE, team="crowd"), **in_both_zones(site))

    def says_why() -> list[str]:
        said = [condition(pod, "SlurmPending") for pod in site.team("crowd")]
        return [one["message"] for one in said] if [one["reason"] for one in said] == ["NoNodeFits"] * 3 else []

    for words in eventually("its pods say why", says_why):
        assert "node(s) didn't match pod anti-affinity rules, by the pods of its own group" in words
    assert site.live_jobs_of_team("crowd") == []


def test_topology_spread_is_kept(placed, refused):
    even = {"labels": {"app": "even"}} | spread(ZONE, app="even")
    found = [placed(f"even-{index}", **even)[0] for index in range(4)]
    zones = [NODES[name]["labels"][ZONE] for name in found]
    assert [sorted(zones[index:index + 2]) for index in (0, 2)] == [["east", "west"]] * 2
    only = refused("even-west", **even, nodeSelector={"kubernetes.io/hostname": "nowhere"})
    assert "node(s) didn't match Pod's node affinity/selector" in only


def test_a_host_port_is_given_once_on_each_node(site, placed, refused, eventually):
    port = on_port(site, 8080)
    found = placed("port-0", "port-1", "port-2", **port)
    assert sorted(found) == OPEN
    assert "3 node(s) didn't have free ports for the requested pod ports" in refused("port-3", **port)
    site.delete("port-2", 0)
    assert eventually("a port is free again", lambda: site.placed("port-3"))["spec"]["nodeName"] == found[2]


@pytest.mark.parametrize("what, options", [
    ("ports", lambda site, name: on_port(site, 8081)),
    ("enemies", lambda site, name: {"affinity": avoids("kubernetes.io/hostname", **{TEAM: name})}),
    ("evenly", lambda site, name: spread("kubernetes.io/hostname", **{TEAM: name})),
])
def test_pods_that_exclude_each_other_and_come_together_give_no_job_back(site, eventually, what, options):
    """One is asked for after the other: each has the one job that it was placed by."""
    for attempt in range(3):  # who hears nothing of the one before him for two seconds goes ahead: not each time
        name = f"{what}-{attempt}"
        site.start("deployment", name, len(OPEN), **options(site, name))
        pods = eventually("all are placed", lambda: site.team_placed(name, len(OPEN)))
        assert sorted(pod["spec"]["nodeName"] for pod in pods) == OPEN
        if sorted(uid_of(job, site.uid) for job in jobs_of(site, pods)) == sorted(pod["metadata"]["uid"] for pod in pods):
            return
        site.see_pods_off()
    pytest.fail("jobs were given back each time")


def test_a_pod_that_waits_in_slurms_queue_does_not_hold_up_others_with_its_port(site, placed, eventually):
    placed("before-0", "before-1", cpu="6", nodeSelector={ZONE: "west"})
    site.make("big", nodeSelector={ZONE: "west"}, **on_port(site, 8082, cpu="6"))
    eventually("it waits in Slurm", lambda: condition(site.see("big"), "SlurmPending")["reason"] == "Resources")
    assert len(set(placed("small-0", "small-1", **on_port(site, 8082)))) == 2 and not site.placed("big")


# --- volumes ---------------------------------------------------------------------------------------------------------

CLASSES, VOLUMES = "/apis/storage.k8s.io/v1/storageclasses", "/api/v1/persistentvolumes"
SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture
def storage(site):
    """Makes a class, and a claim of it. Nobody but the test makes volumes."""
    made: list[str] = []

    def make(provisioner: str, mode: str = "WaitForFirstConsumer") -> str:
        name = f"class-{len(made)}-{time.monotonic_ns()}"
        site.api.post(CLASSES, {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
        made.append(f"{CLASSES}/{name}")
        claims = f"/api/v1/namespaces/{site.namespace}/persistentvolumeclaims"
        site.api.post(claims, {"metadata": {"name": name}, "spec": {
            "storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
        made.append(f"{claims}/{name}")
        return name

    yield make
    site.clear_pods()
    for path in made:
        with contextlib.suppress(ApiError):
            site.api.delete(path)
    for volume in site.api.get(VOLUMES)["items"]:
        with contextlib.suppress(ApiError):  # gone by now
            site.api.delete(f"{VOLUMES}/{volume['metadata']['name']}")


def claim(site: Site, name: str) -> dict:
    return site.api.get(f"/api/v1/namespaces/{site.namespace}/persistentvolumeclaims/{name}")


def make_volume(site: Site, name: str, node: str, is_for_claim: bool) -> None:
    """A local disk of this node, of the class of this name; for the claim of that name, as a provisioner makes it, or for whoever comes."""
    wanted = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": site.namespace, "name": name,
              "uid": claim(site, name)["metadata"]["uid"]}
    site.api.post(VOLUMES, {"metadata": {"name": f"disk-{name}"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": name, "local": {"path": "/tmp"},
        "claimRef": wanted if is_for_claim else None, "nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}}})


def using(name: str) -> list[dict]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def test_a_claim_that_waits_for_its_first_consumer_is_told_the_node_and_the_pod_is_bound_there(site, storage, eventually):
    name = storage("example.org/disks")
    site.make("first", volumes=using(name), nodeSelector={ZONE: "west"})
    node = eventually("the claim is told", lambda: claim(site, name)["metadata"].get("annotations", {}).get(SELECTED))
    assert node in ("rule-2", "rule-3")
    said = eventually("the pod says what it waits for", lambda: condition(site.see("first"), "SlurmPending")["reason"] == "VolumesNotBound"
                      and condition(site.see("first"), "SlurmPending"))
    assert "its volumes are being made on its node" in said["message"] and "nodeName" not in site.see("first")["spec"]
    make_volume(site, name, node, is_for_claim=True)
    pod = eventually("it is bound", lambda: site.placed("first"))
    assert pod["spec"]["nodeName"] == node and claim(site, name)["spec"]["volumeName"] == f"disk-{name}"
    settled(site)


def test_a_claim_of_a_class_without_provisioner_gets_a_volume_that_is_free_and_the_pod_goes_there(site, storage, refused, eventually):
    name = storage("kubernetes.io/no-provisioner")
    refused("local", words=f'persistentvolumeclaim "{name}" waits for a persistent volume', volumes=using(name))  # once both are seen
    make_volume(site, name, "rule-2", is_for_claim=False)
    assert eventually("it goes to its volume", lambda: site.placed("local"))["spec"]["nodeName"] == "rule-2"
    assert claim(site, name)["spec"]["volumeName"] == f"disk-{name}"
    eventually("it is bound", lambda: claim(site, name)["status"]["phase"] == "Bound")


def test_a_claim_that_is_not_there_is_named(site, storage, refused, eventually):
    assert 'persistentvolumeclaim "class-none" not found' in refused("early", volumes=using("class-none"))
