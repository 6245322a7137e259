"""Optional parts of a cluster, switched on by name (WITH=...): real pods from locally packed images.

A part is a folder dev/parts/<name> with part.toml (images, secrets, what to wait for) and manifests (*.yaml), or with a
kustomization.yaml that patches the manifests a pinned Go module carries, or with both. In all @NAME@ stands for a fact of the cluster: see
facts(). A part that says `before` another changes that one by its own `facts`, and brings it with it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from . import components, pki
from .build import bin_dir, module_dir
from .cluster import Cluster, Node
from .common import DEV, REPO, Fail, cache_dir, run, step, versions, wait_for
from .kube import ApiError, b64

PARTS = DEV / "parts"
CORE_IMAGES = ("pause", "coredns", "busybox")


def known_parts() -> list[str]:
    return sorted(path.parent.name for path in PARTS.glob("*/part.toml") if path.parent.name != "dns")


def _about(name: str) -> dict:
    return tomllib.loads((PARTS / name / "part.toml").read_text())


def in_order(names: list[str]) -> list[str]:
    """As they are installed: the parts that are asked for, and after them those that one of them says it comes before."""
    for name in names:
        if name not in known_parts():
            raise Fail(f"WITH={name}: there is no such part; known: {', '.join(known_parts())}")
    later = [_about(name)["before"] for name in names if "before" in _about(name)]
    return list(dict.fromkeys([name for name in names if name not in later] + later))


def facts(cluster: Cluster) -> dict[str, str]:
    """Every pinned version is one too."""
    pin = versions()
    return pin | {
        "DNS_IP": cluster.dns_ip, "SLURMCTLD_IP": cluster.slurmctld_ip, "NODE": components.NODE, "NODE_IP": cluster.node_ip,
        "POD_RANGE": cluster.pod_range, "SLURM_TAG": f"{pin['SLURM_VERSION']}-debian", "CLUSTER": cluster.name,
        "CA_BUNDLE": b64((cluster.folder / "pki/ca.crt").read_bytes()),
        "CGROUP": "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1"}


def _facts_for(cluster: Cluster, name: str, part: dict) -> dict[str, str]:
    """Those of the cluster, those of the part, and what parts that came before it say instead."""
    before = [_about(other) for other in cluster.parts if _about(other).get("before") == name]
    return facts(cluster) | {fact: value for one in [part, *before] for fact, value in one.get("facts", {}).items()}


def fill_in(text: str, known: dict[str, str]) -> str:
    def fact(found: re.Match) -> str:
        if found[1] not in known:
            raise Fail(f"a manifest asks for the unknown fact @{found[1]}@")
        return known[found[1]]
    return re.sub(r"@([A-Z_]+)@", fact, text)


# --- Images ---------------------------------------------------------------------------------------------------------


def _pack(name: str, out: Path, *argv: object) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    scratch = out.with_suffix(f".{os.getpid()}.part")
    run([sys.executable, REPO / "images/pack", "--name", name, "--out", scratch, *argv], what=f"packing {name}")
    scratch.replace(out)


def _program_image(name: str) -> Path:
    """One static program of the cache and nothing else."""
    version = versions()[f"{name.upper()}_VERSION"]
    out = cache_dir() / f"images/{name}-{version}.tar"
    if not out.exists():
        _pack(f"localhost/slinc/{name}:{version}", out, "--add", f"{(bin_dir() / name).resolve()}:/{name}:755",
              "--entrypoint", f"/{name}", "--user", "65532:65532")
    return out


def _busybox_image() -> Path:
    """A shell and small tools, for test pods."""
    out = cache_dir() / "images/busybox-1.tar"
    if not out.exists():
        with tempfile.TemporaryDirectory() as root:
            (Path(root) / "bin").mkdir()
            shutil.copy("/bin/busybox", f"{root}/bin/busybox")
            for tool in run(["/bin/busybox", "--list"]).split():
                if tool != "busybox":
                    (Path(root) / "bin" / tool).symlink_to("busybox")
            _pack("localhost/slinc/busybox:1", out, "--root", root, "--env", "PATH=/bin", "--cmd", "/bin/sh")
    return out


PACKED_HERE = {  # the others have recipes in images/
    **{name: lambda name=name: _program_image(name) for name in ("coredns", "certmanager", "jobset", "lws")}, "busybox": _busybox_image}


def image_archive(name: str) -> Path:
    if name in PACKED_HERE:
        return PACKED_HERE[name]()
    return Path(run([sys.executable, REPO / "images/build", "--archive", name], what=f"image {name}").strip())


def ensure_images(names: list[str]) -> None:
    """Builds those that are not in the cache, with progress."""
    recipes = [name for name in names if name not in PACKED_HERE]
    if recipes and subprocess.run([sys.executable, str(REPO / "images/build"), *recipes]).returncode != 0:
        raise Fail(f"the images {', '.join(recipes)} could not be built")


def import_images(cluster: Cluster, names: list[str]) -> None:
    """Into every real node."""
    for node in cluster.nodes():
        import_to_node(node, names)


def import_to_node(node: Node, names: list[str]) -> None:
    present = components.ctr(node, "images", "ls", "-q").split()
    for name in names:
        if not any(f"/{name}:" in reference for reference in present):
            components.import_image(node, image_archive(name))


# --- Installing -----------------------------------------------------------------------------------------------------


def kubectl(cluster: Cluster, *argv: object, **options) -> str:
    return run([bin_dir() / "kubectl", f"--kubeconfig={cluster.admin_config}", *argv], **options)


def _make_secret(cluster: Cluster, namespace: str, name: str, keys: dict[str, int]) -> None:
    """Random bytes under each key, made once."""
    api = cluster.api()
    if api.exists(f"/api/v1/namespaces/{namespace}/secrets/{name}"):
        return
    api.post(f"/api/v1/namespaces/{namespace}/secrets",
             {"metadata": {"name": name}, "data": {key: b64(secrets.token_bytes(size)) for key, size in keys.items()}})


def _make_certificate(cluster: Cluster, namespace: str, name: str, host: str) -> None:
    """A server's key and certificate, signed by the cluster's CA, made once."""
    if cluster.api().exists(f"/api/v1/namespaces/{namespace}/secrets/{name}"):
        return
    folder = cluster.folder / "pki"
    pki.make_cert(folder, name, f"/CN={host}", names=[host])
    data = {f"tls.{part}": b64((folder / f"{name}.{part}").read_bytes()) for part in ("crt", "key")}
    cluster.api().post(f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}, "data": data})


def _make_namespace(cluster: Cluster, name: str) -> None:
    if not cluster.api().exists(f"/api/v1/namespaces/{name}"):
        cluster.api().post("/api/v1/namespaces", {"metadata": {"name": name}})


def _is_ready(cluster: Cluster, resource: str) -> bool:
    """resource is a path such as apis/apps/v1/namespaces/x/deployments/y; ready means all replicas are, and none is as it was before."""
    try:
        found = cluster.api().get(f"/{resource}")
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    status, wanted = found.get("status", {}), found["spec"].get("replicas", 1)
    ready, new, all_pods = (status.get(key, 0) for key in ("readyReplicas", "updatedReplicas", "replicas"))
    return status.get("observedGeneration") == found["metadata"]["generation"] and ready >= wanted and new == all_pods >= wanted


def _is_accepted(cluster: Cluster, collection: str, body: dict) -> bool:
    """Whether the object could be made now, which a dry run asks the webhooks too, and whether clients can find that out: the list of what a
    server has may be some seconds behind what it takes."""
    try:
        cluster.api().post(f"/{collection}?dryRun=All", body)
        listed = cluster.api().get(f"/{collection.split('/namespaces/')[0]}")["resources"]
        return any(one["name"] == collection.rsplit("/", 1)[1] for one in listed)
    except ApiError as error:
        if error.status in (404, 500):  # the kind is not served yet; the webhook does not answer yet
            return False
        raise


def _apply_module(cluster: Cluster, name: str, part: dict) -> None:
    """What a Go module carries: plain files as they are, and what the part's kustomization.yaml makes of its manifests.
    Applied by the server, since the client's way notes the whole object in an annotation, and these are too large."""
    module = module_dir(part["module"], versions()[part["pin"]])
    files = [word for file in part.get("files", []) for word in ("-f", module / file)]
    if files:
        kubectl(cluster, "apply", "--server-side", "--force-conflicts", *files, what=f"{name}: files of {part['module']}")
    if (PARTS / name / "kustomization.yaml").exists():
        kept = (cluster.folder / "parts" / name).resolve()
        kept.mkdir(parents=True, exist_ok=True)
        known = facts(cluster) | {"MODULE": os.path.relpath(module, kept)}  # kustomize takes no absolute path
        (kept / "kustomization.yaml").write_text(fill_in((PARTS / name / "kustomization.yaml").read_text(), known))
        kubectl(cluster, "apply", "--server-side", "--force-conflicts", "-k", kept, what=f"{name}: kustomization.yaml")


def _apply(cluster: Cluster, name: str, part: dict) -> None:
    if "module" in part:
        _apply_module(cluster, name, part)
    known = _facts_for(cluster, name, part)
    for manifest in sorted(set((PARTS / name).glob("*.yaml")) - {PARTS / name / "kustomization.yaml"}):
        kubectl(cluster, "apply", "-f", "-", input=fill_in(manifest.read_text(), known), what=f"{name}: {manifest.name}")


def _wait(cluster: Cluster, name: str, part: dict) -> None:
    seconds, hint = part.get("seconds", 90), f"see 'dev/cluster kubectl --name {cluster.name} get pods -A'"
    for resource in part.get("wait", []):
        wait_for(f"{name}: {resource.rsplit('/', 1)[1]} is ready", seconds, lambda: _is_ready(cluster, resource), every=0.25,
                 hint=lambda: hint)
    for collection, body in part.get("accepts", {}).items():
        wait_for(f"{name}: {collection.rsplit('/', 1)[1]} are accepted", seconds, lambda: _is_accepted(cluster, collection, body),
                 hint=lambda: hint)


def install(cluster: Cluster, name: str) -> None:
    """Applies it and waits until it works."""
    apply(cluster, name)
    wait(cluster, name)


def apply(cluster: Cluster, name: str) -> None:
    """Imports the part's images and applies its manifests. One that comes before another must work before the other is applied."""
    part = _about(name)
    with step(f"{name}: images and manifests"):
        import_images(cluster, part.get("images", []))
        if "namespace" in part:
            _make_namespace(cluster, part["namespace"])
        for secret, keys in part.get("secrets", {}).items():
            _make_secret(cluster, part["namespace"], secret, keys)
        for secret, host in part.get("certificates", {}).items():
            _make_certificate(cluster, part["namespace"], secret, host)
        _apply(cluster, name, part)
    if "before" in part:
        wait(cluster, name)
    if name not in cluster.parts and name != "dns":
        cluster.parts.append(name)
        cluster.save()


def wait(cluster: Cluster, name: str) -> None:
    with step(f"{name}: running"):
        _wait(cluster, name, _about(name))


def images_of(names: list[str]) -> list[str]:
    needed = [image for name in names for image in _about(name).get("images", [])]
    return list(dict.fromkeys(needed))
