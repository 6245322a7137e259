"""The rights that the chart gives are those that the program uses: no call without a right, and no right that nobody can explain.

The operator's calls are recorded by the simulator; what it does not play is listed here with the reason. The webhook's calls are recorded
at a server that answers with nothing, while a review is sent to it with the certificate that the chart made.
tests/e2e/test_operator_chart.py looks at a real server's audit log beside that."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import BUILD, REPO, EmptyServer, render, sets
from slincdev.rights import Right, right_for, rights_given

CHART = REPO / "charts/slurm-operator"
SEEDS = 30
HOME = "slinky"  # the namespace of the release
SIMULATED_HOME = "system"  # of the simulated operator
ACCOUNT, WEBHOOK = "bridge-slurm-operator", "bridge-slurm-operator-webhook"
KINDS = ("controllers", "accountings", "restapis", "loginsets", "nodesets", "tokens")


def rights(group: str, resources: str, verbs: str) -> set[Right]:
    return {Right(verb, group, resource, "cluster", "") for resource in resources.split() for verb in verbs.split()}


# How new the definitions are, which is looked at outside of the engine.
DEFINITIONS = rights("apiextensions.k8s.io", "customresourcedefinitions", "get")

# Rights that the simulated operator does not use, and why they are given.
EXPLAINED = (
    DEFINITIONS |
    rights("slinky.slurm.net", " ".join(f"{kind}/finalizers" for kind in KINDS), "update")  # asked for by OwnerReferencesPermissionEnforcement
    | rights("", "pods", "get patch")  # the pods of slurmctld: the label active, changed files
    | rights("apps", "statefulsets", "delete")  # another serviceName when HA is switched on
    | rights("monitoring.coreos.com", "servicemonitors", "get list watch create patch delete")
    | rights("events.k8s.io", "events", "patch")  # an Event that is repeated
    # workers of NodeSets
    | rights("slinky.slurm.net", "nodesets", "get patch") | rights("slinky.slurm.net", "nodesets/status", "patch")
    | rights("", "pods", "create delete") | rights("", "pods/status", "patch") | rights("", "persistentvolumeclaims", "get create patch delete")
    | rights("", "services", "delete") | rights("", "nodes", "get")
    | rights("apps", "controllerrevisions", "get list watch create patch delete") | rights("policy", "poddisruptionbudgets", "get list watch create patch delete")
)


def given_to(account: str, *values: str) -> set[Right]:
    found = rights_given(render(CHART, *sets(list(values))))
    return found[account] | found.get(f"{account}-lease", set())


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> set[Right]:
    file = tmp_path_factory.mktemp("calls") / "operator"
    subprocess.run([BUILD / "tests/sim/sim", "--scenario", "operator", "--seeds", f"0:{SEEDS}", "--calls", file], capture_output=True, timeout=300)
    found = {right_for(method, path, SIMULATED_HOME) for _, method, path in (line.split() for line in file.read_text().splitlines())}
    return {right for right in found if right}


def test_the_operator_has_the_rights_that_it_uses(used: set[Right]) -> None:
    given = given_to(ACCOUNT)
    assert len(used) > 40
    assert sorted(used - given) == [], "calls without a right"
    assert sorted(given - used - EXPLAINED) == [], "rights without a call"


def test_in_some_namespaces_only_nodes_and_definitions_are_read_everywhere() -> None:
    text = render(CHART, *sets(["operator.namespaces=a\\,b"]))
    everywhere = [one for one in text.split("\n---\n") if re.search(r"^kind: ClusterRole$", one, re.M) and f"\n  name: {ACCOUNT}\n" in one]
    assert len(everywhere) == 1 and everywhere[0].count("apiGroups:") == 2 and "resources: [nodes]" in everywhere[0] and "resources: [customresourcedefinitions]" in everywhere[0]
    roles = {re.search(r"^  namespace: (\S+)$", one, re.M)[1]: one.split("\nrules:\n")[1].strip() for one in text.split("\n---\n")
             if re.search(r"^kind: Role$", one, re.M) and f"\n  name: {ACCOUNT}\n" in one}
    whole = next(one for one in render(CHART).split("\n---\n") if re.search(r"^kind: ClusterRole$", one, re.M) and f"\n  name: {ACCOUNT}\n" in one)
    assert roles.keys() == {"a", "b"} and roles["a"] == roles["b"]
    assert whole.split("\nrules:\n")[1].strip().startswith(roles["a"])


# ---- the webhook ----

@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """The files of the Secret that the chart makes."""
    text = render(CHART, *sets(["certManager.enabled=false"]))
    folder = tmp_path / "certificates"
    folder.mkdir()
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (folder / name).write_bytes(base64.b64decode(re.search(rf"^  {re.escape(name)}: (\S+)$", text, re.M)[1]))
    return folder


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def webhook(server: EmptyServer, certificates: Path, tmp_path: Path) -> Iterator[int]:
    """Its port."""
    port = free_port()
    process = subprocess.Popen([BUILD / "src/cmd/slinc", "operator", "--webhook-only", f"--server-addr=127.0.0.1:{port}", "--webhook-cert-dir", certificates,
                                "--kubeconfig", server.kubeconfig(tmp_path), "--metrics-addr=0", "--health-addr=0"], stderr=subprocess.DEVNULL)
    yield port
    process.terminate()
    assert process.wait(30) == 0


class Connection(http.client.HTTPSConnection):
    """To a port of this machine, as the API server calls the Service."""

    def connect(self) -> None:
        self.sock = self._context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), 10), server_hostname=self.host)


def ask(port: int, certificates: Path, kind: str, **spec: object) -> dict:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "namespace": HOME, "name": "slurm", "operation": "CREATE", "resource": {"group": "slinky.slurm.net", "version": "v1beta1", "resource": f"{kind}s"},
        "object": {"spec": spec}}}
    context = ssl.create_default_context(cafile=certificates / "ca.crt")
    until = time.monotonic() + 20
    while True:
        connection = Connection("slurm-operator-webhook.slinky.svc", port, context=context)
        try:
            connection.request("POST", f"/validate-slinky-slurm-net-v1beta1-{kind}", json.dumps(review), {"Content-Type": "application/json"})
            return json.load(connection.getresponse())["response"]
        except ConnectionError:
            assert time.monotonic() < until, "the webhook is not served"
            time.sleep(0.05)
        finally:
            connection.close()


def test_the_webhook_alone_has_the_rights_that_it_uses_and_serves_the_certificate_of_the_chart(server: EmptyServer, webhook: int, certificates: Path) -> None:
    server.home = HOME
    answer = ask(webhook, certificates, "controller", configFileRefs=[{"name": "files"}], ha={"enabled": True}, persistence={"enabled": True, "existingClaim": "state"})
    assert not answer["allowed"] and "state is not ReadWriteMany" in answer["status"]["message"]
    assert {right._replace(where="cluster", name="") for right in server.used} == given_to(WEBHOOK)


def test_every_kind_has_its_path(webhook: int, certificates: Path) -> None:
    for plural in KINDS:
        answer = ask(webhook, certificates, plural.removesuffix("s"))
        assert answer["allowed"] == (plural not in ("loginsets", "nodesets")), plural
