"""The custom resource definitions of the chart slurm-operator-crds: as data, and as the reference docs/crds.md.

    PYTHONPATH=dev python3 -m slincdev.crds    # writes again what is made from the fields that the operator knows

`slinc operator --print-fields` prints them (src/operator/spec_tables.c). Made from them are the specs of the definitions, the part of the
schema of the chart slurm that is the same, and with the rest of the definitions the reference."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .build import bin_dir
from .common import REPO, run, versions
from .system import slinc

CHART = REPO / "charts/slurm-operator-crds"
REFERENCE = REPO / "docs/crds.md"
SPECS = CHART / "specs"
VALUES_SCHEMA = REPO / "charts/slurm/schema.json"
KINDS = ("controllers", "restapis", "accountings", "loginsets", "nodesets", "tokens")
BEGIN = "<!-- From here on the text is generated: PYTHONPATH=dev python3 -m slincdev.crds -->\n"
READER = """{{ range $path, $_ := .Files.Glob "*.yml" }}
---
{{ dict "path" $path "object" ($.Files.Get $path | fromYaml) | toJson }}
{{ end }}"""


class Field(NamedTuple):
    path: str  # below the object: "spec.ha.enabled"; "[]" stands for the items of a list
    facts: str  # type, whether it is required, default and limits
    about: str


def from_yaml(text: str) -> list[dict]:
    """The objects of a YAML text. Python brings no reader for YAML, helm does."""
    documents = [part for part in re.split(r"^---\s*$", text, flags=re.M) if re.search(r"^\w", part, re.M)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "templates").mkdir()
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: reader\nversion: 0.0.0\n")
        (folder / "templates/all.yaml").write_text(READER)
        for number, document in enumerate(documents):
            (folder / f"{number:04}.yml").write_text(document)
        shown = run([bin_dir() / "helm", "template", "reader", folder])
    found = sorted((json.loads(line) for line in shown.splitlines() if line.startswith("{")), key=lambda one: one["path"])
    assert len(found) == len(documents) and not any("Error" in one["object"] for one in found), found
    return [one["object"] for one in found]


def definitions() -> dict[str, dict]:
    """What the chart installs, by plural."""
    text = run([bin_dir() / "helm", "template", "crds", CHART, "--kube-version", versions()["KUBERNETES_VERSION"]])
    return {crd["spec"]["names"]["plural"]: crd for crd in from_yaml(text)}


# ---- from the fields that the operator knows ----


class Row(NamedTuple):
    """One field below a spec, as the operator prints it."""
    plural: str
    path: str
    type: str
    absent: str  # JSON, or empty
    traits: str  # R required, F fixed, N named, W replaces workers, C as it is in the chart slurm
    words: str

    def name(self) -> str:
        return self.path.rpartition(".")[2]

    def about(self) -> str:
        return self.words + " Cannot be changed." * ("F" in self.traits) + " A change replaces the workers." * ("W" in self.traits)


def rows() -> list[Row]:
    return [Row(*line.split("\t")) for line in run([slinc(), "operator", "--print-fields"]).splitlines()]


def _object(properties: dict, *required: str, **more: object) -> dict:
    return {"type": "object", **({"required": list(required)} if required else {}), **more, "properties": properties}


def _text(about: str, **more: object) -> dict:
    return {"type": "string", **more, "description": about}


def _items(of: dict, **more: object) -> dict:
    return {"type": "array", **more, "items": of}


ATOMIC = {"x-kubernetes-map-type": "atomic"}
OPEN = {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True}
EITHER = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
MAP = {"type": "object", "nullable": True, "additionalProperties": {"type": "string"}}
NUMBER = {"type": "integer", "format": "int32"}
NAME = {"name": _text("Name of the object.", default="")}
QUANTITIES = {"type": "object", "additionalProperties": {**EITHER, "pattern": (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$")}}
PERIOD = r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$"


def _metadata(of: str) -> dict:
    return _object({"labels": {**MAP, "description": "Labels to add."}, "annotations": {**MAP, "description": "Annotations to add."}},
                   description=f"Labels and annotations of the {of}.")


SOURCE = {"apiGroup": _text("API group of the source."), "kind": _text("Kind of the source."), "name": _text("Name of the source.")}
CLAIM = {
    "accessModes": _items({"type": "string"}, **{"x-kubernetes-list-type": "atomic"}, description="Access modes of the volume."),
    "dataSource": _object(SOURCE, "kind", "name", **ATOMIC, description="What the volume is filled from."),
    "dataSourceRef": _object({**SOURCE, "namespace": _text("Namespace of the source.")}, "kind", "name",
                             description="What the volume is filled from; any kind, in any namespace."),
    "resources": _object({"limits": {**QUANTITIES, "description": "Largest size."}, "requests": {**QUANTITIES, "description": "Smallest size."}},
                         description="Size of the volume."),
    "selector": _object({
        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Labels and their values."},
        "matchExpressions": _items(_object({"key": _text("Label."), "operator": _text("In, NotIn, Exists or DoesNotExist."), "values": _items(
            {"type": "string"}, **{"x-kubernetes-list-type": "atomic"}, description="Values of the label.")}, "key", "operator"),
            **{"x-kubernetes-list-type": "atomic"}, description="Conditions on labels.")}, **ATOMIC, description="Labels of the volumes to choose from."),
    "storageClassName": _text("StorageClass of the volume."),
    "volumeAttributesClassName": _text("VolumeAttributesClass of the volume."),
    "volumeMode": _text("Filesystem or Block."),
    "volumeName": _text("Name of the PersistentVolume."),
}


def _scrapes(of: str, **more: dict) -> dict:
    return {**more, "interval": _text(f"Time between two scrapes{of}.", pattern=PERIOD), "scrapeTimeout": _text(f"Time limit of one scrape{of}.", pattern=PERIOD)}


TYPES = {
    "boolean": {"type": "boolean"}, "string": {"type": "string"}, "time": {"type": "string", "format": "date-time"}, "line": {"type": "string", "pattern": r"^[^\n]+$"},
    "count": NUMBER, "from 1": {**NUMBER, "minimum": 1}, "port": {"type": "integer"}, "amount": EITHER, "object": _object({}),
    "[]string": _items({"type": "string"}, nullable=True),
    "Ref": _object(NAME, **ATOMIC),
    "[]Ref": _items(_object(NAME, **ATOMIC, description="Name of a ConfigMap."), nullable=True),
    "KeyRef": _object({**NAME, "key": _text("Key in the object."), "optional": {"type": "boolean", "description": "Accepted, without effect."}}, "key", **ATOMIC),
    "Container": OPEN,
    "[]PersistentVolumeClaim": _items({**OPEN, "description": "A PersistentVolumeClaim."}, nullable=True),
    "PodTemplate": _object({"metadata": _metadata("pods"), "spec": {**OPEN, "description": "A PodSpec, which is merged into the pods."}}),
    "Service": _object({
        "metadata": _metadata("Service"), "spec": {**OPEN, "description": "A ServiceSpec. The operator adds its port and its selector."},
        "port": {"type": "integer", "description": "Port of the Service. 0 is the default of the component."},
        "nodePort": {"type": "integer", "description": "Port on the nodes. 0 leaves the choice to the API server."}}),
    "Claim": _object(CLAIM),
    "Monitor": _object({
        "labels": {**MAP, "description": "Labels of the ServiceMonitor."}, "annotations": {**MAP, "description": "Annotations of the ServiceMonitor."}, **_scrapes(""),
        "endpoints": _items(_object(_scrapes(" of this path", path=_text("HTTP path of the metrics.")), "path"), nullable=True, description="The paths to scrape.")},
        nullable=True),
}


def _copy(value: object) -> object:
    return json.loads(json.dumps(value))


def _type(name: str) -> dict:
    if name.startswith("one of "):
        return {"type": "string", "enum": name.split()[2:]}
    return _copy(TYPES[name])


def spec_schema(fields: list[Row]) -> dict:
    """The properties and the required fields of one kind's spec."""
    spec = _object({})
    for row in fields:
        above = spec
        for step in row.path.split(".")[:-1]:
            above = above["properties"][step]
        above["properties"][row.name()] = {**_type(row.type), **({"default": json.loads(row.absent)} if row.absent else {}), "description": row.about()}
        if "R" in row.traits:
            above["required"] = [*above.get("required", []), row.name()]
    return {key: spec[key] for key in ("required", "properties") if key in spec}


def specs() -> dict[str, dict]:
    found = rows()
    return {plural: spec_schema([row for row in found if row.plural == plural]) for plural in KINDS}


def spec_text(spec: dict) -> str:
    """JSON with a line for each field, as far as it has one."""
    def lines(value: object, depth: int) -> str:
        flat = json.dumps(value, ensure_ascii=False)
        if not isinstance(value, dict) or len(flat) + depth < 150:
            return flat
        inner = ",\n".join(f"{' ' * (depth + 1)}{json.dumps(key)}: {lines(one, depth + 1)}" for key, one in value.items())
        return f"{{\n{inner}\n{' ' * depth}}}"
    return lines(spec, 0) + "\n"


def values_schema(fields: list[Row]) -> dict:
    """Values of the chart slurm that have the name and the meaning of a field: what they may be."""
    found: dict = {"properties": {}}
    for row in fields:
        if "C" not in row.traits:
            continue
        above = found
        for step in row.path.split(".")[:-1]:
            above = above["properties"][step]
        schema = _type(row.type)
        if "enum" in schema:
            value: dict = {"enum": schema["enum"]}
        elif row.type == "amount":
            value = {"type": ["integer", "string"]}
        else:
            value = {"type": [schema["type"], "null"]} | ({"minimum": 0} if row.type == "count" else {})
            if "items" in schema:
                value["items"] = {"type": schema["items"]["type"]}
            if row.type == "object":
                value |= {"additionalProperties": False, "properties": {}}
        above["properties"][row.name()] = value
    return found["properties"]


def chart_schema(text: str) -> str:
    """The schema of the chart slurm with that part made anew. `asIs` lists the values, for the template."""
    schema = json.loads(text)
    for plural, name in (("nodesets", "nodeset"), ("loginsets", "loginset")):
        values = schema["definitions"][name]
        made = values_schema([row for row in rows() if row.plural == plural])
        own = {key: one for key, one in values["properties"].items() if key not in {*made, *values.get("asIs", [])}}
        values["asIs"] = list(made)
        values["properties"] = made | own
    return json.dumps(schema, indent=2) + "\n"


# ---- from the definitions ----


def schema_of(crd: dict) -> dict:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def _type_of(schema: dict) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "items" in schema:
        return f"list of {_type_of(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map of {_type_of(schema['additionalProperties'])}"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return "schemaless object"
    return schema["type"]


def _facts(schema: dict, required: bool) -> str:
    """Formats of integers and patterns are left out: the one says nothing to a reader, the other is not readable."""
    atomic = "atomic" in (schema.get("x-kubernetes-map-type"), schema.get("items", {}).get("x-kubernetes-map-type"))
    said = {"required": required, "nullable": schema.get("nullable"), "atomic": atomic, "date-time": schema.get("format") == "date-time"}
    words = [_type_of(schema), *(word for word, holds in said.items() if holds)]
    if "x-kubernetes-list-map-keys" in schema:
        words.append(f"keyed by {' '.join(schema['x-kubernetes-list-map-keys'])}")
    if "default" in schema:
        words.append(f"default {json.dumps(schema['default'])}")
    if "enum" in schema:
        words.append(f"one of {' '.join(schema['enum'])}")
    if "minimum" in schema:
        words.append(f"at least {schema['minimum']}")
    if "pattern" in schema:
        words.append("with a pattern")
    return ", ".join(words)


def fields(schema: dict, path: str = "") -> Iterator[Field]:
    """Every field below a schema, in the order of names."""
    for name, one in sorted(schema.get("properties", {}).items()):
        here = f"{path}.{name}" if path else name
        yield Field(here, _facts(one, name in schema.get("required", [])), one.get("description", ""))
        yield from fields(one, here)
        yield from fields(one.get("items", {}), f"{here}[]")


def rules(schema: dict, path: str) -> Iterator[tuple[str, dict]]:
    """The CEL rules below a schema, each with the path of its field."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield path, rule
    for name, one in sorted(schema.get("properties", {}).items()):
        yield from rules(one, f"{path}.{name}")


def _section(crd: dict) -> Iterator[str]:
    names, version = crd["spec"]["names"], crd["spec"]["versions"][0]
    schema = schema_of(crd)
    yield f"\n## {names['kind']}\n\n{schema['description']} Short names: {', '.join(f'`{name}`' for name in names['shortNames'])}."
    yield f" Subresources: {', '.join(f'`{name}`' for name in sorted(version['subresources'], reverse=True))}.\n\n"
    yield "| Column | Shows | |\n|---|---|---|\n"
    for column in version["additionalPrinterColumns"]:
        yield f"| {column['name']} | `{column['jsonPath']}` | {column['description']}{' With `-o wide`.' if column.get('priority') else ''} |\n"
    found = list(rules(schema["properties"]["spec"], "spec"))
    if found:
        yield "\nRules:\n" + "".join(f"- {rule['message']} (`{path}`)\n" for path, rule in found)
    yield "\n| Field | Type | |\n|---|---|---|\n"
    for part in ("spec", "status"):
        for field in fields(schema["properties"][part], part):
            if not field.path.startswith("status.conditions[]"):  # those of all kinds, described once
                yield f"| `{field.path}` | {field.facts} | {field.about.replace('<', '&lt;')} |\n"


def reference(crds: dict[str, dict]) -> str:
    """The generated part of docs/crds.md."""
    return "".join(text for kind in KINDS for text in _section(crds[kind]))


if __name__ == "__main__":
    SPECS.mkdir(exist_ok=True)
    for plural, spec in specs().items():
        (SPECS / f"{plural}.json").write_text(spec_text(spec))
    VALUES_SCHEMA.write_text(chart_schema(VALUES_SCHEMA.read_text()))
    REFERENCE.write_text(REFERENCE.read_text().partition(BEGIN)[0] + BEGIN + reference(definitions()))
