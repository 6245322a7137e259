"""What people look for first in a repository: it is there, it is short, and what it names exists."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pages
import pytest

REPO = Path(__file__).resolve().parents[2]
CHARTS = sorted((REPO / "charts").glob("*/Chart.yaml"))
FIRST = ["README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SUPPORT.md", "SECURITY.md", "LICENSE", "ARCHITECTURE.md"]


def test_the_readme_says_what_how_to_try_and_how_to_install_in_at_most_900_words() -> None:
    text = (REPO / "README.md").read_text()
    assert len(text.split()) <= 900
    heads = re.findall(r"^## (.*)$", text, re.M)
    assert heads[:3] == ["Try it", "Install it", "Figures"]
    shown = {head: text.split(f"\n## {head}\n")[1].split("\n## ")[0] for head in heads}
    commands = {head: re.findall(r"^    (?:make|helm) .*$", shown[head], re.M) for head in heads[:2]}
    assert (len(commands["Try it"]), len(commands["Install it"])) == (2, 3)


def test_the_readme_installs_as_the_page_about_it_does() -> None:
    def commands(text: str) -> list[str]:
        joined = re.sub(r" \\\n +", " ", text)
        return re.findall(r"^ *(helm install .*)$", joined, re.M)
    page = pages.blocks(REPO / "docs/install.md")["install"]
    registry, version = re.search(r"^export REGISTRY=(\S+) VERSION=(\S+)$", page, re.M).groups()
    wanted = commands(page.replace("$REGISTRY", registry).replace("$VERSION", version))
    assert len(wanted) == 3 and commands((REPO / "README.md").read_text()) == wanted
    newest = re.search(r"^## (\S+)$", (REPO / "CHANGELOG.md").read_text(), re.M)[1]
    assert version == newest


@pytest.mark.parametrize("page", [*FIRST, *(str(path.relative_to(REPO)) for path in sorted((REPO / "docs").glob("*.md")))])
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    path = REPO / page
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_newest_entry_of_the_changelog_comes_first() -> None:
    releases = re.findall(r"^## (\d+)\.(\d+)\.(\d+)(?:-rc\.(\d+))?$", (REPO / "CHANGELOG.md").read_text(), re.M)
    order = [tuple(int(word) if word else 999 for word in release) for release in releases]
    assert order and order == sorted(order, reverse=True)


def test_every_row_of_the_versions_is_tested_by_a_test_that_is_there_or_expected() -> None:
    rows = [line.split("|")[1:-1] for line in (REPO / "docs/versions.md").read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[-1].strip() != "how we know"]
    assert len(rows) > 10
    for row in rows:
        known = row[-1].strip()
        named = re.findall(r"`(tests/[\w/.]+)`", known)
        assert re.match(r"tested|expected|no\b|the charts refuse", known), row
        assert not known.startswith("tested") or named or "every end-to-end test" in known, row
        assert [name for name in named if not (REPO / name).exists()] == [], row


@pytest.mark.parametrize("path", CHARTS, ids=lambda path: path.parent.name)
def test_every_chart_says_whose_it_is(path: Path) -> None:
    text = path.read_text()
    for key in ("home", "icon", "keywords", "maintainers", "annotations"):
        assert re.search(rf"^{key}:", text, re.M), key
    assert "artifacthub.io/license: Apache-2.0" in text and "artifacthub.io/category: " in text
    icon = re.search(r"^icon: data:image/svg\+xml;base64,(\S+)$", text, re.M)[1]
    assert base64.b64decode(icon) == (REPO / "docs/images/icon.svg").read_bytes()


def test_the_workflow_runs_what_a_submission_must_pass() -> None:
    steps = re.findall(r"^ +- run: (.*)$", (REPO / ".github/workflows/ci.yml").read_text(), re.M)
    assert steps[-1] == ".ci/run" and (REPO / ".ci/run").stat().st_mode & 0o111


def test_the_forms_for_issues_ask_for_the_doctor_and_the_version() -> None:
    forms = {path.stem: path.read_text() for path in (REPO / ".github/ISSUE_TEMPLATE").glob("*.yml")}
    assert {"bug", "question", "wish", "config"} == set(forms)
    assert "slinc doctor" in forms["bug"] and "slinc version" in forms["bug"]
