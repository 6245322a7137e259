"""The lint of the tree: clang-tidy runs again for what changed and for nothing else, also in a first run, and end-to-end tests keep their rules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "dev"), str(REPO / "tests")]
from tools import lint  # noqa: E402

SOURCES = {"one": '#include "one.h"\nint one(void) { return ONE; }\n', "two": "int two(void) { return 2; }\n"}
NINJA = "rule cc\n  command = cc -MD -MF $out.d -c $in -o $out\n  deps = gcc\n  depfile = $out.d\n"
TIDY = """#!/bin/sh
[ "$1" = --version ] && { cat "$VERSION"; exit; }
for file; do :; done
echo "$(basename "$file")" >>"$CHECKED"
! grep -n PROBLEM "$file" | sed "s|^|$file: warning: |" | grep .
"""


class Tree:
    """A repository of two sources, with a clang-tidy that writes down what it is asked to check."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.checked, self.version = folder / "tree", folder / "checked", folder / "version"
        (self.root / "src").mkdir(parents=True)
        (self.root / "build/plain").mkdir(parents=True)
        (self.root / ".gitignore").write_text("build\n")
        (self.root / ".clang-tidy").write_text("Checks: bugprone-*\n")
        (self.root / "src/one.h").write_text("#define ONE 1\n")
        (self.root / "src/other.h").write_text("#define OTHER 1\n")
        for name, text in SOURCES.items():
            (self.root / f"src/{name}.c").write_text(text)
        program = folder / "bin/clang-tidy-19"
        program.parent.mkdir()
        program.write_text(TIDY)
        program.chmod(0o755)
        self.version.write_text("19\n")
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        monkeypatch.setenv("SLINC_CACHE", str(folder / "cache"))
        monkeypatch.setenv("CHECKED", str(self.checked))
        monkeypatch.setenv("VERSION", str(self.version))
        self.flags("-O1")
        subprocess.run(["git", "init", "--quiet"], cwd=self.root, check=True)

    def flags(self, flags: str) -> None:
        build = self.root / "build/plain"
        units = [{"directory": str(build), "command": f"cc {flags} -c ../../src/{name}.c", "file": f"../../src/{name}.c", "output": f"{name}.o"}
                 for name in SOURCES]
        (build / "compile_commands.json").write_text(json.dumps(units))
        (build / "build.ninja").write_text(NINJA + "".join(f"build {name}.o: cc ../../src/{name}.c\n" for name in SOURCES))

    def checks(self, whole: bool = True) -> tuple[list[str], list[str]]:
        """Builds and lints: the sources that clang-tidy read, and the problems."""
        subprocess.run(["ninja"], cwd=self.root / "build/plain", check=True, capture_output=True)
        self.checked.write_text("")
        problems = lint.check_tidy(self.root, None if whole else lint._changed_since_linted(self.root))
        return sorted(self.checked.read_text().split()), problems

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", *who, *words], cwd=self.root, check=True, text=True, capture_output=True).stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "a commit")
        return self.git("rev-parse", "HEAD")

    def without_cache(self) -> "Tree":
        shutil.rmtree(self.root.parent / "cache", ignore_errors=True)
        return self


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    made = Tree(tmp_path, monkeypatch)
    assert made.checks() == (["one.c", "two.c"], [])
    assert made.checks() == ([], [])
    return made


def test_a_changed_header_rechecks_the_sources_that_include_it(tree: Tree) -> None:
    (tree.root / "src/one.h").write_text("#define ONE 11\n")
    (tree.root / "src/other.h").write_text("#define OTHER 2\n")
    assert tree.checks() == (["one.c"], [])


def test_other_flags_checks_or_another_clang_tidy_recheck_everything(tree: Tree) -> None:
    tree.flags("-O2")
    assert tree.checks()[0] == ["one.c", "two.c"]
    (tree.root / ".clang-tidy").write_text("Checks: misc-*\n")
    assert tree.checks()[0] == ["one.c", "two.c"]
    tree.version.write_text("20\n")
    assert tree.checks()[0] == ["one.c", "two.c"]


def test_a_source_with_a_problem_is_checked_in_every_run(tree: Tree) -> None:
    (tree.root / "src/two.c").write_text("int two(void) { return 2; } /* PROBLEM */\n")
    for _ in range(2):
        checked, problems = tree.checks()
        assert checked == ["two.c"] and len(problems) == 1 and "two.c" in problems[0]


def test_a_source_whose_headers_are_unknown_is_checked_in_every_run(tree: Tree) -> None:
    subprocess.run(["ninja"], cwd=tree.root / "build/plain", check=True, capture_output=True)
    (tree.root / "build/plain/.ninja_deps").unlink()
    tree.checked.write_text("")
    assert lint.check_tidy(tree.root) == [] and sorted(tree.checked.read_text().split()) == ["one.c", "two.c"]


def test_a_source_that_changes_while_it_is_checked_is_checked_again(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tree.root / "src/two.c"
    source.write_text(SOURCES["two"] + "/* PROBLEM */\n")
    real = lint._tidy

    def slow_tidy(repo: Path, file: Path) -> list[str]:
        source.write_text(SOURCES["two"] + "\n")  # no problem any more, before clang-tidy reads it
        return real(repo, file)

    with monkeypatch.context() as during:
        during.setattr(lint, "_tidy", slow_tidy)
        assert tree.checks() == (["two.c"], [])
    source.write_text(SOURCES["two"] + "/* PROBLEM */\n")
    assert tree.checks()[0] == ["two.c"]


def test_a_clone_in_another_place_has_the_same_results(tmp_path: Path) -> None:
    """Clones sort before and behind the headers of the system."""
    def key_in(clone: Path) -> str | None:
        clone.mkdir()
        for name in (".clang-tidy", "one.h"):
            (clone / name).write_text("")
        return lint._tidy_key(clone, lint.Compiled([f"cc -I{clone}"], {clone / "one.h", tmp_path / "m.h"}), "19")

    (tmp_path / "m.h").write_text("")
    assert key_in(tmp_path / "a") == key_in(tmp_path / "z") is not None


def test_a_result_that_no_run_used_for_a_month_is_dropped(tree: Tree, tmp_path: Path) -> None:
    kept = tmp_path / "cache/tidy"
    old, used = kept / "unused", set(kept.iterdir())
    old.touch()
    for file in (old, *used):
        os.utime(file, (0, 0))
    tree.checks()
    assert set(kept.iterdir()) == used


@pytest.fixture
def linted(tree: Tree) -> Tree:
    """Its commit is written down as linted whole, and a clone of it has an empty cache."""
    (tree.root / "tests/tools").mkdir(parents=True)
    tree.commit()
    lint._note_linted(tree.root)
    tree.commit()
    return tree.without_cache()


def test_a_first_run_reads_only_what_differs_from_the_commit_that_was_linted_whole(linted: Tree) -> None:
    assert linted.checks(whole=False)[0] == []
    (linted.root / "src/two.c").write_text("int two(void) { return 22; }\n")
    assert linted.checks(whole=False)[0] == ["two.c"]
    (linted.root / "src/one.h").write_text("#define ONE 11\n")
    linted.commit()
    assert linted.without_cache().checks(whole=False)[0] == ["one.c", "two.c"]
    assert linted.without_cache().checks()[0] == ["one.c", "two.c"]


def test_a_new_file_and_other_checks_are_differences_and_an_unknown_commit_means_all(linted: Tree) -> None:
    (linted.root / "src/new.h").write_text("")
    assert linted.root / "src/new.h" in lint._changed_since_linted(linted.root)
    (linted.root / ".clang-tidy").write_text("Checks: misc-*\n")
    assert lint._changed_since_linted(linted.root) is None
    linted.git("checkout", "--quiet", ".clang-tidy")
    for words in ("0" * 40, "--output=x", ""):
        (linted.root / lint.LINTED).write_text(words + "\n")
        assert lint._changed_since_linted(linted.root) is None
        assert linted.without_cache().checks(whole=False)[0] == ["one.c", "two.c"]


def test_only_a_clean_commit_with_other_sources_is_written_down(linted: Tree) -> None:
    def noted() -> str:
        lint._note_linted(linted.root)
        return (linted.root / lint.LINTED).read_text().strip()

    first = noted()
    (linted.root / "README.md").write_text("no source\n")
    linted.commit()
    assert noted() == first
    (linted.root / "src/two.c").write_text("int two(void) { return 22; }\n")
    assert noted() == first
    assert noted() != linted.commit() == noted()


def test_a_submission_is_linted_whole_and_then_tested() -> None:
    assert [line for line in (REPO / ".ci/run").read_text().splitlines() if "make " in line][-2:] == ["make lint", "exec make test"]
    makefile = (REPO / "Makefile").read_text()
    assert "tests/run lint-whole" in makefile.split("\nlint:")[1].split("\n\n")[0]
    assert "tests/run lint unit" in makefile.split("\ntest:")[1].split("\n\n")[0]


def test_no_end_to_end_test_is_expected_to_fail_or_ordered_by_its_file_name(tree: Tree) -> None:
    folder = tree.root / "tests/e2e"
    folder.mkdir(parents=True)
    (folder / "test_a.py").write_text("import pytest\n\n\n@pytest.mark.xfail\ndef test_it(): ...\n")
    (folder / "test_zz_b.py").write_text("")
    (folder / "test_zones.py").write_text("")
    assert [problem.split(": ")[0] for problem in lint.check_e2e(tree.root)] == ["tests/e2e/test_a.py:4", "tests/e2e/test_zz_b.py"]


def test_no_two_folders_define_the_same_name(tree: Tree) -> None:
    for folder, text in {"a": "int shared, only_a;", "b": "int shared; static int hidden;", "c": "static int hidden;"}.items():
        home = tree.root / "build/plain/src" / folder
        home.mkdir(parents=True)
        (home / "x.c").write_text(text + "\n")
        subprocess.run(["cc", "-c", "x.c", "-o", "x.o"], cwd=home, check=True)
        subprocess.run(["ar", "rcs", f"lib{folder}.a", "x.o"], cwd=home, check=True)
    assert lint.check_symbols(tree.root) == ["shared: defined in a and b"]
