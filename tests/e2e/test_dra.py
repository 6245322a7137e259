"""Pods on the cores that Slurm chose: the kubelet plugin on a real kubelet, with claims that the test allocates."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import REPO
from dra_plugin import CLAIMS, CLASS, DEVICES, DRIVER, PODS, Plugin, place
from pods import ask, is_ready
from slincdev import supervisor
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import Fail, run
from slincdev.components import NODE, wait_containerd
from slincdev.parts import ensure_images, import_images, kubectl
from waits import wait_for

pytestmark = pytest.mark.faults
ALL = "0-1"
PLAIN = Path(os.environ.get("SLINC_PLAIN", REPO / "build/plain"))


@pytest.fixture(scope="module")
def device_class(cluster: Cluster) -> Iterator[None]:
    api = cluster.api()
    api.post(f"{DEVICES}/deviceclasses", CLASS)
    yield
    api.delete(f"{DEVICES}/deviceclasses/{DRIVER}")


@pytest.fixture
def plugin(cluster: Cluster, device_class: None) -> Iterator[Plugin]:
    one = Plugin(cluster)
    try:
        yield one.start()
    finally:
        end_all(cluster, one)
        one.remove()


def end_all(cluster: Cluster, plugin: Plugin) -> None:
    """All pods of the test are gone, and so is what was prepared for them; for that the plugin must run."""
    api = cluster.api()
    if not plugin.pid():
        plugin.start_again()
    api.delete(PODS, {"gracePeriodSeconds": 0})
    wait_for("no claim is prepared any more", 60, lambda: not plugin.prepared() and not plugin.device_files())
    wait_for("the pods are gone", 60, lambda: not api.get(PODS)["items"])
    for claim in api.get(CLAIMS)["items"]:
        api.merge(f"{CLAIMS}/{claim['metadata']['name']}", {"metadata": {"finalizers": None}})
    api.delete(CLAIMS)


def said(cluster: Cluster, name: str, container: str = "main") -> str:
    """The first thing that the container's process said."""
    return kubectl(cluster, "logs", name, "-c", container).strip()


def cpus_now(cluster: Cluster, name: str) -> str:
    """Of a process that enters the running container."""
    return ask(cluster, name, "grep", "Cpus_allowed_list", "/proc/self/status").split()[1]


def wait_until_runs(cluster: Cluster, name: str) -> None:
    wait_for(f"pod {name} runs", 90, lambda: is_ready(cluster.api().get(f"{PODS}/{name}")), hint=lambda: kubectl(cluster, "describe", "pod", name)[-1500:])


def expect_cpus(cluster: Cluster, name: str, cpus: str) -> None:
    wanted = f"Cpus_allowed_list: {cpus} {cpus}"
    assert said(cluster, name, "first") == wanted
    assert said(cluster, name) == wanted
    assert cpus_now(cluster, name) == cpus


def slice_of_node(cluster: Cluster) -> dict | None:
    found = cluster.api().get(f"{DEVICES}/resourceslices?fieldSelector=spec.driver%3D{DRIVER}")["items"]
    assert len(found) < 2
    return found[0] if found else None


def test_a_node_offers_its_cores(cluster, plugin):
    wait_for("the slice is published", 30, lambda: slice_of_node(cluster))
    found = slice_of_node(cluster)
    assert found["metadata"]["ownerReferences"][0]["name"] == NODE
    assert found["spec"]["nodeName"] == NODE and found["spec"]["pool"]["name"] == NODE
    (device,) = found["spec"]["devices"]
    assert device["name"] == "socket0-numa0" and device["allowMultipleAllocations"]
    assert device["capacity"]["cores"]["value"] == "2"
    assert device["attributes"]["cores"] == {"string": ALL}
    assert device["attributes"]["nodeCoresPerSocket"] == {"int": 2}
    cluster.api().delete(f"{DEVICES}/resourceslices/{found['metadata']['name']}")
    wait_for("the slice is put back", 30, lambda: slice_of_node(cluster))


def test_check_explains_the_node(cluster, plugin):
    printed = cluster.inside([*plugin.words[:2], "--check", "--hook", plugin.words[plugin.words.index("--hook") + 1]])
    rows = {line[8:20].strip(): line[:8].strip() for line in printed.splitlines()}
    assert rows == dict.fromkeys(["topology", "cgroup", "cpu manager", "kubelet", "cdi", "hook"], "ok"), printed
    state = cluster.folder / "kubelet/cpu_manager_state"
    kept = state.read_text() if state.exists() else None
    try:
        state.write_text('{"policyName": "static"}')
        with pytest.raises(Fail, match="policy 'static'"):
            cluster.inside([*plugin.words[:2], "--check", "--hook", plugin.words[plugin.words.index("--hook") + 1]])
    finally:
        state.write_text(kept) if kept else state.unlink()


def test_two_pods_get_the_core_that_their_claim_names(cluster, plugin):
    """The plugin is killed between the two, stopped while a container starts again, and everything stays where it is."""
    place(cluster, "one", "0")
    wait_until_runs(cluster, "one")
    plugin.kill()
    place(cluster, "two", "1")
    wait_until_runs(cluster, "two")
    expect_cpus(cluster, "one", "0")
    expect_cpus(cluster, "two", "1")
    assert plugin.prepared() == {"one": "0", "two": "1"}
    plugin.ask_to_stop()
    with contextlib.suppress(Fail):  # the command dies with its container
        ask(cluster, "one", "kill", "1")
    wait_for("the container is there again", 60, lambda: cluster.api().get(f"{PODS}/one")["status"]["containerStatuses"][0]["restartCount"] == 1 and
             is_ready(cluster.api().get(f"{PODS}/one")))
    expect_cpus(cluster, "one", "0")
    plugin.start_again()
    assert plugin.prepared() == {"one": "0", "two": "1"}
    cluster.api().delete(f"{PODS}/one", {"gracePeriodSeconds": 0})
    wait_for("the claim is unprepared", 60, lambda: plugin.prepared() == {"two": "1"} and len(plugin.device_files()) == 1)


def test_pins_outlive_kubelet_and_containerd_and_are_repaired(cluster, plugin):
    place(cluster, "one", "1")
    wait_until_runs(cluster, "one")
    for program in ("kubelet", "containerd"):
        times = plugin.count("registered with the kubelet")
        supervisor.ask(cluster.folder, {"do": "stop", "name": program})
        supervisor.ask(cluster.folder, {"do": "start", "name": program})
        if program == "kubelet":
            plugin.wait_until_registered(times + 1)
        else:
            wait_containerd(cluster)
    wait_for("the kubelet answers, and the slice is there", 60, lambda: cpus_now(cluster, "one") == "1" and slice_of_node(cluster),
             forgiven=(Fail, OSError))
    group = plugin.control_group("one")
    (group / "cpuset.cpus").write_text(ALL)
    wait_for("the pin is repaired", 30, lambda: cpus_now(cluster, "one") == "1", forgiven=(Fail, OSError))
    assert plugin.count("set cpusets again") >= 1
    others = {(folder / "cpuset.cpus").read_text().strip() for folder in group.parent.iterdir() if folder.is_dir()}
    assert others == {"1"}  # the pause container, too


@pytest.mark.parametrize(("name", "changes", "words"), [
    ("asked-by-user", {"source": "FromClaim"}, "only Slurm chooses cores"),
    ("other-machine", {"coresPerSocket": 64}, "Slurm counts 1 sockets x 64 cores"),
])
def test_a_claim_that_cannot_be_kept_is_refused_in_words(cluster, plugin, name, changes, words):
    place(cluster, name, "0", **changes)
    wait_for("the pod says why", 60, lambda: words in kubectl(cluster, "describe", "pod", name))
    assert plugin.prepared() == {}


def test_a_broken_hook_keeps_the_container_from_starting(cluster, plugin):
    """Nothing runs on cores that are not its own."""
    records = cluster.folder / "kubelet/plugins" / DRIVER / "containers"
    records.rename(records.with_name("away"))
    try:
        place(cluster, "one", "0")
        wait_for("the pod says why", 60, lambda: "slinc cannot pin the container" in kubectl(cluster, "describe", "pod", "one"))
        assert cluster.api().get(f"{PODS}/one")["status"]["phase"] == "Pending"
    finally:
        records.with_name("away").rename(records)
    wait_until_runs(cluster, "one")
    expect_cpus(cluster, "one", "0")


def test_the_plugin_is_small(cluster, device_class):
    one = Plugin(cluster, PLAIN)
    try:
        one.start()
        place(cluster, "one", "0")
        wait_until_runs(cluster, "one")
        found = one.pss_kib()
        print(f"Pss {found} KiB")
        assert found < 12 * 1024
        end_all(cluster, one)
    finally:
        one.remove()


def daemon_set(cluster: Cluster, folder: Path) -> Path:
    """The chart's objects without the class, which is there already."""
    text = run([bin_dir() / "helm", "template", "bridge", REPO / "charts/slurm-bridge", "-n", "default", "--kube-version", "1.36", "--show-only", "templates/dra.yaml",
                "--set", "trustAnnotations=own,nodePolicy.mode=Deny", "--set", "dra.enabled=true,dra.image.repository=localhost/slinc/slinc,dra.image.pullPolicy=Never",
                "--set", f"dra.nodeSelector.kubernetes\\.io/hostname={NODE}"])
    file = folder / "dra.yaml"
    file.write_text("---".join(part for part in text.split("---") if "kind: DeviceClass" not in part))
    return file


def test_the_chart_runs_the_plugin_without_privileges(cluster, device_class, tmp_path):
    """With the rights of its account, in a container that may write to four folders of the host."""
    ensure_images(["slinc"])
    import_images(cluster, ["slinc"])
    file, one = daemon_set(cluster, tmp_path), Plugin(cluster)
    kubectl(cluster, "apply", "-f", file)
    try:
        wait_for("the DaemonSet is ready", 60, lambda: cluster.api().get("/apis/apps/v1/namespaces/default/daemonsets/slurm-bridge-dra")
                 ["status"].get("numberReady") == 1, hint=lambda: kubectl(cluster, "logs", "ds/slurm-bridge-dra", "--tail=5"))
        wait_for("the slice is published", 30, lambda: (slice_of_node(cluster) or {"spec": {}})["spec"].get("devices"))
        place(cluster, "one", "1")
        wait_until_runs(cluster, "one")
        expect_cpus(cluster, "one", "1")
        (one.control_group("one") / "cpuset.cpus").write_text(ALL)
        wait_for("the pin is repaired", 30, lambda: cpus_now(cluster, "one") == "1", forgiven=(Fail, OSError))
        cluster.api().delete(f"{PODS}/one", {"gracePeriodSeconds": 0})
        wait_for("the claim is unprepared", 60, lambda: not one.prepared() and not one.device_files())
    finally:
        kubectl(cluster, "delete", "-f", file, "--wait=false")
        cluster.api().merge(f"{CLAIMS}/one", {"metadata": {"finalizers": None}})
        cluster.api().delete(CLAIMS)
