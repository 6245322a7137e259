"""The packer: what goes in comes out, and the same input gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pack
import pytest
from container import read_config

root_only = pytest.mark.skipif(os.getuid() != 0, reason="needs root for owners and devices")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_bytes(b"tool")
    (root / "bin" / "tool").chmod(0o4755)
    os.link(root / "bin" / "tool", root / "bin" / "twin")
    (root / "bin" / "link").symlink_to("tool")
    (root / "empty").mkdir(mode=0o700)
    (root / "emptyfile").touch()
    os.mkfifo(root / "fifo")
    (root / "ünïcode").write_text("x")
    return root


def layer_of(archive: Path, number: int = -1) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as tar:
        digest = read_config(archive)[0][number]
        blob = tar.extractfile("blobs/" + digest.replace(":", "/"))
        assert blob is not None
        data = blob.read()
    with tarfile.open(fileobj=io.BytesIO(data)) as layer:
        return {member.name: member for member in layer.getmembers()}


def test_kinds_modes_and_links_are_kept(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.tar"
    pack.pack("n:1", out, tree)
    layer = layer_of(out)
    assert layer["bin/tool"].isreg() and layer["bin/tool"].mode == 0o4755
    assert layer["bin/twin"].islnk() and layer["bin/twin"].linkname == "bin/tool"
    assert layer["bin/link"].issym() and layer["bin/link"].linkname == "tool"
    assert layer["empty"].isdir() and layer["empty"].mode == 0o700
    assert layer["fifo"].isfifo() and "ünïcode" in layer
    assert layer["emptyfile"].size == 0
    assert {member.mtime for member in layer.values()} == {0}
    assert {member.uname for member in layer.values()} == {""}


def test_every_blob_has_the_name_of_its_hash_and_the_index_its_name(
    tree: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a.tar"
    digest = pack.pack("localhost/slinc/x:1", out, tree, compress=True)
    with tarfile.open(out) as tar:
        for member in tar.getmembers():
            if member.isreg() and member.name.startswith("blobs/"):
                data = tar.extractfile(member).read()  # type: ignore[union-attr]
                assert hashlib.sha256(data).hexdigest() == member.name.rpartition("/")[2]
        entry = json.load(tar.extractfile("index.json"))["manifests"][0]  # type: ignore[arg-type]
        assert "oci-layout" in tar.getnames()
    assert entry["digest"] == digest
    assert set(entry["annotations"].values()) == {"localhost/slinc/x:1"}


@pytest.mark.parametrize("compress", [False, True])
def test_the_same_input_gives_the_same_bytes(tree: Path, tmp_path: Path, compress: bool) -> None:
    one, two = tmp_path / "1.tar", tmp_path / "2.tar"
    pack.pack("n:1", one, tree, compress=compress)
    os.utime(tree / "bin" / "tool", (1, 1))
    pack.pack("n:1", two, tree, compress=compress)
    assert one.read_bytes() == two.read_bytes()


def test_another_content_gives_another_digest(tree: Path, tmp_path: Path) -> None:
    before = pack.pack("n:1", tmp_path / "1.tar", tree)
    (tree / "emptyfile").write_text("x")
    assert pack.pack("n:1", tmp_path / "2.tar", tree) != before


def test_a_base_lends_its_layers_and_settings(tree: Path, tmp_path: Path) -> None:
    base, out = tmp_path / "base.tar", tmp_path / "top.tar"
    pack.pack("b:1", base, tree, config=pack.Config(["/a"], ["x"], "1:1", ["A=1", "B=1"]))
    added = [pack.Add(tree / "emptyfile", "/opt/deep/file", 0o640, (401, 402))]
    config = pack.Config(entrypoint=["/b"], env=["B=2"], ports=["6817", "53/udp"], workdir="/opt")
    pack.pack("t:1", out, None, added, base, config, compress=True)
    layers, found = read_config(out)
    assert layers[0] == read_config(base)[0][0] and len(layers) == 2
    assert len(found["rootfs"]["diff_ids"]) == 2
    assert found["config"] == {
        "Entrypoint": ["/b"], "User": "1:1", "Env": ["A=1", "B=2"], "WorkingDir": "/opt",
        "ExposedPorts": {"6817/tcp": {}, "53/udp": {}},
    }  # fmt: skip
    top = layer_of(out)
    assert list(top) == ["opt", "opt/deep", "opt/deep/file"]
    file = top["opt/deep/file"]
    assert (file.mode, file.uid, file.gid) == (0o640, 401, 402)


def test_a_diff_id_is_the_hash_of_the_uncompressed_layer(tree: Path, tmp_path: Path) -> None:
    plain, zipped = tmp_path / "p.tar", tmp_path / "z.tar"
    pack.pack("n:1", plain, tree)
    pack.pack("n:1", zipped, tree, compress=True)
    assert read_config(plain)[1]["rootfs"] == read_config(zipped)[1]["rootfs"]
    assert read_config(plain)[0] == read_config(plain)[1]["rootfs"]["diff_ids"]


@root_only
def test_devices_and_sockets_are_left_out_and_overlay_marks_are_translated(
    tree: Path, tmp_path: Path
) -> None:
    os.mknod(tree / "null", 0o666 | 0o020000, os.makedev(1, 3))
    os.mknod(tree / "bin" / "gone", 0o020000, os.makedev(0, 0))
    os.mknod(tree / "gone", 0o020000, os.makedev(0, 0))
    os.setxattr(tree / "empty", "trusted.overlay.opaque", b"y")
    out = tmp_path / "a.tar"
    pack.pack("n:1", out, tree)
    layer = layer_of(out)
    assert "null" not in layer and "gone" not in layer and "bin/gone" not in layer
    assert {".wh.gone", "bin/.wh.gone", "empty/.wh..wh..opq"} <= set(layer)


@root_only
def test_owners_and_file_capabilities_are_kept(tree: Path, tmp_path: Path) -> None:
    capability = bytes.fromhex("0100000200200000000000000000000000000000")
    os.chown(tree / "empty", 401, 402)
    os.setxattr(tree / "emptyfile", "security.capability", capability)
    out = tmp_path / "a.tar"
    pack.pack("n:1", out, tree)
    layer = layer_of(out)
    assert (layer["empty"].uid, layer["empty"].gid) == (401, 402)
    value = layer["emptyfile"].pax_headers["SCHILY.xattr.security.capability"]
    assert value.encode("utf-8", "surrogateescape") == capability


def test_a_failure_leaves_nothing_behind(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(pack.PackError, match="no-such-file"):
        pack.pack("n:1", tmp_path / "a.tar", tree, [pack.Add(Path("no-such-file"), "/x")])
    assert list(tmp_path.iterdir()) == [tree]


def test_a_base_that_is_no_archive_is_named(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tar"
    with tarfile.open(other, "w") as tar:
        tar.add(tree, "tree")
    with pytest.raises(pack.PackError, match="not an OCI archive"):
        pack.pack("n:1", tmp_path / "a.tar", tree, base=other)


@pytest.mark.parametrize("text", ["a", "a:b", "a:/b:644:1", "a:/b:644:1:2:3"])
def test_an_add_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(pack.PackError, match="SRC:/dest"):
        pack.parse_add(text)


def test_the_command_packs_an_image(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.tar"
    command = [
        str(Path(pack.__file__).with_name("pack")), "--name", "localhost/slinc/x:1", "--out", out,
        "--add", f"{tree}/bin/tool:/tool:755:0:0", "--entrypoint", "/tool --now 'a b'",
        "--cmd", '["x y", "z"]', "--user", "401:401", "--env", "K=a=b", "--port", "6817",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("localhost/slinc/x:1 sha256:")
    config = read_config(out)[1]["config"]
    assert config["Entrypoint"] == ["/tool", "--now", "a b"]
    assert config["Cmd"] == ["x y", "z"] and config["Env"] == ["K=a=b"]
