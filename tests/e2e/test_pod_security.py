"""All our pods pass Pod Security "restricted", as the API server judges them in a dry run. Those that cannot are named here, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from definitions import installed
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import REPO, run
from slincdev.crds import from_yaml
from slincdev.kube import Api, ApiError
from slurm_operator import Operator, Site
from waits import wait_for

HOME, RESTRICTED = "pod-security-site", "pod-security-restricted"
CHARTS = {
    "slurm-operator": [], "slurm": [], "slurm-exporter": ["exporter.secretName=token", "ui.enabled=true"],
    "slurm-bridge": ["dra.enabled=true", "admission.separate=true", "trustAnnotations=own", "nodePolicy.mode=Deny"],
}
EXCEPTIONS = {
    "slurm-bridge-dra": "writes into folders of kubelet and reads control groups of the Node",
    "slurmd": "starts jobs as their users, in control groups of its own",
    "login": "sshd starts sessions as their users",
}
POD_KINDS = r"kind: (?:Pod|Deployment|StatefulSet|DaemonSet|Job|CronJob)$"
FROM_ELSEWHERE = ("serviceAccountName", "serviceAccount", "priorityClassName", "priority", "nodeName")  # they need objects that are not there, or say where it runs


def pod_of(one: dict) -> dict | None:
    """The spec of the pods of an object."""
    if one["kind"] == "Pod":
        return one["spec"]
    return one.get("spec", {}).get("template", {}).get("spec") if one["kind"] in ("Deployment", "StatefulSet", "DaemonSet", "Job") else None


@pytest.fixture(scope="module")
def restricted(cluster: Cluster) -> Iterator[Api]:
    api = cluster.api()
    labels = {f"pod-security.kubernetes.io/{key}": "restricted" for key in ("enforce", "warn", "audit")} | {"pod-security.kubernetes.io/enforce-version": "latest"}
    api.post("/api/v1/namespaces", {"metadata": {"name": RESTRICTED, "labels": labels}})
    wait_for("the namespace has its account", 30, lambda: api.exists(f"/api/v1/namespaces/{RESTRICTED}/serviceaccounts/default"))
    yield api
    api.delete(f"/api/v1/namespaces/{RESTRICTED}")


def verdict(api: Api, pod: dict) -> str:
    """What the API server has against it; "": nothing."""
    spec = {key: value for key, value in pod.items() if key not in FROM_ELSEWHERE} | {"automountServiceAccountToken": False}
    try:
        api.post(f"/api/v1/namespaces/{RESTRICTED}/pods?dryRun=All", {"metadata": {"name": "tried"}, "spec": spec})
    except ApiError as error:
        assert error.status == 403 and "violates PodSecurity" in str(error), error
        return str(error)
    return ""


def check(api: Api, pods: dict[str, dict]) -> None:
    verdicts = {name: verdict(api, pod) for name, pod in pods.items()}
    assert {name: text for name, text in verdicts.items() if text and name not in EXCEPTIONS} == {}
    assert [name for name, text in verdicts.items() if not text and name in EXCEPTIONS] == [], "an exception that is none"


def templates_with_pods(chart: str) -> set[str]:
    home = REPO / "charts" / chart
    return {str(path.relative_to(home)) for path in home.rglob("templates/**/*.yaml") if re.search(f"^{POD_KINDS}", path.read_text(), re.M)}


def test_every_chart_with_pods_is_tried() -> None:
    assert {path.name for path in (REPO / "charts").iterdir() if templates_with_pods(path.name)} == CHARTS.keys()


@pytest.mark.parametrize("chart", CHARTS)
def test_pods_of_a_chart_are_restricted(restricted: Api, chart: str) -> None:
    words = [word for value in CHARTS[chart] for word in ("--set", value)]
    text = run([bin_dir() / "helm", "template", "slurm", REPO / "charts" / chart, "--kube-version", "1.36", *words])
    rendered = set(re.findall(r"^# Source: (\S+)\n(?:(?!^---$).*\n)*?" + POD_KINDS, text, re.M))
    assert {path.partition("/")[2] for path in rendered} == templates_with_pods(chart)
    check(restricted, {one["metadata"]["name"]: pod for one in from_yaml(text) if (pod := pod_of(one))})


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One custom resource of each kind. Their images do not exist: nothing has to run."""
    image, ref = {"image": "localhost/nowhere:0", "imagePullPolicy": "Never"}, {"controllerRef": {"name": "slurm"}}
    with installed(cluster, HOME):
        operator, found = Operator(cluster, tmp_path_factory.mktemp("operator")), Site(cluster, HOME)
        keys = found.make_keys()
        found.api.post(found.core("secrets"), {"metadata": {"name": "more"}, "stringData": {"sssd.conf": "[sssd]\n", "password": "x"}})
        found.make("accountings", "slurm", keys | {"slurmdbd": image, "storageConfig": {"host": "nowhere", "passwordKeyRef": {"name": "more", "key": "password"}}})
        found.make("controllers", "slurm", keys | {"slurmctld": image, "logfile": image, "reconfigure": image, "inplaceReconfigure": True,
                                                   "persistence": {"enabled": False}})
        found.make("restapis", "slurm", ref | {"slurmrestd": image})
        found.make("loginsets", "login", ref | {"login": image, "initconf": image, "sssdConfRef": {"name": "more", "key": "sssd.conf"}})
        found.make("nodesets", "w", ref | {"replicas": 1, "slurmd": image, "logfile": image})
        try:
            operator.start().wait_until_it_leads()
            yield found
            operator.stop()
        finally:
            operator.end()
            # Nobody is left who could drain the worker, and there is no Slurm that would say that it is drained.
            found.api.merge(found.path("nodesets", "w"), {"metadata": {"finalizers": None}})
            found.end_pods()


def test_pods_that_the_operator_makes_are_restricted(restricted: Api, site: Site, eventually) -> None:
    def made() -> dict[str, dict]:
        """By their main container."""
        objects = [one for plural in ("deployments", "statefulsets") for one in site.api.get(site.apps(plural))["items"]]
        pods = [one["spec"]["template"]["spec"] for one in objects] + [one["spec"] for one in site.api.get(site.core("pods"))["items"]]
        return {pod["containers"][0]["name"]: pod for pod in pods}
    names = {"slurmctld", "slurmdbd", "slurmrestd", "slurmd", "login"}
    check(restricted, eventually("all pods are made", lambda: made() if made().keys() >= names else None))
