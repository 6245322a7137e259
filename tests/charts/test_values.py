"""The values of all charts: those in the wrong place are refused with the right one, those that another chart does not have are filled in,
every one is set by a suite, and no version of a chart is in the labels of pods."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import golden
import pytest
from conftest import helm, render, with_notes
from slincdev import crds

CHARTS = {name: chart for name, chart in golden.CHARTS.items() if name != "slurm-operator-crds"}
FLAT = [name for name in CHARTS if name != "slurm"]  # whose values are not pods and containers
NEEDED = golden.NEEDED
VERSIONED = {"helm.sh/chart", "app.kubernetes.io/version"}


def read(text: str) -> dict[str, str]:
    """The leaves of a text in YAML."""
    (value,) = crds.from_yaml(text)
    return golden.leaves(value)


def block(chart: str, name: str) -> str:
    """The text of a template, which is YAML."""
    text = (CHARTS[chart] / "templates/_values.tpl").read_text()
    return re.search(rf'define "{chart}\.{name}" -}}}}\n(.*?){{{{- end', text, re.S)[1]


# ---- values in the wrong place ----


def places(chart: str) -> dict[str, str]:
    return {wrong: right for wrong, right in (line.split(": ", 1) for line in block(chart, "places").splitlines())}


@pytest.mark.parametrize("chart", FLAT)
def test_a_value_in_the_wrong_place_is_refused_with_the_right_one(chart: str) -> None:
    known = set(read((CHARTS[chart] / "values.yaml").read_text()))
    for wrong, right in places(chart).items():
        done = helm("template", "x", CHARTS[chart], *NEEDED.get(chart, []), "--kube-version", "1.36.0", "--set-json", f"{wrong}={{}}")
        assert f"{wrong} is in the wrong place: it belongs to {right}" in done.stderr
        for one in right.split(" or "):
            assert any(key == one or key.startswith((f"{one}.", f"{one}[")) for key in known), one


@pytest.mark.parametrize("chart", golden.CHARTS)
def test_a_key_that_nobody_knows_is_refused_by_its_path(chart: str) -> None:
    done = helm("template", "x", golden.CHARTS[chart], *NEEDED.get(chart, []), "--kube-version", "1.36.0", "--set", "bogus=1")
    assert ("bogus: is no value of this chart" if chart == "slurm" else "additional properties 'bogus' not allowed") in done.stderr


def test_the_check_of_places_is_in_every_template() -> None:
    for chart in FLAT:
        for path in (CHARTS[chart] / "templates").rglob("*"):
            if path.suffix in (".yaml", ".txt"):
                assert path.read_text().startswith(f'{{{{- include "{chart}.values" . '), path


# ---- an upgrade that reuses the values of the other chart ----


@pytest.mark.parametrize("chart", FLAT)
def test_what_the_other_chart_does_not_have_is_filled_in(chart: str) -> None:
    ours, theirs = (read((CHARTS[chart] / name).read_text()) for name in ("values.yaml", "tests/values/slinky.yaml"))
    def is_theirs(key: str) -> bool:
        return any(key == one or key.startswith((f"{one}.", f"{one}[")) or one.startswith((f"{key}.", f"{key}[")) or
                   key.split("[")[0] == one.split("[")[0] for one in theirs)
    assert read(block(chart, "ownDefaults")) == {key: value for key, value in ours.items() if not is_theirs(key)}


@pytest.mark.parametrize("chart", FLAT)
def test_an_upgrade_that_reuses_the_other_charts_values_renders_the_same(chart: str, tmp_path: Path) -> None:
    """Helm then takes those values in place of our defaults."""
    reusing = Path(shutil.copytree(CHARTS[chart], tmp_path / chart))
    old = CHARTS[chart] / "tests/values/slinky.yaml"
    (reusing / "values.yaml").write_text(old.read_text())
    assert render(reusing) == render(CHARTS[chart], "-f", old)


# ---- suites ----


def paths(value: object, path: str = "") -> set[str]:
    """Every path of a mapping, whole mappings too; keys may be paths themselves."""
    found = {path} if path else set()
    if isinstance(value, dict):
        for key, one in value.items():
            found |= paths(one, f"{path}.{key}" if path else key)
    return found


def set_by_suites(chart: Path) -> set[str]:
    found: set[str] = set()
    for path in sorted((chart / "tests").glob("*_test.yaml")):
        (suite,) = crds.from_yaml(path.read_text())
        for test in [suite, *suite["tests"]]:
            found |= paths(test.get("set", {}))
            for values in test.get("values", []):
                found |= paths(crds.from_yaml((path.parent / values).read_text())[0])
    return found


@pytest.mark.parametrize("chart", CHARTS)
def test_every_value_is_set_by_a_suite(chart: str) -> None:
    """Of blocks that are defaults of others (nodesetDefaults) an entry counts as well."""
    wanted = {key.split("[")[0] for key in read((CHARTS[chart] / "values.yaml").read_text())}
    found = {re.sub(r"^(nodeset|loginset)s\.[^.]+", r"\1Defaults", path) for path in set_by_suites(CHARTS[chart])}
    found |= {re.sub(r"\[\d+\]", "", path) for path in found}
    missing = sorted(key for key in wanted if not any(one == key or one.startswith(f"{key}.") for one in found))
    assert missing == []


# ---- what is in pods ----


def test_no_pod_carries_the_version_of_its_chart() -> None:
    """Else each new chart would replace every pod."""
    texts = [golden.rendered(chart, words, values) for chart, name, words, values in golden.cases() if not name.startswith("docs")]
    templates = [one["spec"]["template"] for one in crds.from_yaml("\n---\n".join(texts)) if "template" in one.get("spec", {})]
    assert len(templates) > 50
    assert [one for one in templates if VERSIONED & (one.get("metadata") or {}).get("labels", {}).keys()] == []


# ---- images ----


def test_all_charts_find_our_images_at_one_place() -> None:
    for chart, name in CHARTS.items():
        values = read((name / "values.yaml").read_text())
        assert json.loads(values["imageRegistry"]) == "localhost/slinc"
        text = golden.rendered(chart, [*NEEDED.get(chart, []), "--set", "imageRegistry=registry.example.org/ours/"])
        images = set(re.findall(r'image: "?([^"\s]+/(?:slinc|slurm[a-z]*|login)[:@][^"\s]+)"?', text))
        assert images and all(image.startswith("registry.example.org/ours/") for image in images), (chart, images)


@pytest.mark.parametrize("chart", FLAT)
def test_images_of_the_other_chart_count_as_not_given_and_that_is_told(chart: str, tmp_path: Path) -> None:
    old = CHARTS[chart] / "tests/values/slinky.yaml"
    telling = with_notes(CHARTS[chart], tmp_path)
    told = render(telling, "-f", old, "--show-only", "templates/told.yaml")
    assert "slinkyproject" not in render(CHARTS[chart], "-f", old)
    for part in re.findall(r"^(\w+):\n(?:  .*\n)*?  image: \{repository: ghcr", old.read_text(), re.M):
        assert re.search(rf"{part}\.image.*(of another program)", told), told


