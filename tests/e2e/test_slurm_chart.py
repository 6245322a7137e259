"""The chart of a Slurm cluster on a real one: keys survive every way there and back, Slurm answers, and nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import other_chart as other_chart_of
import pytest
from definitions import installed
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, REPO, Fail, run, versions
from slincdev.kube import ApiError
from slincdev.parts import ensure_images, import_images, kubectl
from slincdev.release import ensure_image
from slincdev.slurm import with_token
from slurm_operator import Operator, Site
from test_nodeset import Fleet
from waits import wait_for

CHART = REPO / "charts/slurm"
HOME = "slurm-chart"
IMAGES = ["slurmctld", "slurmrestd", "slurmd", "login", "slinc", "busybox"]
KEYS = {"slurm-auth-slurm": "slurm.key", "slurm-auth-jwt": "jwt.key"}
KEEP = "helm.sh/resource-policy"
# Small, and without a volume; the kernel here wants what the tests of the operator want.
SETTINGS = ["imagePullPolicy=Never", "controller.persistence.enabled=false",
            "controller.extraConfMap.ProctrackType=proctrack/linuxproc", "controller.extraConfMap.TaskPlugin=task/affinity"]

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
    (folder / "templates/keys.yaml").write_text(other_chart_of.KEYS)
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


def test_a_key_is_made_under_the_names_that_the_values_give(release: Release) -> None:
    release.apply("install", "slurmKey.secretRef.name=site-auth", "slurmKey.secretRef.key=auth.key", "slurmKey.annotations.owner=hpc")
    made = release.api.get(release.core("secrets", "site-auth"))
    assert made["immutable"] and made["metadata"]["annotations"]["owner"] == "hpc"
    assert len(release.secret("site-auth", "auth.key")) == 1024 and release.keys().keys() == {"slurm-auth-jwt"}
    assert release.api.get(release.path("controllers", "slurm"))["spec"]["slurmKeyRef"] == {"name": "site-auth", "key": "auth.key"}
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


@pytest.mark.parametrize("chart", ["slurm", "slurm-operator", "slurm-bridge", "slurm-exporter"])
def test_the_api_server_takes_what_every_values_file_renders(release: Release, chart: str, tmp_path: Path) -> None:
    """By a dry run on the server, hooks too. Kinds that other projects define are left to the tests without a cluster."""
    files = sorted((REPO / "charts" / chart / "tests/values").glob("*.yaml"))
    texts, told = [], ["-f", REPO / "tests/charts/told.yaml"] if chart == "slurm-bridge" else []
    for values in files:
        words = [*told, "-f", values, "--kube-version", versions()["KUBERNETES_VERSION"], "--set", f"namespaceOverride={HOME}"]
        texts += release.helm("template", "slurm" if chart == "slurm" else "site", REPO / "charts" / chart, *words).split("\n---\n")
    rendered = tmp_path / "all.yaml"
    rendered.write_text("\n---\n".join(text for text in texts if "\napiVersion: cert-manager.io/" not in text))
    shown = kubectl(release.cluster, "apply", "--dry-run=server", "--validate=strict", "-f", rendered)
    assert shown.count("(server dry run)") >= 3 * len(files)


def copy_of_ours(folder: Path, version: str) -> Path:
    chart = Path(shutil.copytree(CHART, folder / "slurm"))
    (chart / "Chart.yaml").write_text((CHART / "Chart.yaml").read_text().replace("\nversion: 0.1.0", f"\nversion: {version}"))
    return chart


class TakenOver(Release, Fleet):
    """The release with a login pod and a worker, slinky-0, which runs a job."""

    def login(self, *words: str) -> str:
        return with_token(lambda: self.kubectl("exec", "deployment/slurm-login-slinky", "-c", "login", "--", *words).strip())

    def switch(self, verb: str, chart: Path, *words: object) -> None:
        self.helm(verb, "slurm", chart, "--timeout", f"{120 * PATIENCE:.0f}s", *words)

    def pods(self) -> dict[str, str]:
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in self.api.get(self.core("pods"))["items"] if "keys" not in one["metadata"]["name"]}

    def wait_until_all_are_ready(self) -> None:
        for plural, name in {"controllers": "slurm", "restapis": "slurm", "loginsets": "slurm-login-slinky"}.items():
            self.wait_until_ready(plural, name, 120)
        self.wait("the worker is ready, and of the newest revision", 60, self.has_its_worker)

    def has_its_worker(self) -> bool:
        one = self.api.get(self.path("nodesets", "slurm-worker-slinky"))
        status = one.get("status", {})
        return status.get("observedGeneration") == one["metadata"]["generation"] and status.get("readyReplicas") == status.get("updatedReplicas") == 1


def test_a_switch_from_the_other_chart_and_back_keeps_keys_pods_and_jobs(release: Release, tmp_path: Path) -> None:
    """By reused values, by a values file, to a newer chart of ours, and back; with an operator that acts on all of it."""
    site = TakenOver(release.cluster, HOME)
    other, newer = other_chart_of.make(tmp_path / "other", HOME, site.tag), copy_of_ours(tmp_path / "newer", "0.2.0")
    values = tmp_path / "values.json"
    values.write_text(json.dumps(other_chart_of.VALUES))
    old = ("-f", other / "values.yaml", "-f", values)
    operator = Operator(release.cluster, tmp_path)
    try:
        operator.start().wait_until_it_leads()
        site.switch("install", other, "-f", values)
        site.api.merge(site.core("configmaps", "slurm-config-extra"), {"data": {"topology.conf": "# another program's\n"}})
        site.wait_until_all_are_ready()
        site.wait("the worker is idle", 60, lambda: site.node_states().get("slinky-0") == {"idle", "dynamic_norm"})
        job, keys, before = site.start_job("slinky-0"), site.keys(), site.pods()
        assert len(before) == 4 and keys.keys() == KEYS.keys()
        ways = ((CHART, "0.1.0", ("--reuse-values",)), (newer, "0.2.0", (*old, "--set", "keys.image.tag=0.1.0")), (other, "1.3.0-rc1", old), (CHART, "0.1.0", old))
        for number, (chart, version, words) in enumerate(ways):
            site.switch("upgrade", chart, *words, "--set", f"restapi.service.metadata.labels.turn=t{number}")
            for plural, name in {"controllers": "slurm", "nodesets": "slurm-worker-slinky"}.items():
                assert site.api.get(site.path(plural, name))["metadata"]["labels"]["helm.sh/chart"] == f"slurm-{version}"
            if chart != other:  # whose objects are fixed
                wait_for("the operator followed", 30, lambda turn=f"t{number}": site.api.get(site.core("services", "slurm-restapi"))["metadata"]["labels"].get("turn") == turn)
            site.wait_until_all_are_ready()
            assert (site.pods(), site.keys(), site.job_state(job)) == (before, keys, "RUNNING")
            assert site.api.get(site.core("configmaps", "slurm-config-extra"))["data"].keys() == {"cgroup.conf", "topology.conf"}
        site.end_job(job)
        site.uninstall()
        wait_for("nothing is left", 120, lambda: not site.left(), hint=lambda: str(site.left()))
        operator.stop()
    finally:
        operator.end()
        for found in site.api.get(site.path("nodesets"))["items"]:  # of a test that failed: nobody would end it now
            site.api.merge(site.path("nodesets", found["metadata"]["name"]), {"metadata": {"finalizers": None}})
        with contextlib.suppress(ApiError, Fail):
            site.end_pods()
