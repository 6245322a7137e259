"""The definitions of slurm-operator-crds in a real API server: what it takes, stores, adds, refuses and shows; and that objects outlive an upgrade
and an uninstall of the chart. That the chart has every field, tests/charts/test_slurm_operator_crds.py checks."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

import pytest
from definitions import RELEASE, Definitions, installed, older_chart
from slincdev.cluster import Cluster
from slincdev.common import REPO, Fail
from slincdev.crds import CHART, KINDS, from_yaml
from slincdev.kube import ApiError

HOME = "operator-crds"
KEY = {"name": "keys", "key": "key"}
KEYS = {"slurmKeyRef": KEY, "jwtKeyRef": KEY}
REF = {"controllerRef": {"name": "slurm"}}
LEAST = {"controllers": KEYS, "restapis": REF, "accountings": KEYS, "loginsets": REF | {"sssdConfRef": KEY}, "nodesets": REF, "tokens": {"jwtKeyRef": KEY, "username": "slurm"}}
READY = {"type": "Ready", "status": "False", "reason": "PodsNotReady", "message": "0 of 1 pods are ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def definitions(cluster: Cluster) -> Iterator[Definitions]:
    with installed(cluster, HOME) as found:
        yield found


@pytest.fixture(autouse=True)
def no_objects(definitions: Definitions) -> Iterator[None]:
    yield
    for plural in KINDS:
        definitions.api.delete(definitions.path(plural))


@pytest.fixture(scope="module")
def recorded() -> list[tuple[str, dict]]:
    """Objects as another operator's cluster had them; there is no Token among them."""
    plurals = KINDS[:-1]
    text = "\n".join((REPO / f"tests/fixtures/{folder}/{plural}.yaml").read_text() for folder in ("slinky-1.2.1", "slinky-main") for plural in plurals)
    return list(zip(plurals * 2, from_yaml(text), strict=True))


def test_an_object_of_another_operator_is_stored_without_a_change(definitions, recorded):
    for plural, one in recorded:
        meta = {key: value for key, value in one["metadata"].items() if key in ("name", "labels", "annotations")}
        made = definitions.api.post(definitions.path(plural), {**one, "metadata": meta})
        path = definitions.path(plural, meta["name"])
        assert made["spec"] == one["spec"] and {key: made["metadata"][key] for key in meta} == meta
        if "status" in one:
            assert definitions.api.merge(f"{path}/status", {"status": one["status"]})["status"] == one["status"]
        definitions.api.delete(path)


def test_what_a_person_applies_is_stored_as_another_operator_stored_it(definitions, recorded, tmp_path):
    for plural, one in recorded:
        sent = json.loads(one["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
        sent["metadata"]["namespace"] = HOME
        (tmp_path / "sent.json").write_text(json.dumps(sent))
        definitions.kubectl("apply", "-f", tmp_path / "sent.json")
        path = definitions.path(plural, sent["metadata"]["name"])
        assert definitions.api.get(path)["spec"] == one["spec"]
        definitions.api.delete(path)


def test_defaults_are_set_where_the_block_around_them_is_given(definitions):
    refs = {"accountingRef": {}, "configFileRefs": [{}]}
    made = definitions.make("controllers", "blocks", KEYS | refs | {"ha": {}, "persistence": {}, "metrics": {"serviceMonitor": {}}})["spec"]
    named = {"accountingRef": {"name": ""}, "configFileRefs": [{"name": ""}]}
    assert made == KEYS | named | {"external": False, "inplaceReconfigure": False, "ha": {"enabled": False, "backups": 1}, "persistence": {"enabled": True},
                                   "metrics": {"enabled": False, "serviceMonitor": {"enabled": False}}}
    made = definitions.make("nodesets", "blocks", REF | {"updateStrategy": {"rollingUpdate": {}, "scheduledUpdate": {}}, "partition": {}, "ssh": {"sssdConfRef": KEY},
                                                         "persistentVolumeClaimRetentionPolicy": {}})["spec"]
    plain = definitions.make("nodesets", "plain", LEAST["nodesets"])["spec"]
    assert plain == REF | {"replicas": 1, "scalingMode": "StatefulSet", "revisionHistoryLimit": 0, "ordinalPadding": 0, "pinToNode": False,
                           "workloadDisruptionProtection": True, "pruneSlurmNodeRecords": "Never", "oversubscribeNode": False}
    assert made == plain | {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}, "scheduledUpdate": {"duration": "30m"}},
                            "partition": {"enabled": False}, "ssh": {"enabled": False, "extraSshdConfig": "", "sssdConfRef": KEY},
                            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}}
    database = {"host": "db", "passwordKeyRef": KEY}
    assert definitions.make("accountings", "blocks", KEYS | {"storageConfig": database})["spec"]["storageConfig"] == database | {"port": 3306, "database": "slurm_acct_db"}
    assert definitions.make("restapis", "plain", REF)["spec"]["replicas"] == definitions.make("loginsets", "plain", LEAST["loginsets"])["spec"]["replicas"] == 1
    assert definitions.make("tokens", "plain", LEAST["tokens"])["spec"]["refresh"] is True


def test_nothing_of_a_schemaless_block_is_lost_and_its_null_is_taken(definitions):
    block = {"env": [{"name": "A", "value": ""}], "unknown": {"deep": [1, None, {"x": False}]}}
    claims = [{"metadata": {"name": "scratch"}, "spec": {"resources": {"requests": {"storage": 1}}}}]
    sent = {"slurmd": block, "logfile": None, "template": {"metadata": {"labels": None}, "spec": block}, "volumeClaimTemplates": claims}
    made = definitions.make("nodesets", "any", REF | sent)["spec"]
    assert {key: made.get(key) for key in sent} == sent
    sent = {"template": {"spec": None}, "service": {"metadata": {"annotations": {"a": "b"}}, "spec": {"type": "NodePort", "unknown": 1}, "port": 0, "nodePort": 30000}}
    made = definitions.make("restapis", "any", REF | sent)["spec"]
    assert {key: made[key] for key in sent} == sent
    lists = dict.fromkeys([f"{name}ScriptRefs" for name in ("prolog", "epilog", "prologSlurmctld", "epilogSlurmctld")] + ["configFileRefs"])
    definitions.make("controllers", "any", KEYS | lists | {"metrics": {"serviceMonitor": None}})


def test_what_cannot_work_is_refused_with_a_message_that_names_the_field(definitions):
    ha = KEYS | {"ha": {"enabled": True}}
    shared = "ha.enabled needs persistence.enabled and persistence.existingClaim, a claim that all replicas share"
    planned = "spec.updateStrategy.scheduledUpdate: Required value: scheduledUpdate.startTime and scheduledUpdate.duration are needed when type is ScheduledUpdate"
    for plural in ("controllers", "accountings"):
        assert "spec.slurmKeyRef: Required value: slurmKeyRef is needed unless external is true" in definitions.refusal(plural, {"jwtKeyRef": KEY})
        assert "spec.jwtKeyRef: Required value: jwtKeyRef is needed unless external is true" in definitions.refusal(plural, {"slurmKeyRef": KEY})
        assert "spec.externalConfig: Required value: externalConfig is needed when external is true" in definitions.refusal(plural, {"external": True})
        definitions.make(plural, "external", {"external": True, "externalConfig": {"host": "a", "port": 1}})
        definitions.make(plural, "former", {"slurmKeyRef": KEY, "jwtHs256KeyRef": KEY})
    for persistence in ({}, {"persistence": {}}, {"persistence": {"existingClaim": ""}}, {"persistence": {"enabled": False, "existingClaim": "x"}}):
        refused = definitions.refusal("controllers", ha | persistence)
        assert "spec.persistence: Invalid value" in refused and shared in refused and "evaluating rule" not in refused
    definitions.make("controllers", "ha", ha | {"persistence": {"existingClaim": "shared"}})
    for strategy in ({}, {"scheduledUpdate": {}}, {"scheduledUpdate": {"duration": "1h"}}):
        assert planned in definitions.refusal("nodesets", REF | {"updateStrategy": {"type": "ScheduledUpdate"} | strategy})
    definitions.make("nodesets", "planned", REF | {"updateStrategy": {"type": "ScheduledUpdate", "scheduledUpdate": {"startTime": "2026-01-01T00:00:00Z"}}})
    assert "spec.jwtKeyRef: Required value: jwtKeyRef is needed" in definitions.refusal("tokens", {"username": "slurm"})
    for plural, spec, words in (
            ("restapis", {}, "spec.controllerRef: Required value"), ("loginsets", REF, "spec.sssdConfRef: Required value"),
            ("nodesets", REF | {"ssh": {"sssdConfRef": {"name": "x"}}}, "spec.ssh.sssdConfRef.key: Required value"),
            ("nodesets", REF | {"partition": {"config": ""}}, "spec.partition.config: Invalid value"),
            ("nodesets", REF | {"partition": {"config": "a\nb"}}, "spec.partition.config: Invalid value"),
            ("nodesets", REF | {"scalingMode": "Deployment"}, "spec.scalingMode: Unsupported value"), ("nodesets", REF | {"slurmd": "x"}, "spec.slurmd: Invalid value"),
            ("controllers", KEYS | {"ha": {"backups": 0}}, "spec.ha.backups: Invalid value"),
            ("controllers", KEYS | {"metrics": {"serviceMonitor": {"interval": "soon"}}}, "spec.metrics.serviceMonitor.interval: Invalid value")):
        assert words in definitions.refusal(plural, spec)


def test_an_object_without_a_spec_is_taken_by_every_kind(definitions):
    for plural in KINDS:
        assert "spec" not in definitions.make(plural, "bare", None)
    for plural, extra in (("tokens", {"lifetime": "1 hour"}), ("nodesets", {"ordinalPadding": -1})):  # the operator says in a condition what is wrong with them
        definitions.make(plural, "odd", LEAST[plural] | extra)


def test_kubectl_shows_each_kind_by_its_short_names_with_its_columns(definitions):
    shown = {
        "slurmctld": "NAME READY STATUS AGE", "slurmrestd": "NAME READY STATUS AGE", "slurmdbd": "NAME READY STATUS AGE",
        "lss": "NAME REPLICAS READY STATUS AGE", "sackd": "NAME REPLICAS READY STATUS AGE", "jwt": "NAME USER IAT READY STATUS AGE",
        "nss": "NAME DESIRED REPLICAS UPDATED READY AGE", "slurmd": "NAME DESIRED REPLICAS UPDATED READY AGE"}
    for plural in KINDS:
        definitions.make(plural, "one", LEAST[plural])
        more = {"nodesets": {"selector": "a=b", "nodeSetHash": "1"}, "loginsets": {"selector": "a=b", "replicas": 3}}.get(plural, {})
        definitions.api.merge(f"{definitions.path(plural, 'one')}/status", {"status": {"observedGeneration": 1, "conditions": [READY]} | more})
    for short, header in shown.items():
        lines = definitions.kubectl("get", short).splitlines()
        assert lines[0].split() == header.split() and lines[1].startswith("one ")
        assert "READY STATUS" not in header or "False" in lines[1] and "PodsNotReady" in lines[1]
    assert definitions.kubectl("get", "nss", "-o", "wide").split("\n")[0].split() == "NAME DESIRED REPLICAS UPDATED READY IDLE ALLOCATED DOWN DRAIN AGE".split()
    assert "slurm" in definitions.kubectl("get", "jwt").splitlines()[1].split()
    assert "Number of backups" in definitions.kubectl("explain", "slurmctld.spec.ha.backups")


def test_conditions_are_merged_by_type_and_references_are_replaced_whole(definitions):
    path = definitions.path("controllers", "one")
    definitions.make("controllers", "one", KEYS | {"accountingRef": {"name": "first"}})
    for manager, kind in (("a", "Ready"), ("b", "Progressing")):
        definitions.server_side_apply(f"{path}/status", manager, {"status": {"conditions": [READY | {"type": kind}]}})
    assert [one["type"] for one in definitions.api.get(path)["status"]["conditions"]] == ["Ready", "Progressing"]
    definitions.server_side_apply(path, "a", {"spec": {"slurmKeyRef": {"key": "other"}}})
    assert definitions.api.get(path)["spec"]["slurmKeyRef"] == {"name": "", "key": "other"}


def test_kubectl_and_autoscalers_scale_node_sets_and_login_sets(definitions):
    for plural, extra in (("nodesets", {"nodeSetHash": "1"}), ("loginsets", {})):
        path = definitions.path(plural, "one")
        definitions.make(plural, "one", LEAST[plural])
        definitions.kubectl("scale", f"{plural}.slinky.slurm.net/one", "--replicas=0")
        assert definitions.api.get(path)["spec"]["replicas"] == 0
        definitions.api.merge(f"{path}/status", {"status": {"replicas": 3, "selector": "a=b"} | extra})
        scale = definitions.api.get(f"{path}/scale")
        assert (scale["spec"].get("replicas", 0), scale["status"]) == (0, {"replicas": 3, "selector": "a=b"})
    definitions.make("restapis", "one", REF)
    with pytest.raises(ApiError, match="404"):
        definitions.api.get(f"{definitions.path('restapis', 'one')}/scale")


def test_objects_outlive_an_upgrade_an_uninstall_and_a_new_install(definitions, tmp_path, eventually):
    def identities() -> list[tuple]:
        objects = [definitions.api.get(definitions.path(plural, "stays")) for plural in KINDS]
        return [(one["metadata"]["uid"], one["metadata"]["generation"], one["spec"]) for one in objects]

    definitions.upgrade(older_chart(tmp_path))
    eventually("the older definition is served", lambda: not definitions.serve_ha())
    for plural in KINDS:
        definitions.make(plural, "stays", copy.deepcopy(LEAST[plural]))
    before = identities()
    definitions.upgrade(CHART)
    eventually("the newer definition is served", definitions.serve_ha)
    assert identities() == before
    definitions.helm("uninstall", RELEASE)
    assert all(map(definitions.is_installed, KINDS)) and identities() == before
    definitions.install()
    assert identities() == before
    with pytest.raises(Fail, match="cannot be imported"):
        definitions.helm("install", "another", CHART)
    definitions.helm("install", "another", CHART, "--take-ownership")
    assert identities() == before
