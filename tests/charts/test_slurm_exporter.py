"""The chart of the exporter beside what surrounds it: every value does something, and program and documentation agree with it. The suites in
charts/slurm-exporter/tests say what exactly each value does."""

from __future__ import annotations

import re
import subprocess

import pytest
from conftest import BUILD, REPO, helm, leaves, render, sets

CHART = REPO / "charts/slurm-exporter"
DOCUMENT = REPO / "docs/exporter.md"
NEEDED = ["exporter.secretName=token"]
FILES = ("cluster", "bridge", "rules")  # that the program prints and the chart ships
MINE = ["externalMetrics.enabled=true", "api.existingSecret=mine", "api.caBundle=YQ=="]

# Every value: how to change it, and what must be set before for it to matter.
MATTERS: dict[str, tuple[str, list[str]]] = {
    "nameOverride": ("=other", []), "namespaceOverride": ("=other", []), "imageRegistry": ("=other", []), "imagePullSecrets": ("[0].name=a", []), "priorityClassName": ("=high", []),
    "externalMetrics.enabled": ("=true", []), "view.enabled": ("=true", []), "view.bridge": ("=http://a:1", ["view.enabled=true"]), "view.bridgeCaSecret": ("=a", ["view.enabled=true"]), "ui.enabled": ("=true", []), "ui.port": ("=8443", ["ui.enabled=true"]), "ui.openPort": ("=8090", []), "api.existingSecret": ("=other", MINE),
    "api.caBundle": ("=Yg==", MINE), "grafana.enabled": ("=false", []),
    "prometheusRule.enabled": ("=false", []), "prometheusRule.labels": (".a=b", []),
} | {f"exporter.{key}": (change, []) for key, change in {
    "enabled": "=false", "replicas": "=3", "imagePullPolicy": "=Never", "image.repository": "=other", "image.tag": "=v9", "server": "=http://a:1",
    "secretName": "=other", "jwtKey.name": "=key", "logLevel": "=debug", "cacheFrequency": "=9s", "jobListSeconds": "=9", "staleSeconds": "=9",
    "maxNames": "=9", "userLabels": "=off", "legacyPath": "=/metrics", "priorityClassName": "=high", "nodeSelector": ".a=b", "tolerations": "[0].key=a",
    "affinity": ".nodeAffinity.x=y", "resources": ".limits.cpu=1", "serviceMonitor.enabled": "=false", "serviceMonitor.labels": ".a=b",
    "serviceMonitor.endpoints": "[0].path=/other", "networkPolicy.enabled": "=true"}.items()
} | {"exporter.metricsSecure": ("=true", []), "exporter.metricsCertSecret": ("=mine", ["exporter.metricsSecure=true"])} | {"exporter.serverCa": ("=-----BEGIN CERTIFICATE-----\na", ["exporter.server=https://a:1"])} | {f"exporter.jwtKey.{key}": ("=other", ["exporter.jwtKey.name=key"]) for key in ("key", "user")} | {
    f"exporter.pdb.{key}": (change, ["exporter.replicas=2", *([] if key == "enabled" else ["exporter.pdb.enabled=true"])])
    for key, change in {"enabled": "=true", "minAvailable": "=2", "maxUnavailable": "=0"}.items()
} | {
    "exporter.networkPolicy.from": ("[0].podSelector.matchLabels.a=b", ["exporter.networkPolicy.enabled=true"])}


def shown(*words: str) -> str:
    """All objects; what is random is left out."""
    return re.sub(r"(tls.crt|tls.key|ca.crt|caBundle): LS0t\S+", r"\1: made", render(CHART, "--api-versions", "monitoring.coreos.com/v1/PrometheusRule", *sets([*NEEDED, *words])))


def test_every_value_is_in_the_table_above() -> None:
    assert leaves(CHART / "values.yaml") == set(MATTERS)


@pytest.mark.parametrize("key", MATTERS)
def test_a_value_changes_an_object(key: str) -> None:
    change, before = MATTERS[key]
    assert shown(*before) != shown(*before, key + change)


def test_lint_is_content() -> None:
    done = helm("lint", "--strict", CHART, *sets(NEEDED))
    assert done.returncode == 0, done.stdout


def test_chart_and_program_have_one_version() -> None:
    project = re.search(r"^  version: '([^']+)'", (REPO / "meson.build").read_text(), re.M)[1]
    assert dict(re.findall(r"^(version|appVersion): \"?([^\"\n]+)\"?$", (CHART / "Chart.yaml").read_text(), re.M)) == {"version": project, "appVersion": project}


@pytest.fixture(scope="module")
def help_text() -> str:
    return subprocess.run([BUILD / "src/cmd/slinc", "exporter", "--help"], text=True, capture_output=True, check=True).stdout


def test_the_program_knows_every_flag_that_the_chart_gives_it(help_text: str) -> None:
    given = set(re.findall(r"^ +- (--[a-z-]+)", shown("externalMetrics.enabled=true", "ui.enabled=true", "ui.openPort=8090", "exporter.legacyPath=/m", "exporter.jwtKey.name=k"), re.M))
    assert {"--external-metrics", "--view-api", "--ui", "--ui-bind-address", "--legacy-path", "--jwt-key-file", "--server"} <= given
    assert given - set(re.findall(r"^  (--[a-z-]+)", help_text, re.M)) == set()


def test_the_documentation_has_every_metric_flag_and_reason_as_the_program_has_it(help_text: str) -> None:
    document = DOCUMENT.read_text()
    rows = re.findall(r"^\| `(?:slinc_|[a-z]+` \| ).*$", help_text, re.M)
    flags = [flag for flag, words in re.findall(r"^  --(\S+) +(.*)$", help_text, re.M) if "without effect" not in words]
    assert len(rows) > 60 and len(flags) > 10
    own = help_text[:help_text.index("metrics of the process")]
    assert [row for row in rows if row in own and row not in document] == []
    assert [flag for flag in flags if f"`--{flag}`" not in document] == []


def test_the_documentation_names_every_value() -> None:
    named = set(re.findall(r"`([A-Za-z.]+)`", DOCUMENT.read_text()))
    assert [key for key in leaves(CHART / "values.yaml") if not any(key == one or key.startswith(f"{one}.") for one in named)] == []


def slinc(*words: str) -> str:
    return subprocess.run([BUILD / "src/cmd/slinc", *words], text=True, capture_output=True, check=True).stdout


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_the_one_that_the_program_prints(name: str) -> None:
    assert (CHART / f"files/{name}.json").read_text() == slinc("exporter", f"--print={name}")


def test_the_chart_ships_dashboards_and_rules() -> None:
    rendered = shown()
    assert '"title": "Slinc / Slurm"' in rendered and '"title": "Slinc / Bridge"' in rendered
    assert "alert: SlurmUnreachable" in rendered


def test_what_dashboards_and_rules_say_of_the_bridge_is_what_the_bridge_has(help_text: str) -> None:
    known = set(re.findall(r"^\| `([a-z_]+)`", help_text + slinc("bridge", "--help"), re.M))
    used = {name for file in FILES for name in re.findall(r"\b(?:slinc|workqueue|process|leader)_[a-z_]+", (CHART / f"files/{file}.json").read_text())}
    assert len(used) > 30
    assert {re.sub(r"_bucket$", "", name) for name in used} - known == set()
