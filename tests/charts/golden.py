"""What every chart renders with every values file: written down, so that a change of a chart is seen as what it changes.

    python3 tests/charts/golden.py      writes tests/charts/golden and the READMEs of the charts again

A file there has the objects that a chart renders by default, and for every other values file what is different from them."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from conftest import REPO, helm
from slincdev import chart_readme, crds
from slincdev.common import versions

GOLDEN = REPO / "tests/charts/golden"
CHARTS = {path.parent.name: path.parent for path in sorted((REPO / "charts").glob("*/Chart.yaml"))}
NEEDED = {"slurm-exporter": ["--set", "exporter.secretName=slurm-token"]}  # without which a chart renders nothing
MADE = re.compile(r'"?LS0t[A-Za-z0-9+/=]+"?|(?<=certificate-made: )"[^"]+"')  # keys and certificates that are made anew each time, and when


def examples() -> list[tuple[str, str, list[str], str]]:
    """Those of the documentation: where it is, the chart, words for helm, and a values file."""
    found = []
    for document in (REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))):
        text = document.read_text().replace("\\\n", " ")
        commands = re.findall(r"^ +helm (?:install|upgrade|template) \S+ (?:oci://\S+/)?charts/([a-z-]+)([^\n|>#]*)", text, re.M)
        for number, (chart, line) in enumerate(commands):
            found.append((f"docs/{document.name} command {number + 1}", chart, [*words_of(shlex.split(line))], ""))
        blocks = re.findall(r"(?:^    [^\n]*\n|^\n(?=    ))+", text, re.M)
        for number, block in enumerate(blocks):
            chart = chart_of(block)
            if chart:
                found.append((f"docs/{document.name} block {number + 1}", chart, [], re.sub(r"^    ", "", block, flags=re.M)))
    return found


def words_of(line: list[str]) -> list[str]:
    """Of a command: the values that it sets. Files of the user are left out."""
    return [word for flag, value in zip(line, line[1:]) if flag == "--set" for word in (flag, value)]


def chart_of(block: str) -> str | None:
    """The chart whose values a block of the documentation has: all its keys are there."""
    keys = set(re.findall(r"^    ([A-Za-z-]+):(?: |$)", block, re.M))
    if not keys or re.search(r"^    (?:apiVersion|kind):|^    (?![A-Za-z-]+:(?: |$)|[ #])\S", block, re.M):
        return None
    for name, chart in CHARTS.items():
        if keys <= set(re.findall(r"^([A-Za-z-]+):", (chart / "values.yaml").read_text(), re.M)):
            return name
    return None


def cases() -> list[tuple[str, str, list[str], str]]:
    """Chart, name of the values, words for helm, the text of a values file; the defaults of each chart come first."""
    found = [(name, "defaults", NEEDED.get(name, []), "") for name in CHARTS]
    found += [(name, path.stem, [], path.read_text()) for name, chart in CHARTS.items() for path in sorted((chart / "tests/values").glob("*.yaml"))]
    return found + [(chart, name, [*(NEEDED.get(chart, []) if words else []), *words], values) for name, chart, words, values in examples() if words or values]


def rendered(chart: str, words: list[str], values: str = "") -> str:
    """Without the definitions that come with the operator: their chart has a file of its own."""
    words = [*words, "--set", "crds.enabled=false"] if chart == "slurm-operator" else words
    done = helm("template", "slurm" if chart == "slurm" else "site", CHARTS[chart], "--namespace", "home", "--kube-version", versions()["KUBERNETES_VERSION"],
                "--api-versions", "monitoring.coreos.com/v1/ServiceMonitor", *words, values=values)
    assert done.returncode == 0, f"{chart} {words}: {done.stderr}"
    return MADE.sub("made", done.stdout)


def name_of(one: dict) -> str:
    return f"{one['kind']} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}"


def leaves(value: object, path: str = "") -> dict[str, str]:
    """Every value below an object, by its path."""
    if isinstance(value, dict) and value:
        return {key: text for name, one in value.items() for key, text in leaves(one, f"{path}.{name}").items()}
    if isinstance(value, list) and value:
        return {key: text for number, one in enumerate(value) for key, text in leaves(one, f"{path}[{number}]").items()}
    return {path.lstrip("."): json.dumps(value)}


def difference(base: dict[str, dict], objects: dict[str, dict]) -> list[str]:
    lines = [f"- {name}" for name in base if name not in objects]
    for name, one in objects.items():
        before, after = leaves(base.get(name, {})), leaves(one)
        if name in base and before != after:
            lines.append(f"* {name}")
            lines += [f"    - {key}" for key in before if key not in after]
            lines += [f"    {key}: {text}" for key, text in after.items() if before.get(key) != text]
        elif name not in base:
            lines += [f"+ {name}", *(f"    {key}: {text}" for key, text in after.items())]
    return lines


def goldens() -> dict[str, str]:
    """The text of each file."""
    every = cases()
    texts = [rendered(chart, words, values) for chart, _, words, values in every]
    counts = [len(re.findall(r"^# Source: ", text, re.M)) for text in texts]
    objects = crds.from_yaml("\n---\n".join(texts))
    assert sum(counts) == len(objects)
    files: dict[str, str] = {}
    bases: dict[str, dict[str, dict]] = {}
    for (chart, name, *_), text, count in zip(every, texts, counts):
        here = {name_of(one): one for one in objects[:count]}
        assert len(here) == count, f"{chart} with {name} renders two objects of one name"
        del objects[:count]
        if name == "defaults":
            bases[chart], files[chart] = here, f"# By tests/charts/golden.py: what the chart {chart} renders.\n==== defaults\n{text.strip()}\n"
        else:
            files[chart] += "\n".join([f"==== {name}", *(difference(bases[chart], here) or ["as the defaults"])]) + "\n"
    return files


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for chart, text in goldens().items():
        (GOLDEN / f"{chart}.txt").write_text(text)
    chart_readme.write_all()


if __name__ == "__main__":
    sys.exit(main())
