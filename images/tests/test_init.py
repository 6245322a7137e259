"""slinc-init as a container would run it: real processes, and a real PID 1 where that matters."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ENVIRONMENT = {"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=1"}
LOOP = "while :; do sleep 0.02; done"
PRINT_ARGS = [sys.executable, "-c", "import sys; print('|'.join(sys.argv[1:]))"]


def run(init: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs slinc-init to its end."""
    return subprocess.run(
        [str(init), *words], env={**ENVIRONMENT, **env}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def start(init: Path, *words: str) -> subprocess.Popen[str]:
    """Starts slinc-init; the test reads its output line by line."""
    return subprocess.Popen(
        [str(init), *words], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_alive(pid)


# ---- statuses


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_it_exits_with_the_main_programs_status(init: Path, code: int) -> None:
    assert run(init, "sh", "-c", f"exit {code}").returncode == code


def test_a_main_program_ended_by_a_signal_gives_128_and_the_signal(init: Path) -> None:
    assert run(init, "sh", "-c", "kill -KILL $$$$").returncode == 128 + signal.SIGKILL


def test_a_program_that_is_not_there_gives_127_and_a_line(init: Path) -> None:
    done = run(init, "/no/such/program")
    assert done.returncode == 127
    assert "/no/such/program" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "usage"),
        (["--also", "sleep", "1"], "ends with --"),
        (["--also", "--", "true"], "no program"),
        (["--grace", "many", "true"], "many"),
        (["--grace"], "has no value"),
        (["--wrong", "true"], "unknown option --wrong"),
        (["--slurmd"], "no program"),
        (["--dir", "relative", "true"], "absolute"),
        (["--dir", "/tmp:x:y", "true"], "PATH:UID:GID"),
        (["--first", "true", "--"] * 17 + ["true"], "more than 16"),
        (["--dir", "/tmp"] * 17 + ["true"], "more than 16"),
        (["--drop", "x"] * 17 + ["true"], "more than 16"),
        (["--drop", "", "true"], "drop everything"),
        (["--drop-unless"], "has no value"),
        (["--if"], "has no value"),
        (["true"] + ["x"] * 1024, "more than 1024"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_reason(
    init: Path, words: list[str], says: str
) -> None:
    done = run(init, *words)
    assert done.returncode == 2
    assert says in done.stderr


# ---- signals


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "USR1", "USR2"])
def test_signals_reach_the_main_program(init: Path, name: str) -> None:
    script = f"trap 'echo got {name}; exit 7' {name}; echo ready; {LOOP}"
    process = start(init, "sh", "-c", script)
    assert line(process) == "ready"
    process.send_signal(getattr(signal, f"SIG{name}"))
    assert line(process) == f"got {name}"
    assert process.wait(30) == 7


def test_hup_does_not_reach_helpers(init: Path) -> None:
    process = start(
        init, "--also", "sh", "-c", f"trap 'echo helper' HUP; echo ready; {LOOP}", "--",
        "sh", "-c", f"trap 'echo main; sleep 0.2; exit 0' HUP; echo ready; {LOOP}",
    )  # fmt: skip
    assert line(process) == line(process) == "ready"
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=30)[0] == "main\n"


def test_who_ignores_term_is_killed_at_the_deadline(init: Path) -> None:
    script = f"trap '' TERM; echo $$$$; {LOOP}"
    process = start(init, "--grace", "1", "sh", "-c", script)
    pid = int(line(process))
    since = time.monotonic()
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGKILL
    assert 0.9 < time.monotonic() - since < 9  # without --grace it would be 10 s
    assert gone_within(pid, 10)


# ---- lines left out

NOISY = "for i in 1 2 3; do echo noise $$i >&2; echo said $$i >&2; done; echo out; printf rest >&2"


def test_dropped_lines_are_left_out_and_others_are_whole(init: Path) -> None:
    done = run(init, "--drop", "noise", "--drop", "other", "sh", "-c", f"{NOISY}; exit 3")
    assert done.returncode == 3
    assert done.stdout == "out\n"
    assert done.stderr == "said 1\nsaid 2\nsaid 3\nrest"


def test_all_lines_pass_where_the_variable_is_set(init: Path) -> None:
    options = ("--drop", "noise", "--drop-unless", "WANT")
    assert run(init, *options, "sh", "-c", NOISY, WANT="debug").stderr.count("noise") == 3
    assert "noise" not in run(init, *options, "sh", "-c", NOISY, WANT="").stderr
    assert "noise" not in run(init, *options, "sh", "-c", NOISY).stderr


def test_a_long_line_is_judged_by_its_beginning_and_goes_as_a_whole(init: Path) -> None:
    script = (
        "import sys\n"
        "for word in ('keep', 'noise'): sys.stderr.write(word + 'x' * 300000 + '\\n')\n"
        "sys.stderr.write('end\\n')"
    )
    done = run(init, "--drop", "noise", sys.executable, "-c", script)
    assert done.stderr == "keep" + "x" * 300000 + "\nend\n"


def test_many_lines_are_neither_lost_nor_torn(init: Path) -> None:
    script = "import sys\nfor i in range(200000): sys.stderr.write(f'{i % 2 and \"noise\"}{i}\\n')"
    done = run(init, "--drop", "noise", sys.executable, "-c", script)
    assert done.stderr.split("\n")[:-1] == [f"0{i}" for i in range(0, 200000, 2)]


def test_who_keeps_the_output_open_is_not_waited_for(init: Path) -> None:
    script = "setsid sleep 30 </dev/null >/dev/null & exit 4"
    done = subprocess.Popen(
        [str(init), "--drop", "noise", "sh", "-c", script], env=ENVIRONMENT,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.wait(20) == 4


# ---- helpers


def test_helpers_end_with_the_main_program(init: Path, tmp_path: Path) -> None:
    over = tmp_path / "over"
    process = start(
        init, "--also", "sh", "-c", "echo $$$$; exec sleep 100", "--",
        "sh", "-c", f"until [ -e {over} ]; do sleep 0.02; done; exit 3",
    )  # fmt: skip
    helper = int(line(process))
    over.touch()
    assert process.wait(30) == 3
    assert gone_within(helper, 10)


def test_a_helper_that_ends_is_started_again_a_second_later(init: Path) -> None:
    since = time.monotonic()
    process = start(init, "--also", "sh", "-c", "echo run; sleep 0.1", "--", "sleep", "30")
    assert line(process) == "run"
    assert "starting it again" in line(process)
    assert line(process) == "run"
    assert time.monotonic() - since > 1
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM


def test_a_helper_that_keeps_ending_waits_longer_each_time(init: Path) -> None:
    process = start(init, "--also", "sh", "-c", "exit 1", "--", "sleep", "30")
    assert [line(process).rpartition(" in ")[2] for _ in range(3)] == ["1 s", "2 s", "4 s"]
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM


def test_a_program_of_an_if_runs_only_where_the_file_is(init: Path, tmp_path: Path) -> None:
    there, gone = tmp_path / "there", tmp_path / "gone"
    there.touch()
    words = ["--if", gone, "--first", "echo", "not this", "--", "--if", there, "--first", "echo", "this", "--", "--first", "echo", "always", "--"]
    assert run(init, *map(str, words), "echo", "main").stdout == "this\nalways\nmain\n"
    over = tmp_path / "over"
    helper = run(init, "--if", str(gone), "--also", "touch", str(over), "--", "sleep", "0.3")
    assert helper.returncode == 0 and not over.exists()


def test_a_helper_ends_on_term_too(init: Path) -> None:
    process = start(
        init, "--also", "sh", "-c", f"trap 'echo helper; exit' TERM; echo h; {LOOP}", "--",
        "sh", "-c", f"trap 'exit 0' TERM; echo m; {LOOP}",
    )  # fmt: skip
    assert {line(process), line(process)} == {"h", "m"}
    process.terminate()
    assert line(process) == "helper"
    assert process.wait(30) == 0


def test_first_programs_run_in_order_before_the_rest(init: Path) -> None:
    done = run(init, "--first", "echo", "one", "--", "--first", "echo", "two", "--", "echo", "main")
    assert done.stdout == "one\ntwo\nmain\n"


def test_a_first_program_that_fails_ends_it_all(init: Path) -> None:
    done = run(init, "--first", "sh", "-c", "exit 9", "--", "echo", "main")
    assert (done.returncode, done.stdout) == (9, "")


def test_folders_are_made_with_their_parents_and_owner(init: Path, tmp_path: Path) -> None:
    owner = os.getuid()
    inner = tmp_path / "a" / "b"
    assert run(init, "--dir", f"{inner}:{owner}:{os.getgid()}", "true").returncode == 0
    assert inner.is_dir() and inner.stat().st_uid == owner
    assert run(init, "--dir", str(inner), "true").returncode == 0  # again is fine


# ---- PID 1


def as_pid_1(init: Path, *words: str) -> list[str]:
    return ["unshare", "-pf", "--mount-proc", "--kill-child", str(init), *words]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root for a PID namespace")
def test_as_pid_1_it_reaps_orphans(init: Path) -> None:
    script = (
        "i=0; while [ $$i -lt 20 ]; do (sh -c 'sleep 0.05' &) ; i=$$((i+1)); done; sleep 3;"
        "grep -c '^State:.Z' /proc/[0-9]*/status | grep -v ':0$$'; echo \"parent $$PPID\""
    )
    done = subprocess.run(
        as_pid_1(init, "sh", "-c", script), env=ENVIRONMENT, capture_output=True, text=True,
        timeout=20, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "parent 1\n"), done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="needs root for a PID namespace")
def test_as_pid_1_it_ends_on_term(init: Path) -> None:
    process = subprocess.Popen(
        as_pid_1(init, "sh", "-c", "echo ready; exec sleep 100"), env=ENVIRONMENT,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert line(process) == "ready"
    child = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
    os.kill(int(child), signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM


def test_it_writes_no_core_and_what_it_starts_may(init: Path) -> None:
    """Files in /proc of a process that nobody may look into belong to root."""
    nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    script = "ulimit -c; grep '^Max core file size' /proc/$$PPID/limits; stat -c %u /proc/$$PPID/mem /proc/$$$$/mem"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: S103
        program = shutil.copy(init, folder)
        done = subprocess.run(
            ["sh", "-c", 'ulimit -Sc 8; exec "$@"', "sh", program, "sh", "-c", script], env={**ENVIRONMENT, "ASAN_OPTIONS": "detect_leaks=0:disable_coredump=0"},
            capture_output=True, text=True, timeout=60, check=True, **nobody,
        )  # fmt: skip
    child, ours, *owners = done.stdout.splitlines()
    assert child == "8" and ours.split()[4] == "0"
    assert owners == ["0", str(nobody.get("user", os.geteuid()))]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root for a PID namespace")
def test_killing_the_main_program_ends_the_container(init: Path) -> None:
    process = subprocess.Popen(
        as_pid_1(init, "--also", "sleep", "99", "--", "sh", "-c", "echo up; kill -9 $$$$"),
        env=ENVIRONMENT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.wait(30) == 128 + signal.SIGKILL


# ---- the environment in arguments


@pytest.mark.parametrize(
    ("word", "gives"),
    [
        ("plain", "plain"),
        ("a$NAME", "avalue"),
        ("${NAME}b", "valueb"),
        ("x${NAME}$NAME", "xvaluevalue"),
        ("$$NAME", "$NAME"),
        ("${NAME", "${NAME"),
        ("100$", "100$"),
        ("$5", "$5"),
        ("Topology=$UNSET", "Topology="),
        ("$NAME", "value"),
        ("$UNSET", ""),
        ("${UNSET}", ""),
        ("$WORDS", "a|b c|d e"),
        ("${WORDS}", "a 'b c' \"d e\""),
        ("$NESTED", "$NAME"),
        ("", ""),
    ],
)
def test_variables_in_arguments_are_expanded(init: Path, word: str, gives: str) -> None:
    done = run(init, *PRINT_ARGS, word, NAME="value", WORDS="a 'b c' \"d e\"", NESTED="$NAME")
    assert done.stdout == gives + "\n", done.stderr


def test_a_lone_unset_variable_is_no_argument_but_braces_give_an_empty_one(init: Path) -> None:
    done = run(init, *PRINT_ARGS, "a", "$UNSET", "${UNSET}", "b")
    assert done.stdout == "a||b\n"


def test_a_quote_left_open_is_refused(init: Path) -> None:
    done = run(init, "echo", "$WORDS", WORDS="a 'b")
    assert done.returncode == 2
    assert "$WORDS" in done.stderr and "not closed" in done.stderr


# ---- slurmd


@pytest.fixture
def slurmd(tmp_path: Path) -> Path:
    """A stand-in that answers -C (and counts that) and otherwise prints its arguments."""
    program = tmp_path / "slurmd"
    program.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -C ]; then echo x >>"$0.asked"; echo "NodeName=n CPUs=16 Boards=1 '
        'SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=4000"; '
        'echo "UpTime=0-00:13:39"; exit; fi\n'
        'for word; do printf "%s|" "$word"; done\n'
    )
    program.chmod(0o755)
    return program


CASES = [
    # environment, arguments, what slurmd gets
    ({}, ["-Z"], "-Z|"),
    ({"POD_CPUS": "0", "POD_MEMORY": "0", "POD_TOPOLOGY": ""}, ["-Z"], "-Z|"),
    ({"POD_CPUS": "4"}, ["-Z"], "-Z|--conf|CoreSpecCount=6|"),
    ({"POD_CPUS": "16"}, ["-Z"], "-Z|"),
    ({"POD_CPUS": "64"}, ["-Z"], "-Z|"),
    ({"POD_MEMORY": "1000"}, ["-Z"], "-Z|--conf|MemSpecLimit=3000|"),
    ({"POD_MEMORY": "4000"}, ["-Z"], "-Z|"),
    ({"POD_TOPOLOGY": "t:a:b"}, ["-Z"], "-Z|--conf|Topology=t:a:b|"),
    (
        {"POD_CPUS": "4", "POD_MEMORY": "1000", "POD_TOPOLOGY": "t:a"},
        ["-Z", "--conf", "Features=x,y Gres=gpu:1"],
        "-Z|--conf|Features=x,y Gres=gpu:1 CoreSpecCount=6 MemSpecLimit=3000 Topology=t:a|",
    ),
    ({"POD_CPUS": "4"}, ["--conf", "CoreSpecCount=1", "-D"], "-D|--conf|CoreSpecCount=1|"),
    ({"POD_TOPOLOGY": "t:a"}, ["--conf", "topology=b"], "--conf|topology=b|"),
    ({"PLACE": "t:s"}, ["--conf", "Features=x Topology=$PLACE"], "--conf|Features=x Topology=t:s|"),
    ({"PLACE": ""}, ["--conf", "Features=x Topology=$PLACE"], "--conf|Features=x|"),
    ({"PLACE": ""}, ["--conf", "Topology=$PLACE", "-Z"], "-Z|"),
    ({}, ["--conf", "'Features=x'"], "--conf|Features=x|"),
    ({"T": "t:a"}, ["--conf", "'Features=x Topology='\"$T\"''"], "--conf|Features=x Topology=t:a|"),
    ({"T": ""}, ["--conf", "'Features=x Topology='\"$T\"''"], "--conf|Features=x|"),
    ({"T": "", "POD_CPUS": "4"}, ["--conf", "'Features=x Topology='\"$T\"''"], "--conf|Features=x CoreSpecCount=6|"),
    ({}, ["--conf", "Features=x Comment=\"a\""], "--conf|Features=x Comment=\"a\"|"),
    ({}, ["--conf=Features=x", "--conf", "Gres=gpu:2"], "--conf|Features=x Gres=gpu:2|"),
    ({}, ["--conf-server", "c:6817"], "--conf-server|c:6817|"),
    ({"OPTIONS": "-v --conf 'Features=x A=2'"}, ["$OPTIONS"], "-v|--conf|Features=x A=2|"),
]


@pytest.mark.parametrize(("env", "words", "gets"), CASES)
def test_limits_and_place_become_one_conf_value(
    init: Path, slurmd: Path, env: dict[str, str], words: list[str], gets: str
) -> None:
    done = run(init, "--slurmd", str(slurmd), *words, **env)
    assert done.stdout == gets, done.stderr


def test_the_machine_is_asked_once_and_only_for_limits(init: Path, slurmd: Path) -> None:
    asked = slurmd.with_name("slurmd.asked")
    run(init, "--slurmd", str(slurmd), POD_TOPOLOGY="t")
    assert not asked.exists()
    run(init, "--slurmd", str(slurmd), POD_CPUS="1", POD_MEMORY="1")
    assert asked.read_text() == "x\n"


@pytest.mark.parametrize(
    ("env", "words", "says"),
    [
        ({"POD_CPUS": "many"}, [], "POD_CPUS"),
        ({"POD_MEMORY": "-1"}, [], "POD_MEMORY"),
        ({"POD_TOPOLOGY": "a State=DOWN"}, [], "the topology holds a blank"),
        ({"SLINKY_TOPOLOGY": "a\nNodeName=x"}, [], "the topology holds a blank"),
        ({}, ["--conf", "a=b\nc=d"], "more than one line"),
        ({}, ["-Z", "--conf"], "no value"),
        ({}, ["--conf", "a=" + "x" * 9000], "--conf"),
    ],
)
def test_values_that_would_break_the_conf_are_refused(
    init: Path, slurmd: Path, env: dict[str, str], words: list[str], says: str
) -> None:
    done = run(init, "--slurmd", str(slurmd), *words, **env)
    assert done.returncode == 2
    assert says in done.stderr


def test_the_place_comes_from_either_variable(init: Path, slurmd: Path) -> None:
    def given(**env: str) -> str:
        return run(init, "--slurmd", str(slurmd), **env).stdout

    assert given(SLINKY_TOPOLOGY="t:new") == "--conf|Topology=t:new|"
    assert given(SLINKY_TOPOLOGY="t:new", POD_TOPOLOGY="t:old") == "--conf|Topology=t:new|"
    assert given(SLINKY_TOPOLOGY="", POD_TOPOLOGY="t:old") == "--conf|Topology=t:old|"
    assert given(SLINKY_TOPOLOGY="", POD_TOPOLOGY="") == ""


# ---- control groups, on a tree of files


def machine(sys: Path, packages: int, cores: int, threads: int) -> None:
    """CPUs as Linux numbers them: the second thread of every core comes behind all first ones."""
    count = packages * cores * threads
    folder = sys / "devices/system/cpu"
    folder.mkdir(parents=True)
    (folder / "online").write_text(f"0-{count - 1}\n")
    for number in range(count):
        first = number % (packages * cores)
        topology = folder / f"cpu{number}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{first // cores}\n")
        (topology / "core_id").write_text(f"{first % cores}\n")


def version_2(sys: Path, cpus: str = "", kind: str = "domain") -> Path:
    group = sys / "fs/cgroup"
    for name in ("init", "slurmd"):
        (group / name).mkdir(parents=True)
        (group / name / "cgroup.procs").touch()
    (group / "cgroup.controllers").write_text("cpuset cpu memory\n")
    (group / "cgroup.procs").write_text("1\n")
    (group / "cgroup.subtree_control").touch()
    if kind:
        (group / "cgroup.type").write_text(f"{kind}\n")
    if cpus:
        (group / "cpuset.cpus.effective").write_text(f"{cpus}\n")
    return group


def version_1(sys: Path, cpus: str = "") -> None:
    (sys / "fs/cgroup/cpuset").mkdir(parents=True)
    (sys / "fs/cgroup/cpuset/cpuset.cpus").write_text(f"{cpus}\n")


def test_slurmd_starts_in_a_group_of_its_own_and_controllers_are_handed_down(
    init: Path, slurmd: Path, tmp_path: Path
) -> None:
    group = version_2(tmp_path / "sys")
    done = run(init, "--slurmd", "--sys", str(tmp_path / "sys"), str(slurmd), "-Z")
    assert done.stdout == "-Z|" and done.stderr == ""
    assert (group / "init/cgroup.procs").read_text() == "1"  # the kernel takes a pid per write
    assert (group / "slurmd/cgroup.procs").read_text() == "0"  # the writer itself
    # The file keeps the beginning of the longest write: they all were at its beginning.
    assert (group / "cgroup.subtree_control").read_text() == "+memory"


@pytest.mark.parametrize("kind", ["version 1", "the machine's root", "none"])
def test_groups_that_are_not_a_containers_of_version_2_are_left_alone(
    init: Path, slurmd: Path, tmp_path: Path, kind: str
) -> None:
    sys = tmp_path / "sys"
    if kind == "version 1":
        version_1(sys, "0-15")
    elif kind == "the machine's root":
        version_2(sys, kind="")
    else:
        sys.mkdir()
    before = {path: path.is_file() and path.read_text() for path in sys.rglob("*")}
    assert run(init, "--slurmd", "--sys", str(sys), str(slurmd), "-Z").stdout == "-Z|"
    assert {path: path.is_file() and path.read_text() for path in sys.rglob("*")} == before


def test_a_group_that_cannot_be_changed_keeps_slurmd_and_says_so(
    init: Path, slurmd: Path, tmp_path: Path
) -> None:
    group = version_2(tmp_path / "sys")
    (group / "init/cgroup.procs").unlink()
    (group / "init").rmdir()
    (group / "init").write_text("")  # no folder can be made there, nor a process moved
    done = run(init, "--slurmd", "--sys", str(tmp_path / "sys"), str(slurmd), "-Z")
    assert done.stdout == "-Z|"
    assert "slurmd stays in the container's control group: Not a directory" in done.stderr
    assert (group / "slurmd/cgroup.procs").read_text() == ""


@pytest.mark.parametrize("version", [version_1, version_2])
@pytest.mark.parametrize(
    ("cpus", "env", "words", "gets"),
    [
        # two packages of four cores of two threads; Slurm numbers package, core, thread
        ("0-1,8-9", {"POD_CPUS": "4"}, [], "--conf|CPUSpecList=4-15|"),
        ("4-7,12-15", {"POD_CPUS": "8"}, [], "--conf|CPUSpecList=0-7|"),
        ("1,9", {"POD_CPUS": "2"}, [], "--conf|CPUSpecList=0-1,4-15|"),
        ("0-15", {"POD_CPUS": "4"}, [], "--conf|CoreSpecCount=6|"),
        ("0-3", {"POD_CPUS": "2"}, [], "--conf|CoreSpecCount=7|"),
        ("0-15", {"POD_CPUS": "16"}, [], ""),
        ("0-1,8-9", {}, [], ""),
        ("0-1,8-9", {"POD_CPUS": "4"}, ["--conf", "CpuSpecList=0"], "--conf|CpuSpecList=0|"),
        ("0-1,8-9", {"POD_CPUS": "4"}, ["--conf", "CoreSpecCount=1"], "--conf|CoreSpecCount=1|"),
        ("0-15", {"POD_CPUS": "4"}, ["--conf", "CPUSpecList=0"], "--conf|CPUSpecList=0|"),
        ("rubbish", {"POD_CPUS": "4"}, [], "--conf|CoreSpecCount=6|"),
    ],
)
def test_cpus_of_its_own_are_named_and_others_are_counted(
    init: Path, slurmd: Path, tmp_path: Path, version, cpus: str, env: dict[str, str],
    words: list[str], gets: str,
) -> None:  # fmt: skip
    sys = tmp_path / "sys"
    machine(sys, packages=2, cores=4, threads=2)
    version(sys, cpus)
    assert run(init, "--slurmd", "--sys", str(sys), str(slurmd), *words, **env).stdout == gets


@pytest.mark.parametrize("output", ["", "CPUs=2", "Boards=1 SocketsPerBoard=x"])
def test_a_machine_that_tells_nothing_useful_is_an_error(
    init: Path, tmp_path: Path, output: str
) -> None:
    program = tmp_path / "slurmd"
    program.write_text(f"#!/bin/sh\necho '{output}'\n")
    program.chmod(0o755)
    done = run(init, "--slurmd", str(program), POD_CPUS="1")
    assert done.returncode == 2
    assert "slurmd -C" in done.stderr
