"""What an image holds, as a list: whole, checkable, and the same each time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import build
import linked
import pack
import pytest
import recipe
import sbom

DEBS = ["slurm-client_26.05.5-1_amd64.deb " + "a" * 64, "libc6_2%3a2.42-1_amd64.deb " + "b" * 64]


def test_packages_are_read_from_the_names_of_their_files() -> None:
    slurm, libc = sbom.from_debs(DEBS, "sid")
    assert slurm == ("slurm-client", "26.05.5-1", "pkg:deb/debian/slurm-client@26.05.5-1?arch=amd64&distro=sid", "a" * 64)
    assert libc.version == "2:2.42-1"


def test_a_document_has_what_spdx_requires_and_every_part_once() -> None:
    parts = sbom.from_debs(DEBS + DEBS[:1], "sid")
    found = sbom.document("x/slurmd:1", "sha256:" + "c" * 64, "1", parts)
    assert found["spdxVersion"] == "SPDX-2.3" and found["SPDXID"] == "SPDXRef-DOCUMENT" and found["dataLicense"] == "CC0-1.0"
    rows = {row["SPDXID"]: row for row in found["packages"]}
    assert len(rows) == len(found["packages"]) == 3
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in rows)
    assert all(row["name"] and row["downloadLocation"] == "NOASSERTION" for row in rows.values())
    assert rows["SPDXRef-Image"]["checksums"][0]["checksumValue"] == "c" * 64
    related = {(one["spdxElementId"], one["relatedSpdxElement"]) for one in found["relationships"]}
    assert related == {("SPDXRef-DOCUMENT", "SPDXRef-Image"), *(("SPDXRef-Image", name) for name in rows if name != "SPDXRef-Image")}


def test_the_order_of_packages_does_not_matter() -> None:
    first = sbom.document("x", "sha256:0", "1", sbom.from_debs(DEBS, "sid"))
    assert first == sbom.document("x", "sha256:0", "1", sbom.from_debs(DEBS[::-1], "sid"))
    assert first["documentNamespace"] != sbom.document("x", "sha256:1", "1", [])["documentNamespace"]


def test_an_image_has_the_version_of_its_slurm_or_of_its_name() -> None:
    assert build.version_of(recipe.load("slurmd"), DEBS) == "26.05.5-1"
    assert build.version_of(recipe.load("slinc"), []) == linked.version()


def test_two_builds_of_our_own_image_give_one_digest_with_its_labels_and_its_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a cache of its own."""
    found = []
    for name in ("first", "second"):
        monkeypatch.setenv("SLINC_CACHE", str(tmp_path / name))
        found.append(built("slinc"))
    assert found[0] == found[1]


def built(title: str) -> tuple[str, str]:
    """The digest of an image and the text of its list."""
    where = build.cache()
    assert build.main([title]) == 0
    entry = build.read_index(where)[title]
    found = (where.top / f"{title}.spdx.json").read_text()
    image = next(row for row in json.loads(found)["packages"] if row["SPDXID"] == "SPDXRef-Image")
    assert f"sha256:{image['checksums'][0]['checksumValue']}" == entry["digest"]
    labels = pack.read_base(where.archive(title, entry["key"])).config["config"]["Labels"]
    assert labels["org.opencontainers.image.title"] == title
    assert labels["org.opencontainers.image.version"] == image["versionInfo"]
    return entry["digest"], found
