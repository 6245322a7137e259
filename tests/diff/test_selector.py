"""Label and node selectors against k8s.io/apimachinery and k8s.io/component-helpers.

SLINC_DIFF_SEED  the seed of the random cases; a failure prints it
SLINC_DIFF_CASES how many random cases of each kind
"""

import json
import os
import random
import shutil
import subprocess

import pytest

from drive import HERE, driver

SEED = int(os.environ.get("SLINC_DIFF_SEED", "1"))
CASES = int(os.environ.get("SLINC_DIFF_CASES", "5000"))

KEYS = ["a", "b", "c", "in", "notin", "x/y", "k8s.io/A_b.c", "A"]
VALUES = ["", "x", "y", "in", "notin", "1", "5", "07", "A.b-c_d", "z" * 63, "9223372036854775807"]
WRONG = ["-", "a-", "-a", "a/b/c", "/a", "a/", "A.io/x", "a..b/x", "é", "a@", "z" * 64, "1.5", "+1",
         "-1", "9223372036854775808", "s" * 254 + "/x", "s" * 253 + "/x", "a_b/x", "x.y/z"]

# Labels of objects. The API server would not store all of these; matching must agree anyway.
SUBJECTS = [
    {}, {"a": ""}, {"a": "x"}, {"a": "y", "b": "x"}, {"b": "5"}, {"a": "6", "b": "07"}, {"c": "-3"},
    {"c": "+7"}, {"c": "+-7"}, {"c": "1_000"}, {"c": "0x10"}, {"a": " 5"}, {"in": "in"},
    {"notin": "notin", "x/y": "1"}, {"k8s.io/A_b.c": "A.b-c_d", "A": "x"},
    {"a": "9223372036854775807", "b": "9223372036854775808", "c": "-9223372036854775808"},
]

TRICKY_TEXT = [
    "", " ", "a", "!a", "a=", "a==", "a!=", "a=b", "a==b", "a!=b", "a===b", "a=!b", "a!==b", "a=b=c",
    ",", "a,", ",a", "a,,b", "a,b", "!", "!!a", "! a", "!a=b", "!a in (b)", "!a,b", "a b", "a=b c",
    "a in", "a in b", "a in (", "a in ()", "a in (,)", "a in (,,)", "a in (b", "a in (b)", "a in (b,)",
    "a in (,b)", "a in (b,,c)", "a in (b c)", "a in ((b))", "a in (b))", "a in (=)", "a in(b)",
    "a  in\t(\nb\r,c )", "ain(b)", "a notin (b)", "a notin ()", "a notin", "a not in (b)", "in", "notin",
    "in in (in)", "notin notin (notin)", "in (a)", "in=in", "a=in", "a=notin", "a in (in,notin)", "(a)",
    "a)", "a=(b)", "a>", "a>1", "a<1", "a>x", "a>1,2", "a>=1", "a=>1", "a<>1", "a>-1", "a>+1", "a>01",
    "a>99999999999999999999", "a <5", "=b", "=", "==", "!=", "a = b , c", "a\n=\nb", "\va", "a=\v",
    "a=b,a=c", "b,a,b=1,b=0", "a in (z,y,x,z)", "a=b;c", "a=\"b\"", "a='b'", "a=b#", "a.b=c", "a_b=c",
]

NODES = [{"name": f"n{i}", "labels": labels} for i, labels in enumerate(SUBJECTS)]


def ask(program, questions):
    data = "".join(json.dumps(q) + "\n" for q in questions)
    done = subprocess.run([str(program)], input=data.encode(), capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers


@pytest.fixture(scope="module")
def ours():
    return driver("selector")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    if not shutil.which("go"):
        pytest.skip("the reference needs go")
    program = tmp_path_factory.mktemp("go") / "selectorref"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "selectorref", check=True)
    return program


def compare(ours, reference, questions, *parts):
    """Every question gets the same answer in the parts named; returns what both said."""
    mine, theirs = ask(ours, questions), ask(reference, questions)
    for question, a, b in zip(questions, mine, theirs):
        shown = f"seed {SEED}: {question['kind']} {json.dumps(question['selector'])}"
        assert a["ok"] == b["ok"], f"{shown}: {a.get('error')}"
        for part in parts if b["ok"] else ():
            if b[part] is not None:
                assert a[part] == b[part], shown
    accepted = sum(b["ok"] for b in theirs)
    assert 0 < accepted < len(questions), "the cases are all alike"
    return mine, theirs


def random_text(dice):
    """Mostly well formed; now and then something is dropped, doubled or put in."""
    tokens = []
    for i in range(dice.randrange(0, 6)):
        key = dice.choice(KEYS if dice.random() < 0.95 else WRONG)
        word = lambda: dice.choice(VALUES if dice.random() < 0.95 else WRONG)
        tokens += [","] if i else []
        kind = dice.randrange(5)
        if kind == 0:
            tokens += [key]
        elif kind == 1:
            tokens += ["!", key]
        elif kind == 2:
            tokens += [key, dice.choice(["=", "==", "!="]), word()]
        elif kind == 3:
            tokens += [key, dice.choice([">", "<"]), dice.choice(["5", "0", "007", word()])]
        else:
            values = [word() for _ in range(dice.randrange(4))]
            tokens += [key, dice.choice([" in ", " notin "]), "(", ",".join(values), ")"]
    if tokens and dice.random() < 0.2:
        at = dice.randrange(len(tokens))
        tokens[at] = dice.choice(["", tokens[at] * 2, " ", ",", "(", ")", "!", "=", "in", "\t", "<"])
    blank = dice.choice(["", "", " ", "\n"])
    return blank.join(tokens)


def test_label_selector_texts(ours, reference):
    dice = random.Random(SEED)
    texts = TRICKY_TEXT + [f"{w}=x" for w in WRONG] + [f"a={w}" for w in WRONG + VALUES]
    texts += [random_text(dice) for _ in range(CASES)]
    questions = [{"kind": "text", "selector": t, "subjects": SUBJECTS} for t in texts]
    mine, theirs = compare(ours, reference, questions, "matches")
    for text, a, b in zip(texts, mine, theirs):
        if b["ok"]:  # we print = for ==
            assert a["text"] == b["text"].replace("==", "="), (SEED, text)


def random_requirement(dice, operators, keys):
    values = dice.sample(VALUES if dice.random() < 0.9 else WRONG + VALUES, dice.choice([0, 1, 1, 2, 3]))
    requirement = {"key": dice.choice(keys), "operator": dice.choice(operators)}
    if requirement["operator"] in ("Exists", "DoesNotExist") and dice.random() < 0.9:
        values = dice.choice([[], None])
    if requirement["operator"] in ("Gt", "Lt") and dice.random() < 0.9:
        values = [dice.choice(["5", "0", "007", "6"])]
    if requirement["operator"] in ("In", "NotIn") and dice.random() < 0.9:
        values = values or ["x"]
    requirement["values"] = values
    return requirement


def random_object(dice):
    selector = {}
    if dice.random() < 0.6:
        words = VALUES if dice.random() < 0.95 else VALUES + WRONG
        selector["matchLabels"] = {k: dice.choice(words) for k in dice.sample(KEYS, dice.randrange(3))}
    if dice.random() < 0.8:
        operators = ["In", "NotIn", "Exists", "DoesNotExist"]
        if dice.random() < 0.05:
            operators += ["Gt", "in", "", "="]
        selector["matchExpressions"] = [random_requirement(dice, operators, KEYS + ["no-"][: dice.random() < 0.05])
                                        for _ in range(dice.randrange(4))]
    return selector


def test_label_selector_objects(ours, reference):
    dice = random.Random(SEED)
    objects = [None, {}, {"matchLabels": None}, {"matchLabels": {"a": None}}, {"matchLabels": {"a": 1}},
               {"matchExpressions": [{}]}, {"matchExpressions": [None]}, [], "a=b"]
    objects += [random_object(dice) for _ in range(CASES)]
    questions = [{"kind": "object", "selector": o, "subjects": SUBJECTS} for o in objects]
    mine, theirs = compare(ours, reference, questions, "matches")
    for selector, a, b in zip(objects, mine, theirs):
        if b["ok"] and selector is not None:
            assert a["text"] == b["text"], (SEED, selector)


def random_term(dice):
    operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    if dice.random() < 0.03:
        operators += ["Eq"]
    term = {}
    if dice.random() < 0.8:
        term["matchExpressions"] = [random_requirement(dice, operators, KEYS) for _ in range(dice.randrange(4))]
    if dice.random() < 0.3:
        fields = ["In", "NotIn"] + (["Exists"] if dice.random() < 0.05 else [])
        names = dice.choices([n["name"] for n in NODES], k=1 if dice.random() < 0.95 else 2)
        term["matchFields"] = [{"key": "metadata.name", "operator": dice.choice(fields), "values": names}]
    return term


def random_node_selector(dice):
    return {"nodeSelectorTerms": [random_term(dice) for _ in range(dice.randrange(4))]}


def test_node_selectors(ours, reference):
    dice = random.Random(SEED)
    selectors = [{}, {"nodeSelectorTerms": None}, {"nodeSelectorTerms": [{}]}, {"nodeSelectorTerms": [None]}, "x"]
    selectors += [random_node_selector(dice) for _ in range(CASES)]
    questions = [{"kind": "nodes", "selector": s, "nodes": NODES} for s in selectors]
    compare(ours, reference, questions, "matches")


def random_pod(dice):
    spec, affinity = {}, {}
    if dice.random() < 0.4:
        spec["nodeSelector"] = {k: dice.choice(VALUES) for k in dice.sample(KEYS, dice.randrange(1, 3))}
    if dice.random() < 0.6:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = random_node_selector(dice)
    spec["affinity"] = dice.choice([{"nodeAffinity": affinity}] * 9 + [{}])
    return spec


def test_pods(ours, reference):
    dice = random.Random(SEED)
    specs = [{}, {"affinity": None}, {"affinity": {"nodeAffinity": None}}, {"nodeSelector": {}},
             {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}}]
    specs += [random_pod(dice) for _ in range(CASES)]
    questions = [{"kind": "pod", "selector": s, "nodes": NODES} for s in specs]
    compare(ours, reference, questions, "matches")
