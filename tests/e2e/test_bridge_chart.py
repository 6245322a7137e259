"""The chart on a real cluster, with the image that a user would get: it installs, has the rights it needs and keeps its certificate; its
outage stops the managed namespaces alone; and when it is uninstalled nothing of it is left."""

from __future__ import annotations

import base64
import contextlib
import http.client
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from bridge import FINALIZER, JOB_LABEL, TAINT, Site, broken_rules, condition
from replica import RBAC, token_of
from slincdev import components
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, Fail
from slincdev.kube import ApiError, b64
from slincdev.parts import kubectl
from slincdev.release import CHART, HOME, KEY, NAME, SCHEDULER, Release, settings
from slincdev.rights import GIVEN_TO_ALL, OF_JUDGES, audited, rights_given
from terminal import Terminal, config_of
from waits import wait_for

MANAGED, ELSEWHERE, ADMISSION = "slurm-bridge", "chart-elsewhere", "slurm-bridge-admission"
UNINSTALL = "slurm-bridge-uninstall"
REAL = components.NODE
SECRET = f"/api/v1/namespaces/{HOME}/secrets/slurm-bridge-admission-own"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{HOME}/deployments"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/slurm-bridge-admission"
OURS = ["schedulerConfig.partition=kubelet", "bridgeConfig.sharedNodes=true", f"uninstall.seconds={120 * PATIENCE:.0f}"]
RENDERED = [*OURS, "trustAnnotations=own", "nodePolicy.mode=Deny"]  # what helm cannot ask a cluster for when it only renders


class Chart(Release):
    """With our values, and what else the tests ask of it."""

    audited_since = 0  # of the audit log

    def apply(self, verb: str, *values: str) -> None:
        if verb == "install":
            self.audited_since = components.audit_log(self.cluster).stat().st_size
        super().apply(verb, *OURS, *values)
        wait_for("the pods before it are gone", 90, lambda: all(len(self.found(name)) in (0, 2) for name in (SCHEDULER, ADMISSION)))

    def metrics(self, pod: str) -> str:
        return kubectl(self.cluster, "get", "--raw", f"/api/v1/namespaces/{HOME}/pods/{pod}:8080/proxy/metrics")

    def log(self, pod: str) -> str:
        return kubectl(self.cluster, "-n", HOME, "logs", pod)

    def scale(self, replicas: int, name: str = SCHEDULER) -> None:
        """The pods that serve the webhook."""
        self.api.merge(f"{DEPLOYMENTS}/{name}/scale", {"spec": {"replicas": replicas}})
        wait_for(f"{replicas} replicas serve", 60, lambda: self.endpoints() == replicas)
        if not replicas:  # a pod that ends answers for a moment longer
            wait_for("the last one is gone", 60, lambda: not self.found(name))

    def endpoints(self) -> int:
        """Of the webhook's Service: those that it sends calls to."""
        slices = self.api.get(f"/apis/discovery.k8s.io/v1/namespaces/{HOME}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dslurm-bridge-admission")
        return sum(bool(one["conditions"].get("ready")) for item in slices["items"] for one in item["endpoints"] or [])

    def authorities(self) -> set[str]:
        """Every CA that the API server was told."""
        found = [hook for kind in ("validating", "mutating") for hook in self.api.get(WEBHOOKS.format(kind))["webhooks"]]
        return {hook["clientConfig"].get("caBundle", "") for hook in found}

    def certificate(self) -> tuple[dict, set[str]]:
        """The Secret's data, and every CA."""
        return self.api.get(SECRET)["data"], self.authorities()


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, MANAGED)


@contextlib.contextmanager
def installed(site: Site, *values: str) -> Iterator[Chart]:
    """The chart with these values, in a cluster that has a node for it and a namespace that it does not manage; after that, none of them."""
    release, api = Chart(site.cluster, site.slurm), site.api
    release.prepare()
    api.post("/api/v1/namespaces", {"metadata": {"name": ELSEWHERE}})
    api.post(f"/api/v1/namespaces/{HOME}/secrets", {"metadata": {"name": "slurm-bridge-token"}, "data": {"auth-token": b64(site.slurm.token().encode())}})
    site.lend(REAL, "kubelet")
    release.apply("install", *values)  # with a token; with the key from an upgrade on
    yield release
    if NAME in release.helm("list", "-q").split():
        release.helm("uninstall", NAME)
    site.take_back(REAL)
    for name in (HOME, MANAGED, ELSEWHERE):
        api.delete(f"/api/v1/namespaces/{name}")
    wait_for("the namespaces are gone", 60, lambda: not any(api.exists(f"/api/v1/namespaces/{name}") for name in (HOME, MANAGED, ELSEWHERE)))


@pytest.fixture(scope="module")
def release(site) -> Iterator[Chart]:
    with installed(site) as chart:
        yield chart


@pytest.fixture(autouse=True)
def nothing_is_forbidden(release) -> Iterator[None]:
    """Whatever a test makes the bridge do, it has the rights for it. Only its own pods can tell, so they are asked after each test."""
    yield
    for pod in release.pods() + release.pods(ADMISSION):
        assert [line for line in release.metrics(pod).splitlines() if line.startswith("rest_client_requests_total") and 'code="403"' in line] == []
        assert not re.search(r"\bforbidden\b", release.log(pod), re.I)


def asked_for_what_they_may(release: Chart, cluster: Cluster, *accounts: str) -> None:
    """By the API server's own log, which knows pods that are gone, too. That accounts have no right too many,
    tests/charts/test_slurm_bridge_rights.py says."""
    given = rights_given(release.helm("template", NAME, CHART, "--validate", *settings(*RENDERED, "admission.separate=true")))
    used = audited(components.audit_log(cluster), release.audited_since, HOME)
    assert used.keys() <= given.keys()
    for account in accounts:
        assert [right for right, decided in used[account].items() if decided != {"allow"}] == []
        assert sorted(set(used[account]) - given[account] - GIVEN_TO_ALL - OF_JUDGES) == []


def phase_elsewhere(release: Chart, name: str) -> str:
    return release.api.get(f"/api/v1/namespaces/{ELSEWHERE}/pods/{name}")["status"]["phase"]


def captured(site: Site, name: str, *command: str) -> dict:
    """A pod that says nothing of us."""
    return site.make(name, *command, wishes={"partition": "kubelet"}, schedulerName="default-scheduler", tolerations=[])


def test_a_second_release_with_names_of_its_own_is_taken_by_the_api_server(release, tmp_path):
    for number, values in enumerate((["admission.separate=true", "admission.pdb.enabled=true", "scheduler.pdb.enabled=true"],
                                     ["admission.managedNamespaceSelector.matchLabels.a=b"], ["admission.enabled=false"])):
        words = settings(*RENDERED, "nameOverride=another", "schedulerConfig.schedulerName=another", *values)
        file = tmp_path / f"{number}.yaml"
        file.write_text(release.helm("template", "another", CHART, "--validate", *words))
        kubectl(release.cluster, "-n", HOME, "apply", "--dry-run=server", "-f", file)


def test_two_replicas_serve_one_leads_and_a_pod_of_a_managed_namespace_runs_by_slurm_to_its_end(release, site, eventually):
    assert len(release.pods()) == 2
    eventually("one leads", lambda: sum(f'leader_election_master_status{{name="{SCHEDULER}"}} 1' in release.metrics(pod) for pod in release.pods()) == 1)
    eventually("both serve", lambda: release.endpoints() == 2)
    eventually("the node is in Slurm", lambda: site.is_registered(REAL))
    captured(site, "short", "true")
    pod = eventually("it has run", lambda: (site.see("short") or {}).get("status", {}).get("phase") == "Succeeded" and site.see("short"))
    assert (pod["spec"]["schedulerName"], pod["spec"]["nodeName"]) == (SCHEDULER, REAL)
    eventually("its job has ended", lambda: site.job_state(int(pod["metadata"]["labels"][JOB_LABEL])) in ("COMPLETED", "CANCELLED"))
    eventually("it may go", lambda: FINALIZER not in site.see("short")["metadata"].get("finalizers", []))


def test_it_may_write_what_it_has_to_say_about_pods_nodes_and_groups(release, site, slurm, eventually):
    groups = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{MANAGED}/podgroups"
    release.api.post(groups, {"metadata": {"name": "group"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}})
    site.make("member", "sleep", "100000", schedulingGroup={"podGroupName": "group"})
    eventually("the group is scheduled", lambda: release.api.get(f"{groups}/group").get("status", {}).get("conditions"))
    member = eventually("its pod runs", lambda: site.runs("member"))
    slurm.cancel(int(member["metadata"]["labels"][JOB_LABEL]))
    eventually("the pod goes with its job", lambda: site.see("member") is None)
    eventually("there is an event", lambda: "SlurmJobCancelled" in site.events("member"))
    release.api.delete(f"{groups}/group")

    site.set_slurm_node(REAL, state=["DRAIN"], reason="a fan is broken")
    eventually("the node says it", lambda: condition(site.node(REAL), "SlurmAvailable")["status"] == "False")
    site.set_slurm_node(REAL, state=["RESUME"])
    eventually("the node says that too", lambda: condition(site.node(REAL), "SlurmAvailable")["status"] == "True")


def test_the_bridge_itself_tells_why_to_whoever_may_make_tokens_for_that(release, site, tmp_path, eventually):
    """There is no exporter here. An administrator has a certificate, and somebody else a token."""
    captured(site, "asks", "sleep", "100000")
    eventually("it runs", lambda: site.runs("asks"))
    job = site.see("asks")["metadata"]["labels"][JOB_LABEL]
    admin = Terminal(Path(site.cluster.admin_config))
    assert f"job {job}" in admin.run("why", "asks", "-n", MANAGED)
    assert {one["id"]: one for one in admin.json("doctor", "--fail-on=never")["checks"]}[201]["result"] == "ok"

    debug, user = f"{SCHEDULER}-debug", Terminal(config_of(site.cluster, tmp_path, ELSEWHERE))
    release.api.post(f"{RBAC}/clusterroles", {"metadata": {"name": "asks"}, "rules": [
        {"apiGroups": ["", "coordination.k8s.io"], "resources": ["pods", "leases"], "verbs": ["get", "list"]}]})
    words = f"--serviceaccount={ELSEWHERE}:default"
    kubectl(site.cluster, "create", "clusterrolebinding", "asks", "--clusterrole=asks", words)
    said = " ".join(user.run("why", "asks", "-n", MANAGED).split())
    assert f"needs the right to create serviceaccounts/token in namespace {HOME} (Role {debug})" in said
    kubectl(site.cluster, "-n", HOME, "create", "rolebinding", "asks", f"--role={debug}", words)
    eventually("the bridge tells", lambda: f"job {job}" in user.run("why", "asks", "-n", MANAGED))
    kubectl(site.cluster, "delete", "clusterrolebinding/asks", "clusterrole/asks")
    release.api.delete(f"{site.pods_path}/asks")
    eventually("it is gone", lambda: site.see("asks") is None)


def test_its_outage_stops_the_managed_namespaces_alone(release, site, eventually):
    elsewhere = f"/api/v1/namespaces/{ELSEWHERE}/pods"
    captured(site, "stays", "sleep", "100000")
    eventually("it runs", lambda: site.runs("stays"))
    assert FINALIZER in release.api.post(f"{elsewhere}?dryRun=All", site.pod("ours", "true"))["metadata"]["finalizers"]
    release.scale(0)
    try:
        with pytest.raises(ApiError, match="pods.slinky.slurm.net"):
            captured(site, "late", "true")
        made = release.api.post(elsewhere, site.pod("meanwhile", "true", schedulerName="default-scheduler"))
        assert made["spec"]["schedulerName"] == "default-scheduler"
        made = release.api.post(elsewhere, site.pod("volunteer", "sleep", "100000"))
        assert FINALIZER not in made["metadata"].get("finalizers", []), "nobody makes it ready, nobody checks it"
        release.api.merge(f"{site.pods_path}/stays", {"metadata": {"finalizers": [FINALIZER, "example.com/a"]}})
        release.api.merge(f"{site.pods_path}/stays", {"metadata": {"finalizers": [FINALIZER]}})  # whoever holds a pod can let it go
        with pytest.raises(ApiError, match="pods.slinky.slurm.net"):
            release.api.merge(f"{site.pods_path}/stays", {"metadata": {"labels": {JOB_LABEL: "7"}}})
    finally:
        release.scale(2)
    eventually("pods can be made again", lambda: captured(site, "late", "true"))
    eventually("the one that named us runs", lambda: phase_elsewhere(release, "volunteer") == "Running", 120)
    pod = release.api.get(f"{elsewhere}/volunteer")
    assert FINALIZER in pod["metadata"]["finalizers"] and TAINT in [one.get("key") for one in pod["spec"]["tolerations"]]
    release.api.delete(f"{elsewhere}/volunteer")
    eventually("it is let go", lambda: not release.api.exists(f"{elsewhere}/volunteer"))
    eventually("so does the other", lambda: site.see("late")["status"]["phase"] == "Succeeded", 120)
    eventually("its job ends then, and no other", lambda: not broken_rules(site))


def test_an_upgrade_keeps_the_certificate_and_may_give_the_webhook_pods_of_its_own(release, site, eventually):
    before, known = release.certificate()
    assert known == {before["ca.crt"]}
    release.apply("upgrade", "admission.separate=true", "bridgeConfig.asksPerSecond=100", *KEY)
    assert release.certificate() == (before, known)
    eventually("they serve", lambda: release.endpoints() == len(release.pods(ADMISSION)) == 2)
    eventually("pods are admitted", lambda: captured(site, "upgraded", "true"))
    eventually("and run", lambda: (site.see("upgraded") or {}).get("status", {}).get("phase") == "Succeeded")
    assert site.see("upgraded")["spec"]["schedulerName"] == SCHEDULER
    with pytest.raises(ApiError, match="can't update a running pod's external jobid label"):
        release.api.merge(f"{site.pods_path}/stays", {"metadata": {"labels": {JOB_LABEL: "7"}}})
    asked_for_what_they_may(release, site.cluster, SCHEDULER, ADMISSION)  # now: they lose their rights a moment before they end


def test_an_upgrade_renews_a_certificate_whose_half_is_over(release, site, eventually):
    before, _ = release.certificate()
    release.api.merge(SECRET, {"metadata": {"annotations": {"slinc.slurm.net/certificate-made": "2015-01-01T00:00:00Z"}}})
    release.apply("upgrade", "admission.separate=true", *KEY)
    after, known = release.certificate()
    assert after["tls.crt"] != before["tls.crt"] and known == {after["ca.crt"]}
    assert base64.b64decode(before["ca.crt"]).strip() in base64.b64decode(after["ca.crt"])
    assert captured(site, "renewed", "true")["spec"]["schedulerName"] == SCHEDULER  # by whichever pair the pods have
    release.apply("upgrade", "admission.separate=true", *KEY)
    assert release.certificate() == (after, known)


def scraped(release, ca: Path, token: str) -> tuple[int, str]:
    """What Prometheus gets with this token from the pod that leads, over TLS."""
    host = release.api.get(f"/api/v1/namespaces/{HOME}/pods/{release.leader()}")["status"]["podIP"]
    context, name = ssl.create_default_context(cafile=ca), f"slurm-bridge-controllers.{HOME}.svc"
    connection = http.client.HTTPConnection(name)
    with context.wrap_socket(socket.create_connection((host, 8080), 10 * PATIENCE), server_hostname=name) as connection.sock:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_metrics_may_be_for_those_alone_who_may_read_them(release, site, tmp_path, eventually):
    own = ["admission.separate=true", *KEY]
    release.apply("upgrade", *own, "metricsSecure=true")
    try:
        ca = tmp_path / "ca.crt"
        ca.write_bytes(base64.b64decode(release.api.get(f"/api/v1/namespaces/{HOME}/secrets/slurm-bridge-metrics")["data"]["ca.crt"]))
        eventually("one leads", release.leader)
        token = token_of(site.cluster, ELSEWHERE, "default", "")
        assert [scraped(release, ca, shown)[0] for shown in ("", "nonsense", token)] == [401, 401, 403]
        kubectl(site.cluster, "create", "clusterrolebinding", "scrapes", "--clusterrole=slurm-bridge-metrics-reader", f"--serviceaccount={ELSEWHERE}:default")
        eventually("it may be read", lambda: "leader_election_master_status" in scraped(release, ca, token)[1])
        kubectl(site.cluster, "delete", "clusterrolebinding/scrapes")
        checks = {one["id"]: one for one in Terminal(Path(site.cluster.admin_config)).json("doctor", "--fail-on=never")["checks"]}
        assert checks[201]["result"] == "ok", checks[201]
    finally:
        release.apply("upgrade", *own)


def test_nothing_is_left_when_it_is_uninstalled(release, site, cluster, eventually):
    held = site.see("stays")
    assert FINALIZER in held["metadata"]["finalizers"] and site.runs("stays")
    release.helm("uninstall", NAME, "--wait", "--timeout", f"{240 * PATIENCE:.0f}s")

    kinds = ",".join(kubectl(cluster, "api-resources", "--verbs=list,delete", "-o", "name").split())

    def left() -> list[str]:
        """helm does not wait for the pod of its last hook."""
        found = kubectl(cluster, "get", kinds, "-A", "-o", "name", "-l", f"app.kubernetes.io/instance={NAME}").split()
        return [name for name in found if not name.startswith("event")]
    eventually("nothing is left", lambda: not left())
    assert not release.api.exists(f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/{SCHEDULER}")
    with pytest.raises(Fail, match="not found"):
        release.helm("status", NAME)

    pod = site.runs("stays")
    assert pod and pod["metadata"]["uid"] == held["metadata"]["uid"] and FINALIZER not in pod["metadata"].get("finalizers", [])
    assert site.taint(REAL) is None and site.slurm_node(REAL) is None
    assert [job for job in site.live_jobs() if site.uid in job["admin_comment"]] == []
    asked_for_what_they_may(release, cluster, UNINSTALL)
