"""The chart of a Slurm cluster on a real one: keys survive every way there and back, Slurm answers, and nothing is left behind."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from definitions import installed
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, REPO, Fail, run, versions
from slincdev.kube import ApiError
from slincdev.parts import ensure_images, import_images
from slincdev.release import ensure_image
from slurm_operator import Operator, Site
from waits import wait_for

CHART = REPO / "charts/slurm"
VALUES = sorted((CHART / "tests/values").glob("*.yaml"))
HOME = "slurm-chart"
IMAGES = ["slurmctld", "slurmrestd", "slinc"]
KEYS = {"slurm-auth-slurm": "slurm.key", "slurm-auth-jwt": "jwt.key"}
KEEP = "helm.sh/resource-policy"
# Small, and without a volume; the kernel here wants what the tests of the operator want.
SETTINGS = ["imagePullPolicy=Never", "controller.persistence.enabled=false",
            "controller.extraConfMap.ProctrackType=proctrack/linuxproc", "controller.extraConfMap.TaskPlugin=task/affinity"]

# A stand-in for the chart of others: its keys are objects of the release, made by chance and read again at each upgrade.
OTHER = """\
{{- range $name, $key := dict "slurm-auth-slurm" "slurm.key" "slurm-auth-jwt" "jwt.key" }}
{{- $found := lookup "v1" "Secret" $.Release.Namespace $name }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels: {helm.sh/chart: slurm-1.2.1, app.kubernetes.io/managed-by: Helm, app.kubernetes.io/part-of: slurm, app.kubernetes.io/version: "26.05"}
type: Opaque
immutable: true
data:
  {{ $key }}: {{ if $found }}{{ get $found.data $key }}{{ else }}{{ randAscii 1024 | b64enc }}{{ end }}
{{- end }}
"""


class Release(Site):
    """The chart as release `slurm`."""

    def helm(self, *words: object) -> str:
        return run([bin_dir() / "helm", f"--kubeconfig={self.cluster.admin_config}", "-n", self.namespace, *words], timeout=200 * PATIENCE)

    def apply(self, verb: str, *values: str, chart: Path = CHART) -> None:
        words = [word for value in (*SETTINGS, *values) for word in ("--set", value)] if (chart / "values.yaml").exists() else []
        self.helm(verb, "slurm", chart, "--timeout", f"{120 * PATIENCE:.0f}s", *words)

    def uninstall(self) -> None:
        self.helm("uninstall", "slurm", "--timeout", f"{120 * PATIENCE:.0f}s")

    def keys(self) -> dict[str, tuple[str, bytes]]:
        """The UID and the content of each key that is there."""
        found = {one["metadata"]["name"]: one for one in self.api.get(self.core("secrets"))["items"] if one["metadata"]["name"] in KEYS}
        return {name: (one["metadata"]["uid"], self.secret(name, KEYS[name])) for name, one in found.items()}

    def left(self) -> set[str]:
        """All that a person would find in the namespace, but for what Kubernetes puts there."""
        kinds = ("configmaps", "secrets", "serviceaccounts", "services", "pods", "jobs.batch", "roles", "rolebindings", "statefulsets", "deployments",
                 "controllers", "restapis", "accountings", "loginsets", "nodesets", "poddisruptionbudgets")
        found = self.kubectl("get", ",".join(kinds), "-o", "name", "--ignore-not-found").split()
        return {one for one in found if one not in ("configmap/kube-root-ca.crt", "serviceaccount/default") and "slurm-operator-crds" not in one}


@pytest.fixture(scope="module")
def release(cluster: Cluster) -> Iterator[Release]:
    ensure_image()
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    with installed(cluster, HOME):
        yield Release(cluster, HOME)


@pytest.fixture(scope="module")
def other_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other") / "slurm"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: slurm\nversion: 1.2.1\nappVersion: '26.05'\n")
    (folder / "templates/keys.yaml").write_text(OTHER)
    return folder


def test_the_keys_of_another_chart_survive_the_switch_and_the_way_back(release: Release, other_chart: Path) -> None:
    release.apply("install", chart=other_chart)
    keys = release.keys()
    assert keys.keys() == KEYS.keys() and all(len(key) == 1024 for _, key in keys.values())
    for chart in (CHART, CHART, other_chart, CHART):
        release.apply("upgrade", chart=chart)
        assert release.keys() == keys
    release.helm("rollback", "slurm", "1")
    assert release.keys() == keys
    release.apply("upgrade")
    assert release.keys() == keys
    for name in KEYS:
        assert release.api.get(release.core("secrets", name))["metadata"]["annotations"][KEEP] == "keep"
    release.uninstall()
    wait_for("nothing is left", 30, lambda: not release.left(), hint=lambda: str(release.left()))


def test_keys_stay_after_an_uninstall_that_was_asked_to_keep_them(release: Release) -> None:
    release.apply("install", "keys.keepOnUninstall=true")
    keys = release.keys()
    assert keys.keys() == KEYS.keys()
    release.uninstall()
    assert release.keys() == keys
    release.apply("install")  # takes them again
    assert release.keys() == keys
    release.uninstall()
    wait_for("nothing is left", 30, lambda: not release.left(), hint=lambda: str(release.left()))


def test_keys_of_the_user_are_neither_made_nor_marked_nor_deleted(release: Release) -> None:
    made = release.api.post(release.core("secrets"), {"metadata": {"name": "slurm-auth-slurm"}, "stringData": {"slurm.key": "mine"}})
    release.apply("install", "jwtKey.create=false")
    assert release.keys() == {"slurm-auth-slurm": (made["metadata"]["uid"], b"mine")}
    release.apply("upgrade", "jwtKey.create=false")
    release.uninstall()
    after = release.api.get(release.core("secrets", "slurm-auth-slurm"))
    assert after["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    release.api.delete(release.core("secrets", "slurm-auth-slurm"))


def test_an_upgrade_fails_before_it_changes_anything_if_a_secret_has_no_key(release: Release) -> None:
    release.api.post(release.core("secrets"), {"metadata": {"name": "slurm-auth-jwt"}, "stringData": {"other": "x"}})
    with pytest.raises(Fail, match="slurm-keys|pre-install|BackoffLimit|DeadlineExceeded"):
        release.apply("install")
    assert release.api.get(release.path("controllers"))["items"] == []
    assert "slurm-auth-jwt is there, and has no key jwt.key" in release.kubectl("logs", "job/slurm-keys", "--tail=1")
    release.api.delete(release.core("secrets", "slurm-auth-jwt"))
    release.uninstall()
    wait_for("only the failed Job is left", 30, lambda: {one.split("/")[0] for one in release.left()} <= {"job.batch", "pod"}, hint=lambda: str(release.left()))
    release.kubectl("delete", "job", "slurm-keys")


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_the_api_server_takes_every_example(release: Release, values: Path, tmp_path: Path) -> None:
    """By a dry run on the server, hooks too. Objects for other namespaces are left to the tests without a cluster."""
    text = release.helm("template", "slurm", CHART, "-f", values, "--kube-version", versions()["KUBERNETES_VERSION"], "--set", f"namespaceOverride={HOME}")
    rendered = tmp_path / "all.yaml"
    rendered.write_text(text)
    shown = release.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", rendered)
    assert "controller.slinky.slurm.net/" in shown


def like_the_other_chart(folder: Path) -> Path:
    """Our chart as a stand-in: its version is in the labels of pods, and the keys are objects of the release."""
    chart = copy_of_ours(folder / "other", "1.2.1")
    names = chart / "templates/_names.tpl"
    ours, theirs = '(include "slurm.podLabels" .root | fromYaml)', '(include "slurm.labels" .root | fromYaml)'
    assert names.read_text().count(ours) == 1
    names.write_text(names.read_text().replace(ours, theirs))
    (chart / "templates/keys.yaml").write_text(OTHER)
    return chart


def copy_of_ours(folder: Path, version: str) -> Path:
    chart = Path(shutil.copytree(CHART, folder / "slurm"))
    (chart / "Chart.yaml").write_text((CHART / "Chart.yaml").read_text().replace("\nversion: 0.1.0", f"\nversion: {version}"))
    return chart


def test_slurm_answers_no_switch_replaces_a_pod_and_nothing_is_left(release: Release, tmp_path: Path) -> None:
    """From the other chart to ours, to a newer one of ours, and back; with an operator that acts on all of it."""
    def pods() -> dict[str, str]:
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in release.api.get(release.core("pods"))["items"] if "keys" not in one["metadata"]["name"]}

    other, newer = like_the_other_chart(tmp_path), copy_of_ours(tmp_path / "newer", "0.2.0")
    operator = Operator(release.cluster, tmp_path)
    try:
        operator.start().wait_until_it_leads()
        release.apply("install", "configFiles.gres\\.conf=# none", chart=other)
        release.wait_until_ready("controllers", "slurm", 90)
        release.wait_until_ready("restapis", "slurm", 60)
        assert "UP" in release.kubectl("exec", "statefulset/slurm-controller", "-c", "slurmctld", "--", "scontrol", "ping")
        release.api.merge(release.core("configmaps", "slurm-config-extra"), {"data": {"topology.conf": "# another program's\n"}})
        release.wait_until_ready("controllers", "slurm", 60)
        keys, before = release.keys(), pods()
        assert len(before) == 2
        for number, (chart, version) in enumerate(((CHART, "0.1.0"), (newer, "0.2.0"), (other, "1.2.1"), (CHART, "0.1.0"))):
            release.apply("upgrade", "configFiles.gres\\.conf=# none", "keys.image.tag=0.1.0", f"restapi.service.metadata.labels.turn=t{number}", chart=chart)
            for plural in ("controllers", "restapis"):
                assert release.api.get(release.path(plural, "slurm"))["metadata"]["labels"]["helm.sh/chart"] == f"slurm-{version}"
            wait_for("the operator followed", 30, lambda turn=f"t{number}": release.api.get(release.core("services", "slurm-restapi"))["metadata"]["labels"].get("turn") == turn)
            release.wait_until_ready("controllers", "slurm", 60)
            release.wait_until_ready("restapis", "slurm", 60)
            assert pods() == before
            assert release.keys() == keys
            assert release.api.get(release.core("configmaps", "slurm-config-extra"))["data"].keys() == {"gres.conf", "topology.conf"}
        release.uninstall()
        wait_for("nothing is left", 60, lambda: not release.left(), hint=lambda: str(release.left()))
        operator.stop()
    finally:
        operator.end()
        with contextlib.suppress(ApiError, Fail):
            release.end_pods()
