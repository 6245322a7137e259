"""A release as a stranger installs it: pushed to a registry, and then the very commands of docs/install.md.

Without SLINC_DIST the release is the charts and images of this tree, as release/make packs them. With it, that folder is installed:
`tests/run release` gives the one that it has made."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pages
import pytest
from conftest import NAME as CLUSTER
from definitions import DEFINITION
from slincdev import up as life
from slincdev.build import bin_dir, module_dir
from slincdev.cluster import Cluster
from slincdev.common import REPO, Fail, versions
from slincdev.parts import PARTS, ensure_images, image_archive
from slincdev.registry import Registry
from slincdev.release import ensure_image
from slincdev.system import System, slinc
from test_together import KWOK, volume
from waits import PASSING, wait_for

sys.path[:0] = [str(REPO / "release"), str(REPO / "images")]
import pack  # noqa: E402
import release as releases  # noqa: E402
import source as sources  # noqa: E402

pytestmark = pytest.mark.last  # it has a cluster of its own
NAME = f"{CLUSTER}-release"
PAGE = pages.blocks(REPO / "docs/install.md")
REGISTRY, VERSION = re.search(r"^export REGISTRY=(\S+) VERSION=(\S+)$", PAGE["install"], re.M).groups()
HOST = REGISTRY.split("/")[0]
IMAGES = ["slinc", "slurmctld", "slurmd", "slurmrestd"]  # those the page's pods run
# What this machine's kernel wants, and one node for everything.
OURS = """controller: {extraConf: "ProctrackType=proctrack/linuxproc\\nTaskPlugin=task/affinity"}
configFiles: {cgroup.conf: CgroupPlugin=disabled}
"""


def quick_release(folder: Path) -> Path:
    """A dist/ with what is pushed: for this architecture, of this tree."""
    tree = folder / "tree"
    shutil.copytree(REPO / "charts", tree / "charts", symlinks=True)
    shutil.copy(REPO / "meson.build", tree)
    sources.set_version(tree, VERSION)
    names = IMAGES
    ensure_image()
    ensure_images(names)
    wanted = releases.Wanted(VERSION, REGISTRY, "", 0, [pack.own_architecture()], "", "", False)
    folders = releases.Folders(folder / "dist", folder / "work", tree)
    folders.dist.mkdir()
    releases.write_installable(wanted, folders, {wanted.architectures[0]: {name: image_archive(name) for name in names}})
    releases.papers.write_sums(folders.dist)
    return folders.dist


class Stranger(System):
    """Has a release in a registry, and follows the page in a folder with the release's files."""

    def __init__(self, cluster: Cluster, registry: Registry, dist: Path, folder: Path) -> None:
        super().__init__(cluster, "slurm", "slinky")
        self.registry, self.dist, self.folder = registry, dist, folder
        for path in dist.iterdir():
            (folder / path.name).symlink_to(path)

    def type(self, commands: str) -> str:
        path = f"{slinc().parent}:{bin_dir()}:{os.environ['PATH']}"
        return self.registry.run(f"cd {shlex.quote(str(self.folder))}\n{commands}", REGISTRY=REGISTRY, VERSION=VERSION, NODE=KWOK, PATH=path)

    def follow(self, name: str) -> str:
        """Types what the page says under this name."""
        return self.type(PAGE[name])

    def images(self, namespace: str) -> dict[str, list[str]]:
        """Of each pod that runs: what the kubelet pulled."""
        found = self.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return {one["metadata"]["name"]: [status["imageID"] for status in one["status"].get("containerStatuses", [])] for one in found
                if one["status"]["phase"] == "Running"}


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    """With an empty cluster, in the namespaces of the page."""
    folder = tmp_path_factory.mktemp("release")
    dist = Path(os.environ["SLINC_DIST"]).absolute() if os.environ.get("SLINC_DIST") else quick_release(folder)
    cluster = life.up(NAME, node_count=1)
    try:
        cluster.api().post("/api/v1/persistentvolumes", volume(cluster))
        registry = Registry(cluster, HOST)
        registry.start()
        registry.run(f"{REPO}/release/push {REGISTRY} {shlex.quote(str(dist))}")
        yield Stranger(cluster, registry, dist, tmp_path_factory.mktemp("stranger"))
    finally:
        life.down(NAME)


def test_what_was_pushed_is_what_was_made(stranger: Stranger) -> None:
    for line in (stranger.dist / "images.txt").read_text().splitlines():
        name, _, digest = line.partition("@")
        assert json.loads(stranger.registry.run(f"skopeo inspect docker://{name}"))["Digest"] == digest
    assert "was made for another registry" in str(pytest.raises(Fail, stranger.registry.run, f"{REPO}/release/push other.example/slinc {stranger.dist}").value)


def test_the_manifests_are_taken_by_the_api_server(stranger: Stranger) -> None:
    part = tomllib.loads((PARTS / "certmanager/part.toml").read_text())
    files = [f"-f {module_dir(part['module'], versions()[part['pin']])}/{file}" for file in part["files"]]
    definitions = f"kubectl {{}} {' '.join(files)}".format
    create, apply = PAGE["manifests"].splitlines()
    stranger.type(f"{definitions('apply --server-side')}\n{create}\n{apply.replace('apply', 'apply --dry-run=server')}\n{definitions('delete')}")


def test_the_commands_of_the_page_make_a_whole_system_from_the_registry(stranger: Stranger) -> None:
    stranger.follow("install")
    (stranger.folder / "slurm.yaml").write_text(PAGE["slurm.yaml"] + OURS)
    assert stranger.follow("worker").splitlines()[-1] == "cpu-0"
    stranger.kubectl("taint", "node", KWOK, "kwok.x-k8s.io/node-")  # the page's pod tolerates nothing
    stranger.follow("lend")
    wait_for("Slurm has the node", 60, lambda: stranger.are_idle(KWOK), forgiven=(*PASSING, Fail))
    assert re.search(rf"\bR\b.*\b{KWOK}$", stranger.follow("pod"), re.M)
    stranger.follow("exporter")
    pulled = stranger.images("slurm") | stranger.images("slinky")
    assert len(pulled) >= 6, pulled
    for pod, images in pulled.items():
        assert all(image.startswith(f"{REGISTRY}/") for image in images), (pod, images)


def test_the_terminal_tool_of_the_release_tells_every_version(stranger: Stranger) -> None:
    own = PAGE["slinc"] if (stranger.dist / f"slinc-{VERSION}-linux-amd64.tar.gz").exists() else ""
    version, doctor, queue = (line.split("#")[0] for line in PAGE["look"].splitlines())
    known = dict(line.split()[:2] for line in stranger.type(own + version).splitlines())
    assert known["Kubernetes"] == f"v{versions()['KUBERNETES_VERSION']}" and known["Slurm"].startswith(versions()["SLURM_VERSION"])
    assert {known[name] for name in ("operator", "bridge", "exporter")} == {known["slinc"]}
    assert (known["slinc"] == VERSION) == bool(own)
    assert "no jobs wait" in stranger.type(own + queue)
    said = ""

    def finds_nothing_wrong() -> bool:
        """The view of the exporter, which it asks too, is published a moment after the exporter is ready."""
        nonlocal said
        said = stranger.type(f"{own}{doctor} || echo it is not well")
        return "it is not well" not in said
    wait_for("slinc doctor finds nothing wrong", 60, finds_nothing_wrong, every=2, hint=lambda: said)


def test_removing_as_the_page_says_leaves_the_definitions_and_the_claim(stranger: Stranger) -> None:
    stranger.follow("remove")
    assert stranger.kubectl("-n", "slurm", "get", "pvc", "-o", "name").split() == ["persistentvolumeclaim/statesave-slurm-controller-0"]
    wait_for("the pods are gone", 90, lambda: not stranger.api.get("/api/v1/namespaces/slurm/pods")["items"])
    assert stranger.api.exists(DEFINITION.format("controllers"))
