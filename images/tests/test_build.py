"""The builder's rules, without building: recipes, keys, and what the package store promises."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import build
import debs
import pytest
import recipe as recipes

EVERY = recipes.titles()


@pytest.mark.parametrize("title", EVERY)
def test_every_recipe_loads_and_its_parts_exist(title: str) -> None:
    item = recipes.load(title)
    assert item.name.startswith("localhost/slinc/")
    assert not item.base or item.base in EVERY
    assert all((recipes.IMAGES / file.source).exists() for file in item.files)
    assert all(program in build.PROGRAM_PATHS for program in item.programs)
    assert all(recipes.program_sources(program) for program in item.programs)


def test_an_image_for_one_slurm_is_left_out_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "agent" in recipes.titles()
    monkeypatch.setenv("SLINC_SLURM_VERSION", "25.11")
    assert "agent" not in recipes.titles() and "slurmctld" in recipes.titles()


def test_bases_come_first() -> None:
    assert EVERY.index("base") < min(EVERY.index(t) for t in EVERY if recipes.load(t).base)


def test_users_are_what_the_charts_expect() -> None:
    assert recipes.load("base").users == [recipes.User("slurm", 401)]
    users = {title: recipes.load(title).user for title in EVERY}
    assert users["slurmctld"] == users["slurmdbd"] == "401:401"
    assert users["slurmrestd"] not in ("", "0:0", "401:401")
    assert users["slurmd"] == users["login"] == "0:0"


def test_an_unknown_image_or_key_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(recipes.RecipeError, match="no image 'nothing'"):
        recipes.load("nothing")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "recipe").write_text('colour = "blue"\n')
    monkeypatch.setattr(recipes, "IMAGES", tmp_path)
    with pytest.raises(recipes.RecipeError, match="colour"):
        recipes.load("bad")


def test_versions_are_read_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "versions.env"
    file.write_text("# SLURM_VERSION=1\nSLURM_VERSION=27.11\nOTHER=1\n")
    monkeypatch.setattr(recipes, "VERSIONS", file)
    assert recipes.versions() == {"SLURM_SUITE": "sid", "SLURM_VERSION": "27.11"}
    monkeypatch.setattr(recipes, "VERSIONS", tmp_path / "none")
    assert recipes.versions() == recipes.DEFAULT_VERSIONS
    monkeypatch.setenv("SLINC_SLURM_VERSION", "25.11")
    assert recipes.versions() == recipes.DEFAULT_VERSIONS | {"SLURM_VERSION": "25.11"}


def test_packages_may_come_from_other_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For an older Slurm than Debian has."""
    monkeypatch.setenv("SLINC_SLURM_SOURCES", str(tmp_path / "other.list"))
    environment = debs.Store(tmp_path / "store", "other", "25.11")._prepare_apt(tmp_path / "scratch")
    assert f'Dir::Etc::sourcelist "{tmp_path}/other.list";' in Path(environment["APT_CONFIG"]).read_text()


def test_a_key_changes_with_packages_base_and_name_only_then() -> None:
    item = recipes.load("slurmctld")
    key = recipes.key(item, ["a 1"], "base")
    assert key == recipes.key(item, ["a 1"], "base")
    others = [
        recipes.key(item, ["a 2"], "base"),
        recipes.key(item, ["a 1"], "other"),
        recipes.key(replace(item, name="x"), ["a 1"], "base"),
        recipes.key(recipes.load("slurmd"), ["a 1"], "base"),
    ]
    assert len({key, *others}) == 5


def store_with(folder: Path, wanted: dict[str, list[str]]) -> debs.Store:
    folder.mkdir()
    (folder / "a_1_all.deb").touch()
    lock = {"wanted": wanted, "debs": {title: ["a_1_all.deb 00"] for title in wanted}}
    (folder / "lock.json").write_text(json.dumps(lock))
    return debs.Store(folder, "sid", "26.05")


def test_the_store_answers_only_for_what_it_fetched(tmp_path: Path) -> None:
    store = store_with(tmp_path / "debs", {"x": ["a"]})
    assert store.lists({"x": ["a"]}) == {"x": ["a_1_all.deb 00"]}
    assert store.lists({"x": ["a", "b"]}) is None
    (tmp_path / "debs" / "a_1_all.deb").unlink()
    assert store.lists({"x": ["a"]}) is None
    assert debs.Store(tmp_path / "none", "sid", "26.05").lists({"x": ["a"]}) is None


def test_a_suite_that_has_moved_on_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = debs.Store(tmp_path, "sid", "26.05")
    monkeypatch.setattr(debs, "run", lambda *_: "slurmctld:\n  Candidate: 26.11.1-1\n")
    with pytest.raises(debs.DebsError) as caught:
        store._check_slurm({})
    text = str(caught.value)
    assert "26.11.1-1" in text and "26.05.*" in text and "\n" not in text
    monkeypatch.setattr(debs, "run", lambda *_: "slurmctld:\n  Candidate: 26.05.9-2\n")
    store._check_slurm({})


def test_a_command_line_that_is_not_understood_is_refused() -> None:
    command = [str(recipes.IMAGES / "build")]
    for words, code in ((["--help"], 0), (["--wrong"], 2), (["--root-path"], 2), (["nothing"], 1)):
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert done.stderr


def test_results_of_another_tree_stay_for_a_day(tmp_path: Path) -> None:
    where = build.Cache(tmp_path)
    plan = build.Plan([recipes.load("base")], {"base": "mine"}, {})
    for key in ("mine", "fresh", "stale"):
        where.archive("base", key).touch()
        where.sbom("base", key).touch()
        where.root("base", key).mkdir()
        old = time.time() - (0 if key == "fresh" else 2 * build.KEPT_S)
        for path in (where.archive("base", key), where.sbom("base", key), where.root("base", key)):
            os.utime(path, (old, old))
    (tmp_path / "base-unrelated").touch()
    build._prune(where, plan)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"base-{key}{end}" for key in ("mine", "fresh") for end in (".tar", ".spdx.json", ".root")} | {"base-unrelated"}
    build.mark_used(where, plan)
    assert time.time() - where.archive("base", "mine").stat().st_mtime < 60
