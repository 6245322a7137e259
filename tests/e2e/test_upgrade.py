"""From an older version of ours to this one, and back, by the commands of docs/upgrade.md: what Slurm runs is not touched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import older
import pytest
from bridge import NODE_LABEL, PARTITIONS
from manual import Reader, commands
from slincdev.cluster import Cluster
from slincdev.common import REPO, Fail
from slincdev.components import import_image
from slincdev.kube import ApiError
from slincdev.parts import ensure_images, image_archive, import_images
from slincdev.release import ensure_image
from slincdev.system import IMAGES, VALUES, WORKERS
from test_together import HOME, KWOK, MANAGED, ON_KWOK, OPERATOR_HOME, Together, remove
from waits import wait_for

OLD, NEW = "0.9.0", "1.0.0"  # as the charts and images of both trees are called here
PARTS = {"controllers": "slurm", "restapis": "slurm", "loginsets": "slurm-login-main", "nodesets": WORKERS}
OURS = ("slurm-bridge", "slurm-keys")  # pods of ours beside Slurm's
INSTALL = f"""
helm install slurm-operator charts/slurm-operator -n {OPERATOR_HOME} --create-namespace --wait -f {VALUES}/operator.yaml
helm install slurm charts/slurm -n {HOME} --create-namespace -f {VALUES}/slurm.yaml --set nodesets.cpu.replicas=1
helm install slurm-bridge charts/slurm-bridge -n {HOME} -f {VALUES}/bridge.yaml --set nodePolicy.namespaces='{{kube-system,{OPERATOR_HOME}}}' --wait
"""

pytestmark = pytest.mark.soak


def import_ours(cluster: Cluster, folder: Path) -> dict[str, Reader]:
    """A reader of each version, with its charts; the images are in the store of each node."""
    readers = {}
    for version, tree in ((OLD, older.older()), (NEW, REPO)):
        image = older.named(older.image(tree) if tree != REPO else image_archive("slinc"), folder / f"{version}.tar", version)
        for node in cluster.nodes():
            import_image(node, image)
        readers[version] = Reader(cluster, folder / version, older.charts(tree, folder / f"charts-{version}", version))
    return readers


@pytest.fixture(scope="module")
def readers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    ensure_image()
    ensure_images(IMAGES)
    import_images(cluster, IMAGES)
    return import_ours(cluster, tmp_path_factory.mktemp("upgrade"))


@pytest.fixture(scope="module")
def system(cluster: Cluster, readers: dict[str, Reader]) -> Iterator[Together]:
    found, api = Together(cluster, HOME, OPERATOR_HOME), cluster.api()
    api.post("/api/v1/namespaces", {"metadata": {"name": MANAGED}})
    try:
        readers[OLD].type(INSTALL)
        for plural, name in PARTS.items():
            found.wait(f"{plural} {name} is ready", 120, lambda plural=plural, name=name: found.is_ready(plural, name))
        api.merge(f"/api/v1/nodes/{KWOK}", {"metadata": {"labels": {NODE_LABEL: "true"}, "annotations": {PARTITIONS: "slurm-bridge"}}})
        found.wait("the worker and the external node are idle", 120, lambda: found.are_idle("cpu-0", KWOK))
        yield found
    finally:
        with contextlib.suppress(ApiError, Fail, OSError):
            found.helm("uninstall", "slurm-operator", "-n", OPERATOR_HOME, "--wait")  # its webhook belongs to no namespace
            remove(found)


def running(system: Together) -> dict[str, tuple[str, int]]:
    """The pods of Slurm: their UIDs, and how often their containers were started again."""
    found = system.api.get(f"/api/v1/namespaces/{HOME}/pods")["items"]
    return {one["metadata"]["name"]: (one["metadata"]["uid"], sum(each["restartCount"] for each in one["status"].get("containerStatuses", [])))
            for one in found if not one["metadata"]["name"].startswith(OURS)}


def runs_version(system: Together, version: str) -> bool:
    """All pods of operator and bridge, and no others are left."""
    pods = [one for namespace in (OPERATOR_HOME, HOME) for one in system.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
            if namespace == OPERATOR_HOME or one["metadata"]["name"].startswith("slurm-bridge")]
    return len(pods) >= 2 and all(container["image"].endswith(f":{version}") for one in pods for container in one["spec"]["containers"]) and \
        all(condition["status"] == "True" for one in pods for condition in one["status"].get("conditions", []) if condition["type"] == "Ready")


def test_pods_and_jobs_go_on_on_the_way_there_and_on_the_way_back(system: Together, readers: dict[str, Reader]) -> None:
    system.make("placed", **ON_KWOK)
    system.wait("the pod runs where Slurm placed it", 60, lambda: system.is_running("placed"))
    native = system.sbatch()
    system.wait("a native job runs", 60, lambda: system.job_states()[native] == "RUNNING")
    before, uid, job = running(system), system.pod("placed")["metadata"]["uid"], system.job_of("placed")
    assert {name.split("-")[1] for name in before} == {"controller", "restapi", "login", "worker"}, before
    for number, version in enumerate((NEW, OLD, NEW)):
        followed = f"restapi.service.metadata.labels.turn=t{number}"
        readers[version].type(commands("upgrade.md", "The commands"), {"-n slinky": f"-n {OPERATOR_HOME}", "-n slurm ": f"-n {HOME} ",
                                                                       "charts/slurm ": f"charts/slurm --set {followed} "})
        system.wait("operator and bridge are of this version", 120, lambda version=version: runs_version(system, version))
        wait_for("the operator followed", 60, lambda turn=f"t{number}": system.api.get(f"/api/v1/namespaces/{HOME}/services/slurm-restapi")["metadata"]["labels"].get("turn") == turn)
        system.make(f"after-{number}", **ON_KWOK)
        system.wait("a new pod is placed", 90, lambda number=number: system.is_running(f"after-{number}"))
        for plural, name in PARTS.items():
            system.wait(f"{plural} {name} is ready", 60, lambda plural=plural, name=name: system.is_ready(plural, name))
        assert running(system) == before
        assert system.pod("placed")["metadata"]["uid"] == uid and system.is_running("placed") and system.job_of("placed") == job
        assert [system.job_states()[one] for one in (job, native)] == ["RUNNING", "RUNNING"]
    readers[NEW].type(commands("upgrade.md", "Look"), {"-n slurm ": f"-n {HOME} "})
    readers[NEW].type(commands("upgrade.md", "The way back"))
    assert "kind: NodeSet" in (readers[NEW].folder / "custom-resources.yaml").read_text()
    system.end_job("cpu-0", native)
    system.wait("the native job has ended well", 60, lambda: native not in system.job_states())
