"""index.py - one OCI archive for an image and all its architectures, with compressed layers.

A registry keeps these bytes as they are, so the digest of the index is known before anything is pushed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

OCI = "application/vnd.oci.image"


class Blobs:
    """Blobs by digest, in a folder; a layer that several images share is compressed once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layers: dict[str, dict[str, Any]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, digest: str) -> Path:
        return self.folder / digest.removeprefix("sha256:")

    def add(self, data: bytes, kind: str) -> dict[str, Any]:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.path(digest).write_bytes(data)
        return {"mediaType": kind, "digest": digest, "size": len(data)}

    def add_layer(self, plain: str, content: Any) -> dict[str, Any]:
        """`plain` is the digest of the layer as it is in the archive, uncompressed."""
        if plain not in self.layers:
            part = self.folder / "part"
            with open(part, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as zipped:
                while piece := content.read(1 << 20):
                    zipped.write(piece)
            with open(part, "rb") as file:
                digest = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
            self.layers[plain] = {"mediaType": f"{OCI}.layer.v1.tar+gzip", "digest": digest, "size": part.stat().st_size}
            part.rename(self.path(digest))
        return self.layers[plain]


class Combined(NamedTuple):
    """What came out: the digest that charts name, and what the archive weighs."""

    name: str  # without a registry: slurmd
    tag: str
    digest: str
    archive: Path


def combine(out: Path, name: str, tag: str, archives: dict[str, Path], blobs: Blobs) -> Combined:
    """Writes `out`: the archives of all architectures behind one index, as skopeo and ctr read it."""
    used: list[dict[str, Any]] = []
    manifests = []
    for arch, archive in sorted(archives.items()):
        manifest = _compress(archive, blobs, used)
        manifests.append(manifest | {"platform": {"architecture": arch, "os": "linux"}})
    index = _put(blobs, used, {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": manifests}, f"{OCI}.index.v1+json")
    index = index | {"annotations": {"org.opencontainers.image.ref.name": tag}}
    _write(out, blobs, used, {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [index]})
    return Combined(name, tag, index["digest"], out)


def _compress(archive: Path, blobs: Blobs, used: list[dict[str, Any]]) -> dict[str, Any]:
    """The manifest of one image, again with compressed layers; its descriptor."""
    with tarfile.open(archive) as tar:
        manifest = _load(tar, _load(tar, "index.json")["manifests"][0]["digest"])
        config = _put(blobs, used, _load(tar, manifest["config"]["digest"]), manifest["config"]["mediaType"])
        layers = [blobs.add_layer(layer["digest"], tar.extractfile(_member(layer["digest"]))) for layer in manifest["layers"]]
    used += layers
    return _put(blobs, used, manifest | {"config": config, "layers": layers}, f"{OCI}.manifest.v1+json")


def _member(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/") if digest.startswith("sha256:") else digest


def _load(tar: tarfile.TarFile, name: str) -> Any:
    return json.load(tar.extractfile(_member(name)))  # type: ignore[arg-type]


def _put(blobs: Blobs, used: list[dict[str, Any]], value: Any, kind: str) -> dict[str, Any]:
    made = blobs.add(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), kind)
    used.append(made)
    return made


def _write(out: Path, blobs: Blobs, used: list[dict[str, Any]], top: Any) -> None:
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in (("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", top)):
            content = json.dumps(data, sort_keys=True).encode()
            tar.addfile(_entry(name, len(content)), io.BytesIO(content))
        for digest in sorted({blob["digest"] for blob in used}):
            with open(blobs.path(digest), "rb") as content:
                tar.addfile(_entry(_member(digest), blobs.path(digest).stat().st_size), content)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry


def platforms(archive: Path) -> Iterator[tuple[str, str]]:
    """The architectures of a combined archive, each with the digest of its manifest."""
    with tarfile.open(archive) as tar:
        index = _load(tar, _load(tar, "index.json")["manifests"][0]["digest"])
        for manifest in index["manifests"]:
            yield manifest["platform"]["architecture"], manifest["digest"]


def tag_of(archive: Path) -> str:
    """The tag of the image in an archive of one architecture."""
    with tarfile.open(archive) as tar:
        name = _load(tar, "index.json")["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
    return str(name.rpartition(":")[2])
