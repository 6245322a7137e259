"""The custom resource definitions of the chart slurm-operator-crds: as data, and as the reference docs/crds.md.

    PYTHONPATH=dev python3 -m slincdev.crds    # writes the reference again
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .build import bin_dir
from .common import REPO, run, versions

CHART = REPO / "charts/slurm-operator-crds"
REFERENCE = REPO / "docs/crds.md"
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
    REFERENCE.write_text(REFERENCE.read_text().partition(BEGIN)[0] + BEGIN + reference(definitions()))
