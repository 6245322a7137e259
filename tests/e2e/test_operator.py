"""The operator on a real cluster: from custom resources to a Slurm that answers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import recorded
from database import make_database
from definitions import installed
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, run
from slincdev.parts import ensure_images, import_images
from slurm_operator import Operator, Site
from waits import wait_for

HOME = "operator-site"
IMAGES = ["slurmctld", "slurmrestd", "slurmdbd", "login", "mariadb", "busybox"]
KINDS = {"controllers": "slurm", "restapis": "slurm", "accountings": "slurm", "loginsets": "login", "tokens": "ci"}


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory) -> Iterator[Operator]:
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    with installed(cluster, HOME):
        one = Operator(cluster, tmp_path_factory.mktemp("operator"))
        try:
            yield one.start().wait_until_it_leads()
            one.stop()
        finally:
            one.end()
            Site(cluster, HOME).end_pods()


@pytest.fixture(scope="module")
def site(cluster: Cluster, operator: Operator, tmp_path_factory) -> Site:
    """A whole Slurm cluster, applied at once."""
    found = Site(cluster, HOME)
    found.identity = tmp_path_factory.mktemp("ssh") / "key"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", found.identity])
    keys, storage, ref = found.make_keys(), make_database(found), {"controllerRef": {"name": "slurm"}}
    found.api.post(found.core("secrets"), {"metadata": {"name": "sssd"}, "stringData": {"sssd.conf": "[sssd]\n"}})
    found.make("accountings", "slurm", keys | {"slurmdbd": found.image("slurmdbd"), "storageConfig": storage})
    found.make("controllers", "slurm", keys | {
        "slurmctld": found.image("slurmctld"), "logfile": found.busybox, "persistence": {"enabled": False}, "accountingRef": {"name": "slurm"},
        "extraConf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity"})
    found.make("restapis", "slurm", ref | {"slurmrestd": found.image("slurmrestd")})
    found.make("loginsets", "login", ref | {
        "login": found.image("login"), "initconf": found.busybox, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"},
        "rootSshAuthorizedKeys": found.identity.with_suffix(".pub").read_text().strip(), "service": {"spec": {"type": "ClusterIP"}}})
    found.make("tokens", "ci", {"username": "slurm", "jwtKeyRef": keys["jwtKeyRef"], "lifetime": "1h"})
    for plural, name in KINDS.items():
        found.wait_until_ready(plural, name, 90)
    return found


def in_login(site: Site, *words: str) -> str:
    """Over ssh, with the host key that the operator made."""
    address = site.api.get(site.core("services", "login"))["spec"]["clusterIP"]
    known = site.identity.with_name("known_hosts")
    known.write_text(f"{address} {site.secret('login-ssh-host-keys', 'ssh_host_ed25519_key.pub').decode().strip()}\n")
    return run(["ssh", "-i", site.identity, "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={known}", "-o", "HostKeyAlgorithms=ssh-ed25519",
                f"root@{address}", *words], timeout=30 * PATIENCE)


def test_custom_resources_become_a_slurm_that_answers(site):
    assert "PARTITION" in in_login(site, "sinfo")
    assert f"{HOME}_slurm" in in_login(site, "sacctmgr", "-nP", "show", "cluster", "format=cluster")
    token = site.secret("ci-jwt-slurm", "SLURM_JWT").decode()
    assert site.rest_status(token) == 200
    assert site.rest_status(token[:-4] + "AAAA") == 511
    for plural, name in KINDS.items():
        row = site.kubectl("get", f"{plural}.slinky.slurm.net", name, "--no-headers").split()
        assert row[-3:-1] == ["True", "AsExpected" if plural == "tokens" else "PodsReady"], row


def falls_silent(site: Site, operator: Operator, seconds: float = 10) -> None:
    """Soon a while passes in which no object of the site changes and the operator asks for no change."""
    def is_silent() -> bool:
        end, before, actions = time.monotonic() + seconds, site.versions(), operator.actions()
        while time.monotonic() < end and operator.actions() == actions:
            time.sleep(0.5)
        return operator.actions() == actions and site.versions() == before
    wait_for(f"{seconds} s without a write", 3 * seconds, is_silent)


def test_what_was_changed_by_hand_is_mended_and_then_nothing_is_written(site, operator, eventually):
    before = site.children()
    conf = before["configmaps", "slurm-config"]["data"]["slurm.conf"]
    site.api.delete(site.core("services", "slurm-restapi"))
    site.api.delete(site.core("configmaps", "login-ssh-config"))
    site.api.merge(site.core("services", "login"), {"metadata": {"labels": {"team": "hpc"}}, "spec": {"selector": {"app.kubernetes.io/name": "nobody"}}})
    site.api.merge(site.core("configmaps", "slurm-config"), {"data": {"slurm.conf": "ClusterName=other\n", "topology.conf": "SwitchName=s0 Nodes=n[0-1]\n"}})

    def is_mended() -> bool:
        now = site.children()
        return now.keys() == before.keys() and now["configmaps", "slurm-config"]["data"]["slurm.conf"] == conf and \
            all(now[key]["spec"]["selector"] == before[key]["spec"]["selector"] for key in now if key[0] == "services")
    eventually("all is as it was", is_mended)
    now = site.children()
    assert now["configmaps", "slurm-config"]["data"]["topology.conf"] == "SwitchName=s0 Nodes=n[0-1]\n"
    assert now["services", "login"]["metadata"]["labels"]["team"] == "hpc"
    assert now["services", "slurm-restapi"]["metadata"]["uid"] != before["services", "slurm-restapi"]["metadata"]["uid"]
    for plural, name in KINDS.items():
        site.wait_until_ready(plural, name)
    falls_silent(site, operator)


def test_a_killed_slurmctld_comes_back_and_the_condition_follows(site, eventually):
    pod, selector = site.core("pods", "slurm-controller-0"), site.api.get(site.core("services", "slurm-controller"))["spec"]["selector"]
    before = site.api.get(pod)["metadata"]["uid"]
    site.api.delete(pod, {"gracePeriodSeconds": 0})

    def ready() -> dict:
        return site.conditions("controllers", "slurm")["Ready"]
    lost = eventually("the condition says so", lambda: ready() if ready()["status"] == "False" else None, 10)
    assert (lost["reason"], lost["message"]) == ("PodsNotReady", "0 of 1 pods of StatefulSet slurm-controller are ready")
    found = eventually("there is a new pod", lambda: site.api.get(pod) if site.api.get(pod)["metadata"]["uid"] != before else None)
    assert selector.items() <= found["metadata"]["labels"].items(), "from its first moment the Service selects it"
    site.wait_until_ready("controllers", "slurm")
    assert "PARTITION" in eventually("sinfo answers", lambda: in_login(site, "sinfo"))


def test_an_operator_killed_while_it_creates_leaves_nothing_out(site, operator, eventually):
    names = [f"many-{number}" for number in range(20)]

    def make(some: list[str]) -> None:
        for name in some:
            site.make("restapis", name, {"controllerRef": {"name": "slurm"}, "replicas": 0, "slurmrestd": site.image("slurmrestd")})

    def children(plural: str) -> dict[str, list]:
        return {name: one["metadata"]["ownerReferences"] for (kind, name), one in site.children().items() if kind == plural and name.startswith("many-")}
    make(names[:10])
    eventually("the first child is there", lambda: children("services") or children("deployments"))
    operator.kill()
    make(names[10:])
    operator.start().wait_until_it_leads()
    wanted = {f"{name}-restapi": site.api.get(site.path("restapis", name))["metadata"]["uid"] for name in names}
    for plural in ("services", "deployments"):
        eventually(f"all {plural} are there", lambda: children(plural).keys() == wanted.keys())
        assert {name: [owner["uid"] for owner in owners] for name, owners in children(plural).items()} == {name: [uid] for name, uid in wanted.items()}
    for name in names:
        site.wait_until_ready("restapis", name)
        site.api.delete(site.path("restapis", name))
    eventually("its children go with an object", lambda: not children("services") and not children("deployments"))


def test_a_bad_object_is_degraded_and_disturbs_no_other(site, eventually):
    site.make("restapis", "empty", None)
    key = {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}}
    site.make("tokens", "wrong", {"username": "slurm", "lifetime": "1 hour"} | key)
    site.make("tokens", "lost", {"username": "slurm", "jwtKeyRef": {"name": "nowhere", "key": "jwt.key"}})
    site.make("tokens", "right", {"username": "slurm"} | key)
    site.wait_until_ready("tokens", "right")
    said = {"restapis/empty": "Spec: the object has no spec", "tokens/wrong": "Secret: spec.lifetime: ",
            "tokens/lost": "Secret: spec.jwtKeyRef: Secret nowhere with the key jwt.key does not exist"}
    for place, words in said.items():
        plural, name = place.split("/")
        found = eventually(f"{name} is degraded", lambda: site.conditions(plural, name).get("Degraded"))
        assert (found["status"], found["reason"]) == ("True", "SyncFailed") and words in found["message"], found
        site.api.delete(site.path(plural, name))
    site.api.delete(site.path("tokens", "right"))


def test_what_the_api_server_refuses_is_told_with_its_field(site, eventually):
    site.make("restapis", "imageless", {"controllerRef": {"name": "slurm"}})
    said = eventually("there is an event", lambda: site.events("imageless").get("CreateFailed"))
    assert "spec.template.spec.containers[0].image: Required value" in said
    found = site.conditions("restapis", "imageless")["Ready"]
    assert (found["status"], found["message"]) == ("False", "Deployment imageless-restapi does not exist yet")
    found = eventually("it is degraded", lambda: (one := site.conditions("restapis", "imageless")["Degraded"])["status"] == "True" and one)
    assert found["reason"] == "WriteRefused" and "containers[0].image: Required value" in found["message"]
    site.api.merge(site.path("restapis", "imageless"), {"spec": {"slurmrestd": site.image("slurmrestd")}})
    eventually("it is well again", lambda: site.conditions("restapis", "imageless")["Degraded"]["status"] == "False")
    site.api.delete(site.path("restapis", "imageless"))


@pytest.fixture
def recorded_site(cluster, operator) -> Iterator[Site]:
    """An empty namespace, while no operator runs."""
    operator.stop()
    found = Site(cluster, recorded.NAMESPACE)
    yield found
    if operator.process is None:
        operator.start().wait_until_it_leads()
    found.api.delete(f"/api/v1/namespaces/{recorded.NAMESPACE}")  # the operator lets its NodeSets go at once
    found.end_pods()
    wait_for("the namespace is gone", 60, lambda: not found.api.exists(f"/api/v1/namespaces/{recorded.NAMESPACE}"))


@pytest.mark.parametrize("version", ["slinky-1.2.1", "slinky-main"])
def test_a_cluster_of_another_operator_is_taken_over_and_nothing_rolls(recorded_site, operator, eventually, version):
    site = recorded_site
    recorded.load(site, version)

    def workloads() -> dict:
        return {key: one for key, one in site.children().items() if key[0] in ("deployments", "statefulsets")}

    def pods() -> dict[str, str]:
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in site.api.get(site.core("pods"))["items"]}

    def have_pods() -> bool:
        return all(one.get("status", {}).get("observedGeneration") == 1 and one["status"].get("replicas") == one["spec"]["replicas"]
                   for one in workloads().values())

    def is_settled() -> bool:
        """No slurmctld runs here: that is said once."""
        return all("SlurmReachable" in site.conditions(plural, name) for plural, name in objects if plural == "controllers") and all(site.conditions(plural, name).get("Degraded", {}).get("status") == "False" for plural, name in objects)
    objects = [(plural, one["metadata"]["name"]) for plural in ("controllers", "restapis", "accountings", "loginsets", "nodesets")
               for one in site.api.get(site.path(plural))["items"]]
    eventually("all pods are made", have_pods)
    before, pods_before, conf = workloads(), pods(), site.api.get(site.core("configmaps", "slurm-config"))["data"]
    assert len(objects) == 5 and len(before) == 4 and sum(name.startswith("slurm-worker-") for name in pods_before) == 2
    operator.start().wait_until_it_leads()
    eventually("all objects have a condition", is_settled)
    falls_silent(site, operator, 3)
    now = workloads()
    assert {key: one["metadata"]["generation"] for key, one in now.items()} == {key: 1 for key in before}
    assert {key: one["spec"] for key, one in now.items()} == {key: one["spec"] for key, one in before.items()}
    assert site.api.get(site.core("configmaps", "slurm-config"))["data"] == conf
    assert pods() == pods_before
