"""The exporter as a user gets it, by its chart: a real Prometheus scrapes it, and a HorizontalPodAutoscaler scales by Slurm's queue."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pods import BUSYBOX
from replica import PROGRAM, free_port
from slincdev import components, parts
from slincdev.build import bin_dir, ensure_programs
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, REPO, Fail, run
from slincdev.kube import ApiError
from slincdev.slurm import Slurm, SlurmError
from waits import wait_for

CHART, HOME, NAME = REPO / "charts/slurm-exporter", "slurm", "slurm-exporter"
PARTITION = "slurm-bridge"
VALUES = ["exporter.image.repository=localhost/slinc/slinc", "exporter.imagePullPolicy=Never", "exporter.jwtKey.name=slurm-auth",
          "exporter.cacheFrequency=1s", "exporter.jobListSeconds=2", "externalMetrics.enabled=true", "view.enabled=true"]
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
WANTED = f"{EXTERNAL}/namespaces/default/slinc_nodes_wanted?labelSelector=partition%3D{PARTITION}"
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PAGES = ("/metrics", "/metrics/nodes", "/metrics/slinky")


class Exporter:
    """The release, and its one pod as the host reaches it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.api = cluster, cluster.api()

    def helm(self, *words: object) -> str:
        return run([bin_dir() / "helm", f"--kubeconfig={self.cluster.admin_config}", *words], timeout=200 * PATIENCE)

    def install(self, name: str = "exporter", home: str = HOME) -> None:
        values = [word for value in VALUES for word in ("--set", value)]
        self.helm("install", name, CHART, "-n", home, "--wait", "--timeout", f"{60 * PATIENCE:.0f}s", *values)

    @property
    def address(self) -> str:
        found = self.api.get(f"/api/v1/namespaces/{HOME}/pods?labelSelector=app.kubernetes.io%2Fname%3D{NAME}")["items"]
        return next(pod["status"]["podIP"] for pod in found if not pod["metadata"].get("deletionTimestamp")) + ":8080"

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10 * PATIENCE) as answer:
            return answer.read().decode()

    def shows(self, line: str) -> bool:
        return line in self.get("/metrics").splitlines()

    def wanted(self) -> list[str]:
        return [item["value"] for item in self.api.get(WANTED)["items"]]


@pytest.fixture(scope="module")
def exporter(cluster: Cluster) -> Iterator[Exporter]:
    ensure_programs(["prometheus", "promtool"])
    parts.ensure_images(["slinc"])
    for node in cluster.nodes():
        components.import_image(node, parts.image_archive("slinc"))
    found = Exporter(cluster)
    found.install()
    yield found
    found.helm("uninstall", "exporter", "-n", HOME, "--wait")
    kinds = "deployments,services,secrets,configmaps,serviceaccounts,rolebindings,clusterroles,clusterrolebindings,apiservices,networkpolicies"
    assert parts.kubectl(cluster, "get", kinds, "-A", "-o", "name", "-l", "app.kubernetes.io/instance=exporter") == "", "nothing is left"
    assert not found.api.exists("/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io")


@pytest.fixture
def queue(slurm: Slurm, eventually: Callable) -> Iterator[Callable[[int], list[int]]]:
    """Two nodes of four CPUs, and jobs of three: two run, the others wait for nodes."""
    slurm.create_nodes("exp-[1-2]", cpus=4, memory_mib=8000)
    jobs: list[int] = []

    def submit(count: int) -> list[int]:
        jobs.extend(slurm.submit(f"exporter-{number}", cpus=3, memory_mib=100, partition=PARTITION) for number in range(count))
        return jobs
    yield submit
    for job in jobs:
        with contextlib.suppress(SlurmError):
            slurm.cancel(job)
    eventually("the nodes can be deleted", lambda: slurm.delete_node("exp-[1-2]") or True)


@contextlib.contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Callable[[str], list[dict]]]:
    """Debian's Prometheus, which scrapes every page each two seconds; asked by a query."""
    port = free_port()
    config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": [
        {"job_name": path, "metrics_path": path, "static_configs": [{"targets": [target]}]} for path in PAGES]}
    (folder / "prometheus.yml").write_text(json.dumps(config))
    process = subprocess.Popen([bin_dir() / "prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                                f"--web.listen-address=127.0.0.1:{port}"], stderr=open(folder / "prometheus.log", "w"))

    def query(text: str) -> list[dict]:
        url = f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(text)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]["result"]
    try:
        yield query
    finally:
        process.terminate()
        process.wait(30)


def check_dashboard(query: Callable[[str], list[dict]]) -> None:
    """Prometheus takes every query; those that need neither hours nor generic resources have data."""
    panels = json.loads((CHART / "files/cluster.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(queries) > 15
    empty = [text for text in queries if query(text) == [] and not re.search(r"gres|rate\(|increase\(|account", text)]
    assert empty == []


def test_prometheus_scrapes_every_page_and_promtool_has_nothing_to_say(exporter: Exporter, queue: Callable, tmp_path: Path) -> None:
    queue(5)
    wait_for("the queue is shown", 60, lambda: exporter.shows(f'slinc_pending_nodes{{partition="{PARTITION}",class="resources"}} 3')
             or exporter.shows(f'slinc_pending_nodes{{partition="{PARTITION}",class="priority"}} 2'), hint=lambda: exporter.get("/metrics")[:4000])
    for path in PAGES[:2]:
        checked = subprocess.run([bin_dir() / "promtool", "check", "metrics"], input=exporter.get(path), text=True, capture_output=True)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    with prometheus(tmp_path, exporter.address) as query:
        wait_for("all pages are scraped", 60, lambda: [one["value"][1] for one in query("up")] == ["1"] * len(PAGES),
                 hint=lambda: (tmp_path / "prometheus.log").read_text()[-2000:])
        wait_for("what runs is counted", 30, lambda: [one["value"][1] for one in query(f'slinc_jobs{{partition="{PARTITION}",state="running"}}')] == ["2"])
        assert [one["value"][1] for one in query(f'sum(slinc_pending_cpus{{partition="{PARTITION}"}})')] == ["9"]
        assert [one["value"][1] for one in query('slinc_node_cpus_allocated{node="exp-1",holder="pod"}')] == ["3"]
        assert [one["value"][1] for one in query(f'slurm_partition_jobs_pending_total{{partition="{PARTITION}"}}')] == ["3"]
        assert [one["value"][1] for one in query("sum(slinc_slurm_up)")] == ["6"]
        assert query('slinc_slurm_info{version=~"26.05.*"}') != []
        check_dashboard(query)


def test_keda_reads_the_same_figure(exporter: Exporter, queue: Callable) -> None:
    queue(5)

    def answer() -> dict:
        return json.loads(exporter.get(f"/autoscale/v1/partitions/{PARTITION}"))
    wait_for("five nodes are wanted", 60, lambda: answer()["wanted"] == 5 and answer()["busy"] == 2, hint=lambda: json.dumps(answer()))
    assert exporter.wanted() == ["5"]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        exporter.get("/autoscale/v1/partitions/nowhere")


def test_an_autoscaler_follows_the_queue(exporter: Exporter, queue: Callable, slurm: Slurm, eventually: Callable) -> None:
    """The target is a Deployment that stands for workers: what counts is the size that the real controller gives it."""
    api = exporter.api
    labels = {"app": "stands-for-workers"}
    container = {"name": "main", "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sleep", "100000"]}
    api.post(DEPLOYMENTS, {"metadata": {"name": "workers"}, "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
        "metadata": {"labels": labels}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}}})
    api.post(SCALERS, {"metadata": {"name": "workers"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "workers"}, "minReplicas": 1, "maxReplicas": 8,
        "metrics": [{"type": "External", "external": {"metric": {"name": "slinc_nodes_wanted", "selector": {"matchLabels": {"partition": PARTITION}}},
                                                      "target": {"type": "AverageValue", "averageValue": "1"}}}],
        "behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 8, "periodSeconds": 15}]}, "scaleDown": {"stabilizationWindowSeconds": 0}}}})

    def size() -> int:
        return api.get(f"{DEPLOYMENTS}/workers")["spec"]["replicas"]

    def said() -> str:
        return json.dumps(api.get(f"{SCALERS}/workers")["status"])
    try:
        jobs = queue(5)
        wait_for("the size follows the queue", 60, lambda: size() == 5, hint=said)
        assert ("ScalingActive", "True") in [(one["type"], one["status"]) for one in api.get(f"{SCALERS}/workers")["status"]["conditions"]]
        for job in jobs:
            slurm.cancel(job)
        wait_for("the size follows the queue down", 60, lambda: size() == 1, hint=said)
    finally:
        api.delete(f"{SCALERS}/workers")
        api.delete(f"{DEPLOYMENTS}/workers")


def test_the_api_is_found_and_asks_what_its_readers_may(exporter: Exporter) -> None:
    api = exporter.api
    assert {"slinc_nodes_wanted", "slinc_pending_cpus"} <= {one["name"] for one in api.get(EXTERNAL)["resources"]}
    available = next(one for one in api.get("/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io")["status"]["conditions"]
                     if one["type"] == "Available")
    assert available["status"] == "True"
    with pytest.raises(ApiError) as refused:
        api.get(f"{EXTERNAL}/namespaces/default/no_such_metric")
    assert refused.value.status == 404
    with pytest.raises(Fail, match="(?i)forbidden"):
        parts.kubectl(exporter.cluster, "--as=nobody", "get", "--raw", WANTED)
    wait_for("the exporter knows that the API is its own", 60, lambda: exporter.shows("slinc_external_metrics_owned 1"))


def slinc(kubeconfig: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *words, "--kubeconfig", kubeconfig], text=True, capture_output=True, timeout=30 * PATIENCE)


def test_the_terminal_shows_queue_and_nodes_to_whoever_may_see_them(exporter: Exporter, queue: Callable, tmp_path: Path) -> None:
    admin, cluster = exporter.cluster.admin_config, exporter.cluster
    jobs = queue(3)

    def listed() -> bool:
        return f"{jobs[2]} " in slinc(admin, "queue", "-p", PARTITION).stdout
    wait_for("the third job is listed", 60, listed, hint=lambda: str(slinc(admin, "queue", "-p", PARTITION)))
    assert "waiting" in slinc(admin, "queue", "-p", PARTITION).stdout.splitlines()[-1]
    assert "exp-[1-2]" in slinc(admin, "nodes", "-p", PARTITION).stdout
    assert {one["id"] for one in json.loads(slinc(admin, "queue", "-o", "json").stdout)["items"]} >= set(jobs)
    assert slinc(admin, "why", "job", str(jobs[2])).stdout.startswith("WAITING")
    assert slinc(admin, "why", "job", "99999999").returncode == 3
    assert slinc(admin, "why", "no-such-pod").returncode == 3
    token = parts.kubectl(cluster, "create", "token", "default").strip()
    user = tmp_path / "user.kubeconfig"
    given = json.loads(Path(admin).read_text())
    given["users"][0]["user"] = {"token": token}
    user.write_text(json.dumps(given))
    refused = slinc(user, "queue")
    assert refused.returncode == 4
    assert "needs the right to list jobs.view.slinky.slurm.net" in refused.stderr


def test_the_chart_does_not_take_the_api_from_another_owner(exporter: Exporter) -> None:
    exporter.api.post("/api/v1/namespaces", {"metadata": {"name": "second"}})
    try:
        with pytest.raises(Fail, match=f"belongs to Service {HOME}/{NAME}-api"):
            exporter.install("second", "second")
        service = exporter.api.get("/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io")["spec"]["service"]
        assert (service["namespace"], service["name"]) == (HOME, f"{NAME}-api")
    finally:
        exporter.api.delete("/api/v1/namespaces/second")
