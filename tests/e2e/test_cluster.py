"""The development cluster is a real one: pods, DNS, Services, logs, restarts."""

from __future__ import annotations

import signal

from pods import BUSYBOX, ask, is_ready, pod, running
from slincdev import supervisor, up as life
from slincdev.components import NODE
from slincdev.parts import facts, kubectl

DEBIAN = "localhost/slinc/slurmctld"


def test_every_part_of_kubernetes_runs(cluster):
    programs = {p["name"]: p for p in cluster.programs()}
    assert set(programs) == {"etcd", "containerd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kwok"}
    assert all(p["running"] and p["restarts"] == 0 for p in programs.values()), programs
    assert cluster.api().get("/version")["gitVersion"] == "v1.36.3"


def test_the_real_node_and_the_kwok_nodes_are_ready(cluster, eventually):
    def ready() -> set[str]:
        return {n["metadata"]["name"] for n in cluster.api().get("/api/v1/nodes")["items"] if is_ready(n)}

    eventually("all are ready", lambda: ready() == {NODE, "kwok-0", "kwok-1", "kwok-2"})


def test_the_apis_for_devices_and_gangs_are_on(cluster):
    groups = {(g["name"], v["version"]) for g in cluster.api().get("/apis")["groups"] for v in g["versions"]}
    assert ("resource.k8s.io", "v1") in groups
    assert ("scheduling.k8s.io", "v1alpha2") in groups
    kinds = {r["kind"] for r in cluster.api().get("/apis/scheduling.k8s.io/v1alpha2")["resources"]}
    assert {"PodGroup", "Workload"} <= kinds


def test_dns_and_a_service_answer_from_inside_a_pod(cluster, eventually):
    api = cluster.api()
    image = f"{DEBIAN}:{facts(cluster)['SLURM_TAG']}"
    web = pod("web", BUSYBOX, "sh", "-c", "echo it works > /index.html; exec httpd -f -p 8080 -h /", labels={"app": "web"})
    client = pod("client", image, "sleep", "600", securityContext={"runAsUser": 65532})
    api.post("/api/v1/namespaces/default/services",
             {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})
    address = api.get("/api/v1/namespaces/default/services/web")["spec"]["clusterIP"]
    try:
        with running(cluster, eventually, web, client):
            name = "web.default.svc.cluster.local"
            eventually("the DNS knows it", lambda: ask(cluster, "client", "getent", "hosts", name).split()[0] == address)
            get = "exec 3<>/dev/tcp/web/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
            eventually("the Service answers", lambda: "it works" in ask(cluster, "client", "timeout", "5", "bash", "-c", get))
            assert ask(cluster, "client", "hostname").strip() == "client"
    finally:
        api.delete("/api/v1/namespaces/default/services/web")


def test_a_name_outside_the_cluster_is_refused_at_once(cluster, eventually):
    image = f"{DEBIAN}:{facts(cluster)['SLURM_TAG']}"
    with running(cluster, eventually, pod("resolver", image, "sleep", "600", securityContext={"runAsUser": 65532})):
        script = "start=$(date +%s%N); getent hosts nowhere.example. && exit 1; echo $(( ($(date +%s%N) - start) / 1000000 ))"
        eventually("it is refused", lambda: int(ask(cluster, "resolver", "bash", "-c", script)) < 5000)  # without an answer it asks again, after 5 s


def test_logs_of_a_pod_can_be_read(cluster, eventually):
    with running(cluster, eventually, pod("talker", BUSYBOX, "sh", "-c", "echo I was here; sleep 600")):
        eventually("it is in the log", lambda: kubectl(cluster, "logs", "talker") == "I was here\n")


def test_a_pod_bound_to_a_kwok_node_counts_as_running(cluster, eventually):
    with running(cluster, eventually, pod("fake", "none/none:1", nodeName="kwok-1", tolerations=[{"operator": "Exists"}])):
        pass


def test_a_killed_program_is_started_again(cluster, eventually):
    def view(name):
        return next(p for p in cluster.programs() if p["name"] == name)

    before = view("kube-scheduler")
    supervisor.ask(cluster.folder, {"do": "signal", "name": "kube-scheduler", "signal": int(signal.SIGKILL)})
    eventually("kube-scheduler is back", lambda: view("kube-scheduler")["running"] and view("kube-scheduler")["pid"] != before["pid"])


def test_the_api_server_can_be_stopped_and_started(cluster, eventually):
    supervisor.ask(cluster.folder, {"do": "stop", "name": "kube-apiserver"})
    supervisor.ask(cluster.folder, {"do": "start", "name": "kube-apiserver"})
    eventually("the API server answers", lambda: cluster.api().get("/readyz?x=1") or True)


def test_up_on_a_running_cluster_changes_nothing_but_what_is_asked(cluster):
    programs = {p["name"]: p["pid"] for p in cluster.programs()}
    again = life.up(cluster.name, node_count=3, with_parts=["slurm"])
    assert again.pid == cluster.pid
    assert {p["name"]: p["pid"] for p in again.programs()} == programs
