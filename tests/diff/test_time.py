"""Go durations and RFC 3339 times against Go's time package."""

import random

import pytest

from drive import ask, driver, go_reference, report

DURATIONS = """
    0 +0 -0 00 0s 0h 1 1s -1s +1s 1.5s .5s 1.s . .s -.s +.s - + s 1h1 1h2m3s 1h2m3.5s 3s2h 1s1s
    1x 1S 1H 1d 1ns 1us 1µs 1μs 1ms 1.5ns 0.5ns 0.9999999999ns 1e3s 1 s --1s +-1s 1h-1m 1m.5s
    1m.5 1.2.3s 1..2s 9223372036854775807ns 9223372036854775808ns -9223372036854775808ns
    -9223372036854775809ns 9223372036854775.807us 9223372036854775.808us 9223372036854775.809us
    2562047h47m16.854775807s 2562047h47m16.854775808s -2562047h47m16.854775808s
    -2562047h47m16.854775809s 2562048h 99999999999999999999s 0.9223372036854775807h
    0.92233720368547758070000000000000h 0.100000000000000000000h 0.3333333333333333333h
    0.830103483285477580700h 1.00000000000000000000000000000000000000000000000000001s 1.1m 0.1h
    0.7m 12345.678901234h 0.00000000000000000000000000000000000000001h
    4611686018427387904ns4611686018427387904ns 1000000000000000h 18446744073709551616ns
    18446744073709551617ns 922337203685477580700ms
""".split() + ["", " ", "1 s", "1s ", " 1s", "1\xb5", "1\xb5s1\xb5s", "µs", "1ss", "1sm"]

TIMES = """
    1970-01-01T00:00:00Z 2006-01-02T15:04:05Z 2006-01-02T15:04:05+07:00
    2006-01-02T15:04:05-07:00 0001-01-01T00:00:00Z 0001-01-01T00:00:00+00:01
    0001-01-01T00:00:00-00:01 0000-12-31T23:59:59Z 0000-02-29T00:00:00Z
    0000-12-31T23:59:59-00:01 9999-12-31T23:59:59Z 9999-12-31T23:59:59.999999999Z
    9999-12-31T23:59:59-00:01 2000-02-29T00:00:00Z 1900-02-29T00:00:00Z 1900-02-28T00:00:00Z
    2024-02-29T00:00:00Z 2023-02-29T00:00:00Z 2006-01-02T15:04:60Z 2016-12-31T23:59:60Z
    2006-01-02T24:00:00Z 2006-01-02T23:60:00Z 2006-13-01T00:00:00Z 2006-00-01T00:00:00Z
    2006-01-00T00:00:00Z 2006-04-31T00:00:00Z 2006-01-32T00:00:00Z 2006-01-02T5:04:05Z
    2006-01-02T5:4:5Z 2006-1-2T15:04:05Z 206-01-02T15:04:05Z 12006-01-02T15:04:05Z
    2006-01-02t15:04:05Z 2006-01-02T15:04:05z 2006-01-0215:04:05Z 2006-01-02T15:04:05
    2006-01-02T15:04Z 2006-01-02T15:04:05.Z 2006-01-02T15:04:05.1Z 2006-01-02T15:04:05,1Z
    2006-01-02T15:04:05,Z 2006-01-02T15:04:05.123456Z 2006-01-02T15:04:05.1234567Z
    2006-01-02T15:04:05.9999999Z 2006-01-02T15:04:05.12345678901234567890Z
    1969-12-31T23:59:59.9999999Z 1969-12-31T23:59:59.000001Z 2006-01-02T15:04:05.5+01:30
    2006-01-02T15:04:05+24:00 2006-01-02T15:04:05+24:60 2006-01-02T15:04:05+25:00
    2006-01-02T15:04:05-23:61 2006-01-02T15:04:05+0700 2006-01-02T15:04:05+07
    2006-01-02T15:04:05+7:00 2006-01-02T15:04:05+07:0 2006-01-02T15:04:05+07:00Z
    2006-01-02T15:04:05ZZ 2006-01-02T15:04:05+-7:00 2006-01-02T15:04:05-00:00
    2006-01-02T+5:04:05Z 2006-01-02T15:+4:05Z -006-01-02T15:04:05Z +006-01-02T15:04:05Z
    2006-01-02T15:04:05.+1Z 2006-01-02T15:04:05.-1Z 20o6-01-02T15:04:05Z 2006-01-02T15:04:0５Z
""".split() + ["", " ", "Z", "2006-01-02 15:04:05Z", " 2006-01-02T15:04:05Z", "2006-01-02T15:04:05Z "]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return go_reference(tmp_path_factory.mktemp("go"))


def compare(reference, mode, lines):
    answers = zip(lines, ask(driver("time"), mode, lines), ask(reference, mode, lines))
    report([a for a in answers if a[1] != a[2]])


def damage(rng, text, alphabet):
    """One character added, dropped or replaced."""
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(["", *alphabet]) + text[at + rng.randint(0, 1) :]


def random_duration(rng):
    def term():
        number = str(rng.randint(0, 10 ** rng.choice([1, 2, 3, 6, 10, 18])))
        if rng.random() < 0.5:
            number += "." + "".join(rng.choice("0123456789") for _ in range(rng.randint(0, 22)))
        return number + rng.choice(["h", "m", "s", "ms", "us", "µs", "μs", "ns"])

    return rng.choice(["", "", "-", "+"]) + "".join(term() for _ in range(rng.randint(1, 4)))


def random_time(rng):
    edge = rng.choice([1, 4, 1900, 2000, 9999])
    year = rng.choice([rng.randint(1, 9999), rng.randint(1960, 2040), edge])
    text = f"{year:04}-{rng.randint(1, 12):02}-{rng.randint(1, 31):02}T"
    text += f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 60):02}"
    if rng.random() < 0.5:
        text += "." + "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 12)))
    zone = f"{rng.choice('+-')}{rng.randint(0, 25):02}:{rng.randint(0, 61):02}"
    return text + rng.choice(["Z", zone])


def test_tricky_durations_are_read_as_go_does(reference):
    compare(reference, "duration", DURATIONS)


def test_random_durations_are_read_as_go_does(reference):
    rng = random.Random(20260104)
    compare(reference, "duration", [random_duration(rng) for _ in range(20000)])


def test_damaged_durations_are_refused_when_go_refuses_them(reference):
    rng = random.Random(20260105)
    lines = [damage(rng, random_duration(rng), "0123456789.+-hmsunµ ") for _ in range(20000)]
    compare(reference, "duration", lines)


def test_tricky_times_are_read_and_printed_as_go_does(reference):
    compare(reference, "timestamp", TIMES)


def test_random_times_are_read_and_printed_as_go_does(reference):
    rng = random.Random(20260106)
    compare(reference, "timestamp", [random_time(rng) for _ in range(20000)])


def test_damaged_times_are_refused_when_go_refuses_them(reference):
    rng = random.Random(20260107)
    lines = [damage(rng, random_time(rng), "0123456789.,+-:TZtz ") for _ in range(20000)]
    compare(reference, "timestamp", lines)


def test_month_edges_of_a_calendar_cycle_are_read_as_go_does(reference):
    """400 years, after which the calendar repeats; some of the days do not exist."""
    days = [(y, m, d) for y in range(1800, 2200) for m in range(1, 13) for d in (1, 28, 29, 30, 31)]
    compare(reference, "timestamp", [f"{y}-{m:02}-{d:02}T12:34:56Z" for y, m, d in days])
