"""The operator by its chart, with the image that a user would get: it installs in a restricted namespace, refuses what cannot work with words
that name the field, makes the children of what can, has the rights it needs, and its outage stops only what must be checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from definitions import Definitions, installed
from pods import BUSYBOX
from slincdev import components
from slincdev.build import bin_dir
from slincdev.common import PATIENCE, REPO, Fail, run
from slincdev.kube import ApiError
from slincdev.parts import ensure_images, import_images, kubectl
from slincdev.rights import audited, rights_given
from waits import wait_for

CHART = REPO / "charts/slurm-operator"
NAME, HOME, SITE = "slurm-operator", components.BRIDGE_HOME, "operator-chart"  # a namespace whose accounts are audited
WEBHOOK = "slurm-operator-webhook"
VALUES = ["certManager.enabled=false", "imagePullPolicy=Never", f"testImage={BUSYBOX}"] + [
    f"{part}.{value}" for part in ("operator", "webhook") for value in ("image.repository=localhost/slinc/slinc", "imagePullPolicy=Never")]
MONITORS = "servicemonitors.monitoring.coreos.com"
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SPEC = {"slurmKeyRef": {"name": "keys", "key": "k"}, "jwtKeyRef": {"name": "keys", "key": "j"}, "persistence": {"enabled": False},
        "slurmctld": {"image": BUSYBOX}, "logfile": {"image": BUSYBOX}}


def settings(*values: str) -> list[str]:
    return [word for value in (*VALUES, *values) for word in ("--set", value)]


class Chart(Definitions):
    """The release, beside a namespace for custom resources."""

    audited_since = 0

    def helm_home(self, *words: object) -> str:
        return run([bin_dir() / "helm", f"--kubeconfig={self.cluster.admin_config}", "-n", HOME, *words], timeout=200 * PATIENCE)

    def apply(self, verb: str, *values: str) -> None:
        self.helm_home(verb, NAME, CHART, "--wait", "--timeout", f"{90 * PATIENCE:.0f}s", *settings(*values))

    def pods(self, name: str) -> list[str]:
        found = self.api.get(f"/api/v1/namespaces/{HOME}/pods?labelSelector=app.kubernetes.io%2Fname%3D{name}")["items"]
        return [one["metadata"]["name"] for one in found]

    def create(self, *objects: dict) -> str:
        """What kubectl says."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        return kubectl(self.cluster, "-n", SITE, "apply", "-f", "-", input=text, timeout=30 * PATIENCE)

    def refused(self, *objects: dict) -> str:
        with pytest.raises(Fail) as caught:
            self.create(*objects)
        return str(caught.value)

    def children(self, owner: str) -> set[str]:
        kinds = ("apps/v1:statefulsets", "v1:services", "v1:configmaps", "monitoring.coreos.com/v1:servicemonitors")
        found = set()
        for kind in kinds:
            version, plural = kind.split(":")
            base = f"/api{'s' if '/' in version else ''}/{version}/namespaces/{SITE}/{plural}"
            found |= {f"{plural}/{one['metadata']['name']}" for one in self.api.get(base)["items"]
                      if any(ref["name"] == owner for ref in one["metadata"].get("ownerReferences", []))}
        return found


def controller(name: str, **spec: object) -> dict:
    return {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller", "metadata": {"name": name}, "spec": SPEC | spec}


@pytest.fixture(scope="module")
def chart(cluster) -> Iterator[Chart]:
    ensure_images(["slinc", "busybox"])
    import_images(cluster, ["slinc", "busybox"])
    with installed(cluster, SITE):
        found = Chart(cluster, SITE)
        found.api.post("/api/v1/namespaces", {"metadata": {"name": HOME, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        found.api.post(f"/api/v1/namespaces/{SITE}/secrets", {"metadata": {"name": "keys"}, "stringData": {"k": "key", "j": "jwt"}})
        found.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
            "metadata": {"name": MONITORS}, "spec": {
                "group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"plural": "servicemonitors", "kind": "ServiceMonitor"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}]}})
        found.audited_since = components.audit_log(cluster).stat().st_size
        found.apply("install")
        try:
            yield found
        finally:
            found.helm_home("uninstall", NAME, "--wait", "--ignore-not-found")
            found.api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{MONITORS}")
            found.api.delete(f"/api/v1/namespaces/{HOME}")
            wait_for("the namespace is gone", 60, lambda: not found.api.exists(f"/api/v1/namespaces/{HOME}"))


def test_it_is_well_in_a_restricted_namespace(chart, tmp_path):
    for service in (NAME, WEBHOOK):
        for path in ("healthz", "readyz"):
            assert "ok" in kubectl(chart.cluster, "get", "--raw", f"/api/v1/namespaces/{HOME}/services/{service}:health/proxy/{path}")
    rendered = tmp_path / "tests.yaml"  # busybox of this cluster cannot look up names, so the pods of `helm test` are only admitted
    rendered.write_text(chart.helm_home("template", NAME, CHART, "--validate", "--dry-run=server", "--show-only", "templates/tests/health.yaml", *settings()))
    assert kubectl(chart.cluster, "-n", HOME, "apply", "--dry-run=server", "-f", rendered).count("created (server dry run)") == 2


def test_what_cannot_work_is_refused_with_the_name_of_the_field(chart):
    said = chart.refused(controller("bad", configFileRefs=[{"name": "no-such-file"}]))
    assert 'admission webhook "controller-v1beta1.kb.io" denied the request: spec.configFileRefs[0].name: ConfigMap no-such-file does not exist' in said
    said = chart.refused(controller("bad", slurmctld={"env": [{"name": "A", "value": 1}]}))
    assert "spec.slurmctld.env[0].value: wants string, found number" in said
    said = chart.refused({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "bad"},
                          "spec": {"controllerRef": {"name": "slurm"}, "extraConf": "Gres"}})
    assert 'spec.extraConf: "Gres" is not Key=Value' in said
    assert not chart.api.get(chart.path("controllers"))["items"]


def test_a_good_controller_comes_with_its_files_and_gets_its_children(chart, eventually):
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files"}, "data": {"gres.conf": "", "notes.txt": ""}}
    good = controller("slurm", configFileRefs=[{"name": "files"}],
                      metrics={"enabled": True, "serviceMonitor": {"enabled": True}})
    said = chart.create(files, good)
    assert "controller.slinky.slurm.net/slurm created" in said
    wanted = {"statefulsets/slurm-controller", "services/slurm-controller", "services/slurm-controller-internal", "configmaps/slurm-config",
              "servicemonitors/slurm-controller"}
    eventually("its children are there", lambda: chart.children("slurm") == wanted)
    said = chart.refused(good | {"spec": good["spec"] | {"clusterName": "other"}})
    assert "spec.clusterName: cannot be changed, it is operator-chart_slurm" in said


def test_the_outage_of_the_webhook_stops_only_what_must_be_checked(chart, eventually):
    path = chart.path("controllers", "slurm")
    deployment = f"/apis/apps/v1/namespaces/{HOME}/deployments/{WEBHOOK}/scale"
    chart.api.merge(deployment, {"spec": {"replicas": 0}})
    wait_for("it is away", 60, lambda: not chart.pods(WEBHOOK))
    try:
        chart.api.merge(path, {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/hold"]}})
        with pytest.raises(ApiError, match="controller-v1beta1.kb.io"):
            chart.api.merge(path, {"spec": {"extraConf": "A=b"}})
        chart.api.delete(path)
        chart.api.merge(path, {"metadata": {"finalizers": None}})
        assert not chart.api.exists(path)
    finally:
        chart.api.merge(deployment, {"spec": {"replicas": 1}})
    eventually("it is back", lambda: chart.refused(controller("bad", configFileRefs=[{"name": "none"}])))


def test_it_has_the_rights_it_needs_also_as_one_process_for_one_namespace(chart, cluster, eventually):
    given = rights_given(chart.helm_home("template", NAME, CHART, "--validate", "--dry-run=server", *settings()))
    used = audited(components.audit_log(cluster), chart.audited_since, HOME)
    for account, extra in ((NAME, f"{NAME}-lease"), (WEBHOOK, WEBHOOK)):
        assert [right for right, decided in used[account].items() if decided != {"allow"}] == []
        assert sorted(set(used[account]) - given[account] - given[extra]) == []

    secret = f"/api/v1/namespaces/{HOME}/secrets/slurm-operator-webhook-ca"
    certificate = chart.api.get(secret)["data"]
    chart.apply("upgrade", f"operator.namespaces={SITE}", f"webhook.namespaces={SITE}", "webhook.separate=false")
    assert chart.api.get(secret)["data"] == certificate
    since = components.audit_log(cluster).stat().st_size
    eventually("it refuses", lambda: "does not exist" in chart.refused(controller("bad", configFileRefs=[{"name": "none"}])))
    chart.create(controller("second"))
    eventually("its children are there", lambda: "statefulsets/second-controller" in chart.children("second"))
    used = audited(components.audit_log(cluster), since, HOME)
    assert [right for right, decided in used[NAME].items() if decided != {"allow"}] == []
    for pod in chart.pods(NAME):
        assert not re.search(r"\bforbidden\b", kubectl(cluster, "-n", HOME, "logs", pod), re.I)
    chart.api.delete(chart.path("controllers", "second"))


def test_nothing_but_its_lease_is_left_when_it_is_uninstalled(chart, cluster, eventually):
    chart.helm_home("uninstall", NAME, "--wait", "--timeout", f"{90 * PATIENCE:.0f}s")
    every = kubectl(cluster, "api-resources", "--verbs=list,delete", "--namespaced=false", "-o", "name").split()
    inside = kubectl(cluster, "api-resources", "--verbs=list,delete", "--namespaced=true", "-o", "name").split()
    known = {"configmap/kube-root-ca.crt", "serviceaccount/default", f"lease.coordination.k8s.io/{NAME}"}

    def left() -> set[str]:
        here = kubectl(cluster, "-n", HOME, "get", ",".join(inside), "-o", "name", "--ignore-not-found").split()
        wide = kubectl(cluster, "get", ",".join(every), "-o", "name", "-l", f"app.kubernetes.io/instance={NAME}").split()
        return {one for one in (*here, *wide) if not one.startswith("event")} - known
    eventually("nothing is left", lambda: not left())
    assert "items" in chart.api.get(chart.path("controllers")), "the definitions stay, and what the user made"
