"""Releases: what is decided without building one. The whole is made and tried by `tests/run release`."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "release"), str(REPO / "dev"), str(REPO / "images")]

import archive  # noqa: E402
import charts  # noqa: E402
import index  # noqa: E402
import papers  # noqa: E402
import portable  # noqa: E402
import release  # noqa: E402
import source  # noqa: E402
from slincdev.common import Fail, run  # noqa: E402


@pytest.mark.parametrize("version", ["1.0", "v1.0.0", "1.0.0-beta", "01.0.0", "1.0.0-rc.0", ""])
def test_a_version_that_is_none_is_refused(version: str) -> None:
    with pytest.raises(Fail, match="a version is 1.2.3"):
        source.check_version(version)


def test_the_version_goes_where_one_is_named_and_nowhere_else(tmp_path: Path) -> None:
    shutil.copy(REPO / "meson.build", tmp_path)
    shutil.copytree(REPO / "charts", tmp_path / "charts", symlinks=True)
    source.set_version(tmp_path, "7.8.9-rc.1")
    changed = subprocess.run(["diff", "-r", "-U0", REPO / "charts", tmp_path / "charts"], text=True, capture_output=True, check=False).stdout
    lines = [line for line in changed.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert lines and all("7.8.9-rc.1" in line for line in lines)
    assert "version: '7.8.9-rc.1'" in (tmp_path / "meson.build").read_text()
    assert 'appVersion: "26.05"' in (tmp_path / "charts/slurm/Chart.yaml").read_text()  # Slurm's own
    for chart in tmp_path.glob("charts/*/Chart.yaml"):
        assert "0.1.0" not in chart.read_text()


def test_an_archive_is_the_same_bytes_whenever_and_whoever_makes_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        tree = tmp_path / name
        (tree / "bin").mkdir(parents=True)
        (tree / "bin/program").write_text("#!/bin/sh\n")
        (tree / "bin/program").chmod(0o755 if name == "one" else 0o775)
        (tree / "bin/link").symlink_to("program")
        os.utime(tree / "bin/program", (5, 5 if name == "one" else 6))
        archive.write(tmp_path / f"{name}.tgz", tree, "slinc", 1000)
    assert (tmp_path / "one.tgz").read_bytes() == (tmp_path / "two.tgz").read_bytes()
    with tarfile.open(tmp_path / "one.tgz") as tar:
        entries = {entry.name: entry for entry in tar}
    assert list(entries) == ["slinc", "slinc/bin", "slinc/bin/link", "slinc/bin/program"]
    assert (entries["slinc/bin/program"].mode, entries["slinc/bin/program"].mtime, entries["slinc/bin/link"].linkname) == (0o755, 1000, "program")


def image(path: Path, arch: str, layer: bytes) -> Path:
    """An archive as images/pack writes it."""
    source_file = path.with_suffix(".txt")
    source_file.write_bytes(layer)
    run([REPO / "images/pack", "--name", "registry.example/slinc/thing:1.0", "--out", path, "--add", f"{source_file}:/{arch}"])
    return path


def test_an_image_of_two_architectures_has_one_index_and_compressed_layers(tmp_path: Path) -> None:
    archives = {arch: image(tmp_path / f"{arch}.tar", arch, arch.encode() * 9000) for arch in ("amd64", "arm64")}
    made = [index.combine(tmp_path / f"{n}.tar", "thing", index.tag_of(archives["amd64"]), archives, index.Blobs(tmp_path / f"blobs{n}")) for n in (1, 2)]
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes() and made[0].tag == "1.0"
    assert [arch for arch, _ in index.platforms(tmp_path / "1.tar")] == ["amd64", "arm64"]
    with tarfile.open(tmp_path / "1.tar") as tar:
        top = json.load(tar.extractfile("index.json"))["manifests"][0]
        assert top["digest"] == made[0].digest and top["mediaType"].endswith("image.index.v1+json")
        for _, digest in index.platforms(tmp_path / "1.tar"):
            manifest = json.load(tar.extractfile("blobs/" + digest.replace(":", "/")))
            [layer] = manifest["layers"]
            assert layer["mediaType"].endswith("tar+gzip")
            content = tar.extractfile("blobs/" + layer["digest"].replace(":", "/")).read()
            with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as inner:
                assert set(inner.getnames()) & {"amd64", "arm64"}


def test_charts_of_a_release_name_its_registry_and_digests(tmp_path: Path) -> None:
    images = [index.Combined(name, "26.05-debian", f"sha256:{number:064x}", tmp_path) for number, name in enumerate(release.published(REPO))]
    charts.package(tmp_path, REPO, tmp_path / "work", "registry.example/slinc", images, "1.0.0", 1000)
    charts.render(tmp_path, sorted((tmp_path / "charts").glob("*.tgz")), "1.0.0")
    shown = "".join(path.read_text() for path in (tmp_path / "manifests").iterdir())
    digests = {image.name: image.digest for image in images}
    assert f"image: registry.example/slinc/slinc@{digests['slinc']}" in shown and "localhost/slinc" not in shown
    text = run([shutil.which("helm") or charts.bin_dir() / "helm", "template", "s", tmp_path / "charts/slurm-1.0.0.tgz", "--kube-version=1.36.3",
                "--set=nodesets.cpu.replicas=1", "--set=nodesets.own.slurmd.image.tag=mine", "--set=accounting.enabled=true",
                "--set=accounting.storageConfig.host=db,accounting.storageConfig.passwordKeyRef.name=a,accounting.storageConfig.passwordKeyRef.key=b"])
    for name in ("slurmctld", "slurmd", "slurmrestd", "slurmdbd"):
        assert f"registry.example/slinc/{name}@{digests[name]}" in text
    assert "registry.example/slinc/slurmd:mine" in text  # what values say goes before it


def test_every_recipe_becomes_an_image_but_for_those_of_the_development_cluster() -> None:
    recipes = {path.parent.name for path in REPO.glob("images/*/recipe")}
    assert recipes - set(release.published(REPO)) == {"base", "pause", "mariadb"}


def test_the_change_log_must_tell_of_the_release() -> None:
    assert papers.notes(REPO / "CHANGELOG.md", "1.0.0-rc.1").startswith("# Slinc 1.0.0-rc.1\n")
    with pytest.raises(Fail, match="no section '## 9.9.9'"):
        papers.notes(REPO / "CHANGELOG.md", "9.9.9")


def test_a_library_that_needs_a_newer_glibc_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("#include <stdlib.h>\nunsigned f(void); unsigned f(void) { return arc4random(); }\n")  # of glibc 2.36
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/slinc").mkdir(parents=True)
    run(["gcc", "-D_DEFAULT_SOURCE", "-shared", "-fPIC", "-o", tmp_path / "lib/slinc/liba.so.1", tmp_path / "a.c"])
    shutil.copy("/bin/true", tmp_path / "bin/slinc")
    with pytest.raises(Fail, match=r"liba.so.1 needs glibc 2\.3[6-9]; releases promise 2.34"):
        portable.check_symbols(tmp_path)


def test_other_packages_than_those_of_the_lock_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "LOCK", tmp_path / "lock")
    (tmp_path / "lock").write_text("build-amd64 gcc:amd64=1\nbuild-arm64 gcc:amd64=1\n")
    wanted = release.Wanted("1.0.0", "r", "c", 0, ["amd64"], "", "", False)
    release.check_lock(wanted, "build-amd64 gcc:amd64=1\n")
    with pytest.raises(Fail, match=r"2 packages differ .*gcc:amd64=2"):
        release.check_lock(wanted, "build-amd64 gcc:amd64=2\n")


def test_sums_are_checked_and_signed(tmp_path: Path) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts/a.tgz").write_text("a")
    sums = papers.write_sums(tmp_path)
    run(["sha256sum", "--check", "--quiet", sums], cwd=tmp_path)
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    if shutil.which("gpg"):
        os.environ["GNUPGHOME"] = str(home)
        run(["gpg", "--batch", "--passphrase", "", "--quick-gen-key", "release@slinc.example", "rsa2048"])
        run(["gpg", "--verify", papers.sign(sums, "release@slinc.example"), sums])
        run(["gpgconf", "--kill", "all"])
