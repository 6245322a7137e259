"""The program slinc at a terminal and in a pipe: its version, and an error at start."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
SLINC = REPO / "build/plain/src/cmd/slinc"
NO_CONFIG = ["bridge", "--config=/nowhere/config.yaml"]


def at_terminal(*words: str) -> tuple[int, str]:
    """The exit code, and what a terminal shows of stderr."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as shown:
        code = subprocess.run([SLINC, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, timeout=30).returncode
        text = shown.read(65536).decode()
        os.close(theirs)
    return code, text


@pytest.mark.parametrize("word", ["version", "--version"])
def test_it_prints_its_version(word: str) -> None:
    done = subprocess.run([SLINC, word], text=True, capture_output=True, timeout=30)
    name, version = done.stdout.split()
    assert (done.returncode, done.stderr, name) == (0, "", "slinc")
    assert [part.isdigit() for part in version.split(".")] == [True, True, True]


def test_an_error_at_start_is_a_sentence_at_a_terminal() -> None:
    code, text = at_terminal(*NO_CONFIG)
    assert code == 1
    assert text.startswith("slinc bridge: cannot start: --config /nowhere/config.yaml") and text.count("\n") == 1
    assert "{" not in text and "error=" not in text and "\033" not in text


def test_an_error_at_start_is_a_line_of_json_in_a_pipe_or_when_asked_for() -> None:
    piped = subprocess.run([SLINC, *NO_CONFIG], text=True, capture_output=True, timeout=30).stderr
    for text in (piped, at_terminal(*NO_CONFIG, "--zap-encoder=json")[1]):
        line = json.loads(text)
        assert (line["level"], line["msg"]) == ("error", "cannot start") and "/nowhere/config.yaml" in line["error"]
