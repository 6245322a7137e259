"""The definitions of the chart beside the interface that users of slinky.slurm.net/v1beta1 know: every field with its type, default and limits,
every print column and rule; and beside objects that another operator's definitions took and stored. tests/e2e/test_operator_crds.py gives
the same definitions to a real API server."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from conftest import REPO, helm
from slincdev import crds

FIXTURES = REPO / "tests/fixtures"

# Fields that more than one kind has. A row of the tables below that names one of them stands for its rows.
KEY = "object, atomic\n.name string, default \"\"\n.key string, required\n.optional boolean"
REF = "object, atomic\n.name string, default \"\""
REFS = "list of object, nullable, atomic\n[].name string, default \"\""
ANY = "schemaless object, nullable"
LABELS = "map of string, nullable"
META = f"object\n.labels {LABELS}\n.annotations {LABELS}"
EXTERNAL = "object\n.host string, required\n.port integer, required"
SHARED = {
    "KEY": KEY, "REF": REF, "REFS": REFS, "ANY": ANY, "EXTERNAL": EXTERNAL,
    "TEMPLATE": "object\n.metadata META\n.spec ANY", "META": META,
    "SERVICE": "object\n.metadata META\n.spec ANY\n.port integer\n.nodePort integer",
    "METRICS": f"""object
.enabled boolean, default false
.serviceMonitor object, nullable
.serviceMonitor.enabled boolean, default false
.serviceMonitor.labels {LABELS}
.serviceMonitor.annotations {LABELS}
.serviceMonitor.interval string, with a pattern
.serviceMonitor.scrapeTimeout string, with a pattern
.serviceMonitor.endpoints list of object, nullable
.serviceMonitor.endpoints[].path string, required
.serviceMonitor.endpoints[].interval string, with a pattern
.serviceMonitor.endpoints[].scrapeTimeout string, with a pattern""",
    "CONDITIONS": """list of object, keyed by type
[].type string, required, with a pattern
[].status string, required, one of True False Unknown
[].reason string, required, with a pattern
[].message string, required
[].lastTransitionTime string, required, date-time
[].observedGeneration integer, at least 0""",
}

STATUS = """
status.conditions CONDITIONS
status.observedGeneration integer
"""

KEYS = """
spec.slurmKeyRef KEY
spec.jwtKeyRef KEY
spec.jwtHs256KeyRef KEY
spec.jwksKeyRef KEY
spec.external boolean, default false
spec.externalConfig EXTERNAL
"""

TABLES = {
    "controllers": KEYS + STATUS + """
spec.clusterName string
spec.accountingRef REF
spec.ha object
spec.ha.enabled boolean, required, default false
spec.ha.backups integer, default 1, at least 1
spec.slurmctld ANY
spec.reconfigure ANY
spec.logfile ANY
spec.inplaceReconfigure boolean, default false
spec.template TEMPLATE
spec.extraConf string
spec.configFileRefs REFS
spec.prologScriptRefs REFS
spec.epilogScriptRefs REFS
spec.prologSlurmctldScriptRefs REFS
spec.epilogSlurmctldScriptRefs REFS
spec.persistence object
spec.persistence.enabled boolean, required, default true
spec.persistence.existingClaim string
spec.persistence.accessModes list of string
spec.persistence.dataSource object, atomic
spec.persistence.dataSource.apiGroup string
spec.persistence.dataSource.kind string, required
spec.persistence.dataSource.name string, required
spec.persistence.dataSourceRef object
spec.persistence.dataSourceRef.apiGroup string
spec.persistence.dataSourceRef.kind string, required
spec.persistence.dataSourceRef.name string, required
spec.persistence.dataSourceRef.namespace string
spec.persistence.resources object
spec.persistence.resources.limits map of integer or string
spec.persistence.resources.requests map of integer or string
spec.persistence.selector object, atomic
spec.persistence.selector.matchLabels map of string
spec.persistence.selector.matchExpressions list of object
spec.persistence.selector.matchExpressions[].key string, required
spec.persistence.selector.matchExpressions[].operator string, required
spec.persistence.selector.matchExpressions[].values list of string
spec.persistence.storageClassName string
spec.persistence.volumeAttributesClassName string
spec.persistence.volumeMode string
spec.persistence.volumeName string
spec.service SERVICE
spec.metrics METRICS
""",
    "accountings": KEYS + STATUS + """
spec.slurmdbd ANY
spec.template TEMPLATE
spec.service SERVICE
spec.storageConfig object
spec.storageConfig.host string, required
spec.storageConfig.port integer, default 3306
spec.storageConfig.database string, default "slurm_acct_db"
spec.storageConfig.username string
spec.storageConfig.passwordKeyRef KEY, required
spec.extraConf string
""",
    "restapis": STATUS + """
spec.controllerRef REF, required
spec.replicas integer, default 1
spec.slurmrestd ANY
spec.template TEMPLATE
spec.service SERVICE
""",
    "loginsets": STATUS + """
spec.controllerRef REF, required
spec.replicas integer, default 1
spec.login ANY
spec.initconf ANY
spec.template TEMPLATE
spec.rootSshAuthorizedKeys string
spec.extraSshdConfig string
spec.sssdConfRef KEY, required
spec.strategy object
spec.strategy.type string
spec.strategy.rollingUpdate object
spec.strategy.rollingUpdate.maxSurge integer or string
spec.strategy.rollingUpdate.maxUnavailable integer or string
spec.service SERVICE
status.replicas integer
status.selector string, required
""",
    "nodesets": STATUS + """
spec.controllerRef REF, required
spec.replicas integer, default 1
spec.scalingMode string, default "StatefulSet", one of DaemonSet StatefulSet
spec.slurmd ANY
spec.logfile ANY
spec.ssh object
spec.ssh.enabled boolean, default false
spec.ssh.extraSshdConfig string, default ""
spec.ssh.sssdConfRef KEY, required
spec.template TEMPLATE
spec.extraConf string
spec.partition object
spec.partition.enabled boolean, default false
spec.partition.config string, with a pattern
spec.volumeClaimTemplates list of schemaless object, nullable
spec.updateStrategy object
spec.updateStrategy.type string, default "RollingUpdate", one of RollingUpdate OnDelete ScheduledUpdate
spec.updateStrategy.rollingUpdate object
spec.updateStrategy.rollingUpdate.maxUnavailable integer or string, default "25%"
spec.updateStrategy.scheduledUpdate object
spec.updateStrategy.scheduledUpdate.startTime string, date-time
spec.updateStrategy.scheduledUpdate.duration string, default "30m"
spec.updateStrategy.scheduledUpdate.flags list of string, nullable
spec.revisionHistoryLimit integer, default 0
spec.persistentVolumeClaimRetentionPolicy object
spec.persistentVolumeClaimRetentionPolicy.whenDeleted string, default "Retain", one of Retain Delete
spec.persistentVolumeClaimRetentionPolicy.whenScaled string, default "Retain", one of Retain Delete
spec.minReadySeconds integer
spec.ordinalPadding integer, default 0
spec.pinToNode boolean, default false
spec.workloadDisruptionProtection boolean, default true
spec.pruneSlurmNodeRecords string, default "Never", one of Never NodeNotFound
spec.oversubscribeNode boolean, default false
status.replicas integer
status.updatedReplicas integer
status.readyReplicas integer
status.availableReplicas integer
status.unavailableReplicas integer
status.desired integer
status.slurmIdle integer
status.slurmAllocated integer
status.slurmDown integer
status.slurmDrain integer
status.nodeSetHash string, required
status.collisionCount integer
status.ordinalToNode map of string
status.selector string, required
""",
    "tokens": STATUS + """
spec.jwtKeyRef KEY
spec.jwtHs256KeyRef KEY
spec.username string, required
spec.lifetime string
spec.refresh boolean, default true
spec.secretRef KEY
status.issuedAt string, date-time
""",
}

LEVEL = int(re.search(r"DEFINITIONS_LEVEL = (\d+)", (REPO / "src/cli/definitions.h").read_text())[1])
OF_LEVEL = (1, "02efdc55bc8bfd44")  # a hash of all fields

# Kind, short names, print columns with their paths; "+" marks those that only -o wide shows.
READY = 'READY=.status.conditions[?(@.type=="Ready")].status STATUS=.status.conditions[?(@.type=="Ready")].reason'
AGE = "AGE=.metadata.creationTimestamp"
NAMES = {
    "controllers": ("Controller", "slurmctld", f"{READY} {AGE}"),
    "restapis": ("RestApi", "slurmrestd", f"{READY} {AGE}"),
    "accountings": ("Accounting", "slurmdbd", f"{READY} {AGE}"),
    "loginsets": ("LoginSet", "loginsets lss sackd", f"REPLICAS=.status.replicas {READY} {AGE}"),
    "nodesets": ("NodeSet", "nodesets nss slurmd",
                 "DESIRED=.status.desired REPLICAS=.status.replicas UPDATED=.status.updatedReplicas READY=.status.readyReplicas IDLE+=.status.slurmIdle "
                 f"ALLOCATED+=.status.slurmAllocated DOWN+=.status.slurmDown DRAIN+=.status.slurmDrain {AGE}"),
    "tokens": ("Token", "tokens jwt", f"USER=.spec.username IAT=.status.issuedAt {READY} {AGE}"),
}


@pytest.fixture(scope="module")
def definitions() -> dict[str, dict]:
    return crds.definitions()


def expanded(table: str, path: str = "") -> dict[str, str]:
    """The rows of a table, with those of shared types in place of their names."""
    found = {}
    for row in filter(None, table.splitlines()):
        name, facts = row.split(" ", 1)
        word, _, more = facts.partition(", ")
        if word in SHARED:
            first, _, rest = SHARED[word].partition("\n")
            words = first.split(", ")
            facts = ", ".join([words[0], more, *words[1:]] if more else words)
            found |= expanded(rest, path + name)
        found[path + name] = facts
    return found


@pytest.mark.parametrize("plural", TABLES)
def test_a_kind_has_every_field_of_the_other_operators_definitions_as_it_is_there(definitions: dict, plural: str) -> None:
    schema = crds.schema_of(definitions[plural])["properties"]
    fields = {field.path: field.facts for part in ("spec", "status") for field in crds.fields(schema[part], part)}
    there = expanded(TABLES[plural])
    assert {path: fields.get(path) for path in there} == there
    assert {path for path in fields if path not in there and not path.startswith("spec.")} == set(), "fields of ours are in the spec"


@pytest.mark.parametrize("plural", TABLES)
def test_a_kind_has_its_names_columns_and_subresources(definitions: dict, plural: str) -> None:
    kind, short, columns = NAMES[plural]
    crd = definitions[plural]
    names, (version,) = crd["spec"]["names"], crd["spec"]["versions"]
    assert (crd["metadata"]["name"], crd["spec"]["group"], crd["spec"]["scope"]) == (f"{plural}.slinky.slurm.net", "slinky.slurm.net", "Namespaced")
    assert names == {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower(), "shortNames": short.split()}
    assert (version["name"], version["served"], version["storage"]) == ("v1beta1", True, True)
    assert " ".join(f"{one['name']}{'+' * one.get('priority', 0)}={one['jsonPath']}" for one in version["additionalPrinterColumns"]) == columns
    assert {one["name"]: one["type"] for one in version["additionalPrinterColumns"] if one["type"] == "date"}.keys() == {"AGE", "IAT"} & set(re.findall(r"[A-Z]+", columns))
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
    assert version["subresources"] == {"status": {}} | ({"scale": scale} if plural in ("loginsets", "nodesets") else {})


def test_no_kind_needs_a_spec_and_all_have_a_description_of_every_field(definitions: dict) -> None:
    for crd in definitions.values():
        schema = crds.schema_of(crd)
        assert "required" not in schema and schema["description"]
        assert [field.path for field in crds.fields(schema) if not field.about] == ["metadata"]
        assert ": null" not in json.dumps(crd), "a comma in a description made a key of its rest"
        assert all(column["description"] for column in crd["spec"]["versions"][0]["additionalPrinterColumns"])


def test_every_field_that_a_plan_reads_has_a_row_and_a_default() -> None:
    has_default = {row.path for row in crds.rows() if row.absent or row.type == "count"}
    read = {path for file in (REPO / "src/operator").glob("*.c") for path in re.findall(r'spec_(?:flag|number)\([^";]+"([A-Za-z.]+)"\)', file.read_text())}
    assert len(read) > 15 and read - has_default == {"template.spec.hostNetwork"}, "which is in a PodSpec"


def test_what_is_made_from_the_fields_is_as_the_operator_prints_them() -> None:
    written = {plural: (crds.SPECS / f"{plural}.json").read_text() for plural in crds.KINDS}
    again = "write it again: PYTHONPATH=dev python3 -m slincdev.crds"
    assert written == {plural: crds.spec_text(spec) for plural, spec in crds.specs().items()}, again
    assert crds.VALUES_SCHEMA.read_text() == crds.chart_schema(crds.VALUES_SCHEMA.read_text()), again


def test_a_type_that_has_no_schema_stops_the_writing() -> None:
    with pytest.raises(KeyError):
        crds.spec_schema([crds.Row("nodesets", "x", "Unknown", "", "", "A field.")])


def test_every_rule_tests_that_a_field_exists_before_it_reads_it(definitions: dict) -> None:
    found = [rule for crd in definitions.values() for _, rule in crds.rules(crds.schema_of(crd)["properties"]["spec"], "spec")]
    assert len(found) == 4 + 3 + 1 + 1
    for rule in found:
        reads = set(re.findall(r"self(?:\.\w+)+", rule["rule"]))
        assert reads <= set(re.findall(r"has\((self(?:\.\w+)+)\)", rule["rule"])), rule["rule"]


@pytest.mark.parametrize(("pattern", "good", "bad"), [
    ("spec.partition.config", ["Default=YES MaxTime=UNLIMITED"], ["", "a\nb"]),
    ("spec.metrics.serviceMonitor.interval", ["30s", "1m30s", "0"], ["30", "soon"]),
])
def test_a_pattern_takes_what_slurm_and_prometheus_take(definitions: dict, pattern: str, good: list[str], bad: list[str]) -> None:
    schema = crds.schema_of(definitions["nodesets" if "partition" in pattern else "controllers"])
    for name in pattern.split("."):
        schema = schema["properties"][name]
    assert all(re.search(schema["pattern"], text) for text in good)
    assert not any(re.search(schema["pattern"], text) for text in bad)


def stored(value: object, schema: dict) -> object:
    """What an API server keeps of a value: defaults are added, nulls and unknown fields are left out."""
    if isinstance(value, list):
        return [stored(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict):
        return value
    known, open_ = schema.get("properties", {}), schema.get("x-kubernetes-preserve-unknown-fields")
    kept = {key: stored(one, known.get(key) or schema.get("additionalProperties", {"x-kubernetes-preserve-unknown-fields": open_}))
            for key, one in value.items() if one is not None and (key in known or open_ or "additionalProperties" in schema)}
    return {name: one["default"] for name, one in known.items() if "default" in one} | kept


@pytest.mark.parametrize("folder", ["slinky-1.2.1", "slinky-main"])
@pytest.mark.parametrize("plural", ["controllers", "restapis", "accountings", "loginsets", "nodesets"])
def test_an_object_sent_to_another_operator_is_stored_here_as_it_was_there(definitions: dict, folder: str, plural: str) -> None:
    (there,) = crds.from_yaml((FIXTURES / folder / f"{plural}.yaml").read_text())
    sent = json.loads(there["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    schema = crds.schema_of(definitions[plural])["properties"]
    assert stored(sent["spec"], schema["spec"]) == there["spec"]
    assert stored(there["spec"], schema["spec"]) == there["spec"]
    assert stored(there.get("status"), schema["status"]) == there.get("status")


def test_lint_finds_nothing() -> None:
    done = helm("lint", "--strict", crds.CHART)
    assert done.returncode == 0, done.stdout


def test_other_fields_have_another_level(definitions: dict) -> None:
    """The programs tell by it that a definition is older than they are."""
    fields = sorted(f"{plural} {path}" for plural, table in TABLES.items() for path in expanded(table))
    assert (LEVEL, hashlib.sha256("\n".join(fields).encode()).hexdigest()[:16]) == OF_LEVEL, \
        "raise DEFINITIONS_LEVEL in src/cli/definitions.h and slinc.slurm.net/definitions in _crd.tpl, and put level and hash here"
    assert {one["metadata"]["annotations"]["slinc.slurm.net/definitions"] for one in definitions.values()} == {str(LEVEL)}


def test_the_reference_describes_the_definitions(definitions: dict) -> None:
    written = crds.REFERENCE.read_text().partition(crds.BEGIN)[2]
    assert written == crds.reference(definitions), "write it again: PYTHONPATH=dev python3 -m slincdev.crds"
