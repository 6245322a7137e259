"""The chart of a Slurm cluster beside what surrounds it: the custom resources that another chart made, the definitions that take them, the
values files of others, and the documentation. The suites in charts/slurm/tests say what exactly each value does."""

from __future__ import annotations

import functools
import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from conftest import BUILD, REPO, helm, leaves, with_notes
from slincdev import crds
from slincdev.common import versions
from test_slurm_operator_crds import stored

CHART = REPO / "charts/slurm"
VALUES = sorted((CHART / "tests/values").glob("*.yaml"))
OLD = CHART / "tests/values/slinky.yaml"
SITE = CHART / "tests/values/site.yaml"
RECORDED = ("controllers", "restapis", "accountings", "loginsets", "nodesets")
LEFT_OUT = {"helm.sh/chart", "app.kubernetes.io/version"}  # of the labels of pods, so that a new chart replaces none


@functools.cache
def template(*words: object, chart: Path = CHART, release: str = "slurm") -> str:
    done = helm("template", release, chart, "--namespace", "site", "--kube-version", versions()["KUBERNETES_VERSION"], *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(*words: object) -> str:
    done = helm("template", "slurm", CHART, "--kube-version", versions()["KUBERNETES_VERSION"], *words)
    assert done.returncode != 0
    return done.stderr


def sets(*words: str) -> list[str]:
    return [part for word in words for part in ("--set", word)]


def keys(values: Path) -> set[str]:
    """As leaves(), which takes the lines of a text for keys."""
    return {"sssd.conf" if key.startswith("sssd.conf") else key for key in leaves(values)}


@pytest.fixture(scope="module")
def definitions() -> dict[str, dict]:
    return {crd["spec"]["names"]["kind"]: crd for crd in crds.definitions().values()}


@pytest.fixture(scope="module")
def rendered() -> dict[str, list[dict]]:
    """The objects of every values file, by its name."""
    return {path.stem: crds.from_yaml(template("-f", path)) for path in VALUES}


def without_chart_labels(labels: dict) -> dict:
    return {key: value for key, value in labels.items() if key not in LEFT_OUT}


# ---- what another chart made ----


@pytest.mark.parametrize("folder", ["slinky-1.2.1", "slinky-main"])
def test_a_values_file_of_the_other_chart_gives_its_custom_resources(folder: str, definitions: dict) -> None:
    """Byte for byte as stored, but for the chart's own labels in templates; and fields that the older one does not know."""
    text = template("-f", OLD, "-f", SITE, "--set", "keepOldImages=true")
    ours = {one["kind"]: one for one in crds.from_yaml(text) if one["apiVersion"].startswith("slinky")}
    for plural in RECORDED:
        (there,) = crds.from_yaml((REPO / "tests/fixtures" / folder / f"{plural}.yaml").read_text())
        here = ours[there["kind"]]
        assert (here["metadata"]["name"], here["metadata"]["namespace"]) == (there["metadata"]["name"], there["metadata"]["namespace"])
        spec = stored(here["spec"], crds.schema_of(definitions[there["kind"]])["properties"]["spec"])
        wanted = there["spec"]
        wanted["template"]["metadata"]["labels"] = without_chart_labels(wanted["template"]["metadata"]["labels"])
        if folder == "slinky-1.2.1":
            spec.pop("ha", None)
        assert spec == wanted
        assert without_chart_labels(here["metadata"]["labels"]) == without_chart_labels(there["metadata"]["labels"])
        assert "annotations" not in here["metadata"]


def test_the_sssd_secret_is_that_of_the_other_chart(rendered: dict) -> None:
    secrets = crds.from_yaml((REPO / "tests/fixtures/slinky-main/secrets.yaml").read_text())
    there = next(one for one in secrets if one["metadata"]["name"] == "slurm-sssd-conf")
    applied = json.loads(there["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    applied["metadata"].pop("annotations")
    (here,) = [one for one in rendered["site"] if one["metadata"]["name"] == "slurm-sssd-conf"]
    assert here == applied


def test_a_full_copy_of_the_other_charts_values_renders_our_images(rendered: dict) -> None:
    site = crds.from_yaml(template("-f", OLD, "-f", SITE))
    images = set(re.findall(r'"image": "([^"]+)"', json.dumps(site)))
    assert all(image.startswith(("localhost/slinc/", "docker.io/library/alpine")) for image in images)
    assert {one["kind"] for one in rendered["slinky"]} >= {"Controller", "RestApi", "Job"}


def test_the_images_of_the_other_chart_are_told(tmp_path: Path) -> None:
    telling = with_notes(CHART, tmp_path)
    told = template("-f", OLD, chart=telling)
    named = re.findall(r"^ +(\S+\.image)$", told, re.M)
    assert named == ["accounting.slurmdbd.image", "controller.slurmctld.image", "controller.reconfigure.image", "loginsetDefaults.login.image",
                     "nodesetDefaults.slurmd.image", "restapi.slurmrestd.image"]
    assert not re.search(r"^ +\S+\.image$", template("-f", OLD, "--set", "keepOldImages=true", chart=telling), re.M)


@pytest.mark.parametrize("missing", [[], ["prologScriptRefs", "epilogScriptRefs", "prologSlurmctldScriptRefs", "epilogSlurmctldScriptRefs", "  ha", "    a3ultra"]], ids=["main", "1.2.1"])
def test_an_upgrade_that_reuses_the_other_charts_values_renders_the_same(tmp_path: Path, missing: list[str]) -> None:
    """Helm then takes those values in place of our defaults: what is new in ours is missing."""
    chart = Path(shutil.copytree(CHART, tmp_path / "slurm"))
    text = OLD.read_text()
    for key in missing:  # with the lines below it
        depth = len(key) - len(key.lstrip())
        text = re.sub(rf"^{key}:.*\n(?: {{{depth + 1},}}.*\n)*", "", text, count=1, flags=re.M)
    assert all(key not in keys_of(text) for key in missing)
    (chart / "values.yaml").write_text(text)
    reused = template("-f", SITE, chart=chart)
    wanted = template("-f", OLD, "-f", SITE)
    if missing:
        wanted = re.sub(r"^  ha:\n(?:    .*\n)*", "", wanted, flags=re.M)
    assert reused == wanted


def keys_of(text: str) -> set[str]:
    return {line.partition(":")[0] for line in text.splitlines()}


def test_our_values_are_those_of_the_other_chart_and_a_few_more() -> None:
    more = {key.split(".")[-1] if key.startswith("nodesetDefaults") else key.split(".")[0] for key in keys(CHART / "values.yaml") - keys(OLD)}
    assert more == {"bridge", "imageRegistry", "keepOldImages", "keys", "networkPolicy", "minReadySeconds", "revisionHistoryLimit", "volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"}
    assert keys(OLD) <= keys(CHART / "values.yaml")


# ---- what the API server would say ----


def faults(value: object, schema: dict, path: str) -> list[str]:
    """Where a value does not fit a definition. A null counts as not given, except in lists."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        return []
    if schema.get("x-kubernetes-int-or-string"):
        return [] if isinstance(value, (int, str)) else [f"{path}: neither number nor text"]
    wanted = kinds[schema["type"]]
    if not isinstance(value, wanted) or (schema["type"] == "integer" and isinstance(value, bool)):
        return [f"{path}: {value!r} is no {schema['type']}"]
    found = [f"{path}: {value!r} is none of {schema['enum']}"] if "enum" in schema and value not in schema["enum"] else []
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r} does not match")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{path}: {value} is less than {schema['minimum']}")
    if isinstance(value, list):
        return found + [fault for number, one in enumerate(value) for fault in faults(one, schema["items"], f"{path}[{number}]")]
    if isinstance(value, dict):
        given = {key: one for key, one in value.items() if one is not None}
        known, rest = schema.get("properties", {}), schema.get("additionalProperties")
        found += [f"{path}.{key}: missing" for key in schema.get("required", []) if key not in given]
        for key, one in given.items():
            below = known.get(key) or rest
            found += faults(one, below, f"{path}.{key}") if below else [f"{path}.{key}: unknown"]
    return found


@pytest.mark.parametrize("name", [path.stem for path in VALUES])
def test_every_custom_resource_fits_its_definition(name: str, rendered: dict, definitions: dict) -> None:
    resources = [one for one in rendered[name] if one["apiVersion"].startswith("slinky")]
    assert resources
    for one in resources:
        assert faults(one["spec"], crds.schema_of(definitions[one["kind"]])["properties"]["spec"], one["kind"]) == []


def test_the_check_of_definitions_finds_faults(definitions: dict) -> None:
    spec = crds.schema_of(definitions["NodeSet"])["properties"]["spec"]
    assert faults({"replicas": "2", "controllerRef": {"name": "x"}, "scalingMode": "Pod", "bogus": 1}, spec, "spec") == [
        "spec.replicas: '2' is no integer", "spec.scalingMode: 'Pod' is none of ['DaemonSet', 'StatefulSet']", "spec.bogus: unknown"]
    assert faults({}, spec, "spec") == ["spec.controllerRef: missing"]


@pytest.mark.parametrize("name", [path.stem for path in VALUES])
def test_no_pod_carries_the_version_of_the_chart(name: str, rendered: dict) -> None:
    """Else each new chart would replace every pod."""
    for one in rendered[name]:
        if one["apiVersion"].startswith("slinky"):
            assert LEFT_OUT <= one["metadata"]["labels"].keys()
            assert not LEFT_OUT & one["spec"].get("template", {}).get("metadata", {}).get("labels", {}).keys()


def test_rendering_twice_gives_the_same() -> None:
    assert template("-f", SITE) == template.__wrapped__("-f", SITE)


def test_no_key_is_ever_rendered(rendered: dict) -> None:
    secrets = {one["metadata"]["name"] for objects in rendered.values() for one in objects if one["kind"] == "Secret"}
    assert secrets <= {"slurm-sssd-conf", "hpc-sssd-conf"}


def test_lint_finds_nothing() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout


# ---- every value ----

IMAGE = {"image.repository": "=other", "image.tag": "=v9", "image.digest": "=sha256:0"}
POD = {"podSpec.initContainers": "[0].name=x", "podSpec.nodeSelector.kubernetes.io/os": "", "podSpec.affinity": ".x.y=z", "podSpec.tolerations": "[0].key=a",
       "podSpec.resources": ".limits.cpu=1"}
META = {"metadata": ".labels.a=b"}
SERVICE = {"service.metadata": ".labels.a=b", "service.spec": ".type=NodePort"}
MONITOR = "controller.metrics.serviceMonitor"


def rows(part: str, *tables: dict[str, str], before: tuple[str, ...] = ()) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {f"{part}.{key}": (change, before) for table in tables for key, change in table.items()}


def container(name: str, more: dict[str, str] | None = None) -> dict[str, str]:
    return {f"{name}.{key}": change for key, change in (IMAGE | {"resources": ".limits.cpu=1"} | (more or {})).items()}


ARGS = {"args": "[0]=-v"}
ENV = {"env": "[0].name=x"}
MOUNTS = {"volumeMounts": "[0].name=x"}
DBD = ("accounting.enabled=true",)
LOGIN = ("loginsets.a.metadata.labels.x=y",)
NODES = ("nodesets.a.metadata.labels.x=y",)
PARTITION = ("partitions.all.enabled=true", *NODES)
CLASS = ("priorityClass.enabled=true", "priorityClass.create=true")
DCGM = ("vendor.nvidia.dcgm.enabled=true", "nodesets.a.slurmd.resources.limits.nvidia\\.com/gpu=1")

# Every value: how to change it, and what must be set before for it to matter.
MATTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nameOverride": ("=other", ()), "fullnameOverride": ("=other", ()), "namespaceOverride": ("=other", ()), "imagePullSecrets": ("[0].name=a", ()),
    "imagePullPolicy": ("=Never", ()), "imageRegistry": ("=other", ()), "bridge.enabled": ("=false", ()), "bridge.prologAddress": ("=b:1", ()), "bridge.prologWaitSeconds": ("=5", ("bridge.prologAddress=b:1",)),
    "keepOldImages": ("=true", ("controller.slurmctld.image.repository=ghcr.io/slinkyproject/slurmctld",)), "clusterName": ("=x", ()),
    "jwksKeys.enabled": ("=true", ()), "jwksKeys.configMapRef": (".name=x", ("jwksKeys.enabled=true",)),
    "sssd.secretRef": (".name=x", LOGIN), "sssd.conf": ("=x", LOGIN),
    "loginsets": (".a.enabled=true", ()), "nodesets": (".a.enabled=true", ()), "extraObjects": ("[0].kind=X", ()),
    "vendor.nvidia.dcgm.enabled": ("=true", ()),
} | {f"{script}{end}": change for script in ("prologScript", "epilogScript", "prologSlurmctldScript", "epilogSlurmctldScript")
     for end, change in (("s", (".a=b", ())), ("Refs", ("[0].name=a", ())))} | {
    "configFiles": (".a=b", ()),
} | rows("priorityClass", {"enabled": "=true"}) | rows("priorityClass", {"create": "=true"}, before=CLASS[:1]) \
  | rows("priorityClass", {"name": "=x", "description": "=x", "value": "=5", "preemptionPolicy": "=Never"}, before=CLASS) \
  | rows("slurmKey", {"create": "=false", "annotations": ".a=b", "secretRef": ".name=x"}) | rows("jwtKey", {"create": "=false", "annotations": ".a=b", "secretRef": ".name=x"}) \
  | rows("keys", {"hook": "=false", "keepOnUninstall": "=true", "resources": ".limits.cpu=1", "podSpec": ".tolerations[0].operator=Exists"}, IMAGE) \
  | rows("controller", container("slurmctld", ARGS), container("reconfigure"), container("logfile"), POD, META, SERVICE, {
      "external": "=true", "inplaceReconfigure": "=true", "ha.enabled": "=true", "ha.backups": "=2", "persistence.enabled": "=false",
      "persistence.existingClaim": "=x", "persistence.storageClassName": "=x", "persistence.accessModes": "[0]=ReadWriteMany",
      "persistence.resources.requests.storage": "=1Gi", "extraConf": "=A=1", "extraConfMap": ".A=1", "metrics.enabled": "=true"}) \
  | rows("controller.externalConfig", {"host": "=other", "port": "=1"}, before=("controller.external=true",)) \
  | rows(MONITOR, {"enabled": "=true", "annotations": ".a=b", "labels": ".a=b", "interval": "=5s", "scrapeTimeout": "=1s", "endpoints": "[0].path=/x"}) \
  | rows("restapi", container("slurmrestd", ARGS | ENV), POD, META, SERVICE, {"replicas": "=2", "pdb.enabled": "=true"}) \
  | rows("restapi.pdb", {"minAvailable": "=2", "maxUnavailable": "=0"}, before=("restapi.pdb.enabled=true",)) \
  | rows("accounting", {"enabled": "=true"}) | rows("accounting", container("slurmdbd", ARGS), POD, META, SERVICE, {
      "external": "=true", "storageConfig.host": "=x", "storageConfig.port": "=1", "storageConfig.database": "=x", "storageConfig.username": "=x",
      "storageConfig.passwordKeyRef.name": "=x", "storageConfig.passwordKeyRef.key": "=x", "extraConf": "=A=1", "extraConfMap": ".A=1"}, before=DBD) \
  | rows("accounting.externalConfig", {"host": "=other", "port": "=1"}, before=(*DBD, "accounting.external=true")) \
  | rows("loginsetDefaults", container("login", ENV | MOUNTS | {"securityContext.privileged": "=true"}), container("initconf"), POD, META, {
      "enabled": "=false", "replicas": "=2", "strategy": ".type=Recreate", "rootSshAuthorizedKeys": "=x", "extraSshdConfig": "=x", "podSpec.volumes": "[0].name=x",
      "service.metadata": ".labels.a=b", "service.spec.type": "=NodePort"}, before=LOGIN) \
  | rows("nodesetDefaults", container("slurmd", ARGS | ENV | MOUNTS), container("logfile"), POD, META, {
      "enabled": "=false", "scalingMode": "=DaemonSet", "replicas": "=2", "pinToNode": "=true", "workloadDisruptionProtection": "=false",
      "pruneSlurmNodeRecords": "=NodeNotFound", "ordinalPadding": "=2", "oversubscribeNode": "=true", "extraConf": "=A=1", "extraConfMap": ".A=1",
      "partition.enabled": "=true", "partition.config": "=A=1", "partition.configMap": ".A=1", "ssh.enabled": "=true", "updateStrategy.type": "=OnDelete",
      "updateStrategy.rollingUpdate.maxUnavailable": "=1", "updateStrategy.scheduledUpdate": ".duration=1h", "minReadySeconds": "=1", "revisionHistoryLimit": "=1",
      "volumeClaimTemplates": "[0].kind=x", "persistentVolumeClaimRetentionPolicy": ".whenDeleted=Delete", "podSpec.volumes": "[0].name=x"},
      before=NODES) \
  | rows("nodesetDefaults", {"ssh.extraSshdConfig": "=x"}, before=("nodesets.a.ssh.enabled=true",)) \
  | rows("partitions.all", {"enabled": "=true"}) | rows("partitions.all", {"nodesets": "[0]=a", "config": "=A=1", "configMap.Default": "=NO", "configMap.MaxTime": "=5"}, before=PARTITION) \
  | rows("vendor.google", {name: f"[0].targetNodeSet=a,vendor.google.{name}[0].nodePool=p," + ",".join(f"vendor.google.{name}[0].networks[{n}]=n{n}" for n in range(9))
                           for name in ("a3mega", "a3ultra")}, before=NODES) \
  | rows("networkPolicy", {"enabled": "=true"}) | rows("networkPolicy", {"restapiFrom": "[0].podSelector.matchLabels.a=b", "loginFrom": "[0].podSelector.matchLabels.a=b",
                                                                       "extraIngress": "[0].ports[0].port=1"}, before=(*LOGIN, "networkPolicy.enabled=true")) \
  | rows("vendor.nvidia.dcgm", {"jobMappingDir": "=/x", "scriptPriority": "=10"}, before=DCGM)

TOLD = {"asciiArt": "=false"}
EXTERNAL = {part: (f"{part}.externalConfig.host=h", f"{part}.externalConfig.port=9") for part in ("controller", "accounting")}


def test_every_value_is_in_the_tables_below() -> None:
    assert keys(CHART / "values.yaml") == {*MATTERS, *TOLD}


@pytest.mark.parametrize("key", MATTERS)
def test_a_value_changes_an_object(key: str) -> None:
    change, before = MATTERS[key]
    if any(word.endswith("external=true") for word in (*before, key + change)):
        before = (*EXTERNAL[key.split(".")[0]], *before)
    if key.endswith(".image.repository"):  # which needs a tag
        before = (*before, key.replace("repository", "tag=v1"))
    if key.endswith("kubernetes.io/os"):
        key, change = key.replace(".io", "\\.io"), "=windows"
    assert template(*sets(*before)) != template(*sets(*before, key + change))


def test_the_picture_can_be_left_out(tmp_path: Path) -> None:
    telling = with_notes(CHART, tmp_path)
    assert "|___/" in template(chart=telling) and "|___/" not in template("--set", "asciiArt=false", chart=telling)


# ---- refusals ----


@pytest.mark.parametrize(("words", "text"), [
    ("controller.volumes[0].name=x", "controller.volumes is in the wrong place: it belongs to controller.podSpec.volumes"),
    ("nodesets.a.volumeMounts[0].name=x", "nodesets.a.volumeMounts is in the wrong place: it belongs to nodesets.a.slurmd.volumeMounts"),
    ("nodesets.a.slurmd.volumes[0].name=x", "nodesets.a.slurmd.volumes is in the wrong place: it belongs to nodesets.a.podSpec.volumes"),
    ("nodesets.a.podSpec.env[0].name=x", "nodesets.a.podSpec.env is in the wrong place: it belongs to nodesets.a.slurmd.env"),
    ("loginsetDefaults.tolerations[0].key=x", "loginsetDefaults.tolerations is in the wrong place: it belongs to loginsetDefaults.podSpec.tolerations"),
    ("restapi.resources.limits.cpu=1", "restapi.slurmrestd.resources (the container) or restapi.podSpec.resources (the pod)"),
    ("accounting.image=x", "accounting.image is in the wrong place: it belongs to accounting.slurmdbd.image"),
    ("nodesets.a.replica=2", "nodesets.a.replica: is no value of this chart"),
    ("controller.external=true", "controller.externalConfig.port: got null, want integer"),
    ("nodesets.A.replicas=1", "nodesets.A: is no value of this chart"),
    ("nodesets.a.replicas=-1", "nodesets.a.replicas: -1 is out of range"),
    ("nodesets.a.replicas=two", "nodesets.a.replicas: got string, want integer or null"),
    ("nodesets.a.scalingMode=Set", "nodesets.a.scalingMode: Set is none of DaemonSet, StatefulSet"),
    ("nodesets.a.slurmd.image.name=x", "nodesets.a.slurmd.image: no such value can be here"),
    ("prologScriptRefs[0].key=x", "prologScriptRefs[0].name: is missing"),
    ("vendor.nvidia.dcgm.jobMappingDir=x", 'vendor.nvidia.dcgm.jobMappingDir: "x" does not match'),
    ("partitions.x.enabled=true", "partitions.x.nodesets is empty"),
    ("partitions.x.enabled=true,partitions.x.nodesets[0]=gone", "partitions.x.nodesets: gone is no key of nodesets"),
    ("partitions.x.enabled=true,partitions.x.nodesets[0]=off,nodesets.off.enabled=false", "partitions.x.nodesets: off is not enabled"),
    ("bridge.prologAddress=b", 'bridge.prologAddress: "b" does not match'),
    ("bridge.prologAddress=b:1,controller.extraConf=BatchStartTimeout=30", "BatchStartTimeout=30 is less than bridge.prologWaitSeconds and 10 s more"),
    ("bridge.prologAddress=b:1,controller.extraConfMap.PrologEpilogTimeout=69", "PrologEpilogTimeout=69 is less than"),
    ("clusterName=" + 41 * "x", "clusterName: has 41 characters"),
])
def test_a_value_that_cannot_work_is_refused_with_its_reason(words: str, text: str) -> None:
    assert text in refusal("--set", words)


# ---- the prolog that waits for pods ----


class Bridge(BaseHTTPRequestHandler):
    """Answers as it is told, then with a text that is no number."""

    answers: ClassVar[list[str]] = []
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = (self.answers.pop(0) if self.answers else "Slurm is being read") + "\n"
        self.send_response(200 if body.strip().isdigit() else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def bridge() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bridge)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Bridge.answers.clear()
    Bridge.asked.clear()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def waited(address: str, seconds: int) -> float:
    """How long the prolog holds a job back. It never fails."""
    objects = crds.from_yaml(template(*sets(f"bridge.prologAddress={address}", f"bridge.prologWaitSeconds={seconds}")))
    [script] = [one["data"]["00-bridge-prolog.sh"] for one in objects if one["metadata"]["name"] == "slurm-prolog-bridge"]
    begin = time.monotonic()
    subprocess.run(["bash", "-eu", "-c", script], env={"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "w-0"}, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def test_a_job_starts_when_the_pods_have_left_its_node(bridge: ThreadingHTTPServer) -> None:
    Bridge.answers.extend(["2", "1", "0"])
    assert waited(f"127.0.0.1:{bridge.server_port}", 60) < 50
    assert len(Bridge.asked) == 3 and all(re.fullmatch(r"/v1/nodes/w-0/ending\?job=12&waited=[0-9]+", path) for path in Bridge.asked)
    times = [int(path.rpartition("=")[2]) for path in Bridge.asked]
    assert times[0] < times[1] < times[2], "it says how long it has waited"


def test_a_job_waits_for_an_answer_no_longer_than_is_allowed_and_says_that_it_starts(bridge: ThreadingHTTPServer) -> None:
    Bridge.answers.extend(["1", "no number", "1"])
    assert waited(f"127.0.0.1:{bridge.server_port}", 2) >= 2
    assert [path.endswith("&last=1") for path in Bridge.asked] == [False] * (len(Bridge.asked) - 1) + [True]


def test_a_job_starts_without_a_bridge_after_the_time_that_is_allowed() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        assert 1 <= waited(f"127.0.0.1:{closed.getsockname()[1]}", 1)


def test_a_bridge_that_is_silent_does_not_hold_a_job_for_ever() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert 1 <= waited(f"127.0.0.1:{silent.getsockname()[1]}", 1) < 60


# ---- the scripts for DCGM ----


def test_a_job_is_named_for_each_of_its_gpus_until_it_ends(tmp_path: Path) -> None:
    folder = tmp_path / "map ping"
    objects = crds.from_yaml(template(*sets("vendor.nvidia.dcgm.enabled=true", f"vendor.nvidia.dcgm.jobMappingDir={folder}")))
    scripts = {name: text for one in objects if one["kind"] == "ConfigMap" for name, text in one["data"].items()}

    def run(name: str, job: str, gpus: str | None) -> dict[str, str]:
        env = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": job} | ({"SLURM_JOB_GPUS": gpus} if gpus is not None else {})
        subprocess.run(["sh", "-eu", "-c", scripts[name]], env=env, check=True)
        return {path.name: path.read_text() for path in sorted(folder.glob("*"))}

    prolog, epilog = "prolog-90-dcgm.sh", "epilog-90-dcgm.sh"
    assert run(prolog, "7", None) == {} and not folder.exists()
    assert run(prolog, "7", "0,3") == {"0": "7\n", "3": "7\n"}
    assert run(prolog, "8", "1") == {"0": "7\n", "1": "8\n", "3": "7\n"}
    assert run(epilog, "7", "0,1,3") == {"1": "8\n"}
    assert run(epilog, "8", None) == {"1": "8\n"}
    assert run(epilog, "8", "1,2") == {}


# ---- documentation, program, images ----


def test_the_documentation_has_every_value() -> None:
    text = (REPO / "docs/slurm-chart.md").read_text()
    known = set()
    for name in re.findall(r"`([\w.{},/<>]+)`", text):
        head, _, rest = name.partition("{")
        known |= {head + one + rest.partition("}")[2] for one in rest.partition("}")[0].split(",")} if rest else {name}
    missing = {key for key in keys(CHART / "values.yaml") if not any(key == one or key.startswith(f"{one}.") for one in known)}
    assert not missing


def test_the_chart_names_the_images_that_are_built() -> None:
    chart = (CHART / "Chart.yaml").read_text()
    program = re.search(r"^ *version: '([^']+)'", (REPO / "meson.build").read_text(), re.M)[1]
    assert f"version: {program}" in chart and f'appVersion: "{versions()["SLURM_VERSION"]}"' in chart
    assert f"localhost/slinc/slurmctld:{versions()['SLURM_VERSION']}-debian" in template()
    assert f"localhost/slinc/slinc:{program}" in template()


def test_the_program_knows_every_flag_that_the_chart_gives_it() -> None:
    shown = subprocess.run([BUILD / "src/cmd/slinc", "keys", "--help"], text=True, capture_output=True, check=True).stdout
    given = set(re.findall(r"^ +- '?(--[a-z-]+)", template(*sets("slurmKey.annotations.a=b", "slurmKey.secretRef.key=k", "jwtKey.create=false")), re.M))
    assert {"--slurm-secret", "--slurm-key", "--slurm-annotations", "--protect", "--delete", "--labels"} <= given
    assert given - set(re.findall(r"^  (--[a-z-]+)", shown, re.M)) == set()


def test_a_package_holds_no_tests(tmp_path: Path) -> None:
    assert helm("package", CHART, "--destination", tmp_path).returncode == 0
    listed = subprocess.run(["tar", "-tzf", next(tmp_path.iterdir())], text=True, capture_output=True, check=True).stdout
    assert "slurm/schema.json" in listed and "/tests/" not in listed
