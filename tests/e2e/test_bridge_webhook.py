"""The bridge's webhook on a real API server: pods are given what Slurm's placing needs in the one create, and wrong wishes are refused in
words that reach the person. With the chart's own settings it is in test_bridge_chart.py, its outage too."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bridge import FINALIZER, JOB_LABEL, SCHEDULER, TAINT, WISH, Bridge, Site
from replica import free_port
from slincdev import components, pki
from slincdev.cluster import Cluster
from slincdev.common import Fail
from slincdev.kube import ApiError, b64
from slincdev.parts import kubectl
from waits import wait_for

REAL = components.NODE
MANAGED, ELSEWHERE = "hooked", "unhooked"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
NODE_ANNOTATION = "slinky.slurm.net/slurm-node"
OURS = {"key": TAINT, "operator": "Equal", "value": SCHEDULER, "effect": "NoExecute"}
SLEEP = ("sleep", "600")


class Certificate:
    """Of the webhook, as a folder with tls.crt and tls.key, and the authority that signed it."""

    def __init__(self, folder: Path, host: str) -> None:
        self.folder, self.host = folder, host
        pki.make_ca(folder, "ca")
        pki.make_cert(folder, "tls", "/CN=webhook", names=[host])

    def authority(self) -> bytes:
        return (self.folder / "ca.crt").read_bytes()

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority().decode())


class Webhook:
    """The bridge's webhook as the API server is told of it: an outage may stop what Fail stands behind, and no more."""

    def __init__(self, cluster: Cluster, port: int, certificate: Certificate, managed: str = MANAGED) -> None:
        self.api, self.host, self.port, self.certificate, self.managed = cluster.api(), cluster.host_ip, port, certificate, managed

    def entry(self, name: str, path: str, operations: list[str], resources: list[str], managed: bool, policy: str) -> dict:
        conditions = [] if managed else [{"name": "names-our-scheduler", "expression": f"object.spec.schedulerName == '{SCHEDULER}'"}]
        return {"name": f"{name}.slinky.slurm.net", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 15,
                "clientConfig": {"url": f"https://{self.host}:{self.port}{path}", "caBundle": b64(self.certificate.authority())},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": resources}],
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In" if managed else "NotIn", "values": [self.managed]}]},
                "matchConditions": conditions, "failurePolicy": policy}

    def register(self) -> None:
        mutate, validate, changes = "/mutate--v1-pod", "/validate--v1-pod", ["pods", "pods/resize"]
        self.api.post(f"{HOOKS}/mutatingwebhookconfigurations", {"metadata": {"name": "slinc-e2e"}, "webhooks": [
            self.entry("pods", mutate, ["CREATE"], ["pods"], True, "Fail"),
            self.entry("elsewhere", mutate, ["CREATE"], ["pods"], False, "Ignore")]})
        self.api.post(f"{HOOKS}/validatingwebhookconfigurations", {"metadata": {"name": "slinc-e2e"}, "webhooks": [
            self.entry("pods", validate, ["CREATE"], ["pods"], True, "Fail"),
            self.entry("updates", validate, ["UPDATE"], changes, True, "Ignore"),
            self.entry("elsewhere", validate, ["CREATE", "UPDATE"], changes, False, "Ignore")]})

    def remove(self) -> None:
        for kind in ("mutating", "validating"):
            if self.api.exists(f"{HOOKS}/{kind}webhookconfigurations/slinc-e2e"):
                self.api.delete(f"{HOOKS}/{kind}webhookconfigurations/slinc-e2e")


def post(certificate: Certificate, port: int, path: str, review: dict) -> dict:
    """As the API server does it."""
    connection = http.client.HTTPSConnection(certificate.host, port, timeout=10, context=certificate.context())
    connection.request("POST", path, json.dumps(review), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    return json.loads(answer.read())["response"]


def review_of(pod: dict, namespace: str) -> dict:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "a-review", "operation": "CREATE", "namespace": namespace, "resource": {"group": "", "version": "v1", "resource": "pods"},
        "object": pod}}


def serves(certificate: Certificate, port: int) -> bool:
    try:
        connection = http.client.HTTPSConnection(certificate.host, port, timeout=5, context=certificate.context())
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    found = Site(cluster, slurm, MANAGED)
    if not found.api.exists(f"/api/v1/namespaces/{ELSEWHERE}"):
        found.api.post("/api/v1/namespaces", {"metadata": {"name": ELSEWHERE}})
    return found


@pytest.fixture(scope="module")
def certificate(cluster, tmp_path_factory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("certificate"), cluster.host_ip)


@pytest.fixture(scope="module")
def flags(certificate) -> tuple[str, ...]:
    return ("--webhook-port", str(free_port()), "--webhook-cert-dir", str(certificate.folder))


@pytest.fixture(scope="module", autouse=True)
def bridge(site, cluster, slurm, certificate, flags, tmp_path_factory) -> Iterator[Bridge]:
    """With its webhook, known to the API server."""
    port = int(flags[1])
    one = Bridge(cluster, slurm, tmp_path_factory.mktemp("bridge"), managedNamespaces=[MANAGED])
    webhook = Webhook(cluster, port, certificate)
    site.lend(REAL, "kubelet")
    try:
        one.start(*flags).wait_until_it_leads()
        wait_for("the webhook answers", 10, lambda: serves(certificate, port), hint=one.said)
        wait_for("the node is in Slurm", 30, lambda: site.is_registered(REAL))
        webhook.register()
        wait_for("the API server asks it", 60, lambda: is_asked(site))
        yield one
        webhook.remove()
        site.clear([REAL])
        one.stop()
    finally:
        webhook.remove()
        one.end()


def is_asked(site: Site) -> bool:
    """Both webhooks; the API server hears of each a moment after it is registered."""
    where = f"{site.pods_path}?dryRun=All"
    if site.api.post(where, plain(site, "any"))["spec"]["schedulerName"] != SCHEDULER:
        return False
    with contextlib.suppress(ApiError):
        site.api.post(where, plain(site, "any", wishes={"timelimit": "soon"}))
        return False
    return True


def plain(site: Site, name: str, *command: str, **options) -> dict:
    """As people write it: nothing in it names the bridge."""
    return site.pod(name, *command, **({"schedulerName": "default-scheduler", "tolerations": []} | options))


def create(site: Site, pod: dict, namespace: str = MANAGED) -> dict:
    return site.api.post(f"/api/v1/namespaces/{namespace}/pods", pod)


@pytest.fixture
def make_it(site, eventually) -> Iterator[Callable[..., dict]]:
    """Creates pods that are gone after the test."""
    made = []

    def make(pod: dict, namespace: str = MANAGED) -> dict:
        made.append(f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}")
        return create(site, pod, namespace)
    yield make
    for path in made:
        site.api.delete(path, {"gracePeriodSeconds": 0}) if site.api.exists(path) else None
    eventually("its pods are gone", lambda: not any(site.api.exists(path) for path in made))


# --- what a pod is given -------------------------------------------------------------------------------------------------------------


def test_a_pod_gets_all_it_needs_in_its_create_and_runs(site, make_it, eventually):
    """One that names its node goes through Slurm as well."""
    made = {name: make_it(plain(site, name, *SLEEP, **spec)) for name, spec in (("whole", {}), ("forward", {"nodeName": REAL}))}
    for name, pod in made.items():
        assert pod["spec"]["schedulerName"] == SCHEDULER and "nodeName" not in pod["spec"], name
        assert OURS in pod["spec"]["tolerations"] and pod["metadata"]["finalizers"] == [FINALIZER]
        assert pod["metadata"]["generation"] == 1  # one write
    for name in made:
        found = eventually(f"{name} runs", lambda: site.runs(name))
        assert found["spec"]["nodeName"] == REAL and site.job(found)["job_state"] == ["RUNNING"]
        site.delete(name)
        eventually("it goes, and so its finalizer", lambda: site.see(name) is None)


def test_a_pod_of_an_unmanaged_namespace_is_ours_only_if_it_names_our_scheduler(site, make_it):
    made = make_it(plain(site, "aside"), ELSEWHERE)
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert "finalizers" not in made["metadata"]
    assert TAINT not in [toleration.get("key") for toleration in made["spec"]["tolerations"]]
    made = make_it(site.pod("volunteer"), ELSEWHERE)
    assert OURS in made["spec"]["tolerations"] and made["metadata"]["finalizers"] == [FINALIZER]
    forger = site.pod("forger")
    forger["metadata"]["labels"] = {JOB_LABEL: "7"}
    with pytest.raises(ApiError, match="can't create a pod with a slurm external jobid label"):
        create(site, forger, ELSEWHERE)


def test_pods_take_the_word_of_their_job_that_they_start_together(site, eventually):
    path = f"/apis/batch/v1/namespaces/{MANAGED}/jobs"
    pod = plain(site, "unused", *SLEEP)
    pod["metadata"] = {"annotations": {"mine": "stays"}}
    site.api.post(path, {"metadata": {"name": "together", "annotations": {f"{WISH}gang": "true"}},
                         "spec": {"parallelism": 2, "completions": 2, "template": pod}})
    try:
        def pods() -> list[dict]:
            return site.api.get(f"{site.pods_path}?labelSelector=job-name%3Dtogether")["items"]
        found = eventually("its pods exist", lambda: pods() if len(pods()) == 2 else None)
        assert all({f"{WISH}gang": "true", "mine": "stays"}.items() <= pod["metadata"]["annotations"].items() for pod in found)
    finally:
        site.api.delete(f"{path}/together", {"propagationPolicy": "Background"})
        eventually("its pods are gone", lambda: not pods())


# --- what is refused -----------------------------------------------------------------------------------------------------------------


REFUSED = [
    ({"labels": {JOB_LABEL: "7"}}, {}, "can't create a pod with a slurm external jobid label"),
    ({"annotations": {f"{WISH}timelimit": "soon"}}, {}, f'{WISH}timelimit: "soon" is not '),
]  # the other rules: tests/unit/admit/test_rules.c


def test_a_wrong_pod_is_refused_in_words_that_reach_the_person_and_are_counted(site, cluster, bridge):
    for metadata, spec, words in REFUSED:
        pod = plain(site, "wrong", **spec)
        pod["metadata"] |= metadata
        with pytest.raises(ApiError) as refusal:
            create(site, pod)
        assert refusal.value.status == 403
        assert f'admission webhook "pods.slinky.slurm.net" denied the request: {words}' in str(refusal.value)
    pod = plain(site, "wrong", wishes={"mem-per-node": "much"}) | {"apiVersion": "v1", "kind": "Pod"}
    with pytest.raises(Fail, match=f'{WISH}mem-per-node: "much" is not a Kubernetes quantity of bytes'):
        kubectl(cluster, "-n", MANAGED, "create", "-f", "-", input=json.dumps(pod))
    text = bridge.ask("/metrics")[1]
    assert 'slinc_bridge_admissions_total{webhook="/mutate--v1-pod",verdict="changed"}' in text
    assert 'slinc_bridge_admissions_total{webhook="/validate--v1-pod",verdict="refused"}' in text
    assert 'controller_runtime_webhook_latency_seconds_count{webhook="/validate--v1-pod"}' in text


def test_a_pod_that_runs_keeps_its_job_its_node_and_its_size(site, cluster, make_it, eventually):
    make_it(plain(site, "settled", *SLEEP))
    found = eventually("it runs", lambda: site.runs("settled"))

    def change(patch: dict, *words: str) -> str:
        return kubectl(cluster, "-n", MANAGED, "--as=somebody", "--as-group=system:masters", "patch", "pod", "settled", "-p",
                       json.dumps(patch), *words)
    with pytest.raises(Fail, match="can't update a running pod's external jobid label"):
        change({"metadata": {"labels": {JOB_LABEL: "4000000"}}})
    with pytest.raises(Fail, match="can't update a running pod's external node annotation"):
        change({"metadata": {"annotations": {NODE_ANNOTATION: "elsewhere"}}})
    with pytest.raises(Fail, match="can't resize a Slurm Bridge-managed pod"):
        change({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}, "--subresource=resize")
    with pytest.raises(Fail, match=f'{WISH}timelimit: "soon" is not '):
        change({"metadata": {"annotations": {f"{WISH}timelimit": "soon"}}})
    change({"metadata": {"labels": {"mine": "yes"}}})
    after = site.see("settled")
    assert after["metadata"]["labels"] == found["metadata"]["labels"] | {"mine": "yes"}


# --- the webhook itself --------------------------------------------------------------------------------------------------------------


def test_it_runs_alone_without_slurm_and_waits_for_its_certificate(site, cluster, slurm, certificate, tmp_path, eventually):
    folder, port = tmp_path / "later", free_port()
    alone = Bridge(cluster, slurm, tmp_path, "alone", jwtKeyFile="/nowhere", slurmRestApi="http://127.0.0.1:1",
                   managedNamespaceSelector={"matchLabels": {"slurm": "yes"}})
    name = "made-a-moment-ago"
    try:
        alone.start("--roles=webhook", "--webhook-port", str(port), "--webhook-cert-dir", str(folder))
        eventually("it says what it waits for", lambda: "[-] webhook: is not served" in alone.ask("/readyz")[1])
        folder.mkdir()
        for file in ("tls.crt", "tls.key"):
            (folder / file).write_bytes((certificate.folder / file).read_bytes())
        eventually("it is ready", lambda: alone.ask("/readyz")[0] == 200)
        site.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": {"slurm": "yes"}}})
        eventually("its namespace is known", lambda: "patch" in post(certificate, port, "/mutate--v1-pod", review_of(plain(site, "a"), name)))
        assert "patch" not in post(certificate, port, "/mutate--v1-pod", review_of(plain(site, "a"), "default"))
        unknown = post(certificate, port, "/mutate--v1-pod", review_of(plain(site, "a"), "nowhere"))
        assert unknown["allowed"] is False and unknown["status"]["code"] == 503
        assert "leader_election" not in alone.ask("/metrics")[1]
        alone.stop()
    finally:
        alone.end()
        if site.api.exists(f"/api/v1/namespaces/{name}"):
            site.api.delete(f"/api/v1/namespaces/{name}")
