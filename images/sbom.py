"""sbom.py - what an image holds, as an SPDX 2.3 document beside its archive.

The packages come from the list that the image was made of, with the checksum of each file; for our own
program, its libraries with the packages of the machine that built it. Nothing in it depends on when or where the
document was made.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, NamedTuple

TOOL = "Tool: slinc-images"
CREATED = "1970-01-01T00:00:00Z"


class Package(NamedTuple):
    """One part of an image; the checksum is of the file that it came in, "" where there is none."""

    name: str
    version: str
    purl: str = ""
    sha256: str = ""


def from_debs(lines: list[str], suite: str) -> list[Package]:
    """Of lines such as "slurmd_26.05.5-1_amd64.deb SHA256"; a version has its colon as %3a."""
    found = []
    for line in lines:
        file, sha256 = line.split()
        name, version, architecture = file.removesuffix(".deb").split("_")
        purl = f"pkg:deb/debian/{name}@{version}?arch={architecture}&distro={suite}"
        found.append(Package(name, version.replace("%3a", ":"), purl, sha256))
    return found


def document(image: str, digest: str, version: str, packages: list[Package]) -> dict[str, Any]:
    """The image as one package that contains the others, each once, in the order of their names."""
    parts = sorted(set(packages))
    rows = [_package("SPDXRef-Image", Package(image, version), digest.removeprefix("sha256:"))]
    rows += [_package(f"SPDXRef-{number}-{_word(part.name)}", part, part.sha256) for number, part in enumerate(parts, 1)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Image")]
    relations += [("SPDXRef-Image", "CONTAINS", row["SPDXID"]) for row in rows[1:]]
    name = hashlib.sha256(f"{image} {digest}".encode()).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": image,
        "documentNamespace": f"urn:slinc:spdx:{name}",
        "creationInfo": {"created": CREATED, "creators": [TOOL]},
        "packages": rows,
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations],
    }  # fmt: skip


def _package(identity: str, part: Package, sha256: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "SPDXID": identity, "name": part.name, "versionInfo": part.version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
    }  # fmt: skip
    if sha256:
        row["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    if part.purl:
        row["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": part.purl}]
    return row


def _word(name: str) -> str:
    """SPDX identifiers hold letters, digits, dots and dashes."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", name)
