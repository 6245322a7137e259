"""papers.py - what goes with the files of a release: notes, the manifest for krew, checksums and their signature."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from slincdev.common import Fail, run

KREW = """apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: slinc
spec:
  version: v{version}
  homepage: {home}
  shortDescription: Why pods wait for Slurm, its queue and its nodes
  description: |
    Shows Slurm's queue and nodes, says why a pod or a job waits, finds what is wrong with an
    installation, and takes nodes out of service and back.
  platforms:
{platforms}"""
PLATFORM = """  - selector: {{matchLabels: {{os: linux, arch: {arch}}}}}
    uri: {url}/{file}
    sha256: {sha256}
    files: [{{from: "{folder}/*", to: "."}}]
    bin: bin/kubectl-slinc
"""


def notes(changelog: Path, version: str) -> str:
    """The section of the change log about this version."""
    found = re.search(rf"^## {re.escape(version)}\n(.*?)(?=^## |\Z)", changelog.read_text(), re.M | re.S)
    if not found:
        raise Fail(f"{changelog.name} has no section '## {version}': write what users see of this release")
    return f"# Slinc {version}\n{found[1].rstrip()}\n"


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def krew(tarballs: dict[str, Path], version: str, url: str, home: str) -> str:
    """The plugin manifest; `url` is where people will find the files of dist/."""
    rows = [PLATFORM.format(arch=arch, url=url, file=path.name, sha256=sha256(path), folder=path.name.removesuffix(".tar.gz"))
            for arch, path in sorted(tarballs.items())]  # fmt: skip
    return KREW.format(version=version, home=home, platforms="".join(rows))


def write_sums(dist: Path) -> Path:
    """SHA256SUMS of everything in dist/, for `sha256sum --check`."""
    sums = dist / "SHA256SUMS"
    sums.unlink(missing_ok=True)
    files = sorted(path for path in dist.rglob("*") if path.is_file())
    sums.write_text("".join(f"{sha256(path)}  {path.relative_to(dist)}\n" for path in files))
    return sums


def sign(sums: Path, key: str) -> Path:
    """A detached signature: by minisign if the key is a file, else by the GPG key of that name."""
    if Path(key).is_file():
        signature = sums.with_name(sums.name + ".minisig")
        run(["minisign", "-S", "-s", key, "-m", sums, "-x", signature, "-t", sums.parent.name], input="\n", what="minisign")
    else:
        signature = sums.with_name(sums.name + ".asc")
        run(["gpg", "--batch", "--yes", "--armor", "--local-user", key, "--output", signature, "--detach-sign", sums], what="gpg")
    return signature
