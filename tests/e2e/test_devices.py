"""Pods get the devices and cores that Slurm chose: the example DRA driver's simulated GPUs, and `slinc dra`, on a real kubelet.

The node has two cores, so two pods run at a time."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from bridge import Bridge, Site, at_work, condition
from dra_plugin import CLASS, DEVICES, DRIVER, Plugin
from pods import BUSYBOX
from replica import free_port
from slincdev import supervisor
from slincdev.build import bin_dir, ensure_program
from slincdev.claims import ClaimWatch, numbers
from slincdev.common import Fail
from slincdev.components import NODE
from slincdev.kube import ApiError
from slincdev.parts import kubectl
from test_bridge_webhook import Certificate, Webhook, serves
from waits import wait_for

pytestmark = pytest.mark.faults
HOME, GPU, GPUS = "devices", "gpu.example.com", 4
RESOURCE = "deviceclass.resource.kubernetes.io/"
CLAIMS = f"{DEVICES}/namespaces/{HOME}/resourceclaims"
TELL = "env | sort; grep Cpus_allowed_list /proc/self/status"
STAY = f"{TELL}; trap 'exit 0' TERM; sleep 3600 & wait"


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, HOME)


@pytest.fixture(scope="module")
def drivers(cluster) -> Iterator[None]:
    """Of GPUs that only exist on paper, and of the node's cores."""
    ensure_program("dra-example")
    api, cores = cluster.api(), Plugin(cluster)
    api.post(f"{DEVICES}/deviceclasses", CLASS)
    api.post(f"{DEVICES}/deviceclasses", {"metadata": {"name": GPU}, "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}]}})
    cluster.start("dra-example", ["env", f"NODE_NAME={NODE}", bin_dir() / "dra-example", "--kubeconfig", cluster.admin_config, "--node-name", NODE,
                                  "--num-devices", str(GPUS), "--cdi-root", "/var/run/cdi"])
    cores.start()
    wait_for("both show their devices", 60, lambda: len(api.get(f"{DEVICES}/resourceslices?fieldSelector=spec.nodeName%3D{NODE}")["items"]) == 2,
             hint=lambda: (cluster.folder / "logs/dra-example.log").read_text()[-2000:])
    yield
    supervisor.ask(cluster.folder, {"do": "remove", "name": "dra-example"})
    cores.remove()
    for name in (GPU, DRIVER):
        api.delete(f"{DEVICES}/deviceclasses/{name}")


@pytest.fixture(scope="module")
def one(site, cluster, slurm, drivers, tmp_path_factory) -> Iterator[tuple[Bridge, tuple[str, ...]]]:
    """Pods of the namespace are pinned by its webhook; all the while nothing is given twice."""
    certificate, port = Certificate(tmp_path_factory.mktemp("hook"), cluster.host_ip), free_port()
    flags = ("--webhook-port", str(port), "--webhook-cert-dir", str(certificate.folder))
    found, webhook = Bridge(cluster, slurm, tmp_path_factory.mktemp("bridge"), managedNamespaces=[HOME], pinCpus="auto"), Webhook(cluster, port, certificate, HOME)
    site.lend(NODE, "kubelet")
    try:
        with ClaimWatch(cluster) as watch, at_work(site, found, [NODE], *flags):
            wait_for("the webhook answers", 10, lambda: serves(certificate, port), hint=found.said)
            webhook.register()
            wait_for("the API server asks it", 60, lambda: site.api.post(f"{site.pods_path}?dryRun=All", site.pod("any"))["spec"].get("resourceClaims"))
            wait_for("Slurm knows the devices", 60, lambda: (site.slurm_node(NODE) or {"gres": ""})["gres"].startswith(f"gpu:{GPU}:{GPUS}"),
                     hint=lambda: str(site.slurm_node(NODE)))
            yield found, flags
            webhook.remove()
        assert not watch.twice and watch.seen > 0, (watch.twice, watch.seen)
    finally:
        webhook.remove()


@pytest.fixture(autouse=True)
def bridge(site, one) -> Iterator[Bridge]:
    yield one[0]
    for claim in site.api.get(CLAIMS)["items"]:
        if not claim["metadata"].get("ownerReferences"):
            site.api.delete(f"{CLAIMS}/{claim['metadata']['name']}")
    site.empty()
    wait_for("no claim is left", 60, lambda: not site.api.get(CLAIMS)["items"], hint=lambda: json.dumps(site.api.get(CLAIMS)["items"])[:3000])


def gpus(count: int) -> dict:
    return {f"{RESOURCE}{GPU}": str(count)}


def container(name: str, command: str, devices: dict | None = None) -> dict:
    """Few CPUs of Kubernetes' own, of which the system's pods have taken most."""
    return {"name": name, "image": BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", command],
            "resources": {"requests": {"cpu": "50m", "memory": "8Mi"} | (devices or {}), "limits": devices or {}}}


def make(site: Site, name: str, *containers: dict, wishes: dict | None = None, **spec: object) -> dict:
    pod = site.pod(name, "true", wishes=wishes, **spec)
    pod["spec"]["containers"] = list(containers)
    return site.api.post(site.pods_path, pod)


def said(site: Site, name: str, part: str = "main") -> str:
    """What a container said first, when it has said it."""
    def hear() -> str | None:
        found = site.see(name)
        started = {one["name"] for key in ("initContainerStatuses", "containerStatuses") for one in found["status"].get(key, [])
                   if "waiting" not in one["state"]}
        text = kubectl(site.cluster, "-n", HOME, "logs", name, "-c", part) if part in started else ""
        return text if "Cpus_allowed" in text else None
    return wait_for(f"{name} speaks", 60, hear, hint=lambda: kubectl(site.cluster, "-n", HOME, "describe", "pod", name)[-2500:])


def gpus_of(text: str) -> set[str]:
    return set(re.findall(r"^GPU_DEVICE_\d+=(gpu-\d+)$", text, re.M))


def cpus_of(text: str) -> set[int]:
    return numbers(re.search(r"Cpus_allowed_list:\s*(\S+)", text)[1])


def chosen(site: Site, name: str) -> tuple[set[str], set[int]]:
    """The GPUs and cores that Slurm says the job of the pod has on the node."""
    (node,) = site.slurm.call("GET", f"/slurm/{{api}}/resources/{site.job(site.see(name))['job_id']}")["nodes"]
    bits = int(node["core_bitmap"], 16)
    return {f"gpu-{index}" for gres in node["gres"] for index in numbers(gres["index"])}, {core for core in range(bits.bit_length()) if bits >> core & 1}


def claim_of(site: Site, pod: str, extended: bool = True) -> dict:
    found = site.api.get(CLAIMS)["items"]
    return next(one for one in found if one["metadata"]["ownerReferences"][0]["name"] == pod and bool(one["metadata"].get("annotations")) == extended)


def goes(site: Site, name: str) -> None:
    site.delete(name, 0)
    wait_for(f"{name} is gone", 60, lambda: not site.see(name))


class Changes:
    """Every version of a pod that the API server has shown."""

    def __init__(self, site: Site, name: str) -> None:
        self.api, self.path, self.seen = site.api, f"{site.pods_path}?watch=1&fieldSelector=metadata.name%3D{name}", []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        connection = http.client.HTTPSConnection(self.api.host, self.api.port, context=self.api.context, timeout=600)
        connection.request("GET", self.path, headers={"Authorization": f"Bearer {self.api.token}"})
        for line in connection.getresponse():
            self.seen.append(json.loads(line)["object"])

    def first(self, *path: str) -> int:
        def has(found: object) -> bool:
            for key in path:
                found = (found or {}).get(key)
            return bool(found)
        return next(index for index, found in enumerate(self.seen) if has(found))


def test_a_pod_gets_the_gpu_whose_number_slurm_chose(site):
    changes = Changes(site, "one")
    for name in ("one", "two"):
        make(site, name, container("main", STAY, gpus(1)))
    found = {name: gpus_of(said(site, name)) for name in ("one", "two")}
    assert found == {name: chosen(site, name)[0] for name in found} and found["one"] != found["two"]
    claim = claim_of(site, "one")
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert {result["device"] for result in claim["status"]["allocation"]["devices"]["results"]} == found["one"]
    assert changes.first("status", "extendedResourceClaimStatus") < changes.first("spec", "nodeName")
    goes(site, "one")
    make(site, "rest", container("main", STAY, gpus(GPUS - 1)))
    assert gpus_of(said(site, "rest")) == {f"gpu-{number}" for number in range(GPUS)} - found["two"]


def test_each_container_has_devices_of_its_own(site):
    """The init container uses those of a container after it, and needs no more."""
    make(site, "several", container("main", STAY, gpus(2)), container("side", STAY, gpus(1)), initContainers=[container("before", TELL, gpus(2))])
    found = {part: gpus_of(said(site, "several", part)) for part in ("before", "main", "side")}
    assert {part: len(devices) for part, devices in found.items()} == {"before": 2, "main": 2, "side": 1}
    assert found["main"] | found["side"] == chosen(site, "several")[0] and not found["main"] & found["side"]
    assert found["before"] <= found["main"] | found["side"]


def shape_of(claim: dict, pod: dict) -> dict:
    """What a claim and its pod say, but for the names and devices that differ from one run to the next."""
    (owner,), (user,) = claim["metadata"]["ownerReferences"], claim["status"]["reservedFor"]
    allocation, told = claim["status"]["allocation"], pod["status"]["extendedResourceClaimStatus"]
    assert owner["uid"] == user["uid"] == pod["metadata"]["uid"] and told["resourceClaimName"] == claim["metadata"]["name"]
    assert allocation.pop("allocationTimestamp")
    results = allocation["devices"].pop("results")
    assert len({one.pop("device") for one in results}) == len(results)
    return {"annotations": claim["metadata"]["annotations"], "finalizers": claim["metadata"]["finalizers"],
            "owner": {key: value for key, value in owner.items() if key != "uid"}, "user": {key: value for key, value in user.items() if key != "uid"},
            "requests": sorted(claim["spec"]["devices"].pop("requests"), key=lambda one: one["name"]), "spec": claim["spec"],
            "results": sorted(results, key=lambda one: one["request"]), "allocation": allocation,
            "mappings": sorted(told["requestMappings"], key=lambda one: sorted(one.items()))}


def test_claims_are_as_kube_scheduler_writes_them(site):
    """The same pod, first by us and then by the stock scheduler: two containers and an init container, two names of a class."""
    other, short = "default", {"example.com/gpu": "1"}
    site.api.merge(f"{DEVICES}/deviceclasses/{GPU}", {"spec": {"extendedResourceName": "example.com/gpu"}})
    parts = [container("main", STAY, gpus(2)), container("side", STAY, short)]
    first = [container("before", TELL, gpus(2))]
    make(site, "alike", *parts, initContainers=first)
    said(site, "alike", "side")
    ours = shape_of(claim_of(site, "alike"), site.see("alike"))
    goes(site, "alike")
    wait_for("its claims are gone", 30, lambda: not site.api.get(CLAIMS)["items"])
    path = f"/api/v1/namespaces/{other}/pods"
    try:
        site.api.post(path, {"metadata": {"name": "alike"}, "spec": {
            "nodeSelector": {"kubernetes.io/hostname": NODE}, "tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0,
            "containers": parts, "initContainers": first}})
        wait_for("kube-scheduler has placed it", 60, lambda: site.api.get(f"{path}/alike")["spec"].get("nodeName"),
                 hint=lambda: json.dumps(site.api.get(f"{path}/alike")["status"]))
        (claim,) = site.api.get(f"{DEVICES}/namespaces/{other}/resourceclaims")["items"]
        assert ours == shape_of(claim, site.api.get(f"{path}/alike"))
    finally:
        site.api.delete(f"{path}/alike", {"gracePeriodSeconds": 0})
        site.api.merge(f"{DEVICES}/deviceclasses/{GPU}", {"spec": {"extendedResourceName": None}})
        wait_for("its claim is gone", 60, lambda: not site.api.get(f"{DEVICES}/namespaces/{other}/resourceclaims")["items"])


def test_claims_of_people_and_of_templates_are_met_by_slurm(site):
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": GPU, "count": 2}}]}}
    templates = f"{DEVICES}/namespaces/{HOME}/resourceclaimtemplates"
    site.api.post(CLAIMS, {"metadata": {"name": "mine"}, "spec": spec})
    site.api.post(templates, {"metadata": {"name": "each"}, "spec": {"spec": spec}})
    for name, claim in (("claimer", {"resourceClaimName": "mine"}), ("templated", {"resourceClaimTemplateName": "each"})):
        main = container("main", STAY)
        main["resources"]["claims"] = [{"name": "g"}]
        make(site, name, main, resourceClaims=[{"name": "g"} | claim])
    found = {name: gpus_of(said(site, name)) for name in ("claimer", "templated")}
    assert found == {name: chosen(site, name)[0] for name in found} and len(found["claimer"] | found["templated"]) == 4
    make(site, "second", container("main", STAY), resourceClaims=[{"name": "g", "resourceClaimName": "mine"}])
    wait_for("who else names the claim is told", 30, lambda: "is reserved for pod claimer" in condition(site.see("second"), "SlurmPending")["message"])
    for name in ("second", "claimer"):
        goes(site, name)
    wait_for("the claim is free again, and still there", 30, lambda: "allocation" not in site.api.get(f"{CLAIMS}/mine").get("status", {}))
    site.api.delete(f"{templates}/each")


def restart_kubelet_while_deleted(site: Site, name: str) -> None:
    """While the kubelet is away nobody unprepares the claim, so its devices stay with the pod. At its start it deletes the
    ResourceSlices of its node, which the drivers publish again."""
    folder, number = site.cluster.folder, site.job(site.see(name))["job_id"]
    supervisor.ask(folder, {"do": "stop", "name": "kubelet"})
    try:
        site.delete(name)
        make(site, "meanwhile", container("main", TELL, gpus(GPUS)))
        wait_for("the next pod waits for them", 30, lambda: condition(site.see("meanwhile"), "SlurmPending")["status"] == "True")
        assert claim_of(site, name)["status"]["allocation"] and site.job_state(number) == "RUNNING"
    finally:
        supervisor.ask(folder, {"do": "start", "name": "kubelet"})
    wait_for("the next pod has run", 120, lambda: (site.see("meanwhile") or {"status": {}})["status"].get("phase") == "Succeeded",
             hint=lambda: kubectl(site.cluster, "-n", HOME, "describe", "pod", "meanwhile")[-2500:])
    assert len(gpus_of(said(site, "meanwhile"))) == GPUS


def end_by(site: Site, how: str, name: str) -> None:
    if how in ("success", "failure"):
        kubectl(site.cluster, "-n", HOME, "exec", name, "--", "sh", "-c", f"(sleep 0.5; touch /{how}) >/dev/null 2>&1 &")  # it ends what runs in the pod
        wait_for("it has ended", 30, lambda: site.see(name)["status"]["phase"] == {"success": "Succeeded", "failure": "Failed"}[how])
    elif how == "scancel":
        site.slurm.cancel(site.job(site.see(name))["job_id"])
    elif how == "preemption":
        make(site, "urgent", container("main", "true", gpus(1)), wishes={"partition": "express"})
        wait_for("the urgent one has run", 60, lambda: site.see("urgent")["status"]["phase"] == "Succeeded")
    elif how == "time-limit":
        job = site.job(site.see(name))["job_id"]
        wait_for("Slurm takes an end behind its start", 30, lambda: site.scontrol("update", f"JobId={job}", "EndTime=now") == "", forgiven=(Fail,))
        wait_for("its time is over", 60, lambda: not site.see(name))  # slurmctld looks every 30 s
    elif how == "node-restart":
        restart_kubelet_while_deleted(site, name)
    else:
        site.delete(name, {"deletion": None, "force": 0}[how])


def test_devices_are_free_again_after_every_kind_of_end(site):
    """Each pod needs all GPUs, so it runs only when the pod before has given back every one."""
    until_told = f"{TELL}; trap 'exit 0' TERM; while :; do [ -e /success ] && exit 0; [ -e /failure ] && exit 1; sleep 0.1; done"
    site.scontrol("create", "PartitionName=express", f"Nodes={NODE}", "PriorityTier=10")
    try:
        for how in ("success", "failure", "deletion", "force", "scancel", "preemption", "time-limit", "node-restart"):
            make(site, how, container("main", until_told, gpus(GPUS)))
            assert len(gpus_of(said(site, how))) == GPUS
            end_by(site, how, how)
        make(site, "last", container("main", STAY, gpus(GPUS)))
        assert len(gpus_of(said(site, "last"))) == GPUS
        wait_for("only its claims are left", 30, lambda: {one["metadata"]["ownerReferences"][0]["name"] for one in site.api.get(CLAIMS)["items"]} == {"last"})
    finally:
        site.empty()
        wait_for("the partition goes", 30, lambda: site.scontrol("delete", "PartitionName=express") == "")


def test_plain_pods_run_on_cores_of_their_own(site):
    """As a whole: init container, sidecar and main container. A third one waits, and gets the core that becomes free."""
    sidecar = container("side", STAY) | {"restartPolicy": "Always"}
    make(site, "left", container("main", STAY), initContainers=[container("before", TELL), sidecar])
    make(site, "right", container("main", STAY))
    cores = {name: chosen(site, name)[1] for name in ("left", "right") if said(site, name)}
    assert sorted(map(tuple, cores.values())) == [(0,), (1,)]
    assert {part: cpus_of(said(site, "left", part)) for part in ("before", "side", "main")} == dict.fromkeys(("before", "side", "main"), cores["left"])
    assert cpus_of(said(site, "right")) == cores["right"]
    make(site, "third", container("main", STAY))
    wait_for("it waits", 30, lambda: condition(site.see("third"), "SlurmPending")["status"] == "True")
    goes(site, "left")
    assert cpus_of(said(site, "third")) == cores["left"]


def test_a_class_that_nobody_knows_is_refused(site):
    with pytest.raises(ApiError, match="unsupported DRA device class"):
        make(site, "odd", container("main", STAY, {f"{RESOURCE}odd": "1"}))


@contextlib.contextmanager
def sick_gpu(site: Site, name: str) -> Iterator[None]:
    """It has a taint. Its driver is stopped meanwhile, because it would take the taint away."""
    def write(taints: list[dict] | None) -> None:
        (found,) = [one for one in site.api.get(f"{DEVICES}/resourceslices")["items"] if one["spec"]["driver"] == GPU]
        devices = [one | {"taints": taints} if one["name"] == name else one for one in found["spec"]["devices"]]
        site.api.merge(f"{DEVICES}/resourceslices/{found['metadata']['name']}", {"spec": {"devices": devices}})

    supervisor.ask(site.cluster.folder, {"do": "signal", "name": "dra-example", "signal": signal.SIGSTOP})
    try:
        write([{"key": "example.com/ecc", "value": "errors", "effect": "NoSchedule"}])
        yield
        write(None)
    finally:
        supervisor.ask(site.cluster.folder, {"do": "signal", "name": "dra-example", "signal": signal.SIGCONT})


def node_says(site: Site) -> tuple[str, str]:
    found = next((one for one in site.node(NODE)["status"]["conditions"] if one["type"] == "SlurmAvailable"), {})
    return found.get("reason", ""), found.get("message", "")


def slurm_has(site: Site, gres: str) -> None:
    wait_for(f"Slurm has {gres} on the node", 60, lambda: (site.slurm_node(NODE) or {"gres": ""})["gres"].startswith(gres),
             hint=lambda: f"{site.slurm_node(NODE)} {node_says(site)}")


def test_a_pod_on_an_idle_node_with_a_sick_gpu_gets_another_one(site):
    """Slurm would give the first one. While the pod runs the node cannot be told of the GPU that is well again, and says so."""
    with sick_gpu(site, "gpu-0"):
        slurm_has(site, f"gpu:{GPU}:{GPUS - 1}")
        make(site, "well", container("main", STAY, gpus(1)))
        wait_for("it is bound", 60, lambda: site.see("well")["spec"].get("nodeName"), hint=lambda: str(condition(site.see("well"), "SlurmPending")))
        assert [one["device"] for one in claim_of(site, "well")["status"]["allocation"]["devices"]["results"]] == ["gpu-1"]
    assert gpus_of(said(site, "well")) == {"gpu-1"}
    wait_for("the node says that its devices are others", 60, lambda: node_says(site)[0] == "DevicesDiffer", hint=lambda: str(node_says(site)))
    assert f"and should have gpu:{GPU}=gpu-0,gpu-1" in node_says(site)[1]
    goes(site, "well")
    slurm_has(site, f"gpu:{GPU}:{GPUS}")
    wait_for("the node says no more of it", 60, lambda: node_says(site)[0] in ("", "InService"), hint=lambda: str(node_says(site)))


def test_a_type_that_the_config_adds_reaches_a_node_when_it_is_idle(site, one):
    bridge, flags = one
    config = json.loads(bridge.config.read_text())

    def restart(**more: object) -> None:
        bridge.config.write_text(json.dumps(config | more))
        bridge.kill()
        bridge.start(*flags)

    make(site, "before", container("main", STAY, gpus(1)))
    assert len(gpus_of(said(site, "before"))) == 1
    restart(devices=[{"class": GPU, "gres": "gpu", "type": "big"}, {"class": DRIVER, "gres": "cpu"}])
    try:
        wait_for("the node says which devices it should have", 60, lambda: node_says(site)[0] == "DevicesDiffer" and "should have gpu:big=" in node_says(site)[1],
                 hint=lambda: f"{node_says(site)} {site.slurm_node(NODE)}")
        wait_for("the webhook is back", 20, lambda: make(site, "after", container("main", STAY, gpus(1))), hint=bridge.said)
        assert site.see("before")["status"]["phase"] == "Running"
        goes(site, "before")
        slurm_has(site, f"gpu:big:{GPUS}")
        assert len(gpus_of(said(site, "after"))) == 1
    finally:
        restart()
    site.empty()
    slurm_has(site, f"gpu:{GPU}:{GPUS}")


def test_a_bridge_that_dies_at_any_moment_leaves_no_claim(site, one):
    """It is killed while pods wait, are given devices, are bound, run and end."""
    bridge, flags = one
    chance, names = random.Random(20261117), [f"pod-{number}" for number in range(4)]
    for name in names[:2]:
        make(site, name, container("main", f"{TELL}; sleep 1", gpus(2)))
    for name in names[2:]:
        time.sleep(chance.uniform(0, 2))
        bridge.kill()
        bridge.start(*flags)
        wait_for("the webhook is back", 20, lambda: make(site, name, container("main", f"{TELL}; sleep 1", gpus(2))), hint=bridge.said)
    end = time.monotonic() + 12
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.5, 3))
        bridge.kill()
        bridge.start(*flags)
    for name in names:
        wait_for(f"{name} has run", 90, lambda name=name: site.see(name)["status"]["phase"] == "Succeeded", hint=bridge.said)
        assert len(gpus_of(said(site, name))) == 2
    wait_for("no claim is left", 30, lambda: not site.api.get(CLAIMS)["items"])
