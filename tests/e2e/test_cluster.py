"""The development cluster is a real one: pods, DNS, Services, logs, restarts."""

from __future__ import annotations

import signal

from pods import BUSYBOX, ask, is_ready, pod, running
from slincdev import supervisor, up as life
from slincdev.common import run
from slincdev.components import NODE
from slincdev.parts import facts, kubectl
from slincdev.real_nodes import second_node

DEBIAN = "localhost/slinc/slurmctld"


def test_every_part_of_kubernetes_runs(cluster, eventually):
    programs = {p["name"]: p for p in cluster.programs()}
    assert set(programs) == {"etcd", "containerd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kwok"}
    assert all(p["running"] for p in programs.values()), programs
    api = cluster.api()
    assert api.get("/version")["gitVersion"] == "v1.36.3"
    wanted = {NODE, "kwok-0", "kwok-1", "kwok-2"}
    eventually("its nodes are ready", lambda: wanted <= {n["metadata"]["name"] for n in api.get("/api/v1/nodes")["items"] if is_ready(n)})
    groups = {(g["name"], v["version"]) for g in api.get("/apis")["groups"] for v in g["versions"]}
    assert {("resource.k8s.io", "v1"), ("scheduling.k8s.io", "v1alpha2")} <= groups  # for devices and gangs
    assert {"PodGroup", "Workload"} <= {r["kind"] for r in api.get("/apis/scheduling.k8s.io/v1alpha2")["resources"]}


def test_pods_have_dns_services_and_logs(cluster, eventually):
    """And a pod that is bound to a kwok node counts as running."""
    api = cluster.api()
    image = f"{DEBIAN}:{facts(cluster)['SLURM_TAG']}"
    web = pod("web", BUSYBOX, "sh", "-c", "echo I was here; echo it works > /index.html; exec httpd -f -p 8080 -h /", labels={"app": "web"})
    client = pod("client", image, "sleep", "600", securityContext={"runAsUser": 65532})
    fake = pod("fake", "none/none:1", nodeName="kwok-1", tolerations=[{"operator": "Exists"}])
    api.post("/api/v1/namespaces/default/services",
             {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}})
    address = api.get("/api/v1/namespaces/default/services/web")["spec"]["clusterIP"]
    try:
        with running(cluster, eventually, web, client, fake):
            name = "web.default.svc.cluster.local"
            eventually("the DNS knows it", lambda: ask(cluster, "client", "getent", "hosts", name).split()[0] == address)
            get = "exec 3<>/dev/tcp/web/80; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
            eventually("the Service answers", lambda: "it works" in ask(cluster, "client", "timeout", "5", "bash", "-c", get))
            script = "start=$(date +%s%N); getent hosts nowhere.example. && exit 1; echo $(( ($(date +%s%N) - start) / 1000000 ))"
            eventually("a name outside is refused at once", lambda: int(ask(cluster, "client", "bash", "-c", script)) < 5000)  # else after 5 s
            eventually("it is in the log", lambda: kubectl(cluster, "logs", "web") == "I was here\n")
    finally:
        api.delete("/api/v1/namespaces/default/services/web")


def test_a_second_real_node_shares_services_pods_and_a_folder_with_the_first(cluster, eventually):
    """It comes while the cluster runs, and goes again without a trace."""
    api, folder = cluster.api(), f"{cluster.shared}/pair"
    volume = {"name": "shared", "hostPath": {"path": folder, "type": "DirectoryOrCreate"}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"pair": "x"}}}]}}

    def member(name: str) -> dict:
        script = f"hostname > /shared/{name}; exec httpd -f -p 8080 -h /shared"
        return pod(name, BUSYBOX, "sh", "-c", script, labels={"pair": "x", "app": name}, affinity=apart, volumes=[volume],
                   container={"volumeMounts": [{"name": "shared", "mountPath": "/shared"}]})

    def address(name: str) -> str:
        return api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]["podIP"]

    for name in ("left", "right"):
        api.post("/api/v1/namespaces/default/services",
                 {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}})
    try:
        with second_node(cluster, []) as second, running(cluster, eventually, member("left"), member("right")):
            assert {api.get(f"/api/v1/namespaces/default/pods/{name}")["spec"]["nodeName"] for name in ("left", "right")} == {NODE, second.name}
            for asking, asked in (("left", "right"), ("right", "left")):
                for host in (asked, f"{address(asked)}:8080"):
                    eventually(f"{asking} reaches {host} and sees its file there",
                               lambda: ask(cluster, asking, "wget", "-qO-", f"http://{host}/{asking}") == f"{asking}\n")
                assert kubectl(cluster, "logs", asked) == ""
                assert run(["curl", "-sS", "--max-time", "5", f"http://{address(asked)}:8080/{asked}"]) == f"{asked}\n", "from the machine"
    finally:
        for name in ("left", "right"):
            api.delete(f"/api/v1/namespaces/default/services/{name}")
    assert not second.is_alive() and not second.folder.exists() and not api.exists(f"/api/v1/nodes/{second.name}")
    assert cluster.nodes()[0].inside(["ip", "route", "show", second.pod_range]) == ""


def test_a_killed_program_is_started_again(cluster, eventually):
    def view(name):
        return next(p for p in cluster.programs() if p["name"] == name)

    before = view("kube-scheduler")
    supervisor.ask(cluster.folder, {"do": "signal", "name": "kube-scheduler", "signal": int(signal.SIGKILL)})
    eventually("kube-scheduler is back", lambda: view("kube-scheduler")["running"] and view("kube-scheduler")["pid"] != before["pid"])


def test_up_on_a_running_cluster_changes_nothing_but_what_is_asked(cluster, eventually):
    eventually("all programs run", lambda: all(p["running"] for p in cluster.programs()))
    programs = {p["name"]: p["pid"] for p in cluster.programs()}
    again = life.up(cluster.name, node_count=3, with_parts=["slurm"])
    assert again.pid == cluster.pid
    assert {p["name"]: p["pid"] for p in again.programs()} == programs
