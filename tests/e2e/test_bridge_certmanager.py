"""The chart with certificates from a real cert-manager: they come, the API server is told their CA, and new ones are served in their turn.
No pod of the bridge starts again for it, and no call of the webhook fails."""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest
from bridge import FINALIZER, Site
from conftest import NAME as CLUSTER
from slincdev import up as life
from slincdev.common import PATIENCE
from slincdev.kube import ApiError
from slincdev.release import HOME, KEY, NAME, SCHEDULER
from test_bridge_chart import MANAGED, Chart, installed

LEAF, ROOT = "slurm-bridge-admission", "slurm-bridge-admission-root-ca"
SECRETS, CERTIFICATES = f"/api/v1/namespaces/{HOME}/secrets", f"/apis/cert-manager.io/v1/namespaces/{HOME}/certificates"
THEIRS = "admission.certManager.enabled=true"  # the default of the chart, and not of our other tests
END = "-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module")
def site(cluster, slurm) -> Site:
    life.up(CLUSTER, node_count=3, with_parts=["slurm", "certmanager"])
    return Site(cluster, slurm, MANAGED)


@pytest.fixture(scope="module")
def release(site) -> Iterator[Chart]:
    with installed(site, THEIRS, *KEY) as chart:
        yield chart


def is_ready(release: Chart, certificate: str) -> bool:
    status = release.api.get(f"{CERTIFICATES}/{certificate}").get("status", {})
    return any((one["type"], one["status"]) == ("Ready", "True") for one in status.get("conditions", []))


def made_anew(release: Chart, certificate: str, eventually: Callable) -> dict:
    """Its Secret is lost, and cert-manager makes another: the data."""
    before = release.api.get(f"{SECRETS}/{certificate}")["data"]
    release.api.delete(f"{SECRETS}/{certificate}")

    def another() -> dict | None:
        data = release.api.get(f"{SECRETS}/{certificate}").get("data", {})
        return data if data.get("tls.crt") not in (None, before["tls.crt"]) else None
    data = eventually(f"{certificate} is made anew", another)
    eventually("cert-manager says so", lambda: is_ready(release, certificate))
    return data


def each(encoded: str) -> list[str]:
    """The certificates of a base64 file."""
    return [one + END for one in base64.b64decode(encoded).decode().split(END) if one.strip()]


def told(release: Chart) -> set[str]:
    """The CAs that the API server knows for each of our webhooks: the same for all, and none while one has yet to hear of a change."""
    bundles = release.authorities()
    return set(each(bundles.pop())) if len(bundles) == 1 else set()


def processes(release: Chart) -> dict[str, int]:
    """Each replica, and how often it has started again; not those that an upgrade ends."""
    alive = [pod for pod in release.found(SCHEDULER) if not pod["metadata"].get("deletionTimestamp")]
    return {pod["status"]["podIP"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in alive}


def served_at(address: str, trusted: set[str]) -> str:
    """The certificate of a replica, looked at with the eyes of the API server."""
    trust = ssl.create_default_context(cadata="".join(trusted))
    with socket.create_connection((address, 9443), timeout=10) as plain:
        with trust.wrap_socket(plain, server_hostname=f"{LEAF}.{HOME}.svc") as secure:
            return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True))


def is_served(release: Chart, data: dict) -> bool:
    """Whether every replica answers with this certificate, and the API server takes it."""
    trusted, found = told(release), processes(release)
    return bool(trusted and found) and all(served_at(address, trusted) == each(data["tls.crt"])[0] for address in found)


def admitted(release: Chart, site: Site) -> dict:
    """A pod that says nothing of us, in a dry run: as it would be made."""
    return release.api.post(f"{site.pods_path}?dryRun=All", site.pod("any", "true", schedulerName="default-scheduler", tolerations=[]))


def served_without_a_gap(release: Chart, site: Site, data: dict) -> bool:
    """As is_served(), and no call of the webhook may fail meanwhile."""
    try:
        assert admitted(release, site)["spec"]["schedulerName"] == SCHEDULER
    except ApiError as error:
        pytest.fail(f"a pod is refused while the certificate changes: {error}")
    return is_served(release, data)


def test_the_certificate_comes_and_pods_are_admitted(release, site, eventually):
    eventually("both certificates are ready", lambda: is_ready(release, ROOT) and is_ready(release, LEAF))
    data = release.api.get(f"{SECRETS}/{LEAF}")["data"]
    eventually("the API server knows the CA", lambda: release.authorities() == {data["ca.crt"]})
    eventually("it is served", lambda: is_served(release, data))
    pod = eventually("the webhook is called", lambda: admitted(release, site))
    assert pod["spec"]["schedulerName"] == SCHEDULER and FINALIZER in pod["metadata"]["finalizers"]

    def moment(certificate: str, name: str) -> datetime:
        return datetime.fromisoformat(release.api.get(f"{CERTIFICATES}/{certificate}")["status"][name].replace("Z", "+00:00"))
    assert moment(LEAF, "notAfter") - moment(LEAF, "notBefore") <= moment(ROOT, "notAfter") - moment(ROOT, "renewalTime"), \
        "made at any moment, it does not outlive its CA"


def test_a_renewed_certificate_is_served_without_a_restart(release, site, eventually):
    running, known = processes(release), told(release)
    data = made_anew(release, LEAF, eventually)
    eventually("the new one is served", lambda: served_without_a_gap(release, site, release.api.get(f"{SECRETS}/{LEAF}")["data"]))
    assert told(release) == known == set(each(data["ca.crt"]))
    assert processes(release) == running


def test_a_new_ca_is_known_before_its_certificate_is_served(release, site, eventually):
    running, known = processes(release), told(release)
    made_anew(release, ROOT, eventually)
    assert told(release) == known  # it has signed nothing yet
    data = made_anew(release, LEAF, eventually)
    new = set(each(data["ca.crt"]))
    assert not new & known
    eventually("the API server knows both", lambda: told(release) == known | new)
    eventually("the new one is served", lambda: served_without_a_gap(release, site, release.api.get(f"{SECRETS}/{LEAF}")["data"]))
    assert processes(release) == running


def test_no_key_is_left_when_it_is_uninstalled(release, eventually):
    def left() -> list[str]:
        return sorted(secret["metadata"]["name"] for secret in release.api.get(SECRETS)["items"])
    release.helm("uninstall", NAME, "--wait", "--timeout", f"{240 * PATIENCE:.0f}s")
    eventually("no key is left", lambda: left() == ["slurm-bridge-token", "slurm-jwt-key"])  # which are not the chart's
