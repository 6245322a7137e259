"""Host lists read and folded as Slurm's own scontrol does it.

SLINC_SCONTROL   the command to ask, e.g. "scontrol" or "chroot /srv/slurm scontrol"
SLINC_BUILD      a meson build folder, for tests/diff/drive_hostlist
SLINC_DIFF_SEED  the seed of the random cases; a failure prints it
SLINC_DIFF_CASES how many random cases of each kind
"""

import os
import random
import shlex
import subprocess
import tempfile

import pytest

import drive

SEED = int(os.environ.get("SLINC_DIFF_SEED", "1"))
RANDOM_CASES = int(os.environ.get("SLINC_DIFF_CASES", "1500"))

TRICKY_LISTS = [
    "n1", "login", "n[1-3]", "n[1-3,7,009-011],m5", "rack[1-2]node[01-04]", "n[1-2]-ib",
    "n[1-2]a[3-4]b", "n[1-2][3-4]", "n[1-3]5", "[1-3]", "[1-3]a", "n[08-11]", "n[008-11]",
    "n[8-011]", "n[01-002]", "n[1-010]", "n[00-01,1]", "n[1-2],n[2-3]", "n[1-1]", "a,,b", "a b",
    ",a", "a,", "a[1-2],b[1-3]x[0-1],c", "n[1-3]x[1-2]y[0-1]", "a[1-2]b[1-2]c[1-2]d[1-2]",
    "a[1-2]b[1-2]c[1-2]d", "n[3,1,2]", "r[2,1]n[2,1]", "n[0-9,00-09,000-009]", "n[95-105]",
    "n[095-105]", "x.y[1-2]", "n-[1-2]", "n_1", "n[000]", "n0", "n00", "n[99-100,099]",
]

WRONG_LISTS = ["n[3-1]", "n[]", "n[1,,2]", "n[a-b]", "n[1-2", "n[1:3]", "n[0-99999999]", "n[1-9/2]",
               "n[1--2]", "n[0x1-0x3]", "n[1,]", "n[,1]"]

# Slurm takes these, and makes names of them that nobody meant; we refuse.
REFUSED_BY_US = ["n1]", "n[1-]", "n[ 1-2]", "n[+1-2]", "n[[1-2]]", "n[1-2]]",
                 "n99999999999999999999", "n[18446744073709551616]", "a;b", "a=b"]

# Numbers of one width, or none padded: here Slurm's sorted form does not depend on the input's order.
TRICKY_SETS = [
    "n3,n1,n2", "n9,n10,n11", "n09,n10,n11", "n99,n100,n101", "m5,n1,a,b,a1", "a2,a,a1",
    "A1,a1,B2,b1", "a1b,a1b2,a10b,a2b", "a1b1,a1b2,a2b1,a2b2", "a01b1,a1b1,a1b2,a01b2",
    "rack1node1,rack10node1,rack2node1", "n-1,n-2", "n1-ib,n2-ib,n10-ib", "1,2,3", "x.1,x.2",
    "n1,n10,n100,n1000,n2", "a0b,a00b,a000b,a1b", "a09b,a9b,a10b,a090b", "a,b,ab,a1,ab1",
    "x1y2z3,x1y2z4,x1y10z3", "n01,n1", "n1,n01,n001",
]


class Scontrol:
    """Asks the real scontrol. It reads a configuration before it does anything: give it the least."""

    def __init__(self, command, folder):
        self.command = command
        self.environment = dict(os.environ)
        if "SLURM_CONF" in os.environ:
            return
        root = command[1] if command[0] == "chroot" else ""
        place = os.path.join(root, "tmp") if root else folder
        with tempfile.NamedTemporaryFile("w", dir=place, prefix="slurm-", suffix=".conf",
                                         delete=False) as conf:
            conf.write("ClusterName=test\nSlurmctldHost=localhost\n")
        os.chmod(conf.name, 0o644)
        self.conf = conf.name
        self.environment["SLURM_CONF"] = conf.name[len(root):] if root else conf.name

    def show(self, what, text):
        """The answer's lines, or None where scontrol refuses."""
        done = subprocess.run(self.command + ["show", what, text], env=self.environment,
                              capture_output=True, text=True, timeout=60)
        if "Invalid hostlist" in done.stdout + done.stderr:
            return None
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def close(self):
        if hasattr(self, "conf"):
            os.unlink(self.conf)


class Driver:
    """Asks our own code, in one process."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)

    def ask(self, question, text):
        self.process.stdin.write(f"{question} {text}\n")
        self.process.stdin.flush()
        mark, _, answer = self.process.stdout.readline().rstrip("\n").partition(" ")
        assert mark in ("=", "!"), f"the driver died on {question} {text!r}"
        return answer if mark == "=" else None

    def expand(self, text):
        answer = self.ask("expand", text)
        return None if answer is None else answer.split()

    def fold(self, text):
        return self.ask("fold", text)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


@pytest.fixture(scope="module")
def scontrol(tmp_path_factory):
    if not os.environ.get("SLINC_SCONTROL"):
        pytest.skip("SLINC_SCONTROL names no scontrol to compare with")
    asked = Scontrol(shlex.split(os.environ["SLINC_SCONTROL"]), tmp_path_factory.mktemp("slurm"))
    yield asked
    asked.close()


@pytest.fixture(scope="module")
def driver():
    asked = Driver(str(drive.driver("hostlist")))
    yield asked
    asked.close()


@pytest.mark.parametrize("text", TRICKY_LISTS)
def test_a_list_expands_to_the_same_names_in_the_same_order(scontrol, driver, text):
    assert driver.expand(text) == scontrol.show("hostnames", text)


@pytest.mark.parametrize("text", WRONG_LISTS)
def test_both_refuse_a_wrong_list(scontrol, driver, text):
    assert scontrol.show("hostnames", text) is None
    assert driver.expand(text) is None


@pytest.mark.parametrize("text", REFUSED_BY_US)
def test_what_slurm_would_mangle_is_refused(scontrol, driver, text):
    assert scontrol.show("hostnames", text) is not None
    assert driver.expand(text) is None


@pytest.mark.parametrize("text", TRICKY_SETS)
def test_a_set_folds_to_the_same_text(scontrol, driver, text):
    assert [driver.fold(text)] == scontrol.show("hostlistsorted", text)


def random_range(dice):
    low = dice.choice([dice.randrange(12), dice.randrange(95, 106), dice.randrange(2000)])
    first = f"{low:0{dice.choice([1, 1, 1, 2, 3, 4])}d}"
    return first if dice.random() < 0.5 else f"{first}-{low + dice.randrange(15)}"


def random_pattern(dice):
    text = dice.choice(["n", "node", "rack1n", "a-", "x.y", "", "N_"])
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        ranges = [random_range(dice) for _ in range(dice.randrange(1, 4))]
        text += "[" + ",".join(ranges) + "]" + dice.choice(["", "", "b", "-ib", "7"])
    return text or "n"


def test_random_lists_expand_alike(scontrol, driver):
    dice = random.Random(SEED)
    for _ in range(RANDOM_CASES):
        text = ",".join(random_pattern(dice) for _ in range(dice.randrange(1, 4)))
        assert driver.expand(text) == scontrol.show("hostnames", text), (SEED, text)


def random_set(dice):
    """Names whose numbers have one padding per prefix, each name once, in any order."""
    names = set()
    for prefix in dice.sample(["n", "m", "a1b", "a01b", "a10b", "a2b", "x-", "x.", "Z", ""], 3):
        width = dice.choice([1, 1, 2, 3])
        start = dice.choice([0, 7, 95, 995])
        for _ in range(dice.randrange(1, 12)):
            names.add(f"{prefix}{start + dice.randrange(20):0{width}d}")
        if prefix and dice.random() < 0.3:
            names.add(prefix + dice.choice(["x", "login", "q-"]))
    names = sorted(names)
    dice.shuffle(names)
    return ",".join(names)


def test_random_sets_fold_alike(scontrol, driver):
    dice = random.Random(SEED)
    for _ in range(RANDOM_CASES):
        text = random_set(dice)
        assert [driver.fold(text)] == scontrol.show("hostlistsorted", text), (SEED, text)


def test_slurm_reads_our_folding_of_any_set_as_that_set(scontrol, driver):
    dice = random.Random(SEED)
    for _ in range(RANDOM_CASES):
        text = ",".join(random_pattern(dice) for _ in range(dice.randrange(1, 4)))
        folded = driver.fold(text)
        if len(folded) > 100_000:  # more than one argument of a command can hold
            continue
        names = scontrol.show("hostnames", folded)
        assert len(names) == len(set(names)), (SEED, text, folded)
        assert set(names) == set(driver.expand(text)), (SEED, text, folded)
