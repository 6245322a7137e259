"""The exporter as a user gets it, by its chart: a real Prometheus scrapes it, and the API server serves its figures and its page.

That a HorizontalPodAutoscaler scales workers by them is in test_nodeset.py, where there are workers."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from exporter_release import API_SERVICE, CHART, EXTERNAL, NAME, Exporter
from replica import free_port
from slincdev import parts
from slincdev.build import bin_dir, ensure_programs
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, Fail
from slincdev.kube import ApiError
from slincdev.slurm import Slurm, SlurmError
from terminal import config_of, slinc
from waits import wait_for

HOME, PARTITION = "slurm", "slurm-bridge"
WANTED = f"{EXTERNAL}/namespaces/default/slinc_nodes_wanted?labelSelector=partition%3D{PARTITION}"
UI = "/apis/view.slinky.slurm.net/v1alpha1/ui"
PAGES = ("/metrics", "/metrics/nodes", "/metrics/slinky", "/metrics/native")


@pytest.fixture(scope="module")
def exporter(cluster: Cluster) -> Iterator[Exporter]:
    ensure_programs(["prometheus", "promtool"])
    found = Exporter(cluster, HOME, "exporter.jwtKey.name=slurm-auth", "ui.enabled=true")
    found.install()
    yield found
    found.uninstall()
    kinds = "deployments,services,secrets,configmaps,serviceaccounts,rolebindings,clusterroles,clusterrolebindings,apiservices,networkpolicies"
    assert parts.kubectl(cluster, "get", kinds, "-A", "-o", "name", "-l", "app.kubernetes.io/instance=exporter") == "", "nothing is left"


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
    rules = CHART / "files/rules.json"
    config = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}, "rule_files": [str(rules)], "scrape_configs": [
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


def check_queries(query: Callable[[str], list[dict]]) -> None:
    """Prometheus takes every query of dashboards and rules; those of the cluster that need neither hours nor generic resources have data."""
    panels = {name: json.loads((CHART / f"files/{name}.json").read_text())["panels"] for name in ("cluster", "bridge")}
    queries = {name: [target["expr"] for panel in found for target in panel["targets"]] for name, found in panels.items()}
    rules = [rule["expr"] for group in json.loads((CHART / "files/rules.json").read_text())["groups"] for rule in group["rules"]]
    assert len(queries["cluster"]) > 15 and len(queries["bridge"]) > 10 and len(rules) > 20
    for text in [*queries["bridge"], *rules]:
        query(text)
    empty = [text for text in queries["cluster"] if query(text) == [] and not re.search(r"gres|rate\(|increase\(|account", text)]
    assert empty == []


def test_prometheus_scrapes_every_page_and_promtool_has_nothing_to_say(exporter: Exporter, queue: Callable, tmp_path: Path) -> None:
    queue(5)
    wait_for("the queue is shown", 60, lambda: exporter.shows(f'slinc_pending_nodes{{partition="{PARTITION}",class="resources"}} 3')
             or exporter.shows(f'slinc_pending_nodes{{partition="{PARTITION}",class="priority"}} 2'), hint=lambda: exporter.get("/metrics")[:4000])
    assert "SUCCESS" in subprocess.run([bin_dir() / "promtool", "check", "rules", CHART / "files/rules.json"], text=True, capture_output=True, check=True).stdout
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
        assert [one["value"][1] for one in query(f'slurm_partition_jobs_pending{{partition="{PARTITION}"}}')] == ["3"]
        assert [one["value"][1] for one in query("sum(slinc_slurm_up)")] == ["6"]
        assert query('slinc_slurm_info{version=~"26.05.*"}') != []
        check_queries(query)
        wait_for("a recording rule has been evaluated", 60, lambda: query(f'slinc:cpus_used:ratio{{partition="{PARTITION}"}} > 0') != [])


def test_keda_reads_the_same_figure(exporter: Exporter, queue: Callable) -> None:
    queue(5)

    def answer() -> dict:
        return json.loads(exporter.get(f"/autoscale/v1/partitions/{PARTITION}"))
    wait_for("five nodes are wanted", 60, lambda: answer()["wanted"] == 5 and answer()["busy"] == 2, hint=lambda: json.dumps(answer()))
    assert exporter.wanted(PARTITION) == ["5"]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        exporter.get("/autoscale/v1/partitions/nowhere")


@contextlib.contextmanager
def answered(host: str, port: int, context: ssl.SSLContext, path: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=20 * PATIENCE)
    try:
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        yield connection.getresponse()
    finally:
        connection.close()


def first_event(answer: http.client.HTTPResponse) -> dict:
    """The snapshot with which a stream begins."""
    assert (answer.status, answer.readline()) == (200, b"event: snap\n")
    return json.loads(answer.readline().removeprefix(b"data: "))


def test_the_page_is_for_whoever_may_see_it(exporter: Exporter, queue: Callable) -> None:
    queue(1)
    api, admin = exporter.api, f"Bearer {exporter.api.token}"
    page = parts.kubectl(exporter.cluster, "get", "--raw", UI)
    assert "<title>Slinc</title>" in page
    with pytest.raises(Fail, match="(?i)forbidden"):
        parts.kubectl(exporter.cluster, "--as=nobody", "get", "--raw", UI)
    with answered(api.host, api.port, api.context, f"{UI}?watch=1", Authorization=admin) as answer:  # as a browser behind `kubectl proxy`
        assert {"exp-1", "exp-2"} <= {node[0] for node in first_event(answer)["nodes"]}
    token, anybody = parts.kubectl(exporter.cluster, "create", "token", "default").strip(), ssl._create_unverified_context()
    with answered(exporter.host, 6443, anybody, "/ui/?watch=1") as answer:
        assert answer.status == 401
    with answered(exporter.host, 6443, anybody, "/ui/?watch=1", Authorization=f"Bearer {token}") as answer:
        assert answer.status == 403
        assert "may not watch ui.view.slinky.slurm.net" in json.loads(answer.read())["message"]
    parts.kubectl(exporter.cluster, "create", "clusterrolebinding", "page-viewer", "--clusterrole=slinc-viewer", "--serviceaccount=default:default")
    try:
        def is_let_in() -> bool:
            with answered(exporter.host, 6443, anybody, "/ui/?watch=1", Cookie=f"slinc-token={token}") as answer:
                return answer.status == 200 and first_event(answer)["cluster"] != ""
        wait_for("the right counts", 30, is_let_in)
    finally:
        parts.kubectl(exporter.cluster, "delete", "clusterrolebinding", "page-viewer")


def test_the_api_is_found_and_asks_what_its_readers_may(exporter: Exporter) -> None:
    api = exporter.api
    assert {"slinc_nodes_wanted", "slinc_pending_cpus"} <= {one["name"] for one in api.get(EXTERNAL)["resources"]}
    available = next(one for one in api.get(API_SERVICE)["status"]["conditions"] if one["type"] == "Available")
    assert available["status"] == "True"
    with pytest.raises(ApiError) as refused:
        api.get(f"{EXTERNAL}/namespaces/default/no_such_metric")
    assert refused.value.status == 404
    with pytest.raises(Fail, match="(?i)forbidden"):
        parts.kubectl(exporter.cluster, "--as=nobody", "get", "--raw", WANTED)
    wait_for("the exporter knows that the API is its own", 60, lambda: exporter.shows("slinc_external_metrics_owned 1"))


def test_the_terminal_shows_queue_and_nodes_to_whoever_may_see_them(exporter: Exporter, queue: Callable, tmp_path: Path) -> None:
    admin, cluster = exporter.cluster.admin_config, exporter.cluster
    jobs = queue(3)

    def listed() -> bool:
        return f"{jobs[2]} " in slinc(admin, "queue", "-p", PARTITION).stdout
    wait_for("the third job is listed", 60, listed, hint=lambda: str(slinc(admin, "queue", "-p", PARTITION)))
    assert "waiting" in slinc(admin, "queue", "-p", PARTITION).stdout.splitlines()[-1]
    wait_for("two nodes are in use", 30, lambda: "exp-[1-2]" in slinc(admin, "nodes", "-p", PARTITION).stdout)
    assert jobs[2] in {one["id"] for one in json.loads(slinc(admin, "queue", "-p", PARTITION, "-o", "json").stdout)["items"]}
    assert json.loads(slinc(admin, "queue", "-p", "nowhere", "-o", "json").stdout)["items"] == []
    assert slinc(admin, "why", "job", str(jobs[2])).stdout.startswith("WAITING")
    assert slinc(admin, "why", "job", "99999999").returncode == 3
    assert slinc(admin, "why", "no-such-pod").returncode == 3
    refused = slinc(config_of(cluster, tmp_path, "default"), "queue")
    assert refused.returncode == 4
    assert "needs the right to list jobs.view.slinky.slurm.net" in refused.stderr


def test_the_chart_does_not_take_the_api_from_another_owner(exporter: Exporter) -> None:
    exporter.api.post("/api/v1/namespaces", {"metadata": {"name": "second"}})
    try:
        with pytest.raises(Fail, match=f"belongs to Service {HOME}/{NAME}-api"):
            exporter.install("second", "second")
        service = exporter.api.get(API_SERVICE)["spec"]["service"]
        assert (service["namespace"], service["name"]) == (HOME, f"{NAME}-api")
    finally:
        exporter.api.delete("/api/v1/namespaces/second")
