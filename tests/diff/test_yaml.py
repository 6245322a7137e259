"""YAML as our reader sees it, beside sigs.k8s.io/yaml (through tests/diff/yamlref).

Each text goes to both; both must take or refuse it, and when taken give the same value. What differs on
purpose is listed in KNOWN. Skipped where there is no Go toolchain."""

import json
import os
import random
import shutil
import subprocess

import pytest

DRIVER = os.path.join(os.environ.get("SLINC_BUILD", "build"), "tests", "diff", "drive_json")
REFERENCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "yamlref")
SEED = int(os.environ.get("SLINC_SEED", "1"))


class Refused(str):
    """The answer to a text that is an error, with its reason."""


ERROR = Refused()

pytestmark = pytest.mark.skipif(not shutil.which("go"), reason="needs the Go toolchain")

# Texts on which the two differ, with our answer (ERROR: refused) and why.
KNOWN = [
    ("a: 1\na: 2", ERROR, "duplicate keys"),
    ("- {<<: {a: 1, a: 2}}", ERROR, "duplicate keys in a merged mapping"),
    ("1: x\n'1': y", ERROR, "keys that become the same string"),
    ("1.5: x", ERROR, "a key that is a float (1.10 would become 1.1)"),
    (".inf: x", ERROR, "as above"),
    ("08: x", ERROR, "as above: 08 is no octal number but the float 8"),
    ("!foo bar", ERROR, "a tag of one's own"),
    ("!!binary aGk=", ERROR, "!!binary"),
    ("!!timestamp 2001-01-01", ERROR, "!!timestamp"),
    ("!!merge <<: {a: 1}", ERROR, "!!merge written out"),
    ("!!str [a]", ERROR, "a tag that does not fit the collection"),
    ("!!float 18446744073709551615", 18446744073709551615, "a large !!float"),
    ("%YAML 1.2\n---\na", "a", "the directive of version 1.2"),
    ("! 12", 12, "the tag '!' on a plain scalar"),
    ('"\\/"', "/", "the escape \\/, which JSON has"),
    ("[a?b]", ["a?b"], "a question mark inside a word in brackets"),
    ("[a:, b]", ERROR, "a colon at the end of a word in brackets"),
    ('"\\\'"', ERROR, "the escape \\', which YAML has not"),
    (".5_0", ".5_0", "underscores behind a leading point"),
    ("0b-1", "0b-1", "a sign behind 0b"),
    ("[" * 201 + "]" * 201, ERROR, "nesting is bounded at 200"),
]

# Reasons for which we refuse what the reference takes: those of KNOWN that damage brings about.
STRICTER = ("was used before", "needs quotes", "JSON has no number", "found unexpected ':'", "unknown escape character")

TRICKY = [
    "", " ", "\n", "# c", "---", "--- ~", "...", "a", "a b", "a: b", "a:b", "a : b", "- a", "-a", "-", "- - a", "a:\n- b\n- c",
    "a:\n  - b", "a:\n b:\n  c", "a: [1, 2]", "a: [1, 2,]", "{a: 1}", "{a: 1,}", "{a, b: c}", "[a: b]", "[a: b, c]", "? a",
    "? a\n: b", "? [a]\n: b", "? {a: b}\n: c", "a: b: c", "a: 'b': c", "- a\n b", "a: |\n  x\n  y", "a: |-\n  x\n", "a: |+\n  x\n\n",
    "a: >\n  x\n  y\n\n  z\n", "a: |2\n   x\n", "|\n x", ">\n x", "'a''b'", '"a\\"b"', '"\\x41\\u263a\\U0001F600\\0\\L\\_"', '"\\q"',
    '"a\n b"', '"a\\\n b"', "'a\n\n b'", "@a", "`a", "%a", "&a", "&a b", "*a", "- &a b\n- *a", "- &a b\n- &a c\n- *a", "a: &a [*a]",
    "a: &a {b: *a}", "&a a: *a", "? &k foo\n: bar\nz: *k", "- &a {b: c}\n- {<<: *a, d: e}", "- &a {b: c}\n- {b: x, <<: *a}",
    "- &a {b: c}\n- {<<: *a, b: x}", "- &a {b: 1}\n- &c {b: 2, d: 3}\n- <<: [*a, *c]", "- &a {b: 1}\n- &c {<<: *a, e: 4}\n- <<: *c",
    "<<: 1", "<<: [1]", "<<: []", "<<: ~", "<<: {}", '"<<": {a: 1}', "- <<", "- &a [{b: 1}]\n- <<: *a", "a: 1\n---\nb: 2",
    "1: x", "-1: x", "0x10: x", "true: x", "yes: x", "y: x", "~: x", "null: x", "'~': x", "9223372036854775808: x", ": x", "'': x",
    "!!str 12", "!!str ~", "!!str", "!!int '12'", "!!int 0x1f", "!!int 1.5", "!!int a", "!!float 1", "!!float 1.5", "!!float a",
    "!!bool yes", "!!bool 1", "!!null ''", "!!null ~", "!!null x", "!!map {a: b}", "!!seq [a]", "! 'a'", "! '12'", "a:\tb", "a:\n\t- b",
    "\ta: b", "a: b\t", "a: b # c", "a: b#c", "a: #c", "'a' 'b'", "[a", "{a", "]", "}", "[a]]", "a: [b]: c", "\ufeffa: b", "a: \ufffe",
    "a: \x07", "a: \x7f", "a: \x85", "a: é", "é: 1", "😀", "%TAG ! tag:x,2000:\n---\na", "%FOO\n---\na", "%YAML 1.1\n---\na", "--- |\n x\n...\n",
    "a: b\n c: d", "a:\n  b: 1\n c: 2", "a: 1\n b", "- a\nb: c", "b: c\n- a", "key: value\n\n\n", "a: -", "a: - b", "[-]", "[- a]", "a: ?b", "a: :b",
    "http://a.b/c?d=e#f", "a: http://b:80/", "{a: http://b}", "[a,b]", "{a:b}", '{"a":b}', '{"a":1,"b":[true,null,"c\\n"]}', "a: 'b", 'a: "b',
    "x" * 1100 + ": y", "? " + "x" * 1100 + "\n: y", "a: " + "x" * 3000,
]

SCALARS = """~ null Null NULL nULL true True TRUE tRUE false y Y yes Yes YES n N no No NO on On ON off Off OFF yEs oN 0 -0 +0 00 1 +1 -1 01 -01
007 08 09 0x 0x0 0xF 0XF 0xg -0xF +0xF 0o7 0O7 0o8 0b1 0B1 0b2 -0b1 +0b1 0b 1_0 1__0 1_ _1 -_1 0x_1 0_7 0_8 1e3 1E3 1e+3 1e-3 1e 1e+ e3 1.5
1. .5 . -. +. .e3 1.e3 1.5e3 .5e-3 -.5 +.5 -1.5 1.5.5 1_0.5_0 1e400 -1e400 1e-400 .inf .Inf .INF .iNF -.inf +.inf .nan .NaN .NAN +.nan inf nan
Infinity 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616
+18446744073709551615 -18446744073709551615 0xFFFFFFFFFFFFFFFF 0x10000000000000000 -0x8000000000000000 -0x8000000000000001
0777777777777777777777 123456789012345678901234567890 2001-01-01 2001-1-1 2001-12-14T21:59:43.10-05:00 12:30:45 1:2 190:20:30 1.2.3 1-2 1+2
10Gi 500m 1e3m v1 = << 0.1 0.10 100000000000000000000.5 1,000 1/2 -- --1 +-1 0x1p4 1d 1f 0.0 -0.0 00.5 01.5 1e05""".split()


def run(command, texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8", check=True)
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(texts)
    return [Refused(answer) if answer.startswith("error: ") else json.loads(answer) for answer in answers]


@pytest.fixture(scope="module")
def yamlref(tmp_path_factory):
    program = tmp_path_factory.mktemp("yamlref") / "yamlref"
    subprocess.run(["go", "build", "-o", program, "."], cwd=REFERENCE, check=True)
    return program


def same(a, b):
    if isinstance(a, Refused) or isinstance(b, Refused):
        return isinstance(a, Refused) and isinstance(b, Refused)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        # Go writes floats below 1e21 as digits, so a large one comes back as another int.
        return a == b or abs(a) > 2**53 and float(a) == float(b)
    return type(a) is type(b) and a == b


def compare(yamlref, texts):
    ours, theirs = run([DRIVER, "--yaml"], texts), run([yamlref], texts)
    for text, our, their in zip(texts, ours, theirs):
        assert same(our, their), f"{text!r}: ours {our!r}, reference {their!r}"


def test_tricky_texts_are_judged_alike(yamlref):
    compare(yamlref, TRICKY)


def test_scalars_mean_the_same_everywhere(yamlref):
    shapes = ("{}", "a: {}", "- {}", "[{}, {}]", "a: '{}'", 'a: "{}"', "a: |\n  {}\n", "'{}': x")
    compare(yamlref, [shape.replace("{}", scalar) for scalar in SCALARS for shape in shapes])


@pytest.mark.parametrize("text, ours, why", KNOWN, ids=[why for _, _, why in KNOWN])
def test_known_differences_stay_as_they_are(yamlref, text, ours, why):
    assert same(run([DRIVER, "--yaml"], [text])[0], ours)
    assert not same(run([yamlref], [text])[0], ours), "no longer a difference"


def test_duplicate_keys_are_refused_as_in_strict_reading(yamlref):
    texts = ["a: 1\na: 2", "{a: 1, b: {c: 1, c: 1}}", "- a: 1\n  b: 2\n  a: 3", "a: 1\nb: 1"]
    ours, theirs = run([DRIVER, "--yaml"], texts), run([yamlref, "-strict"], texts)
    assert all(map(same, ours, theirs))
    assert all("was used before" in our for our in ours[:3])


def random_scalar(rng):
    choice = rng.randrange(4)
    if choice == 0:
        return rng.choice(SCALARS)
    if choice == 1:
        return json.dumps("".join(rng.choice("ab :#-{}[]\n\"'é😀") for _ in range(rng.randrange(8))))
    if choice == 2:
        return "'" + rng.choice(SCALARS) + "'"
    return "".join(rng.choice("0123456789+-.eExob_aF") for _ in range(rng.randrange(1, 8)))


def random_flow(rng, depth):
    if depth == 0 or rng.random() < 0.4:
        return random_scalar(rng)
    if rng.random() < 0.5:
        return "[" + ", ".join(random_flow(rng, depth - 1) for _ in range(rng.randrange(4))) + "]"
    return "{" + ", ".join(f"k{i}: " + random_flow(rng, depth - 1) for i in range(rng.randrange(4))) + "}"


def random_block(rng, depth, indent=""):
    if depth == 0 or rng.random() < 0.3:
        return " " + random_flow(rng, depth) + "\n"
    deeper = indent + " " * rng.randrange(1, 4)
    if rng.random() < 0.5:
        return "\n" + "".join(deeper + "-" + random_block(rng, depth - 1, deeper) for _ in range(rng.randrange(1, 4)))
    return "\n" + "".join(f"{deeper}k{i}:" + random_block(rng, depth - 1, deeper) for i in range(rng.randrange(1, 4)))


def is_known(text):
    """Damage may make a text that falls under KNOWN: leave such texts out."""
    marks = ("!", "%", "0b-", "0b+", "0B-", "0B+")
    return any(mark in text for mark in marks) or "." in text and "_" in text or "?" in text and ("[" in text or "{" in text)


def test_generated_documents_have_the_same_value(yamlref):
    rng = random.Random(SEED)
    texts = [random_block(rng, rng.randrange(5)) for _ in range(5000)]
    compare(yamlref, [text for text in texts if not is_known(text)])


def damaged(rng, text):
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(len(text))
        new = rng.choice(("", text[at] * 2, rng.choice("{}[]:,\"'#-?|>&*~ \n\t0x.")))
        text = text[:at] + new + text[at + 1 :] or " "
    return text


def test_damaged_documents_are_judged_alike(yamlref):
    rng = random.Random(SEED + 1)
    texts = [damaged(rng, random_block(rng, rng.randrange(5))) for _ in range(10000)]
    texts = [text for text in texts if not is_known(text)]
    ours, theirs = run([DRIVER, "--yaml"], texts), run([yamlref], texts)
    for text, our, their in zip(texts, ours, theirs):
        stricter = isinstance(our, Refused) and any(reason in our for reason in STRICTER)
        assert stricter or same(our, their), f"{text!r}: ours {our!r}, reference {their!r}"


def test_texts_that_expand_without_end_are_refused(yamlref):
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 9) + "]\n" for i in range(1, 10))
    assert "once aliases are expanded" in run([DRIVER, "--yaml"], [text])[0]
    assert isinstance(run([yamlref], [text])[0], Refused)
