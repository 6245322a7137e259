"""The chart of the bridge beside what surrounds it: every value does something or says that it does nothing, and program, image and
documentation agree with it. The suites in charts/slurm-bridge/tests say what exactly each value does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, MONITORING, REPO, helm, leaves, render, sets, spell, with_notes

CHART = REPO / "charts/slurm-bridge"
OWN = "admission.separate=true"
DRA = "dra.enabled=true"
TOKEN = "sharedConfig.slurmToken.create=true"
BUDGET = "{}.pdb.enabled=true"
AGENT = ["agent.enabled=true", "agent.slurmctld=a"]
PLACING = {"priorityClassName": "=high", "resources": ".limits.cpu=1", "nodeSelector": ".a=b", "affinity.nodeAffinity": ".x=y", "tolerations": "[0].key=a"}

# Every value: how to change it, and what must be set before for it to matter. The first word may carry on the key.
MATTERS: dict[str, tuple[str, list[str]]] = {
    "nameOverride": ("=other", []), "namespaceOverride": ("=other", []), "imagePullSecrets": ("[0].name=a", []),
    "imageRegistry": ("=other", []), **MONITORING,
    "schedulerConfig.schedulerName": ("=other", []), "schedulerConfig.mcsLabel": ("=other", []), "schedulerConfig.partition": ("=other", []),
    "sharedConfig.slurmRestApi": ("=http://other", []), "sharedConfig.slurmRestCa": ("=-----BEGIN CERTIFICATE-----\na", ["sharedConfig.slurmRestApi=https://other"]), "sharedConfig.slurmJwtSecret": ("=other", []),
    "sharedConfig.slurmJwtKey.name": ("=other", []), "sharedConfig.slurmJwtKey.key": ("=other", ["sharedConfig.slurmJwtKey.name=a"]),
    "sharedConfig.slurmToken.create": ("=true", []), "sharedConfig.slurmToken.lifetime": ("=5m", [TOKEN]),
    "sharedConfig.slurmToken.jwtKeyRef.name": ("=other", [TOKEN]), "sharedConfig.slurmToken.jwtKeyRef.key": ("=other", [TOKEN]),
    "bridgeConfig": (".sharedNodes=true", []), "markKey.existingSecret": ("=mine", []),
    "scheduler.replicaCount": ("=3", []), "scheduler.verbosity": ("=9", []), "scheduler.observeOnly": ("=true", []), "scheduler.prologPort": ("=8082", []),
    "controllers.verbosity": ("=debug", []),
    "admission.enabled": ("=false", []), "admission.separate": ("=true", []), "admission.replicas": ("=3", [OWN]),
    "admission.existingSecret": ("=mine", ["admission.caBundle=YQ=="]), "admission.caBundle": ("=Yg==", ["admission.existingSecret=mine", "admission.caBundle=YQ=="]),
    "admission.tls.existingSecret": ("=mine", ["admission.tls.caBundle=YQ=="]), "admission.tls.caBundle": ("=Yg==", ["admission.existingSecret=a", "admission.tls.caBundle=YQ=="]),
    "admission.certManager.enabled": ("=false", []), "admission.certManager.duration": ("=1h", []), "admission.certManager.renewBefore": ("=1m", []),
    "admission.managedNamespaces": ("[0]=other", []), "admission.managedNamespaceSelector": (".matchLabels.a=b", []),
    "dra.enabled": ("=true", []), "dra.kubeletRoot": ("=/other", [DRA]), "dra.cdiRoot": ("=/other", [DRA]), "dra.maxUnavailable": ("=3", [DRA]),
    "trustAnnotations": ("=all", []), "nodePolicy.mode": ("=Warn", []), "nodePolicy.namespaces": ("[0]=other", []), "nodePolicy.users": ("[0]=other", []), "nodePolicy.kubeletKeys": ("[0]=other", []),
    "metricsSecure": ("=true", []), "metricsCertSecret": ("=mine", ["metricsSecure=true"]),
    "uninstall.hook": ("=false", []), "uninstall.seconds": ("=9", []),
    "agent.enabled": ("=true", ["agent.slurmctld=a"]),
} | {
    f"agent.{key}": (change, AGENT)
    for key, change in {"image.repository": "=other", "image.tag": "=v9", "image.pullPolicy": "=Never", "slurmctld": "=b", "workers": "=9", "messageTimeout": "=9",
                        "resources.requests.cpu": "=1", "resources.requests.memory": "=1Gi", "resources.limits.memory": "=1Gi"}.items()
} | {
    f"{part}.{key}": (change, before)
    for part, before in (("scheduler", []), ("admission", [OWN]))
    for key, change in ({"image.repository": "=other", "image.tag": "=v9", "image.pullPolicy": "=Never", "pdb.enabled": "=true"} | PLACING).items()
} | {
    f"dra.{key}": (change, [DRA])
    for key, change in ({"image.repository": "=other", "image.tag": "=v9", "image.pullPolicy": "=Never"} | PLACING).items()
} | {
    f"{part}.pdb.{bound}": ("=3", [*before, BUDGET.format(part)])
    for part, before in (("scheduler", []), ("admission", [OWN])) for bound in ("minAvailable", "maxUnavailable")
}

# Those that change no object: what they are told as.
IDLE = {
    "fullnameOverride": "=x", "schedulerConfig.clientQPS": "=5", "schedulerConfig.clientBurst": "=5", "sharedConfig.deviceProfiles": "[0].name=x",
    "scheduler.leaderElect": "=true", "scheduler.featureGates": ".x=true", "controllers.leaderElect": "=true", "controllers.podWorkers": "=5",
} | {
    f"{part}.{key}": change for part in ("controllers", "admission")
    for key, change in ({"image.repository": "=other", "image.tag": "=v9", "image.pullPolicy": "=Never", "replicas": "=5", "pdb.enabled": "=true"} | PLACING).items()
}
SILENT = {"controllers.pdb.minAvailable", "controllers.pdb.maxUnavailable"}  # say nothing without `enabled`


def value_of(key: str) -> str:
    """The key of values.yaml that a row is about; affinity is given below it."""
    return key.removesuffix(".nodeAffinity")


def test_every_value_is_in_the_tables_below() -> None:
    known = {value_of(key) for key in (*MATTERS, *IDLE)} | SILENT
    assert leaves(CHART / "values.yaml") == known


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
    assert any(value_of(key).startswith(line.split()[0]) for line in told.splitlines()[1:] if line.strip()), told


def test_the_values_of_others_are_taken_and_mean_the_same_but_for_one_replica(tmp_path: Path) -> None:
    old = CHART / "tests/values/slinky.yaml"
    assert render(CHART, "-f", old) == render(CHART, "--set", "scheduler.replicaCount=1")
    newer = tmp_path / "newer.yaml"
    newer.write_text(old.read_text().replace("slurmJwtSecret: slurm-bridge-token", "slurmJwtSecret: {name: slurm-bridge-token, key: SLURM_JWT}"))
    assert 'items: [{key: "SLURM_JWT", path: auth-token}]' in render(CHART, "-f", newer)


def test_lint_is_content() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout


def test_the_documentation_names_every_value() -> None:
    text = (REPO / "docs/chart.md").read_text()
    named = set(re.findall(r"`([A-Za-z.{},]+)`", text))
    spelled = {one for name in named for one in spell(name)}
    missing = [key for key in leaves(CHART / "values.yaml") if not any(key == one or key.startswith(f"{one}.") for one in spelled)]
    assert missing == []


def test_chart_program_and_image_have_one_version() -> None:
    chart = dict(re.findall(r"^(version|appVersion): \"?([^\"\n]+)\"?$", (CHART / "Chart.yaml").read_text(), re.M))
    project = re.search(r"^  version: '([^']+)'", (REPO / "meson.build").read_text(), re.M)
    image = subprocess.run([sys.executable, "-c", "import recipe; print(recipe.load('slinc').name)"], cwd=REPO / "images", text=True, capture_output=True, check=True)
    assert project
    assert chart == {"version": project[1], "appVersion": project[1]}
    assert image.stdout.strip() == f"localhost/slinc/slinc:{project[1]}"


@pytest.fixture(scope="module")
def program_help() -> str:
    return subprocess.run([BUILD / "src/cmd/slinc", "bridge", "--help"], text=True, capture_output=True, check=True).stdout


def test_the_program_knows_every_flag_that_the_chart_gives_it(program_help: str) -> None:
    given = set(re.findall(r"^ +- (--[a-z-]+)", render(CHART, *sets([OWN])) + render(CHART, *sets(["scheduler.observeOnly=true"])), re.M))
    assert {"--roles", "--uninstall", "--observe-only"} <= given
    of_keys = subprocess.run([BUILD / "src/cmd/slinc", "keys", "--help"], text=True, capture_output=True, check=True).stdout  # of the hook
    assert given - set(re.findall(r"^  (--[a-z-]+)", program_help + of_keys, re.M)) == set()


def test_the_program_knows_every_key_of_its_config(program_help: str) -> None:
    text = render(CHART, *sets(["sharedConfig.slurmJwtKey.name=a"])) + render(CHART, *sets(["admission.managedNamespaceSelector.matchLabels.a=b"]))
    given = {key for block in re.findall(r"  config.yaml: \|\n((?:    .*\n)+)", text) for key in re.findall(r"^    ([A-Za-z]+):", block, re.M)}
    assert {"schedulerName", "managedNamespaceSelector", "jwtKeyFile"} <= given
    assert given - set(re.findall(r"^\| `([A-Za-z]+)` \|", program_help, re.M)) == set()


def test_a_package_holds_no_tests(tmp_path: Path) -> None:
    assert helm("package", CHART, "--destination", tmp_path).returncode == 0
    listed = subprocess.run(["tar", "-tzf", next(tmp_path.iterdir())], text=True, capture_output=True, check=True).stdout
    assert "slurm-bridge/values.schema.json" in listed
    assert "/tests/" not in listed
