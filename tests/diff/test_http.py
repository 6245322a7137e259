"""The bytes of a connection as our HTTP server sees them, beside Go's net/http (through tests/diff/httpref).

The API server is Go: it and we read the same bytes, and what one of us takes for the body of a request the other must not
take for a request. So every request that we see is the one that Go sees at the same place, or we have closed the connection.
Behind each text comes one more request, which a reader that is out of step sees somewhere else. Skipped without a Go toolchain."""

import json
import random
import shutil
import subprocess

import pytest

from drive import HERE, driver

pytestmark = pytest.mark.skipif(not shutil.which("go"), reason="needs the Go toolchain")

NEXT = "GET /next HTTP/1.1\r\nHost: next\r\nX-Remote-User: admin\r\n\r\n"
HOST = "Host: a\r\n"
LENGTH = f"Content-Length: {len(NEXT)}\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"

# What both must see, whole.
PLAIN = {
    "GET": f"GET /a?b=c HTTP/1.1\r\n{HOST}A: b\r\na: c\r\n\r\n",
    "HEAD": f"HEAD /a HTTP/1.1\r\n{HOST}\r\n",
    "DELETE without a body": f"DELETE /a HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n",
    "a body by its length": f"POST /a HTTP/1.1\r\n{HOST}{LENGTH}\r\n{NEXT}",
    "a body in chunks": f"PUT /a HTTP/1.1\r\n{HOST}{CHUNKED}\r\n3\r\nabc\r\n{len(NEXT):X}\r\n{NEXT}\r\n0\r\n\r\n",
    "an empty body in chunks": f"POST /a HTTP/1.1\r\n{HOST}{CHUNKED}\r\n0\r\n\r\n",
    "a large body": f"PATCH /a HTTP/1.1\r\n{HOST}Content-Length: 1000000\r\n\r\n" + "x" * 1000000,
    "pipelining": f"GET /a HTTP/1.1\r\n{HOST}\r\nPOST /b HTTP/1.1\r\n{HOST}Content-Length: 3\r\n\r\nabcGET /c HTTP/1.1\r\n{HOST}\r\n",
    "a host with a port": "GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
    "an empty host": "GET /a HTTP/1.1\r\nHost:\r\n\r\n",
    "letters that are not ASCII": f"GET /a HTTP/1.1\r\n{HOST}A: \xc3\xa4\r\n\r\n",
    "space around a value": f"GET /a HTTP/1.1\r\n{HOST}A: \t b c \t\r\n\r\n",
    "escapes": f"GET /%41%2f?%zz HTTP/1.1\r\n{HOST}\r\n",
    "expecting 100": f"POST /a HTTP/1.1\r\n{HOST}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "zeros before a length": f"POST /a HTTP/1.1\r\n{HOST}Content-Length: 003\r\n\r\nabc",
}


def odd_requests():
    """Texts that readers of HTTP are known to disagree about."""
    for method in ("GET", "HEAD", "DELETE", "POST", "OPTIONS", "CONNECT", "get", "", "G\0T"):
        for framing in ("", LENGTH, CHUNKED, LENGTH + CHUNKED, CHUNKED + LENGTH, LENGTH + LENGTH, f"Content-Length: 0\r\n{LENGTH}",
                        CHUNKED + CHUNKED):
            yield f"{method} /a HTTP/1.1\r\n{HOST}{framing}\r\n"
            yield f"{method} /a HTTP/1.1\r\n{HOST}{framing}\r\n0\r\n\r\n"
    for version in ("HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.10", "HTTP/1", "", "HTTP/1.1 ", "HTTP/1.1 x"):
        for framing in ("", LENGTH, CHUNKED, LENGTH + CHUNKED, "Connection: keep-alive\r\n"):
            yield f"POST /a {version}\r\n{HOST}{framing}\r\n"
    for target in ("a", "*", "//a", "/a b", "/a\tb", "/#", "/%", "/%2", "/%zz", "/\x80", "/\0", "/\x7f", "http://b/c", "http://b", "?", "/a?b c", "/?#", ""):
        yield f"GET {target} HTTP/1.1\r\n{HOST}\r\n"
    for length in ("+3", "-3", "3 ", " 3", "0x3", "3,3", "3, 3", "3 3", "", "9" * 18, "9" * 19, "9" * 30, "\t3", "3\v", "\x003", "three", "3.0", "3e0"):
        yield f"POST /a HTTP/1.1\r\n{HOST}Content-Length:{length}\r\n\r\nabc"
    for coding in ("Chunked", "chunked ", "\tchunked", "chunked\v", "\vchunked", "\x00chunked", "gzip", "gzip, chunked", "chunked, gzip", "identity",
                   "chunked, chunked", "chunked;a=b", '"chunked"', "", "x", "chunked,"):
        for framing in ("", LENGTH):
            yield f"POST /a HTTP/1.1\r\n{HOST}{framing}Transfer-Encoding:{coding}\r\n\r\n0\r\n\r\n"
    for name in ("Content-Length ", " Content-Length", "Content-Length\t", "Content_Length", "Content-Length\0", "Content-Length:", "\rContent-Length",
                 "X: y\rContent-Length", "X: y\nContent-Length", "X: y\r\n Content-Length", "X: y\r\n\tContent-Length", "X\r\nContent-Length"):
        yield f"POST /a HTTP/1.1\r\n{HOST}{name}: {len(NEXT)}\r\n\r\n"
        yield f"GET /a HTTP/1.1\r\n{HOST}{name}: {len(NEXT)}\r\n\r\n"
    for chunks in ("0\n\r\n", "0\r\n\n", "0\n\n", "3\nabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabc0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3;a\r\nabc\r\n0\r\n\r\n",
                   "3 \r\nabc\r\n0\r\n\r\n", " 3\r\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n",
                   "3\r\nabc\r\n\r\n0\r\n\r\n", "\r\n3\r\nabc\r\n0\r\n\r\n", "0\r\nA: b\r\n\r\n", "0\r\nX-Remote-User: admin\r\n\r\n",
                   "0\r\nContent-Length: 3\r\n\r\n", "00000000000000003\r\nabc\r\n0\r\n\r\n", "ffffffffffffffff\r\n", "7fffffffffffffff\r\n",
                   "10000000000000003\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n", "3;" + "a" * 20000 + "\r\nabc\r\n0\r\n\r\n", "0;\r\n\r\n", "\0\r\n\r\n"):
        yield f"POST /a HTTP/1.1\r\n{HOST}{CHUNKED}\r\n{chunks}"
        yield f"POST /a HTTP/1.1\r\n{HOST}Trailer: X-Remote-User\r\n{CHUNKED}\r\n{chunks}"
    for line in ("A", ":", ": b", "A : b", "A\t: b", " A: b", "A: b\rc", "A: b\0", "A: \x01", "A: b\r", "(: b", "\xe4: b", "A: b\r\n c", "A: b\r\n\r", "A:\r\n b",
                 "Host: b", "Host: a", "A: " + "x" * 40000, "A: b\r\n" * 2000 + "A: b"):
        yield f"GET /a HTTP/1.1\r\n{HOST}{line}\r\n\r\n"
        yield f"GET /a HTTP/1.1\r\n{line}\r\n{HOST}\r\n"
    for host in ("", "Host: a/b\r\n", "Host: a b\r\n", "Host: a\0\r\n", "Host: \xe4\r\n", "Host: a, b\r\n", "Host: @\r\n", "Host : a\r\n"):
        yield f"GET /a HTTP/1.1\r\n{host}\r\n"
    for before in ("\r\n", "\n", "\r\n\r\n", " ", "\0", "\r", "x\r\n"):
        yield f"{before}GET /a HTTP/1.1\r\n{HOST}\r\n"
        yield f"POST /a HTTP/1.1\r\n{HOST}Content-Length: 3\r\n\r\nabc{before}"
    yield f"GET /a HTTP/1.1\n{HOST}\n".replace("\r", "")
    yield f"GET /a HTTP/1.1\r\n{HOST}\n"
    yield f"GET /{'a' * 40000} HTTP/1.1\r\n{HOST}\r\n"
    for what in ("100-continue", "100-Continue", "tea", "100-continue, tea", ""):
        yield f"POST /a HTTP/1.1\r\n{HOST}Expect: {what}\r\nContent-Length: 3\r\n\r\nabc"
    for what in ("close", "Close", "keep-alive, close", "keep-alive", "closed", "Upgrade, HTTP2-Settings\r\nUpgrade: h2c"):
        yield f"GET /a HTTP/1.1\r\n{HOST}Connection: {what}\r\n\r\n"
    yield "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"


PIECES = ("\r\n", "\n", "\r", " ", "\t", ":", "\0", "\v", ",", ";", "0", "1", "3", "f", "x", "\x80", "Content-Length: 3\r\n", LENGTH, CHUNKED, HOST, "0\r\n\r\n",
          "3\r\nabc\r\n", "HTTP/1.0", "HTTP/1.1", "GET ", "HEAD ", "\r\n\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n", "A: b\r\n", " c\r\n", NEXT)


def damaged(rng):
    text = "".join(rng.choice([text for text in PLAIN.values() if len(text) < 1000]) for _ in range(rng.randrange(1, 4)))
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(text))
        end = at + rng.choice((0, 0, 1, 2, rng.randrange(30)))
        text = text[:at] + rng.choice(("", *PIECES)) + text[end:]
    return text


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    program = tmp_path_factory.mktemp("httpref") / "httpref"
    subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "httpref", check=True)
    return program


def run(program, texts):
    lines = "".join(json.dumps(text + NEXT) + "\n" for text in texts)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts)
    return answers


def ours(texts):
    """As the reference shows requests: headers by name, the host apart. Go keeps what frames the body to itself."""
    answers = run(driver("http"), texts)
    for request in (request for answer in answers for request in answer):
        headers = {}
        for name, value in request["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        request["host"] = headers.pop("host", [""])[0]
        request["headers"] = headers
    return answers


def bare(request):
    framing = ("content-length", "transfer-encoding", "trailer")
    return {**request, "headers": {name: values for name, values in request["headers"].items() if name not in framing}}


def compare(reference, texts):
    for text, our, their in zip(texts, ours(texts), run(reference, texts)):
        our, their = list(map(bare, our)), list(map(bare, their))
        assert our == their[:len(our)], f"{text[:2000]!r}: ours {our!r}, reference {their!r}"


def test_plain_requests_are_seen_by_both(reference):
    texts = list(PLAIN.values())
    for name, our, their in zip(PLAIN, ours(texts), run(reference, texts)):
        assert list(map(bare, our)) == list(map(bare, their)), name
        assert our[-1]["path"] == "/next", name


def test_of_an_odd_text_we_see_what_go_sees_or_nothing(reference):
    compare(reference, list(odd_requests()))


def test_of_a_damaged_text_we_see_what_go_sees_or_nothing(reference):
    rng = random.Random(28)
    compare(reference, [damaged(rng) for _ in range(5000)])


def test_nothing_hides_in_the_body_of_a_request_that_has_none():
    texts = [f"{method} /a HTTP/1.1\r\n{HOST}{framing}\r\n{rest}" for method in ("GET", "HEAD", "DELETE") for framing, rest in ((LENGTH, ""), (CHUNKED, "0\r\n\r\n"))]
    assert ours(texts) == [[]] * len(texts)
