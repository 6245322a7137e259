"""The rules of Kubernetes about where a pod may run hold though Slurm chooses: a node that they forbid is never given, a pod that no node
will do for says which rule it is, and a change that opens a node is seen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bridge import JOB_LABEL, TEAM, WORKLOADS, Bridge, Site, at_work, condition, uid_of

ZONE, DISK, RACK, HERE = "topology.kubernetes.io/zone", "disk", "rack", "kubernetes.io/hostname"
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
def refused(site, eventually):
    """Makes a pod that has no node, and gives the words that it says about that."""
    def make(name: str, **options) -> str:
        uid = site.make(name, **options)["metadata"]["uid"]

        def says_why() -> dict | None:
            said = condition(found := site.see(name), "SlurmPending")
            is_so = said["reason"] == "NoNodeFits" and site.events(name).get("FailedScheduling") == said["message"]
            return found if is_so else None
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


def spread(topology: str, **labels: str) -> dict:
    return {"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": topology, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels}}]}


def on_port(site: Site, number: int) -> dict:
    container = site.pod("x")["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 80, "hostPort": number}]
    return {"containers": [container]}


def with_fpgas(site: Site, count: str) -> dict:
    """A resource whose name Slurm does not know."""
    container = site.pod("x")["spec"]["containers"][0]
    container["resources"] = {"requests": container["resources"]["requests"] | {FPGA: count}, "limits": {FPGA: count}}
    return {"containers": [container]}


def tolerant(site: Site, *more: dict) -> list[dict]:
    return [*site.pod("x")["spec"]["tolerations"], *more]


def jobs_of(site: Site, pod: dict) -> list[dict]:
    """All that ever were given nodes for it, as far as Slurm remembers."""
    jobs = site.slurm.call("GET", "/slurm/{api}/jobs/")["jobs"]
    return [job for job in jobs if job["nodes"] and uid_of(job, site.uid) == pod["metadata"]["uid"]]


# --- the node by itself ----------------------------------------------------------------------------------------------


def test_selectors_affinities_and_taints_decide_where_a_pod_goes_and_one_that_fits_nowhere_says_why(site, refused, eventually):
    east = needs({"key": ZONE, "operator": "NotIn", "values": ["west"]}, {"key": DISK, "operator": "Exists"})
    west = needs({"key": ZONE, "operator": "In", "values": ["west", "north"]}, {"key": DISK, "operator": "NotIn", "values": ["fast"]})
    welcome = tolerant(site, {"key": "reserved", "operator": "Equal", "value": "them"})
    wanted = {
        "selecting": ("rule-3", {"nodeSelector": {DISK: "fast"}}),  # the other fast one is tainted
        "to-the-east": ("rule-0", {"affinity": east}),
        "to-the-west": ("rule-2", {"affinity": west}),
        "welcome": ("rule-1", {"nodeSelector": {HERE: "rule-1"}, "tolerations": welcome}),
    }
    for name, (_, options) in wanted.items():
        site.make(name, **options)
    for name, (node, _) in wanted.items():
        assert eventually(f"{name} is placed", lambda: site.placed(name))["spec"]["nodeName"] == node
    said = refused("unwelcome", nodeSelector={HERE: "rule-1"})
    assert said.startswith("0/4 nodes are available: ")
    assert set(said.removeprefix("0/4 nodes are available: ").split(", ")) == {
        f"{len(OPEN)} node(s) didn't match Pod's node affinity/selector", "1 node(s) had untolerated taint(s)"}


def test_a_label_that_a_node_gets_starts_the_pod_that_waits_for_it(site, refused, eventually):
    assert "3 node(s) didn't match Pod's node affinity/selector" in refused("patient", nodeSelector={RACK: "mine"})
    label(site, "rule-2", **{RACK: "mine"})
    try:
        assert eventually("it is placed", lambda: site.placed("patient"))["spec"]["nodeName"] == "rule-2"
        eventually("it waits no more", lambda: condition(site.see("patient"), "SlurmPending")["status"] == "False")
    finally:
        label(site, "rule-2", **{RACK: None})


def test_a_job_that_waits_in_slurm_says_so_when_its_last_node_closes_and_goes_on_when_it_opens(site, placed, eventually):
    """Slurm holds a job that no node is left for."""
    east = {"cpu": "6", "nodeSelector": {ZONE: "east"}}
    assert placed("before", **east)["spec"]["nodeName"] == "rule-0"
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


def test_extended_resources_lead_to_the_node_that_has_them_and_are_counted(site, placed, refused, eventually):
    """Slurm gives the node, not knowing that they are in use; after that it is asked again only when they are free."""
    assert f"Insufficient {FPGA}" in refused("giant", **with_fpgas(site, "3"))
    assert placed("with-fpga", **with_fpgas(site, "2"))["spec"]["nodeName"] == "rule-3"
    said = refused("second", **with_fpgas(site, "2"))
    assert f"node rule-3: Insufficient {FPGA}" in said, "both are in use"
    assert f"Insufficient {FPGA}" in eventually("there is an event", lambda: site.events("second").get("SlurmNodeMisfit"))
    assert len(jobs_of(site, site.see("second"))) == 1
    site.delete("with-fpga")
    pod = eventually("it gets them", lambda: site.placed("second"))
    assert pod["spec"]["nodeName"] == "rule-3" and len(jobs_of(site, pod)) == 2


# --- the others on it ------------------------------------------------------------------------------------------------


def test_pods_that_exclude_each_other_share_no_node(site, eventually):
    """By a port of the node, by anti-affinity, by topology spread; all of them come at once."""
    kinds = {"ports": on_port(site, 8080), "enemies": {"affinity": avoids(HERE, **{TEAM: "enemies"})},
             "evenly": spread(HERE, **{TEAM: "evenly"})}
    for name, options in kinds.items():
        site.start("deployment", name, len(OPEN), **options)
    for name in kinds:
        pods = eventually(f"{name} are placed", lambda: site.team_placed(name, len(OPEN)))
        assert sorted(pod["spec"]["nodeName"] for pod in pods) == OPEN, name


def test_a_pod_that_the_others_keep_out_says_why_and_comes_when_one_of_them_goes(site, placed, refused, eventually):
    found = [placed(f"port-{index}", **on_port(site, 8080))["spec"]["nodeName"] for index in range(len(OPEN))]
    assert sorted(found) == OPEN
    assert "3 node(s) didn't have free ports for the requested pod ports" in refused("late", **on_port(site, 8080))
    site.delete("port-2", 0)
    assert eventually("a port is free again", lambda: site.placed("late"))["spec"]["nodeName"] == found[2]


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


def test_a_gang_whose_pods_must_be_in_different_zones_is_put_there_though_slurm_chose_one(site, eventually):
    """rule-0 and rule-1, which Slurm takes first, are in one zone."""
    everywhere = tolerant(site, {"key": "reserved", "operator": "Exists"})
    site.start("podgroup", "foes", 2, affinity=avoids(ZONE, team="foes"), tolerations=everywhere)
    pods = eventually("it is placed", lambda: site.team_placed("foes", 2))
    assert sorted(NODES[pod["spec"]["nodeName"]]["labels"][ZONE] for pod in pods) == ["east", "west"]
    eventually("Slurm's first choice was wrong", lambda: any("SlurmNodeMisfit" in site.events(pod["metadata"]["name"]) for pod in pods))
