"""make up and make down: from nothing to a working cluster, and back to nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import build, cluster as clusters, components, nodes, parts, pki, real_nodes, supervisor
from .cluster import Cluster
from .common import Fail, cache_dir, locked, need_disk, need_inotify, need_root, retry_briefly, run, say, state_root, step
from .prepare import Preparation


def prepare(wanted: list[str], images: list[str], before_images: Callable[[], None] = lambda: None) -> Preparation:
    """Begins to build what a cluster with these parts and images is made of."""
    return Preparation(build.wanted_programs(wanted), [*parts.images_of(wanted), *images], before_images)


def up(name: str, node_count: int = 0, with_parts: list[str] | None = None, slot: int | None = None, real: int = 0,
       images: list[str] | None = None, ready: Preparation | None = None) -> Cluster:
    """Starts the cluster, or brings a running one to what is asked; safe to call again at any time. images: more of them for every node.
    ready: a preparation that has begun, also of parts that the caller adds later."""
    begun = time.monotonic()
    clusters.check_name(name)
    wanted = parts.in_order(with_parts or [])
    need_root("make up")
    need_disk(cache_dir(), 12 if not build.bin_dir().exists() else 2, "make up")
    need_disk(state_root(), 3, "make up")
    say(f"cluster '{name}'")
    need_inotify(1024)
    ready = ready or prepare(wanted, images or [])
    ready.wait_for_core()
    with _held(name):
        cluster = clusters.find(name)
        if cluster and not cluster.is_alive():
            say("  an earlier run ended without 'make down': clearing it away")
            _clear(cluster)
            cluster = None
        if not cluster:
            cluster = _create(name, slot, node_count)
        ready.wait("kwok")
        if node_count:
            with step(f"{node_count} kwok nodes"):
                nodes.ensure_nodes(cluster, node_count)
        ready.wait("images")
        if real:
            real_nodes.ensure(cluster, real)
        _apply(cluster, wanted, ready)
        if images:
            with step(f"images: {', '.join(images)}"):
                parts.import_images(cluster, images)
        for part in wanted:
            parts.wait(cluster, part)
        ready.wait("helm")
    say(f"up in {time.monotonic() - begun:.1f} s.  export KUBECONFIG={cluster.admin_config}")
    return cluster


def add_parts(cluster: Cluster, names: list[str], ready: Preparation) -> None:
    """To a cluster that runs, as soon as they are built."""
    wanted = parts.in_order(names)
    with _held(cluster.name):
        _apply(cluster, wanted, ready)
        for part in wanted:
            parts.wait(cluster, part)


def _apply(cluster: Cluster, wanted: list[str], ready: Preparation) -> None:
    for part in wanted:
        ready.wait(part)
        parts.apply(cluster, part)


@contextlib.contextmanager
def _held(name: str) -> Iterator[None]:
    """One command at a time on a cluster. Locks are not left behind when there is no cluster."""
    lock = state_root() / f".{name}.lock"
    try:
        with locked(lock, f"cluster '{name}'"):
            yield
    finally:
        if not (state_root() / name).exists():
            lock.unlink(missing_ok=True)
            _remove_empty_root()


def _create(name: str, slot: int | None, node_count: int) -> Cluster:
    with locked(state_root() / ".lock", "the list of clusters"):
        cluster = Cluster(name, clusters.free_slot(slot))
        (cluster.folder / "logs").mkdir(parents=True, exist_ok=True)
        cluster.shared.mkdir(exist_ok=True)
        cluster.shared.chmod(0o1777)
        cluster.save()
    try:
        with step("keys and namespaces"):
            pki.make_all(cluster.folder / "pki", [
                cluster.node_ip, "127.0.0.1", f"{cluster.network}.128.1", "localhost", "kubernetes", "kubernetes.default",
                "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"])
            components.write_credentials(cluster)
            components.make_cgroups(cluster.nodes()[0])
            cluster.pid, cluster.birth = supervisor.launch(cluster.folder, components.NODE, [cache_dir()])
            cluster.save()
            _connect(cluster)
        _start_control_plane(cluster, node_count)
        real_nodes.start(cluster.nodes()[0], list(parts.CORE_IMAGES))
        parts.install(cluster, "dns")
    except BaseException:
        say(f"  could not start; logs are kept in {_keep_logs(cluster)}")
        _clear(cluster)
        raise
    return cluster


def _connect(cluster: Cluster) -> None:
    """A pair of interfaces between the machine and the cluster, and a route to pods and Services."""
    subprocess.run(["ip", "link", "del", cluster.interface], capture_output=True)
    run(["ip", "link", "add", cluster.interface, "type", "veth", "peer", "name", "eth0", "netns", str(cluster.pid)])
    run(["ip", "address", "add", f"{cluster.host_ip}/30", "dev", cluster.interface])
    run(["ip", "link", "set", cluster.interface, "up"])
    cluster.inside(["ip", "address", "add", f"{cluster.node_ip}/30", "dev", "eth0"])
    cluster.inside(["ip", "link", "set", "eth0", "up"])
    cluster.inside(["ip", "route", "add", "default", "via", cluster.host_ip])
    run(["ip", "route", "add", f"{cluster.network}.0.0/16", "via", cluster.node_ip])


def _start_control_plane(cluster: Cluster, node_count: int) -> None:
    with step("etcd and API server"):
        components.start_etcd(cluster)
        components.start_containerd(cluster.nodes()[0])
        components.start_apiserver(cluster)
        components.wait_apiserver(cluster)
    components.start_controllers(cluster, watch_nodes=node_count <= nodes.HEARTBEATS_UP_TO)
    components.start_scheduler(cluster)


def _keep_logs(cluster: Cluster) -> Path:
    kept = state_root() / f"{cluster.name}.failed-logs"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(cluster.folder / "logs", kept, symlinks=True)
    return kept


def down(name: str) -> None:
    """Ends the cluster and removes all it left; quiet when there is none."""
    need_root("make down")
    clusters.check_name(name)
    with _held(name):
        try:
            cluster = clusters.find(name)
        except Fail:
            cluster = Cluster(name, slot=-1)
        if not cluster:
            say(f"no cluster '{name}'")
        else:
            begun = time.monotonic()
            _clear(cluster)
            say(f"cluster '{name}' is gone ({time.monotonic() - begun:.1f} s)")
        shutil.rmtree(state_root() / f"{name}.failed-logs", ignore_errors=True)


def _clear(cluster: Cluster) -> None:
    clusters.end_process_one(cluster, f"cluster '{cluster.name}'")
    subprocess.run(["ip", "link", "del", cluster.interface], capture_output=True)
    retry_briefly(lambda: components.remove_cgroups(cluster.nodes()[0]))
    retry_briefly(lambda: shutil.rmtree(cluster.folder))


def _remove_empty_root() -> None:
    lock = state_root() / ".lock"
    with locked(lock, "the list of clusters"):  # another command may be about to add its cluster to the list
        if not clusters.all_clusters():
            lock.unlink(missing_ok=True)
            try:
                os.rmdir(state_root())
            except OSError:
                pass
