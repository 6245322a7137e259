"""The kubelet plugin `slinc dra` as a program of the cluster, and claims whose cores a test chooses as the bridge would."""

from __future__ import annotations

import json
import signal
import uuid
from pathlib import Path

from pods import BUSYBOX
from replica import BUILD, SANITIZERS
from slincdev import supervisor
from slincdev.cluster import Cluster
from slincdev.components import NODE
from waits import wait_for

DRIVER = "cores.slinky.slurm.net"
NAME = "slinc-dra"
HOME = Path("/var/lib/kubelet/plugins") / DRIVER
DEVICES = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DEVICES}/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
METRICS = 18099
CLASS = {"metadata": {"name": DRIVER}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}}


class Plugin:
    def __init__(self, cluster: Cluster, build: Path = BUILD) -> None:
        self.cluster, self.build = cluster, build
        self.log = cluster.folder / f"logs/{NAME}.log"
        self.words = [build / "src/cmd/slinc", "dra", "--kubeconfig", cluster.admin_config, "--node-name", NODE, "--health-addr", "0",
                      "--metrics-addr", f":{METRICS}", "--hook", build / "src/dra/slinc-cpuset-hook", "--zap-encoder", "console"]

    def start(self) -> Plugin:
        times = self.count("registered with the kubelet")  # the log is that of earlier tests, too
        self.cluster.start(NAME, self.words)
        return self.wait_until_registered(times + 1)

    def count(self, text: str) -> int:
        return self.log.read_text().count(text) if self.log.exists() else 0

    def wait_until_registered(self, times: int) -> Plugin:
        wait_for("the kubelet has registered the plugin", 30, lambda: self.count("registered with the kubelet") >= times,
                 hint=lambda: self.log.read_text()[-2000:])
        return self

    def ask_to_stop(self) -> None:
        supervisor.ask(self.cluster.folder, {"do": "stop", "name": NAME})

    def start_again(self) -> None:
        times = self.count("registered with the kubelet")
        supervisor.ask(self.cluster.folder, {"do": "start", "name": NAME})
        self.wait_until_registered(times + 1)

    def kill(self) -> None:
        """The supervisor starts it again."""
        times = self.count("registered with the kubelet")
        supervisor.ask(self.cluster.folder, {"do": "signal", "name": NAME, "signal": signal.SIGKILL})
        self.wait_until_registered(times + 1)

    def pid(self) -> int:
        return next(one["pid"] for one in self.cluster.programs() if one["name"] == NAME)

    def pss_kib(self) -> int:
        lines = self.cluster.inside(["cat", f"/proc/{self.pid()}/smaps_rollup"]).splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))

    def remove(self) -> None:
        supervisor.ask(self.cluster.folder, {"do": "remove", "name": NAME})
        assert not SANITIZERS.search(self.log.read_text()), self.log.read_text()[-4000:]

    def prepared(self) -> dict[str, str]:
        """CPUs by the claim's name, as the checkpoint has them."""
        file = self.cluster.folder / "kubelet/plugins" / DRIVER / "checkpoint.json"
        return {one["name"]: one["cpus"] for one in json.loads(file.read_text())["claims"]} if file.exists() else {}

    def control_group(self, pod: str) -> Path:
        """Of the pod's main container, as the hook recorded it."""
        container = self.cluster.api().get(f"{PODS}/{pod}")["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        record = self.cluster.folder / "kubelet/plugins" / DRIVER / "containers" / container
        return Path(record.read_text().splitlines()[0].removeprefix("cgroup "))

    def device_files(self) -> list[str]:
        return [name for name in self.cluster.inside(["ls", "/var/run/cdi"]).split() if name.startswith(DRIVER)]


def pinned_pod(name: str, **spec) -> dict:
    """Its init container and its main container say on which CPUs they may run; nobody schedules it but the test."""
    say = "echo $(grep Cpus_allowed_list /proc/self/status) $SLINC_CPUS"
    container = {"image": BUSYBOX, "imagePullPolicy": "Never", "resources": {"claims": [{"name": "cores"}]}}
    return {"metadata": {"name": name}, "spec": {
        "schedulerName": "nobody", "terminationGracePeriodSeconds": 0, "enableServiceLinks": False,
        "resourceClaims": [{"name": "cores", "resourceClaimName": name}],
        "initContainers": [container | {"name": "first", "command": ["sh", "-c", say]}],
        "containers": [container | {"name": "main", "command": ["sh", "-c", f"{say}; trap 'exit 1' TERM; sleep 3600 & wait"]}], **spec}}


def allocation(cores: str, source: str = "FromClass", **geometry) -> dict:
    """As the bridge writes it (docs/devices.md)."""
    parameters = {"apiVersion": f"{DRIVER}/v1", "kind": "SlurmCores", "cores": cores, "sockets": 1, "coresPerSocket": 2, "threadsPerCore": 1,
                  "job": "4711"} | geometry
    return {"devices": {
        "results": [{"request": "cores", "driver": DRIVER, "pool": NODE, "device": "socket0-numa0", "shareID": str(uuid.uuid4()),
                     "consumedCapacity": {"cores": "1"}}],
        "config": [{"source": source, "requests": [], "opaque": {"driver": DRIVER, "parameters": parameters}}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}]}}


def place(cluster: Cluster, name: str, cores: str, source: str = "FromClass", **geometry) -> None:
    """A claim and a pod of this name, allocated, reserved and bound in the order in which a scheduler does it."""
    api = cluster.api()
    api.post(CLAIMS, {"metadata": {"name": name, "finalizers": ["resource.kubernetes.io/delete-protection"]},
                      "spec": {"devices": {"requests": [{"name": "cores", "exactly": {"deviceClassName": DRIVER}}]}}})
    uid = api.post(PODS, pinned_pod(name))["metadata"]["uid"]
    api.merge(f"{CLAIMS}/{name}/status", {"status": {"allocation": allocation(cores, source, **geometry),
                                                     "reservedFor": [{"resource": "pods", "name": name, "uid": uid}]}})
    api.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": NODE}})
