"""The programs of a cluster: which they are and how each is started and known to be well."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from .build import bin_dir, module_dir
from .cluster import MAX_REAL, Cluster, Node
from .common import REPO, Fail, versions, wait_for
from .kube import ApiError, kubeconfig

NODE = "node-0"  # the first real node
GATES = "DRAExtendedResource=true,GenericWorkload=true,GangScheduling=true,HPAScaleToZero=true"
PAUSE = "localhost/slinc/pause:1"
BRIDGE_HOME = "slinky"  # the namespace of our chart: what its accounts ask for is written down

# Who may call the API server with a token: user, groups.
USERS = {
    "admin": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "system:kube-proxy": "",
    **{f"system:node:node-{index}": "system:nodes" for index in range(MAX_REAL)},
    "kwok": "system:masters",
}


def write_credentials(cluster: Cluster) -> None:
    """The token file and one kubeconfig per user."""
    ca = cluster.folder / "pki/ca.crt"
    rows = []
    for user, groups in USERS.items():
        token = cluster.token(user)
        rows.append(f'{token},{user},{user},"{groups}"' if groups else f"{token},{user},{user}")
        file = cluster.folder / f"{user.replace('system:', '').replace(':', '-')}.kubeconfig"
        file.write_text(kubeconfig(f"https://{cluster.node_ip}:6443", ca, user, token))
        file.chmod(0o600)
    tokens = cluster.folder / "pki/tokens.csv"
    tokens.write_text("\n".join(rows) + "\n")
    tokens.chmod(0o600)


def start_etcd(cluster: Cluster) -> None:
    cluster.start("etcd", [bin_dir() / "etcd", "--data-dir", cluster.folder / "etcd", "--unsafe-no-fsync", "--log-level", "warn",
                           "--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379",
                           "--listen-peer-urls", "http://127.0.0.1:2380", "--quota-backend-bytes", 8 << 30])


def audit_log(cluster: Cluster) -> Path:
    """What the bridge's accounts asked of the API server, and what it decided."""
    return cluster.folder / "logs/audit.log"


def _audit_flags(cluster: Cluster) -> list[str]:
    policy = cluster.folder / "audit-policy.json"
    policy.write_text(json.dumps({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "userGroups": [f"system:serviceaccounts:{BRIDGE_HOME}"]}, {"level": "None"}]}))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log(cluster)}", "--audit-log-maxbackup=1"]


def start_apiserver(cluster: Cluster) -> None:
    pki = cluster.folder / "pki"
    cluster.start("kube-apiserver", [
        bin_dir() / "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443", "--bind-address=0.0.0.0",
        f"--advertise-address={cluster.node_ip}", f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key",
        f"--client-ca-file={pki}/ca.crt", f"--token-auth-file={pki}/tokens.csv", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
        f"--service-cluster-ip-range={cluster.service_range}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pki}/service-account.pub", f"--service-account-signing-key-file={pki}/service-account.key",
        "--kubelet-preferred-address-types=InternalIP", f"--kubelet-client-certificate={pki}/kubelet-client.crt",
        f"--kubelet-client-key={pki}/kubelet-client.key",
        f"--requestheader-client-ca-file={pki}/front-proxy-ca.crt", "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User", f"--proxy-client-cert-file={pki}/front-proxy.crt",
        f"--proxy-client-key-file={pki}/front-proxy.key", "--enable-aggregator-routing=true",
        f"--feature-gates={GATES}", "--runtime-config=resource.k8s.io/v1=true,scheduling.k8s.io/v1alpha2=true",
        "--event-ttl=1h", "--profiling=false", *_audit_flags(cluster)])


def wait_apiserver(cluster: Cluster, seconds: float = 60) -> None:
    def ready() -> bool:
        try:
            cluster.api().call("GET", "/readyz", timeout=2)
            return True
        except (OSError, ApiError):
            return False
    wait_for("the API server is ready", seconds, ready, hint=lambda: f"see {cluster.folder}/logs/kube-apiserver.log")


def start_controllers(cluster: Cluster, watch_nodes: bool) -> None:
    """watch_nodes is off when there are nodes without heartbeats: they would all be marked lost after a minute."""
    pki = cluster.folder / "pki"
    cluster.start("kube-controller-manager", [
        bin_dir() / "kube-controller-manager", f"--kubeconfig={cluster.folder}/kube-controller-manager.kubeconfig",
        "--leader-elect=false", "--use-service-account-credentials=true", f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/service-account.key", f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key", "--allocate-node-cidrs=false", f"--feature-gates={GATES}",
        "--kube-api-qps=1000", "--kube-api-burst=1000", "--concurrent-gc-syncs=20",
        f"--node-monitor-grace-period={'50s' if watch_nodes else '87600h'}"])


def start_scheduler(cluster: Cluster) -> None:
    """The stock scheduler for ordinary pods, and the reference in benches: its client rate limit is lifted."""
    config = cluster.folder / "kube-scheduler.json"
    config.write_text(json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": f"{cluster.folder}/kube-scheduler.kubeconfig", "qps": 5000, "burst": 5000}}))
    cluster.start("kube-scheduler", [bin_dir() / "kube-scheduler", f"--config={config}", f"--feature-gates={GATES}"])


def _cni_plugins() -> Path:
    for folder in (Path("/usr/lib/cni"), Path("/opt/cni/bin")):
        if (folder / "ptp").exists():
            return folder
    raise Fail("no CNI plugins found: install the package containernetworking-plugins (dev/setup does)")


def start_containerd(node: Node) -> None:
    folder = node.folder
    (folder / "net.d").mkdir(exist_ok=True)
    # Point to point, not a bridge: every packet is routed, so Services work between pods of one node without br_netfilter.
    (folder / "net.d/10-slinc.conflist").write_text(json.dumps({
        "cniVersion": "1.0.0", "name": "slinc", "plugins": [{
            "type": "ptp", "ipMasq": False,
            "ipam": {"type": "host-local", "dataDir": "/var/lib/cni", "ranges": [[{"subnet": node.pod_range}]],
                     "routes": [{"dst": "0.0.0.0/0"}]}}]}))
    (folder / "containerd.toml").write_text(f"""\
version = 3
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.nri.v1.nri"]
[grpc]
  address = "{folder}/containerd.sock"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE}"
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "{folder}/registries"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  enable_cdi = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["{_cni_plugins()}"]
  conf_dir = "{folder}/net.d"
""")
    # containerd looks its shim up in PATH
    path = f"PATH={bin_dir()}:/usr/sbin:/usr/bin:/sbin:/bin"
    node.start("containerd", ["/usr/bin/env", path, bin_dir() / "containerd", "--config", folder / "containerd.toml", "--log-level", "warn"])


def wait_containerd(node: Node) -> None:
    def ready() -> bool:
        try:
            ctr(node, "version")
            return True
        except Fail:
            return False
    wait_for("containerd answers", 30, ready, hint=lambda: f"see {node.folder}/logs/containerd.log")


def ctr(node: Node, *argv: object) -> str:
    return node.inside([bin_dir() / "ctr", "-a", node.folder / "containerd.sock", "-n", "k8s.io", *argv])


def import_image(node: Node, archive: Path) -> None:
    ctr(node, "images", "import", "--local", archive)


def _has_cgroup2() -> bool:
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()


def make_cgroups(node: Node) -> None:
    """Pods live below a control group of their node, which is below that of the cluster, so that `down` knows what to remove."""
    top = Path("/sys/fs/cgroup")
    if _has_cgroup2():
        (top / node.cgroup).mkdir(exist_ok=True)
        wanted = " ".join(f"+{name}" for name in (top / "cgroup.controllers").read_text().split())
        for folder in dict.fromkeys((top, top / node.cluster.cgroup, top / node.cgroup)):
            (folder / "cgroup.subtree_control").write_text(wanted)
        return
    for hierarchy in top.iterdir():
        if hierarchy.is_dir() and not hierarchy.is_symlink():
            (hierarchy / node.cgroup).mkdir(exist_ok=True)
            if hierarchy.name == "cpuset":  # a new cpuset is empty until it is filled
                for setting in ("cpuset.cpus", "cpuset.mems"):
                    (hierarchy / node.cgroup / setting).write_text((hierarchy / setting).read_text())


def remove_cgroups(node: Node) -> None:
    top = Path("/sys/fs/cgroup")
    for hierarchy in [top] if _has_cgroup2() else [path for path in top.iterdir() if path.is_dir() and not path.is_symlink()]:
        group = hierarchy / node.cgroup
        if group.exists():
            for folder in sorted((path for path in group.rglob("*") if path.is_dir()), key=lambda p: -len(p.parts)):
                folder.rmdir()
            group.rmdir()


def start_kubelet(node: Node) -> None:
    folder, cluster = node.folder, node.cluster
    (folder / "resolv.conf").write_text("")
    config = folder / "kubelet.json"
    config.write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{node.cgroup}", "failCgroupV1": False, "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock", "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False, "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100, "address": node.ip, "resolvConf": str(folder / "resolv.conf"),
        "clusterDNS": [cluster.dns_ip], "clusterDomain": "cluster.local", "maxPods": 250, "serializeImagePulls": False,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                           "x509": {"clientCAFile": f"{cluster.folder}/pki/ca.crt"}},
        "authorization": {"mode": "Webhook"}, "registerNode": True, "shutdownGracePeriod": "0s",
        "nodeStatusUpdateFrequency": "5s", "syncFrequency": "3s",  # so soon a pod sees its changed Secret
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},  # fault tests kill containers more than once
        "featureGates": {"DRAExtendedResource": True}}))
    node.start("kubelet", [bin_dir() / "kubelet", f"--config={config}", f"--kubeconfig={cluster.folder}/node-{node.name}.kubeconfig",
                           f"--hostname-override={node.name}", f"--node-ip={node.ip}", "--v=1"])


def start_proxy(node: Node) -> None:
    config = node.folder / "kube-proxy.json"
    config.write_text(json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
        "clientConnection": {"kubeconfig": f"{node.cluster.folder}/kube-proxy.kubeconfig"}, "hostnameOverride": node.name,
        "clusterCIDR": node.pod_range, "conntrack": {"maxPerCore": 0, "min": 0},
        "nftables": {"minSyncPeriod": "200ms"}}))
    node.start("kube-proxy", [bin_dir() / "kube-proxy", f"--config={config}"])


def wait_node(node: Node) -> None:
    def ready() -> bool:
        try:
            found = node.cluster.api().get(f"/api/v1/nodes/{node.name}")
        except (ApiError, OSError):
            return False
        conditions = {c["type"]: c["status"] for c in found.get("status", {}).get("conditions", [])}
        return conditions.get("Ready") == "True"
    wait_for(f"node {node.name} is Ready", 60, ready, hint=lambda: f"see {node.folder}/logs/kubelet.log")


def start_kwok(cluster: Cluster, heartbeats: bool) -> None:
    """Plays the kubelet for nodes annotated kwok.x-k8s.io/node=fake."""
    stages = module_dir("sigs.k8s.io/kwok", versions()["KWOK_VERSION"]) / "kustomize/stage"
    kept = cluster.folder / "kwok"
    kept.mkdir(exist_ok=True)
    wanted = ["node/fast", "pod/fast"] + (["node/heartbeat-with-lease"] if heartbeats else [])
    files = [file for stage in wanted for file in sorted((stages / stage).glob("*.yaml")) if file.name not in ("kustomization.yaml", "pod-delete.yaml")]
    for file in files + sorted((REPO / "dev/kwok").glob("*.yaml")):
        shutil.copy(file, kept / f"{file.parent.parent.name}-{file.parent.name}-{file.name}")
    cluster.start("kwok", [bin_dir() / "kwok", f"--kubeconfig={cluster.folder}/kwok.kubeconfig",
                           *(f"--config={file}" for file in sorted(kept.glob("*.yaml"))),
                           "--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                           f"--node-lease-duration-seconds={40 if heartbeats else 0}", "--cidr=10.250.0.0/16",
                           "--server-address=127.0.0.1:10247"])
