"""Objects of the Slinky operator, as tests/fixtures holds them, loaded into a cluster."""

from __future__ import annotations

import json
import re

from slincdev.common import REPO
from slincdev.crds import KINDS, from_yaml
from slincdev.kube import b64
from slurm_operator import CHILDREN, Site

NAMESPACE = "site"  # some of the recorded files name it
PLURALS = [path.rsplit("/", 1)[1] for path in CHILDREN]
REVISIONS, PODS = "/apis/apps/v1/namespaces/{}/controllerrevisions", "/api/v1/namespaces/{}/pods"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
HOST_KEYS_HASH = "ed86f25e4397694a9a39a7829fd6071188a68ee01fdbb5fe4f9426bddf965ed0"  # of the placeholder, which stands where keys were


def _read(version: str, plural: str) -> list[dict]:
    text = (REPO / f"tests/fixtures/{version}/{plural}.yaml").read_text()
    return from_yaml(re.sub(r"(ssh-host-keys-hash: )[0-9a-f]{64}", rf"\g<1>{HOST_KEYS_HASH}", text))


def _without_identity(one: dict) -> dict:
    kept = {key: value for key, value in one["metadata"].items() if key in ("name", "labels", "annotations", "ownerReferences")}
    return {key: value for key, value in one.items() if key != "status"} | {"metadata": kept}


def _restored(one: dict) -> dict:
    """Secrets whose content was left out, where hashes tell what it was."""
    name = one["metadata"]["name"]
    if name == "mariadb-password":
        return one | {"data": {"password": b64(b"x")}}
    if name == "slurm-sssd-conf":
        conf = json.loads(one["metadata"]["annotations"][APPLIED])["stringData"]["sssd.conf"]
        return one | {"data": {"sssd.conf": b64(conf.encode())}}
    return one


def load(site: Site, version: str) -> None:
    """Custom resources first; their children get the new UIDs of their owners."""
    uids = {}
    for plural in KINDS[:-1]:
        for one in _read(version, plural):
            made = site.api.post(site.path(plural), _without_identity(one))
            uids[one["metadata"]["uid"]] = made["metadata"]["uid"]
    for path in (*reversed(CHILDREN), REVISIONS, PODS):  # what pods mount comes before what makes them
        for one in map(_restored, map(_without_identity, _read(version, path.rsplit("/", 1)[1]))):
            owners = one["metadata"].get("ownerReferences", [])
            if path in (REVISIONS, PODS) and not any(owner["kind"] == "NodeSet" for owner in owners):
                continue  # the controllers of Kubernetes make these anew
            for owner in owners:
                owner["uid"] = uids[owner["uid"]]
            one.get("spec", {}).pop("nodeName", None)
            site.api.post(path.format(site.namespace), one)
