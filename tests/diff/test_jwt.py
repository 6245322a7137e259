"""Base64 and Slurm's tokens against python's base64, hmac and json."""

import base64
import hashlib
import hmac
import json
import random

from drive import ask, driver, report

URL, UNPADDED, NEWLINES = 1, 2, 4
STANDARD_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
NEVER = 2**63 - 1


def encode(data, options):
    text = base64.urlsafe_b64encode(data) if options & URL else base64.b64encode(data)
    return text.rstrip(b"=") if options & UNPADDED else text


def decode(text, options):
    """The only bytes whose text this is, or None."""
    if options & NEWLINES:
        text = text.replace(b"\n", b"").replace(b"\r", b"")
    standard = text.translate(bytes.maketrans(b"-_", b"+/")) if options & URL else text
    try:
        data = base64.b64decode(standard + b"==", validate=False)
    except ValueError:
        return None
    return data if encode(data, options) == text else None


def compare(mode, lines, wanted):
    answers = zip(lines, ask(driver("jwt"), mode, lines), wanted)
    report([a for a in answers if a[1] != a[2]])


def random_bytes(rng, longest):
    return rng.randbytes(rng.randint(0, longest))


def test_random_bytes_are_encoded_as_python_does():
    rng = random.Random(20260108)
    cases = [(rng.randrange(4), random_bytes(rng, 100)) for _ in range(5000)]
    compare("encode", [f"{o}\t{d.hex()}" for o, d in cases], [encode(d, o).hex() for o, d in cases])


def damage(rng, text):
    """One character added, dropped or replaced."""
    at = rng.randint(0, len(text))
    letters = [b"", b"==", b"\r\n", *(bytes([c]) for c in b"=\n \0-_+/AQ\xff")]
    return text[:at] + rng.choice(letters) + text[at + rng.randint(0, 1) :]


def compare_decoding(cases):
    """Cases are pairs of options and text."""
    wanted = [decode(text, options) for options, text in cases]
    lines = [f"{options}\t{text.hex()}" for options, text in cases]
    compare("decode", lines, ["invalid" if w is None else w.hex() for w in wanted])
    return sum(w is not None for w in wanted)


def test_base64_is_read_only_in_its_canonical_form():
    rng = random.Random(20260109)
    cases = []
    for _ in range(20000):
        options = rng.randrange(8)
        text = encode(random_bytes(rng, 12), rng.choice([options, rng.randrange(4)]))
        for _ in range(rng.randint(0, 2)):
            text = damage(rng, text)
        cases.append((options, text))
    assert 2000 < compare_decoding(cases) < 18000


def test_every_short_text_is_read_as_python_reads_it():
    """All texts of two letters and a padding: each stray bit is found."""
    texts = [bytes([a, b]) + b"==" for a in STANDARD_LETTERS for b in STANDARD_LETTERS]
    assert compare_decoding([(0, text) for text in texts]) == 256


def sign(key, header, claims):
    """A token of any header and claims; texts are taken as they are."""
    parts = [p if isinstance(p, bytes) else json.dumps(p).encode() for p in (header, claims)]
    text = b".".join(encode(p, URL | UNPADDED) for p in parts)
    mac = hmac.new(key, text, hashlib.sha256).digest()
    return text + b"." + encode(mac, URL | UNPADDED)


HEADER = {"alg": "HS256", "typ": "JWT"}


def random_user(rng):
    letters = "abcxyz059_-.@ \"\\/\n\té€😀"
    return "".join(rng.choice(letters) for _ in range(rng.randint(1, 30)))


def test_our_tokens_are_read_by_python():
    rng = random.Random(20260110)
    cases = []
    for _ in range(2000):
        iat = rng.randint(0, 2**33)
        key, user = rng.randbytes(rng.randint(1, 200)), random_user(rng)
        cases.append((key, iat, iat + rng.randint(1, 2**20), user))
    lines = [f"{k.hex()}\t{i}\t{e}\t{u.encode().hex()}" for k, i, e, u in cases]
    for (key, iat, exp, user), answer in zip(cases, ask(driver("jwt"), "sign", lines)):
        token = bytes.fromhex(answer)
        text, signature = token.rsplit(b".", 1)
        header, claims = (json.loads(decode(p, URL | UNPADDED)) for p in text.split(b"."))
        assert header == HEADER
        assert claims == {"iat": iat, "exp": exp, "sun": user}
        assert signature == encode(hmac.new(key, text, hashlib.sha256).digest(), URL | UNPADDED)


def judge(key, token, now, leeway):
    """What jwt_verify should answer to a token that `sign` made with a right header."""
    text, _, signature = token.rpartition(b".")
    mac = hmac.new(key, text, hashlib.sha256).digest()
    if not hmac.compare_digest(encode(mac, URL | UNPADDED), signature):
        return "denied"
    claims = json.loads(decode(text.split(b".")[1], URL | UNPADDED))
    exp = claims.get("exp", NEVER)
    if exp == NEVER or "sun" not in claims:
        return "denied"
    if exp <= now - leeway or claims.get("nbf", 0) > now + leeway:
        return "denied"
    return f"{claims.get('iat', 0)}\t{exp}\t{claims['sun'].encode().hex()}"


def random_claims(rng, now):
    claims = {"iat": now - rng.randint(0, 100), "exp": now + rng.randint(-20, 100)}
    claims["sun"] = random_user(rng)
    if rng.random() < 0.3:
        claims["nbf"] = now + rng.randint(-10, 10)
    if rng.random() < 0.3:
        claims["other"] = [1, {"a": None}]
    if rng.random() < 0.2:
        del claims[rng.choice(["iat", "exp", "sun"])]
    return claims


def test_python_tokens_are_judged_alike():
    rng = random.Random(20260111)
    cases = []
    for _ in range(3000):
        now, leeway = rng.randint(10**9, 2 * 10**9), rng.choice([0, 0, 5, 10])
        key = rng.randbytes(32)
        token = sign(key, HEADER, random_claims(rng, now))
        cases.append((key if rng.random() < 0.9 else rng.randbytes(32), token, now, leeway))
    wanted = [judge(*c) for c in cases]
    assert 500 < wanted.count("denied") < 2500
    compare("verify", [f"{k.hex()}\t{t.hex()}\t{n}\t{w}" for k, t, n, w in cases], wanted)


def test_one_changed_bit_anywhere_makes_a_token_worthless():
    key = b"a key of no importance"
    token = sign(key, HEADER, {"iat": 1000, "exp": 2000, "sun": "slurm"})
    changed = []
    for i in range(len(token)):
        changed += [token[:i] + bytes([token[i] ^ 1 << bit]) + token[i + 1 :] for bit in range(8)]
    answers = ask(driver("jwt"), "verify", [f"{key.hex()}\t{t.hex()}\t1500\t0" for t in changed])
    assert set(answers) <= {"denied", "invalid"}


def test_headers_and_claims_of_another_kind_are_refused():
    key = b"key"
    good = {"iat": 1, "exp": 2000, "sun": "slurm"}
    algorithms = ["none", "None", "HS512", "RS256", "hs256", "HS256\0", "", 1, None, ["HS256"]]
    headers = [{"alg": a} for a in algorithms] + [{}, {**HEADER, "crit": ["exp"]}]
    claims = [[], "text", b"{", b"{}x", b""]
    claims += [{**good, "exp": exp} for exp in ("2000", -1, 1e300, True, [])]
    claims += [{**good, "sun": sun} for sun in (7, "", "a\0b", "u" * 256, {})]
    tokens = [sign(key, h, good) for h in headers] + [sign(key, HEADER, c) for c in claims]
    whole = sign(key, HEADER, good)
    tokens += [b"", b".", b"..", b"a.b.c", whole + b".x", whole[:-43]]
    wanted = ["denied"] * len(headers) + ["invalid"] * (len(claims) + 4) + ["denied"] * 2
    compare("verify", [f"{key.hex()}\t{t.hex()}\t1000\t0" for t in tokens], wanted)


def test_peeking_takes_any_algorithm_and_no_key():
    claims = [{"exp": 77}, {"sun": "u"}, {"exp": 77.9}]
    tokens = [sign(b"x", {"alg": "RS256"}, c) for c in claims]
    wanted = ["0\t77\t", f"0\t{NEVER}\t{b'u'.hex()}", "0\t77\t"]
    compare("peek", [t.hex() for t in tokens], wanted)
