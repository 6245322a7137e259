"""Real nodes: a kubelet, containerd and kube-proxy each. The first comes with the cluster, a second one when it is asked for."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from . import cluster as clusters, components, parts, supervisor
from .cluster import MAX_REAL, Cluster, Node
from .common import Fail, cache_dir, retry_briefly, run, step, wait_for
from .kube import ApiError


def start(node: Node, images: list[str]) -> None:
    """The programs of a node whose containerd runs already."""
    with step(f"{node.name}: containerd and images"):
        components.wait_containerd(node)
        parts.import_to_node(node, images)
    with step(f"{node.name}: kubelet, node Ready"):
        components.start_kubelet(node)
        components.wait_node(node)
        components.start_proxy(node)  # it ends itself when its node comes late


def ensure(cluster: Cluster, count: int) -> None:
    """Brings the number of real nodes to `count`."""
    if not 1 <= count <= MAX_REAL:
        raise Fail(f"REAL={count} is not between 1 and {MAX_REAL}")
    if cluster.second_pid and (count == 1 or not Node(cluster, 1).is_alive()):
        remove_second(cluster)
    if count == 2 and not cluster.second_pid:
        add_second(cluster, [*parts.CORE_IMAGES, *parts.images_of(cluster.parts)])


@contextlib.contextmanager
def second_node(cluster: Cluster, images: list[str]) -> Iterator[Node]:
    """A second real node inside the block. Pods find only these images, and those of every node, there."""
    add_second(cluster, [*parts.CORE_IMAGES, *images])
    try:
        yield cluster.nodes()[1]
    finally:
        remove_second(cluster)


def add_second(cluster: Cluster, images: list[str]) -> None:
    node = Node(cluster, 1)
    (cluster.folder / "logs" / node.name).mkdir(exist_ok=True)
    node.folder.mkdir(exist_ok=True)
    (node.folder / "logs").symlink_to(f"../logs/{node.name}")  # they outlive the node
    components.make_cgroups(node)
    cluster.second_pid, cluster.second_birth = supervisor.launch(node.folder, node.name, [cluster.folder, cache_dir()], within=cluster.pid)
    cluster.save()
    try:
        _connect(node)
        components.start_containerd(node)
        start(node, images)
    except BaseException:
        remove_second(cluster)
        raise


def _connect(node: Node) -> None:
    """A pair of interfaces to the first node, which routes between this one, its own pods and the machine."""
    def ip(place: Node, *words: object) -> None:
        run(["nsenter", "-t", str(place.pid), "-n", "--", "ip", *map(str, words)])  # only the network: pids are the host's

    first = node.cluster.nodes()[0]
    ip(first, "link", "add", node.name, "type", "veth", "peer", "name", "eth0", "netns", node.pid)
    for place, address, interface in ((first, node.gateway, node.name), (node, node.ip, "eth0")):
        ip(place, "address", "add", f"{address}/30", "dev", interface)
        ip(place, "link", "set", interface, "up")
    ip(node, "route", "add", "default", "via", node.gateway)
    ip(first, "route", "add", node.pod_range, "via", node.ip)


def remove_second(cluster: Cluster) -> None:
    """Its Node object and its pods first, so that nobody waits for it."""
    node = Node(cluster, 1)
    try:
        api = cluster.api()
        with contextlib.suppress(ApiError):
            api.delete(f"/api/v1/nodes/{node.name}")
        here = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node.name}"
        for pod in api.get(here)["items"]:
            about = pod["metadata"]
            with contextlib.suppress(ApiError):
                api.delete(f"/api/v1/namespaces/{about['namespace']}/pods/{about['name']}", {"gracePeriodSeconds": 0})
        wait_for(f"no pod is on {node.name}", 10, lambda: not api.get(here)["items"])
    finally:
        clusters.end_process_one(node, node.name)
        cluster.second_pid, cluster.second_birth = 0, ""
        cluster.save()
        retry_briefly(lambda: components.remove_cgroups(node))
        retry_briefly(lambda: shutil.rmtree(node.folder))
