"""Quantities against k8s.io/apimachinery, and their rounding against exact fractions."""

import math
import random
import re
from fractions import Fraction

import pytest

from drive import ask, driver, go_reference, report

SUFFIXES = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
DECIMAL = {s: 10 ** (3 * i) for i, s in enumerate(["", "k", "M", "G", "T", "P", "E"])}
DECIMAL.update({"m": Fraction(1, 10**3), "u": Fraction(1, 10**6), "n": Fraction(1, 10**9)})
BINARY = {s: 1024 ** (i + 1) for i, s in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])}

TRICKY = """
    0 -0 +0 00 0. .0 0.0 0Ki 0e3 0e-10 0n -0.0Ei 1 -1 +1 01 1. .5 -.5 1.500 1.000 1000 10000 100
    10 + - . -. +. k Ki Mi Gi Ti Pi Ei .Ki .Pi +Ei -Pi E e e3 e-9 e-10 .e-10 +e-10 n u m 1e3 1E3
    1e+3 1E-3 1e 1E 1e+ 1e- 1e+-3 1e-+3 1e3.5 1ee3 1e3e 1e007 1E0 1e-0 1.5e-9 1.5e-10 12e-1 1k
    1K 1kk 1ki 1Ki 1KI 1mi 1i 1Mi1 1m3 1+3 1-3 1.2.3 1..2 1_000 0x10 1,5 1e1k ١ 1n 0.1n 1.5n
    -1.5n -0.1n 1.0000000001 -1.0000000001 0.0000000000000001 999999999.9999999999 1.5 -1.5
    1500m 1501m 0.5Ki 0.0001Ki 1.1Ki -1.1Ki 1.123456789123Ki 3.7Ei -3.7Ei 0.7Ei 0.1Ei 1023 1024
    1023Ki 1024Ki 1025Ki 1048576Ki 1000Ki 1000000Ki 1Ei 7Ei 7.9Ei 8Ei 9Ei 10000Ei -8Ei -10000Ei
    7.99999999999999999999Ei 9223372036854775807 9223372036854775808 -9223372036854775808
    -9223372036854775809 18446744073709551616 9223372036854775807n 9223372036854775807u
    9223372036854775807m 9223372036854775807k 9223372036854775807E 9223372036854775807Ki
    9007199254740992Ki 9007199254740991.999999999Ki 9223372036854775806.5 9223372036854775807.5
    999E 1000E 1001E 1000000E 1e18 1e19 1e20 1e21 1e22 1e40 123e45 1e100 -1e100 10e99 100e98
    12345678901234567890123456789012345678 99999999999999999999999999999999999999
    100000000000000000000000000000000000000000000000000
    0.00000000000000000000000000000000000000000001
    0.00000000000000000000000000000000000000000001Ki
    1.00000000000000000000000000000000000000000001 9223372036854775 9223372036854776
    9223372036854775807000m 9223372036854775.807 9223372036854775.8071 1e2147483647 1e-30
""".split() + ["", " ", "1 ", " 1", "1 Ki", "1\tKi", "1\r", "Ki ", "µ", "1µ"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return go_reference(tmp_path_factory.mktemp("go"))


def exact(text):
    """The value of a quantity before any rounding or capping."""
    number, suffix = re.fullmatch(r"([+-]?[0-9.]*)(.*)", text).groups()
    value = Fraction(number)
    if suffix in BINARY:
        return value * BINARY[suffix]
    if suffix in DECIMAL:
        return value * DECIMAL[suffix]
    return value * Fraction(10) ** int(suffix[1:])


def random_number(rng):
    digits = rng.choice([1, 2, 3, 4, 6, 9, 12, 15, 17, 18, 19, 20, 25])
    number = "".join(rng.choice("0123456789") for _ in range(digits))
    if rng.random() < 0.3:
        number += "0" * rng.randint(1, 6)
    if rng.random() < 0.4:
        at = rng.randint(0, len(number))
        number = number[:at] + "." + number[at:]
    return rng.choice(["", "", "", "-", "+"]) + number


def random_suffix(rng):
    if rng.random() < 0.25:
        return rng.choice("eE") + rng.choice(["", "-", "+"]) + str(rng.randint(0, 21))
    return rng.choice(SUFFIXES)


def random_quantity(rng):
    return random_number(rng) + random_suffix(rng)


def random_noise(rng):
    """A quantity with one character added, dropped or replaced."""
    text = list(random_quantity(rng))
    at = rng.randrange(len(text))
    text[at : at + rng.randint(0, 1)] = rng.choice(["", *"0123456789.+-eEinumkKMGTPx "])
    # Go writes out the zeros of a large exponent, which can take it for ever.
    if re.search(r"[eE][+-]?[0-9]{4}", "".join(text)):
        return random_noise(rng)
    return "".join(text)


def saturated(value):
    return str(value) if -(2**63) <= value < 2**63 else "too big"


def expected_integers(value):
    """Units, thousandths, MiB, rounded up: the order of the driver."""
    return [saturated(math.ceil(v)) for v in (value, value * 1000, value / 2**20)]


def check_parse(line, ours, theirs):
    """None when both agree."""
    if ours == "error" or theirs == "error":
        return None if ours == theirs else (line, ours, theirs)
    _, text, *integers = ours.split("\t")
    _, go_text, go_units, go_milli = theirs.split("\t")
    if go_text == "lossy":
        go_text = text if exact(text) == exact(line) else "another value"
    if text != go_text:
        return (line, ours, theirs)
    huge = re.search(r"e\d{4,}", text)
    if integers != (["too big"] * 3 if huge else expected_integers(exact(text))):
        return (line, ours, "exact fractions")
    for ours_value, go_value in zip(integers, (go_units, go_milli)):
        if go_value not in ("negative", ours_value):
            return (line, ours, theirs)
    return None


def compare(reference, lines):
    ours, theirs = ask(driver("quantity"), "quantity", lines), ask(reference, "quantity", lines)
    answers = zip(lines, ours, theirs)
    report([d for d in (check_parse(*a) for a in answers) if d])


def test_tricky_texts_are_read_and_printed_as_go_does(reference):
    compare(reference, TRICKY)


def test_each_suffix_takes_the_edges_of_int64(reference):
    edges = [0, 1, 7, 8, 9, 10, 999, 1000, 1001, 1023, 1024, 2**53, 2**62, 2**63 - 1, 2**63, 2**64]
    compare(reference, [f"{sign}{n}{s}" for n in edges for s in SUFFIXES for sign in ("", "-")])


def test_random_quantities_are_read_and_printed_as_go_does(reference):
    rng = random.Random(20260101)
    compare(reference, [random_quantity(rng) for _ in range(20000)])


def test_damaged_quantities_are_refused_when_go_refuses_them(reference):
    rng = random.Random(20260102)
    compare(reference, [random_noise(rng) for _ in range(20000)])


def test_an_exponent_beyond_32_bits_is_refused():
    """Go lets it wrap around: there, 1e4294967296 is 1."""
    lines = ["1e2147483648", "1e-2147483649", "1e4294967296", "10e2147483647", "1e99999999999999999999"]
    assert ask(driver("quantity"), "quantity", lines) == ["error"] * len(lines)


def test_more_than_38_digits_round_away_from_zero():
    ours = ask(driver("quantity"), "quantity", ["1" * 39, "-" + "1" * 39, "1" * 38 + "0" * 5])
    wanted = "1" * 37 + "20"
    assert [a.split("\t")[1] for a in ours] == [wanted, "-" + wanted, "1" * 38 + "00k"]


def random_pair(rng):
    a = random_quantity(rng)
    return f"{a}\t{a if rng.random() < 0.05 else random_quantity(rng)}"


def test_random_orders_are_those_of_go(reference):
    rng = random.Random(20260103)
    lines = [random_pair(rng) for _ in range(20000)]
    answers = zip(lines, ask(driver("quantity"), "pair", lines), ask(reference, "pair", lines))
    report([answer for answer in answers if answer[1] != answer[2]])
