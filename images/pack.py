"""pack.py - writes an OCI image archive, the tar that `ctr images import` takes.

A layer is an uncompressed (or gzip) tar with sorted entries and one fixed time, so the same input
always gives the same bytes and the same digest. An image is the layers of a base archive, if one is
named, and at most one new layer on top. Standard library only; command form in main().
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import shlex
import stat
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

OCI = "application/vnd.oci.image"
WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
OPAQUE_XATTRS = ("trusted.overlay.opaque", "user.overlay.opaque")
CAPABILITY_XATTR = "security.capability"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class PackError(Exception):
    """What was asked for cannot be packed; the text is for the person."""


class Add(NamedTuple):
    """One file or tree of the host to put at `dest`; None keeps what the source has."""

    source: Path
    dest: str
    mode: int | None = None
    owner: tuple[int, int] | None = None


@dataclass
class Config:
    """How the image runs; empty fields are inherited from the base."""

    entrypoint: list[str] = field(default_factory=list)
    cmd: list[str] = field(default_factory=list)
    user: str = ""
    env: list[str] = field(default_factory=list)
    workdir: str = ""
    ports: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    architecture: str = ""  # "": this machine's


class Blob(NamedTuple):
    """A piece of the archive with its descriptor; `diff_id` names a layer's uncompressed bytes."""

    path: Path
    offset: int
    size: int
    digest: str
    media_type: str
    diff_id: str

    def descriptor(self) -> dict[str, Any]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size}


def own_architecture() -> str:
    """Of this machine, in the word that Debian and OCI have for it."""
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def source_date() -> int:
    """The one time that every entry carries."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


# ---- one layer --------------------------------------------------------------------------------


class _Hashing(io.RawIOBase):
    """A file that hashes what passes through it."""

    def __init__(self, out: BinaryIO) -> None:
        self.out, self.hash, self.size = out, hashlib.sha256(), 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.hash.update(data)
        self.size += len(data)
        self.out.write(data)
        return len(data)

    @property
    def digest(self) -> str:
        return "sha256:" + self.hash.hexdigest()


class LayerWriter:
    """Adds trees to one layer tar in a fixed order."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.tar = tar
        self.seen: set[str] = set()
        self.links: dict[tuple[int, int], str] = {}

    def add_tree(self, root: Path) -> None:
        """Everything under `root`, as the top of the image; overlay whiteouts become OCI ones."""
        self._add_children(root, "")

    def _add_children(self, folder: Path, inside: str) -> None:
        for entry in sorted(os.scandir(folder), key=lambda e: os.fsencode(e.name)):
            name = f"{inside}/{entry.name}" if inside else entry.name
            path = Path(entry.path)
            self.add_file(path, name)
            if entry.is_dir(follow_symlinks=False):
                if _is_opaque(path):
                    self._add_empty(f"{name}/{OPAQUE}")
                self._add_children(path, name)

    def add(self, item: Add) -> None:
        """One Add: its parent folders, then the file or the tree itself."""
        dest = item.dest.strip("/")
        if not item.source.exists() and not item.source.is_symlink():
            raise PackError(f"{item.source} does not exist")
        self._add_parents(dest)
        if dest:
            self.add_file(item.source, dest, item.mode, item.owner)
        if item.source.is_dir():
            self._add_children(item.source, dest)

    def add_file(
        self,
        path: Path,
        name: str,
        mode: int | None = None,
        owner: tuple[int, int] | None = None,
    ) -> None:
        """One entry without its children; sockets and device nodes are left out."""
        status = os.lstat(path)
        if _is_whiteout(status):
            folder, _, last = name.rpartition("/")
            self._add_empty(f"{folder}/{WHITEOUT}{last}" if folder else WHITEOUT + last)
            return
        info = self._entry(path, name, status)
        if info is None or name in self.seen:
            return
        info.mode = mode if mode is not None else stat.S_IMODE(status.st_mode)
        info.uid, info.gid = owner if owner is not None else (status.st_uid, status.st_gid)
        self._write(info, path)

    def _entry(self, path: Path, name: str, status: os.stat_result) -> tarfile.TarInfo | None:
        info = tarfile.TarInfo(name)
        kind = stat.S_IFMT(status.st_mode)
        if kind == stat.S_IFDIR:
            info.type = tarfile.DIRTYPE
        elif kind == stat.S_IFLNK:
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
        elif kind == stat.S_IFIFO:
            info.type = tarfile.FIFOTYPE
        elif kind == stat.S_IFREG:
            self._file_or_link(info, status)
        else:
            return None
        return info

    def _file_or_link(self, info: tarfile.TarInfo, status: os.stat_result) -> None:
        inode = (status.st_dev, status.st_ino)
        first = self.links.get(inode) if status.st_nlink > 1 else None
        if first is not None:
            info.type, info.linkname = tarfile.LNKTYPE, first
            return
        info.type, info.size = tarfile.REGTYPE, status.st_size
        self.links[inode] = info.name

    def _write(self, info: tarfile.TarInfo, path: Path | None) -> None:
        self.seen.add(info.name)
        info.mtime = source_date()
        capability = _capability(path) if path and info.isreg() else None
        if capability is not None:
            info.pax_headers = {f"SCHILY.xattr.{CAPABILITY_XATTR}": capability}
        if info.isreg() and info.size and path is not None:
            with open(path, "rb") as data:
                self.tar.addfile(info, data)
        else:
            self.tar.addfile(info)

    def _add_empty(self, name: str) -> None:
        info = tarfile.TarInfo(name)
        info.mode = 0o600
        self._write(info, None)

    def _add_parents(self, dest: str) -> None:
        parts = dest.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            if name in self.seen:
                continue
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            self._write(info, None)


def _is_whiteout(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: Path) -> bool:
    return any(_xattr(folder, name) == b"y" for name in OPAQUE_XATTRS)


def _capability(path: Path) -> str | None:
    value = _xattr(path, CAPABILITY_XATTR)
    return None if value is None else value.decode("utf-8", "surrogateescape")


def _xattr(path: Path, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError:
        return None


def write_layer(out: Path, root: Path | None, adds: list[Add], compress: bool = False) -> Blob:
    """Writes one layer to `out`: the tree `root`, then each Add in the order given."""
    with open(out, "wb") as file:
        stored = _Hashing(file)
        with _maybe_gzip(stored, compress) as plain:
            with tarfile.open(
                fileobj=plain, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8",
                errors="surrogateescape", bufsize=1 << 20,
            ) as tar:
                writer = LayerWriter(tar)
                for item in adds:  # an Add stands before the tree's own entry of that name
                    writer.add(item)
                if root is not None:
                    writer.add_tree(root)
    kind = f"{OCI}.layer.v1.tar" + ("+gzip" if compress else "")
    return Blob(out, 0, stored.size, stored.digest, kind, plain.digest)


@contextmanager
def _maybe_gzip(stored: _Hashing, compress: bool) -> Iterator[_Hashing]:
    if not compress:
        yield stored
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=stored, mtime=0, compresslevel=6) as zipped:
        yield _Hashing(zipped)  # type: ignore[arg-type]


# ---- one image --------------------------------------------------------------------------------


class Base(NamedTuple):
    """The layers and configuration of another archive."""

    layers: list[Blob]
    config: dict[str, Any]


def read_base(archive: Path) -> Base:
    """Finds the layers of `archive` in place, so that they are copied and never unpacked."""
    with tarfile.open(archive) as tar:
        members = {member.name: member for member in tar.getmembers()}

        def load(name: str) -> Any:
            if name not in members:
                raise PackError(f"{archive} is not an OCI archive: no {name}")
            return json.load(tar.extractfile(members[name]))  # type: ignore[arg-type]

        manifest = load(_blob_name(load("index.json")["manifests"][0]["digest"]))
        config = load(_blob_name(manifest["config"]["digest"]))
    layers = []
    for layer, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
        at = members[_blob_name(layer["digest"])]
        layers.append(
            Blob(archive, at.offset_data, at.size, layer["digest"], layer["mediaType"], diff_id)
        )
    return Base(layers, config)


def pack(
    name: str,
    out: Path,
    root: Path | None = None,
    adds: list[Add] | None = None,
    base: Path | None = None,
    config: Config | None = None,
    compress: bool = False,
) -> str:
    """Writes the archive `out` for the image `name` and returns the manifest's digest."""
    below = read_base(base) if base else Base([], {})
    layers = list(below.layers)
    layer_file = out.with_name(out.name + ".layer")
    archive = out.with_name(out.name + ".part")
    try:
        if root is not None or adds:
            layers.append(write_layer(layer_file, root, adds or [], compress))
        digest = _write_archive(archive, name, layers, _image_config(below, layers, config))
        os.replace(archive, out)
    finally:
        layer_file.unlink(missing_ok=True)
        archive.unlink(missing_ok=True)
    return digest


def _image_config(below: Base, layers: list[Blob], config: Config | None) -> dict[str, Any]:
    config = config or Config()
    settings = dict(below.config.get("config", {}))
    _overlay_settings(settings, config)
    return {
        "created": "1970-01-01T00:00:00Z",
        "architecture": config.architecture or own_architecture(),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
    }


def _overlay_settings(settings: dict[str, Any], config: Config) -> None:
    if config.entrypoint:
        settings["Entrypoint"] = config.entrypoint
        settings.pop("Cmd", None)
    if config.cmd:
        settings["Cmd"] = config.cmd
    if config.user:
        settings["User"] = config.user
    if config.workdir:
        settings["WorkingDir"] = config.workdir
    if config.env:
        merged = dict(pair.split("=", 1) for pair in [*settings.get("Env", []), *config.env])
        settings["Env"] = [f"{key}={value}" for key, value in merged.items()]
    if config.labels:
        settings["Labels"] = settings.get("Labels", {}) | config.labels
    for port in config.ports:
        protocol = port if "/" in port else f"{port}/tcp"
        settings.setdefault("ExposedPorts", {})[protocol] = {}


def _write_archive(out: Path, name: str, layers: list[Blob], config: dict[str, Any]) -> str:
    config_bytes = _json(config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{OCI}.manifest.v1+json",
        "config": _descriptor(f"{OCI}.config.v1+json", config_bytes),
        "layers": [layer.descriptor() for layer in layers],
    }
    manifest_bytes = _json(manifest)
    entry = _descriptor(f"{OCI}.manifest.v1+json", manifest_bytes)
    entry["annotations"] = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name,
    }
    entry["platform"] = {"architecture": config["architecture"], "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": f"{OCI}.index.v1+json", "manifests": [entry]}
    with tarfile.open(out, "w", format=tarfile.PAX_FORMAT) as tar:
        for folder in ("blobs", "blobs/sha256"):
            _add_member(tar, folder, None)
        for blob in {layer.digest: layer for layer in layers}.values():
            _copy_member(tar, blob)
        for data in (config_bytes, manifest_bytes):
            _add_member(tar, _blob_name(_digest(data)), data)
        _add_member(tar, "index.json", _json(index))
        _add_member(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
    return str(entry["digest"])


def _copy_member(tar: tarfile.TarFile, blob: Blob) -> None:
    info = _member(_blob_name(blob.digest))
    info.size = blob.size
    with open(blob.path, "rb") as source:
        source.seek(blob.offset)
        tar.addfile(info, source)


def _add_member(tar: tarfile.TarFile, name: str, data: bytes | None) -> None:
    info = _member(name)
    if data is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
    else:
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))


def _member(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mtime, info.mode = source_date(), 0o644
    return info


def _descriptor(media_type: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(data), "size": len(data)}


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _blob_name(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"blobs/{algorithm}/{value}"


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


# ---- the command ------------------------------------------------------------------------------


def parse_words(text: str) -> list[str]:
    """A JSON list, or words as a shell would split them."""
    return [str(word) for word in json.loads(text)] if text.startswith("[") else shlex.split(text)


def parse_add(text: str) -> Add:
    """SRC:/dest[:mode[:uid:gid]]"""
    parts = text.split(":")
    if len(parts) not in (2, 3, 5) or not parts[1].startswith("/"):
        raise PackError(f"--add wants SRC:/dest[:mode[:uid:gid]], not '{text}'")
    mode = int(parts[2], 8) if len(parts) > 2 and parts[2] else None
    owner = (int(parts[3]), int(parts[4])) if len(parts) == 5 else None
    return Add(Path(parts[0]), parts[1], mode, owner)


def main() -> int:
    """The command images/pack."""
    parser = argparse.ArgumentParser(prog="images/pack", description="Pack an OCI image archive.")
    parser.add_argument("--name", required=True, help="image name, as `ctr` will show it")
    parser.add_argument("--out", required=True, type=Path, help="archive to write")
    parser.add_argument("--root", type=Path, help="folder that becomes the top of the image")
    parser.add_argument("--add", action="append", default=[], help="SRC:/dest[:mode[:uid:gid]]")
    parser.add_argument("--base", type=Path, help="archive whose layers lie below")
    parser.add_argument("--entrypoint", default="", help="JSON list or words")
    parser.add_argument("--cmd", default="", help="JSON list or words")
    parser.add_argument("--user", default="", help="uid:gid")
    parser.add_argument("--env", action="append", default=[], help="NAME=value")
    parser.add_argument("--workdir", default="", help="folder to start in")
    parser.add_argument("--port", action="append", default=[], help="port the image listens on")
    parser.add_argument("--gzip", action="store_true", help="compress the new layer")
    args = parser.parse_args()
    config = Config(
        parse_words(args.entrypoint), parse_words(args.cmd), args.user, args.env, args.workdir,
        args.port,
    )
    try:
        adds = [parse_add(text) for text in args.add]
        digest = pack(args.name, args.out, args.root, adds, args.base, config, args.gzip)
    except (PackError, OSError, ValueError) as error:
        print(f"images/pack: {error}", file=sys.stderr)
        return 1
    print(f"{args.name} {digest} {args.out.stat().st_size >> 10} KiB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
