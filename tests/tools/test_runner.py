"""The runner itself, on tiny suites: second chances are counted, lanes overlap, slices and shards leave nothing out."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from slincdev import common
from tools import analyze, lint, pytests, sim

REPO = Path(__file__).resolve().parents[2]

RUNNER = f"""
import sys, time
from pathlib import Path
sys.path[:0] = ["{REPO}/dev", "{REPO}/tests"]
from tools import lanes, pytests
from tools.lanes import Part, Result, Subject, Suite

def sleep(job):
    print("it slept")
    time.sleep(2)
    return Result(passed=1)

def chance(job):
    return pytests.run(job, second_chance=True)

parts = {{"chance": Part(chance, lanes.WAITING, 60, targets=("tests",)), "once": Part(pytests.run, lanes.COMPUTE, 60, targets=("tests",)),
         "wait": Part(sleep, lanes.WAITING, 60), "wait2": Part(sleep, lanes.WAITING, 1), "dies": Part(lambda job: 1 / 0, lanes.COMPUTE, 1),
         "built": Part(sleep, lanes.COMPUTE, 60, ("one", "two")), "compute": Part(sleep, lanes.COMPUTE, 60), "compute2": Part(sleep, lanes.COMPUTE, 60)}}
here = Path(__file__).resolve()
sys.exit(lanes.main(Suite(here, here.parent, parts, build=lambda name: None, whole_s=60, subjects={{"page": Subject(180, ("page",))}}), sys.argv[1:]))
"""

FLAKY = """
import pytest
from pathlib import Path
@pytest.mark.parametrize("way", ["by a/b::c [d]"])
def test_flaky(way):
    print("hello from the test")
    been = Path(__file__).with_suffix(".been")
    assert been.exists() or been.touch(), "the first time"
"""


MARKED = """
import pytest
from pathlib import Path
def note(name):
    with open(Path(__file__).with_name("order"), "a") as file:
        file.write(name + " ")
@pytest.mark.last
def test_last(): note("last")
@pytest.mark.faults
def test_faults(): note("faults")
def test_plain(): note("plain")
@pytest.mark.faults
@pytest.mark.last
def test_both(): note("both")
@pytest.mark.first
def test_first(): note("first")
"""


@pytest.fixture
def suite(tmp_path: Path):
    """Writes a runner and its test files into a folder; gives a function that runs it."""
    def run(*words: str, **files: str) -> subprocess.CompletedProcess:
        (tmp_path / "tests").mkdir()
        (tmp_path / "run.py").write_text(RUNNER)
        for name, text in files.items():
            (tmp_path / f"tests/test_{name}.py").write_text(text)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        return subprocess.run([sys.executable, tmp_path / "run.py", *words], text=True, capture_output=True, timeout=300, env=environment)
    return run


def last_line(done: subprocess.CompletedProcess) -> str:
    assert done.stderr == ""
    return done.stdout.splitlines()[-1]


def test_a_run_says_first_what_it_builds(suite):
    done = suite("built")
    assert done.stdout.splitlines()[0].startswith("   builds first: one, two; ") and last_line(done) == "1 passed, 0 failed"


def test_a_flaky_test_counts_as_passed_and_is_named_with_both_logs(suite, tmp_path):
    done = suite("chance", a="def test_good(): pass", b=FLAKY)
    assert (done.returncode, last_line(done)) == (0, "2 passed, 0 failed")
    named = re.search(r"flaky: (.+) failed, and passed on its second chance\n +(\S+)\n +(\S+)\n", done.stdout)
    assert named and named[1] == "tests/test_b.py::test_flaky[by a/b::c [d]]"
    first, second = ((tmp_path / named[i]).read_text() for i in (2, 3))
    assert "the first time" in first and "hello from the test" in first
    assert "call: passed" in second and "hello from the test" in second
    assert "the first time" not in second


def test_two_flaky_tests_pass(suite):
    done = suite("chance", a=FLAKY, b=FLAKY, c="def test_good(): pass")
    assert (done.returncode, last_line(done)) == (0, "3 passed, 0 failed")


def test_three_flaky_tests_fail_the_run(suite):
    done = suite("chance", a=FLAKY, b=FLAKY, c=FLAKY, d="def test_good(): pass")
    assert (done.returncode, last_line(done)) == (1, "1 passed, 3 failed")
    assert len(re.findall(r"^flaky: ", done.stdout, re.M)) == 3
    assert "3 flaky tests: more than 2 count as failed" in done.stdout


def test_a_test_that_fails_twice_fails_the_run(suite):
    done = suite("chance", a="def test_bad(): assert 0", b=FLAKY)
    assert (done.returncode, last_line(done)) == (1, "1 passed, 1 failed")
    assert re.findall(r"^flaky: (\S+)\[", done.stdout, re.M) == ["tests/test_b.py::test_flaky"]


def test_an_error_in_a_fixture_is_a_failure_too(suite):
    text = "import pytest\n@pytest.fixture\ndef broken():\n    yield\n    assert 0\ndef test_x(broken): pass\n"
    done = suite("chance", a=text)
    assert (done.returncode, last_line(done)) == (1, "0 passed, 1 failed")


def test_other_parts_have_no_second_chance(suite):
    done = suite("once", a=FLAKY)
    assert (done.returncode, last_line(done)) == (1, "0 passed, 1 failed")


@pytest.mark.parametrize("text", [
    "import pytest\n@pytest.mark.xfail\ndef test_x(): assert 0",
    "import pytest\n@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.xfail)])\ndef test_x(n): assert 0",
    "import pytest\ndef test_x():\n    pytest.xfail('not today')\n    assert 0",
    "import pytest\n@pytest.mark.unheard_of\ndef test_x(): pass",
    "import nothing_of_this_name",
], ids=["mark", "parameter", "call", "unknown mark", "import error"])
def test_what_hides_a_failure_fails_the_run(suite, text):
    done = suite("chance", a=text)
    assert (done.returncode, last_line(done)) == (1, "0 passed, 1 failed")


def test_marks_order_the_tests_of_a_folder(suite, tmp_path):
    (tmp_path / "pytest.ini").write_text((REPO / "pytest.ini").read_text())
    (tmp_path / "conftest.py").write_text("from tools.pytest_plugin import order_by_marks as pytest_collection_modifyitems\n")
    done = suite("once", a=MARKED, b="from test_a import note\ndef test_more(): note('more')\n")
    assert last_line(done) == "6 passed, 0 failed"
    assert (tmp_path / "tests/order").read_text().split() == ["first", "plain", "more", "faults", "last", "both"]


def test_words_for_pytest_select_tests(suite):
    done = suite("chance", "--", "-k", "good", a="def test_good(): pass\ndef test_bad(): assert 0")
    assert (done.returncode, last_line(done)) == (0, "1 passed, 0 failed")


def test_lanes_overlap_and_the_table_says_what_each_part_took(suite):
    begun = time.monotonic()
    done = suite("wait", "compute", "wait2", "compute2")
    assert (done.returncode, last_line(done)) == (0, "4 passed, 0 failed")
    rows = {words[0]: words for line in done.stdout.splitlines() if len(words := line.split()) >= 6}
    assert rows["wait"][1] == rows["wait2"][1] == "waiting" and rows["compute"][1] == rows["compute2"][1] == "compute"
    assert rows["wait2"][-1] == "over" and rows["wait"][-1] == "1:00"
    began = {name: int(rows[name][2].split(":")[1]) for name in ("wait", "wait2", "compute", "compute2")}
    assert began["wait"] == began["wait2"] <= 1 and began["compute2"] >= began["compute"] + 2
    assert re.search(r"^critical path: build 0:00, compute 0:0\d, compute2 0:0\d; all of it 0:\d\d of 1:00$", done.stdout, re.M)
    assert re.search(r"^page +subject +0:00 +3:00$", done.stdout, re.M)
    assert done.stdout.count("\n== ") == done.stdout.count("it slept") == 4
    assert time.monotonic() - begun < 60


def test_a_job_that_dies_fails_the_run(suite):
    done = suite("dies", "compute")
    assert (done.returncode, last_line(done)) == (1, "1 passed, 1 failed")
    assert "ZeroDivisionError" in done.stdout


def test_a_second_run_of_a_job_in_one_tree_is_refused(suite, tmp_path):
    reports = tmp_path / "build/reports"
    with common.locked(reports / "compute.lock", "the first run"):
        (reports / "compute").mkdir()
        done = suite("wait", "compute")
    assert (done.returncode, last_line(done)) == (1, "0 passed, 1 failed")
    assert "error: another run is at compute and writes to build/reports/compute: wait for it" in done.stdout
    assert not (reports / "wait").exists()


def test_an_unknown_part_is_refused(suite):
    done = suite("nonsense")
    assert (done.returncode, done.stdout) == (2, "") and "usage: " in done.stderr


def test_an_interrupt_lets_pytest_tear_down(suite, tmp_path):
    """As Ctrl-C does: the jobs are in sessions of their own, so the runner passes it on."""
    text = ("import os, signal, time, pytest\nfrom pathlib import Path\nhere = Path(__file__)\n@pytest.fixture\ndef thing():\n    yield\n"
            "    here.with_suffix('.down').touch()\ndef test_x(thing):\n    os.kill(int(os.environ['RUNNER']), signal.SIGTERM)\n    time.sleep(60)\n")
    starter = tmp_path / "start.py"
    starter.write_text("import os, sys\nos.environ['RUNNER'] = str(os.getpid())\nos.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "run.py").write_text(RUNNER)
    (tmp_path / "tests/test_x.py").write_text(text)
    done = subprocess.run([sys.executable, starter, tmp_path / "run.py", "chance"], text=True, capture_output=True, timeout=100)
    assert done.returncode == 130 and "stopping chance" in done.stdout
    assert (tmp_path / "tests/test_x.down").exists()


def test_shards_share_all_modules_by_recorded_durations(tmp_path):
    for name, count in (("a", 1), ("b", 1), ("c", 4), ("d", 1)):
        (tmp_path / name).write_text("def test_x(): pass\n" * count)
    modules = ["a", "b", "c", "d"]
    assert pytests.split(modules, tmp_path, 2, {}) == [["c"], ["a", "b", "d"]]
    assert pytests.split(modules, tmp_path, 2, {"a": 100, "b": 60, "c": 50, "d": 1}) == [["a", "d"], ["b", "c"]]
    assert sorted(sum(pytests.split(modules, tmp_path, 3, {"a": 9}), [])) == modules


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_slices_of_the_commits_run_every_crash_case_once(processes):
    taken = []
    for number in range(1, sim.SLICES + 1):
        for words in sim.crash_runs("crashes", number, sim.SLICES, processes):
            start, of = map(int, words[-1].split("/"))
            taken += range(start - 1, 1000, of)
    assert sorted(taken) == list(range(1000))


def test_every_seed_is_run_once():
    ranges = [tuple(map(int, words[-1].split(":"))) for words in sim.seed_runs("bridge", 120)]
    assert [seed for start, end in ranges for seed in range(start, end)] == list(range(120))


def test_a_slice_that_leaves_cases_out_is_noticed():
    words = ["--scenario", "crashes", "--slice", "3/10"]
    assert sim.problem_of(words, 0, "crashes: 610 of 6101 cases, 0 failed") is None
    assert "its share" in sim.problem_of(words, 0, "crashes: 78 of 6101 cases, 0 failed")
    assert "ended with 1" in sim.problem_of(words, 1, "crashes: 610 of 6101 cases, 1 failed")


def test_a_lock_whose_file_was_removed_is_not_taken(tmp_path, monkeypatch):
    """Two clusters that end and start at once: the first removes the lock after the second has opened it."""
    path, flock, calls = tmp_path / "gone/lock", fcntl.flock, []

    def flock_after_removal(file, how):
        calls.append(file)
        if len(calls) == 1:
            path.unlink()
            path.parent.rmdir()
        return flock(file, how)

    monkeypatch.setattr(common.fcntl, "flock", flock_after_removal)
    with common.locked(path, "it"):
        assert path.exists() and len(calls) == 2
        assert common.try_lock(path) is None


def test_a_limit_of_the_machine_is_raised_once_and_never_lowered(tmp_path, monkeypatch, capsys):
    limit = tmp_path / "max_user_instances"
    limit.write_text("128\n")
    monkeypatch.setattr(common, "INOTIFY_INSTANCES", limit)
    common.need_inotify(1024)
    common.need_inotify(512)
    assert limit.read_text() == "1024"
    assert capsys.readouterr().out == "  fs.inotify.max_user_instances of this machine is 1024 now (it was 128)\n"


def test_lint_finds_a_variable_that_is_cleaned_up_without_a_value(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.c").write_text("""\
int early(int x)
{
    auto_buf struct buf text, other = { 0 };

    if (x)
        return 0;
    buf_init(&text, 1);
    return 1;
}

int well(int x)
{
    auto_free char *path = print("%d,%d", x, x);
    auto_buf struct buf text;

    buf_init(&text, 1);
    return x;
}
""")
    assert lint.check_cleanups(tmp_path) == ["src/a.c:3: 'text' may be cleaned up without ever having had a value"]


def test_lint_finds_a_reference_to_a_file_that_is_not_there(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for folder in ("src/a", "docs/internals"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/a/a.c").write_text('/* a.c - see a.h,\n * old.h, b/gone.c and docs/none.md */\n#include "a.h" /* not <c.h>, but docs/internals/a.md */\n')
    (tmp_path / "src/a/a.h").write_text("/* a.h - nothing */\n")
    (tmp_path / "docs/internals/a.md").write_text("`a.c` calls `f` in `a/lost.c`; not_ours.c is no name of a file\n")
    assert lint.check_references(tmp_path) == ["src/a/a.c:2: there is no old.h", "src/a/a.c:2: there is no b/gone.c",
                                               "src/a/a.c:2: there is no docs/none.md", "docs/internals/a.md:1: there is no a/lost.c"]


def test_jobs_that_start_at_once_on_a_new_machine_make_the_python_tools_once(tmp_path, monkeypatch):
    made = []

    def install(argv):
        made.append([str(word) for word in argv])
        time.sleep(0.05)
        if "install" in argv:
            (argv[0].parent / "pytest").touch()
        else:
            (argv[-1] / "bin").mkdir(parents=True)

    monkeypatch.setattr(pytests, "cache_dir", lambda: tmp_path)
    monkeypatch.setattr(pytests, "run_command", install)
    with ThreadPoolExecutor(3) as jobs:
        folders = {str(folder) for folder in jobs.map(lambda _: pytests.python_tools(), range(3))}
    assert len(folders) == 1 and len(made) == 2


def test_programs_of_tests_can_be_hung_up_also_below_nohup(suite):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        done = suite("once", a="import signal\ndef test_default(): assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL")
    finally:
        signal.signal(signal.SIGHUP, before)
    assert last_line(done) == "1 passed, 0 failed"


def test_every_planted_fault_still_has_its_place_and_its_test():
    faults = tomllib.loads((REPO / "tests/tools/mutations.toml").read_text())["fault"]
    cases = "".join(path.read_text() for path in (REPO / "tests/unit").rglob("*.c"))
    lost = [f"{fault['file']}: {fault['old']}" for fault in faults if (REPO / fault["file"]).read_text().count(fault["old"]) != 1]
    lost += [case for fault in faults if (case := fault["test"].get("case")) and f"void {case}(" not in cases]
    assert not lost


def test_the_analyser_counts_findings_and_never_ends_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program = tmp_path / "cppcheck"
    for says, ends, found in (("", 0, []), ("src/a.c:1: nullPointer: x", 0, ["src/a.c:1: nullPointer: x"]), ("", 1, ["cppcheck ended with 1: no such option"])):
        program.write_text(f"#!/bin/sh\necho no such option\n[ -z '{says}' ] || echo '{says}' >&2\nexit {ends}\n")
        program.chmod(0o755)
        assert analyze.findings(REPO, ["src/a.c"], tmp_path / "kept") == found
    names = analyze.sources(REPO)
    assert "src/bridge/place.c" in names and all(name.startswith(("src/", "libslinc-slurm/")) for name in names)
