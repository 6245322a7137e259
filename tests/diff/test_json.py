"""JSON as our reader sees it, beside Python's json module.

SLINC_BUILD names a meson build folder. Each text goes to both readers; both must take or refuse it, and
when taken give the same value. What differs on purpose is listed in KNOWN."""

import json
import math
import os
import random
import string
import subprocess

import pytest

DRIVER = os.path.join(os.environ.get("SLINC_BUILD", "build"), "tests", "diff", "drive_json")
SEED = int(os.environ.get("SLINC_SEED", "1"))

ERROR = object()

# Texts on which the two differ, with our answer (None: refused) and why.
KNOWN = [
    ("NaN", None, "Python takes NaN; RFC 8259 has none"),
    ("Infinity", None, "as NaN"),
    ("[-Infinity]", None, "as NaN"),
    ("1e999", None, "Python reads infinity; JSON cannot write it back"),
    ('"\\ud800"', None, "half a surrogate pair is no character"),
    ('"\\udc00\\ud800"', None, "as above"),
    ("[" * 201 + "]" * 201, None, "nesting is bounded at 200"),
    ("18446744073709551616", 18446744073709551616.0, "above 64 bits a number is a double"),
    ("-9223372036854775809", -9223372036854775808, "below 64 bits as well"),
    ("123456789012345678901234567890", 123456789012345678901234567890.0, "as above"),
]

TRICKY = [
    "", " ", "\n", "null", "true", "false", "nul", "True", "[]", "{}", "[", "]", "{", "}", "[,]", "[1,]", "[,1]",
    "[1 2]", '{"a"}', '{"a":}', '{"a":1,}', "{,}", '{"a" 1}', "{a:1}", "{1:2}", "{null:1}", "'a'", '"a', '"', '""',
    '"\\"', '"\\\\"', '"\\a"', '"\\u"', '"\\u00"', '"\\u00g0"', '"\\U0041"', '"\\u0041"', '"\\u0000"', '"\\ud83d\\ude00"',
    '"\\/"', '"\\b\\f\\n\\r\\t"', '"\t"', '"\n"', '"\x7f"', '"\u2028"', '"\ufffe"', '"\U0010ffff"', "0", "-0", "00", "01",
    "-01", "+1", "-", "--1", "1.", ".1", "1.0", "-1.5", "1e", "1e+", "1e1", "1E1", "1e+01", "1e-01", "0e0", "0.0", "-0.0",
    "0e999", "1e-999", "0x10", "1_000", "1 2", "1,2", "[1]]", "[1]x", "// c\n1", "/* c */1", "1 # c", "\ufeff1", "\u00a01",
    "\v1", "\f1", "\r1", "\t1 ", '{"a":1,"a":2}', '{"a":{"b":1},"a":3}', "9007199254740993", "9223372036854775807",
    "9223372036854775808", "18446744073709551615", "-9223372036854775808", "0.1", "1.7976931348623157e308", "5e-324",
    "2.2250738585072011e-308", "123456789.123456789", "1e22", "1e23", "[" * 200 + "]" * 200, '{"a":' * 200 + "1" + "}" * 200,
    "[1\x00]", '"\x00"', "\x00", "[\"a\",\n\"b\"\r]", "[[],{},[{}],{\"a\":[]}]",
]


def driver(texts):
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([DRIVER], input=lines, capture_output=True, text=True, encoding="utf-8", check=True)
    answers = done.stdout.split("\n")[:-1]
    assert len(answers) == len(texts)
    return [ERROR if answer.startswith("error: ") else json.loads(answer) for answer in answers]


def reference(text):
    try:
        return json.loads(text)
    except ValueError:
        return ERROR


def same(a, b):
    """As ==, but true is not 1, and an int equals the float it was written from."""
    if isinstance(a, bool) or isinstance(b, bool) or a is ERROR or b is ERROR:
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) in (int, float) and type(b) in (int, float) and a == b or type(a) is type(b) and a == b


def compare(texts):
    for text, ours in zip(texts, driver(texts)):
        theirs = reference(text)
        assert same(ours, theirs), f"{text!r}: ours {ours!r}, Python {theirs!r}"


def random_string(rng):
    kinds = (string.ascii_letters, string.printable, "\x00\x1f\x7f\"\\/", "é€\u2028\ufffd\ufffe", "😀\U0010ffff")
    return "".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randrange(12)))


def random_number(rng):
    choice = rng.randrange(5)
    if choice == 0:
        return rng.randrange(-100, 100)
    if choice == 1:
        return rng.randrange(-(2**63), 2**64)
    if choice == 2:
        return rng.uniform(-1e6, 1e6)
    if choice == 3:
        return math.ldexp(rng.random(), rng.randrange(-1000, 1000))
    return float(rng.randrange(10**6))


def random_value(rng, depth):
    choice = rng.randrange(8 if depth > 0 else 5)
    if choice == 0:
        return rng.choice((None, True, False))
    if choice <= 2:
        return random_number(rng)
    if choice <= 4:
        return random_string(rng)
    if choice == 5:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(6))]
    size = 30 if rng.random() < 0.1 else 6
    return {random_string(rng): random_value(rng, depth - 1) for _ in range(rng.randrange(size))}


def random_text(rng):
    spaces = rng.choice((None, 0, 2, "\t"))
    return json.dumps(random_value(rng, rng.randrange(5)), ensure_ascii=rng.random() < 0.5, indent=spaces)


def damaged(rng, text):
    """One character dropped, doubled, swapped or replaced."""
    at = rng.randrange(len(text))
    new = rng.choice(("", text[at] * 2, rng.choice('{}[]:,"\\0123456789.eE+-truefalsnl \n\x00'), text[::-1][at]))
    return text[:at] + new + text[at + 1 :]


def differs_on_purpose(text):
    """True for damaged texts that fall under KNOWN."""
    value = reference(text)
    if value is ERROR:
        return False
    numbers = []

    def walk(item):
        if isinstance(item, dict):
            for key, member in item.items():
                walk(key)
                walk(member)
        elif isinstance(item, list):
            for member in item:
                walk(member)
        else:
            numbers.append(item)

    walk(value)
    for item in numbers:
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, int) and not -(2**63) <= item < 2**64:
            return True
        if isinstance(item, str) and any("\ud800" <= c <= "\udfff" for c in item):
            return True
    return False


def test_tricky_texts_are_judged_alike():
    compare(TRICKY)


@pytest.mark.parametrize("text, ours, why", KNOWN, ids=[why for _, _, why in KNOWN])
def test_known_differences_stay_as_they_are(text, ours, why):
    want = ERROR if ours is None else ours
    assert same(driver([text])[0], want)
    assert not same(reference(text), want) or isinstance(ours, float), "no longer a difference"


def test_generated_documents_have_the_same_value():
    rng = random.Random(SEED)
    compare([random_text(rng) for _ in range(5000)])


def test_damaged_documents_are_judged_alike():
    rng = random.Random(SEED + 1)
    texts = (damaged(rng, random_text(rng)) for _ in range(20000))
    compare([text for text in texts if not differs_on_purpose(text)])


def test_canonical_text_is_sorted_and_tight():
    rng = random.Random(SEED + 2)
    texts = [json.dumps(random_value(rng, 3)) for _ in range(500)]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([DRIVER], input=lines, capture_output=True, text=True, encoding="utf-8", check=True)

    def check(pairs):
        keys = [key.encode() for key, _ in pairs]
        assert keys == sorted(keys)
        return dict(pairs)

    for line in done.stdout.split("\n")[:-1]:
        value = json.loads(line, object_pairs_hook=check)
        assert len(line) <= len(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) + 200


def test_files_are_read_whole(tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    first.write_text('{"b": [1.0], "a": "x"}\n')
    second.write_bytes(b'"\xff"')
    done = subprocess.run([DRIVER, first, second], capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()
    assert answers[0] == '{"a":"x","b":[1]}'
    assert answers[1].startswith("error: JSON line 1 ")
