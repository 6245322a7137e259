"""Runs the C drivers and the Go reference over lists of lines, and compares what they answer."""

import os
import pathlib
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).parent


def driver(name):
    """The C driver of one codec, from the meson build folder that SLINC_BUILD names."""
    build = os.environ.get("SLINC_BUILD")
    assert build, "SLINC_BUILD must name a meson build folder"
    path = pathlib.Path(build) / "tests" / "diff" / f"drive_{name}"
    assert path.exists(), f"{path} is not built"
    return path


def go_reference(folder):
    """Builds tests/diff/quantityref into the folder; go's cache makes the next time cheap."""
    if not shutil.which("go"):
        pytest.skip("the reference needs go")
    program = folder / "quantityref"
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=HERE / "quantityref", check=True)
    return program


def ask(program, mode, lines):
    """One answer per line, in one run of the program."""
    data = b"".join(line.encode() + b"\n" for line in lines)
    done = subprocess.run([str(program), mode], input=data, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    answers = done.stdout.decode().split("\n")[:-1]
    assert len(answers) == len(lines)
    return answers


def report(differences):
    """Fails with the first few differences, each a tuple of question and answers."""
    shown = "\n".join("  ".join(map(repr, d)) for d in differences[:15])
    assert not differences, f"{len(differences)} differ:\n{shown}"
