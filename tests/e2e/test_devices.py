"""Pods get the devices and cores that Slurm chose: the example DRA driver's simulated GPUs, and `slinc dra`, on a real kubelet."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from bridge import Bridge, Site, at_work
from dra_plugin import CLASS, DEVICES, DRIVER, Plugin
from slincdev import supervisor
from slincdev.build import bin_dir, ensure_program
from slincdev.components import NODE
from slincdev.kube import ApiError
from slincdev.parts import kubectl
from waits import wait_for

pytestmark = pytest.mark.faults
GPU, GPUS = "gpu.example.com", 4
RESOURCE = "deviceclass.resource.kubernetes.io/"
SAY = "env | sort; grep Cpus_allowed_list /proc/self/status; sleep 3600"


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    return Site(cluster, slurm, "devices")


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
    wait_for("both show their devices", 60, lambda: len(api.get(f"{DEVICES}/resourceslices")["items"]) == 2,
             hint=lambda: (cluster.folder / "logs/dra-example.log").read_text()[-2000:])
    yield
    supervisor.ask(cluster.folder, {"do": "remove", "name": "dra-example"})
    cores.remove()
    for name in (GPU, DRIVER):
        api.delete(f"{DEVICES}/deviceclasses/{name}")


@pytest.fixture(scope="module")
def bridge(site, cluster, slurm, drivers, tmp_path_factory) -> Iterator[Bridge]:
    site.lend(NODE, "kubelet")
    with at_work(site, Bridge(cluster, slurm, tmp_path_factory.mktemp("bridge")), [NODE]) as bridge:
        yield bridge


def claims(site: Site) -> list[dict]:
    return site.api.get(f"{DEVICES}/namespaces/{site.namespace}/resourceclaims")["items"]


def make(site: Site, name: str, cpu: str = "100m", requests: dict | None = None, **spec: object) -> None:
    pod = site.pod(name, "sh", "-c", SAY, wishes={"exclusive": "false"}, cpu=cpu, **spec)
    resources = pod["spec"]["containers"][0]["resources"]
    if requests:
        resources["requests"] |= requests
        resources["limits"] = requests
    if any(DRIVER in resource for resource in requests or {}):
        del resources["requests"]["cpu"]
    site.api.post(site.pods_path, pod)


def said(site: Site, name: str) -> str:
    wait_for(f"{name} runs", 60, lambda: site.runs(name), hint=lambda: kubectl(site.cluster, "-n", site.namespace, "describe", "pod", name)[-2500:])
    return wait_for(f"{name} speaks", 20, lambda: (text := kubectl(site.cluster, "-n", site.namespace, "logs", name)) and "Cpus_allowed" in text and text)


def gpus_of(text: str) -> set[str]:
    return set(re.findall(r"^GPU_DEVICE_\d+=(gpu-\d+)$", text, re.M))


def chosen(site: Site, name: str) -> dict:
    """What Slurm says that the job of the pod has on the node."""
    (node,) = site.slurm.call("GET", f"/slurm/{{api}}/resources/{site.job(site.see(name))['job_id']}")["nodes"]
    return node


def index_of(site: Site, name: str) -> str:
    (gres,) = chosen(site, name)["gres"]
    return gres["index"]


def delete(site: Site, *names: str) -> None:
    for name in names:
        site.delete(name, 0)
    wait_for("pods and claims are gone", 60, lambda: not any(site.see(name) for name in names) and not claims(site))


def test_a_pod_gets_the_gpu_whose_number_slurm_chose(site, bridge):
    wait_for("Slurm knows the devices", 60, lambda: (site.slurm_node(NODE) or {"gres": ""})["gres"].startswith(f"gpu:{GPU}:{GPUS}"),
             hint=lambda: str((site.slurm_node(NODE) or {}).get("gres")))
    for name in ("one", "two"):
        make(site, name, requests={RESOURCE + GPU: "1"})
    found = {name: gpus_of(said(site, name)) for name in ("one", "two")}
    assert found == {name: {f"gpu-{index_of(site, name)}"} for name in ("one", "two")} and found["one"] != found["two"]
    claim = next(one for one in claims(site) if one["metadata"]["ownerReferences"][0]["name"] == "one")
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [result["device"] for result in claim["status"]["allocation"]["devices"]["results"]] == list(found["one"])
    delete(site, "one")
    make(site, "all", requests={RESOURCE + GPU: str(GPUS - 1)})
    assert gpus_of(said(site, "all")) == {f"gpu-{number}" for number in range(GPUS)} - found["two"]
    delete(site, "two", "all")


def test_a_claim_of_a_person_is_met_by_slurm_and_stays(site, bridge):
    site.api.post(f"{DEVICES}/namespaces/{site.namespace}/resourceclaims", {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": [
        {"name": "r", "exactly": {"deviceClassName": GPU, "count": 2}}]}}})
    pod = site.pod("claimer", "sh", "-c", SAY, wishes={"exclusive": "false"}, resourceClaims=[{"name": "g", "resourceClaimName": "mine"}])
    pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "g"}]
    site.api.post(site.pods_path, pod)
    assert gpus_of(said(site, "claimer")) == {f"gpu-{number}" for number in expand(index_of(site, "claimer"))}
    site.delete("claimer", 0)
    wait_for("the claim is free again", 60, lambda: not site.see("claimer") and "allocation" not in claims(site)[0].get("status", {}))
    site.api.delete(f"{DEVICES}/namespaces/{site.namespace}/resourceclaims/mine")


def expand(ranges: str) -> list[int]:
    return [number for part in ranges.split(",") for first, _, last in [part.partition("-")] for number in range(int(first), int(last or first) + 1)]


def test_two_pods_have_cores_of_their_own(site, bridge):
    for name in ("left", "right"):
        make(site, name, requests={RESOURCE + DRIVER: "1"})
    cpus = {name: re.search(r"Cpus_allowed_list:\s*(\S+)", said(site, name))[1] for name in ("left", "right")}
    assert set(cpus.values()) == {"0", "1"}
    assert {name: 1 << int(cpu) for name, cpu in cpus.items()} == {name: int(chosen(site, name)["core_bitmap"], 16) for name in cpus}
    delete(site, "left", "right")


def test_a_class_that_nobody_knows_is_named_on_the_pod(site, bridge):
    make(site, "odd", requests={RESOURCE + "odd": "1"})
    wait_for("the pod says so", 30, lambda: any('DRA device class "odd"' in condition.get("message", "") for condition in site.see("odd")["status"].get("conditions", [])))
    with pytest.raises(ApiError):
        site.api.get(f"{DEVICES}/namespaces/{site.namespace}/resourceclaims/slinc-{site.see('odd')['metadata']['uid']}")
    delete(site, "odd")
