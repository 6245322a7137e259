"""The chart of the operator beside what surrounds it: every value does something or says that it does nothing, and program and documentation
agree with it. The suites in charts/slurm-operator/tests say what exactly each value does."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, MONITORING, REPO, helm, leaves, render, sets, spell, with_notes

CHART = REPO / "charts/slurm-operator"
PARTS = ("operator", "webhook")
WORKERS = {kind: 4 for kind in ("accounting", "controller", "loginset", "nodeset", "restapi", "token")} | {"slurmclient": 2}

# Every value: how to change it, and what must be set before for it to matter. The first word may carry on the key.
MATTERS: dict[str, tuple[str, list[str]]] = {
    "nameOverride": ("=other", []), "fullnameOverride": ("=other", []), "namespaceOverride": ("=other", []), "imagePullSecrets": ("[0].name=a", []),
    "imageRegistry": ("=other", []), **MONITORING,
    "imagePullPolicy": ("=Always", ["operator.imagePullPolicy="]), "priorityClassName": ("=high", []), "crds.enabled": ("=false", []),
    "webhook.separate": ("=false", []), "webhook.timeoutSeconds": ("=3", []), "webhook.serverPort": ("=1443", []),
    "webhook.validating.failurePolicy": ("=Ignore", []), "webhook.validating.matchPolicy": ("=Exact", []),
    "webhook.validating.matchConditions": ("[0].name=a,webhook.validating.matchConditions[0].expression=x", []),
    "webhook.validating.namespaceSelector": (".matchLabels.a=b", []),
    "webhook.existingSecret": ("=mine", ["webhook.caBundle=YQ=="]), "webhook.caBundle": ("=Yg==", ["webhook.existingSecret=mine", "webhook.caBundle=YQ=="]),
    "certManager.enabled": ("=false", []), "certManager.secretName": ("=other", []), "certManager.duration": ("=1h", []), "certManager.renewBefore": ("=1m", []),
    "metricsCertSecret": ("=mine", ["operator.metricsSecure=true"]),
    "propagatedNodeConditions": ("[0]=DiskPressure", []), "testImage": ("=other", []), "extraObjects": ("[0].kind=ConfigMap", []),
} | {
    f"{part}.{key}": (change, []) for part in PARTS for key, change in {
        "enabled": "=false", "replicas": "=3", "imagePullPolicy": "=Never", "image.repository": "=other", "image.tag": "=v9", "image.digest": "=sha256:a",
        "serviceAccount.create": "=false", "serviceAccount.name": "=other", "nodeSelector": ".a=b", "affinity.nodeAffinity": ".x=y", "tolerations": "[0].key=a",
        "topologySpreadConstraints": "[0].maxSkew=1", "podSecurityContext": ".fsGroup=1", "securityContext": ".privileged=false", "resources": ".limits.cpu=1",
        "logLevel": "=debug", "healthPort": "=1001", "metricsPort": "=1002", "namespaces": "=a"}.items()
} | {
    f"{part}.metricsSecure": ("=true", [f"{part}.metricsPort=1002"]) for part in PARTS
} | {
    f"{part}.pdb.{key}": (change, [f"{part}.replicas=2", *([f"{part}.pdb.enabled=true"] if key != "enabled" else [])])
    for part in PARTS for key, change in (("enabled", "=true"), ("minAvailable", "=2"), ("maxUnavailable", "=0"))
}

# Those that change no object: what they are told as.
IDLE = {f"operator.{kind}Workers": "=9" for kind in WORKERS} | {
    "operator.profile": "=true", "operator.profileAddr": "=x", "operator.leaderElection": "=false", "webhook.leaderElection": "=false", "webhook.podsBinding": "=true",
    "webhook.mutating.failurePolicy": "=Fail", "webhook.mutating.matchPolicy": "=Exact",
    "webhook.mutating.matchConditions": "[0].name=a,webhook.mutating.matchConditions[0].expression=x",
    "operator.image": ".repository=registry/slurm-operator,operator.image.tag=1.2.1", "webhook.image": ".repository=registry/slurm-operator-webhook",
}


def value_of(key: str) -> str:
    """The key of values.yaml that a row is about; affinity is given below it."""
    return key.removesuffix(".nodeAffinity")


def test_every_value_is_in_the_tables_below() -> None:
    assert leaves(CHART / "values.yaml") == {value_of(key) for key in (*MATTERS, *IDLE)} - {"operator.image", "webhook.image"}


@pytest.mark.parametrize("key", MATTERS)
def test_a_value_changes_an_object(key: str) -> None:
    change, before = MATTERS[key]
    assert render(CHART, *sets(before)) != render(CHART, *sets([*before, key + change]))


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_notes(CHART, tmp_path_factory.mktemp("chart"))


@pytest.mark.parametrize("key", IDLE)
def test_a_value_without_effect_changes_nothing_and_is_told(key: str, telling: Path) -> None:
    words = sets([key + IDLE[key]])
    assert render(CHART) == render(CHART, *words)
    told = render(telling, *words, "--show-only", "templates/told.yaml").split("have no effect", 1)[1]
    assert any(key.startswith(line.split()[0]) for line in told.splitlines()[1:] if line.strip()), told


def test_lint_is_content() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout


def test_the_documentation_names_every_value() -> None:
    spelled = {one for name in re.findall(r"`([A-Za-z.{},]+)`", (REPO / "docs/operator.md").read_text()) for one in spell(name)}
    assert [key for key in leaves(CHART / "values.yaml") if not any(key == one or key.startswith(f"{one}.") for one in spelled)] == []


def test_both_charts_and_the_program_have_one_version() -> None:
    project = re.search(r"^  version: '([^']+)'", (REPO / "meson.build").read_text(), re.M)[1]
    for chart in (CHART, REPO / "charts/slurm-operator-crds"):
        assert dict(re.findall(r"^(version|appVersion): \"?([^\"\n]+)\"?$", (chart / "Chart.yaml").read_text(), re.M)) == {"version": project, "appVersion": project}
    assert f"    version: {project}\n" in (CHART / "Chart.yaml").read_text(), "the definitions that it depends on"


def test_the_program_knows_every_flag_that_the_chart_gives_it() -> None:
    known = subprocess.run([BUILD / "src/cmd/slinc", "operator", "--help"], text=True, capture_output=True, check=True).stdout
    given = set(re.findall(r"^ +- (--[a-z-]+)", render(CHART, *sets(["operator.namespaces=a", "propagatedNodeConditions[0]=b"])), re.M))
    assert {"--webhook-only", "--namespaces", "--propagated-node-conditions", "--leader-elect-namespace"} <= given
    assert given - set(re.findall(r"^  (--[a-z-]+)", known, re.M)) == set()


def test_a_package_holds_the_definitions_and_no_suites(tmp_path: Path) -> None:
    assert helm("package", CHART, "--destination", tmp_path).returncode == 0
    listed = subprocess.run(["tar", "-tzf", next(tmp_path.iterdir())], text=True, capture_output=True, check=True).stdout
    assert "slurm-operator/charts/slurm-operator-crds/templates/nodesets.yaml" in listed
    assert "slurm-operator/templates/tests/health.yaml" in listed
    assert "slurm-operator/tests/" not in listed
