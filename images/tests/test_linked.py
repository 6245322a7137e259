"""Programs of the build folder with their libraries, and the image of our own program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import linked
import pytest
import recipe as recipes
from container import read_config, unpack

root_only = pytest.mark.skipif(os.getuid() != 0, reason="needs root to change the root")
SLINC = recipes.Linked("program", "/usr/bin/program")


def compile_to(folder: Path, *flags: str) -> None:
    """A small program with symbols."""
    source = folder / "program.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    subprocess.run(["gcc", "-g", "-o", str(folder / "program"), str(source), *flags], check=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLINC_BUILD", str(tmp_path))
    return tmp_path


def test_a_program_comes_with_loader_and_libraries_and_without_symbols(folder: Path) -> None:
    compile_to(folder)
    work = folder / "work"
    work.mkdir()
    adds = {add.dest: add for add in linked.adds(SLINC, work)}
    names = {Path(dest).name for dest in adds}
    assert {"program", "libc.so.6"} <= names
    assert any(name.startswith("ld-linux") for name in names)
    assert any(dest.startswith("/usr/share/doc/libc6/") for dest in adds)
    assert all(not add.source.is_symlink() and add.owner == (0, 0) for add in adds.values())
    assert adds["/usr/bin/program"].source.stat().st_size < (folder / "program").stat().st_size


def test_a_static_program_comes_alone(folder: Path) -> None:
    compile_to(folder, "-static")
    work = folder / "work"
    work.mkdir()
    alone = recipes.Linked("program", "/usr/bin/program", static=True)
    assert [add.dest for add in linked.adds(alone, work)] == ["/usr/bin/program"]
    assert linked.inputs(alone) == [folder / "program"]


def test_the_program_and_every_library_count_for_the_key(folder: Path) -> None:
    compile_to(folder)
    item = recipes.load("slinc")
    inputs = linked.inputs(SLINC)
    assert len(inputs) >= 3
    before = recipes.key(item, [], "", inputs)
    compile_to(folder, "-O2", "-DOTHER", "-Wl,--build-id=0x12")
    assert recipes.key(item, [], "", linked.inputs(SLINC)) != before
    assert recipes.key(item, [], "", inputs[:-1]) != recipes.key(item, [], "", inputs)


def test_what_cannot_be_put_in_is_named(folder: Path) -> None:
    with pytest.raises(recipes.RecipeError, match="program does not exist; dev/build"):
        linked.program(SLINC)
    lib = folder / "libabsent.so"
    subprocess.run(["gcc", "-shared", "-o", str(lib), "-x", "c", "/dev/null"], check=True)
    compile_to(folder, f"-L{folder}", "-Wl,--no-as-needed", "-labsent")
    with pytest.raises(recipes.RecipeError, match="libabsent.so is in no folder"):
        linked.libraries(folder / "program")


def test_a_build_folder_of_ones_own_is_not_built(folder: Path) -> None:
    linked.make([recipes.load("slinc")])  # it is empty, and stays so
    assert list(folder.iterdir()) == []


# ---- our image


@pytest.fixture(scope="module")
def archive() -> Path:
    done = subprocess.run(
        [str(recipes.IMAGES / "build"), "--archive", "slinc"],
        text=True, capture_output=True, check=True,
    )  # fmt: skip
    return Path(done.stdout.strip())


def test_it_runs_as_nobody_and_starts_slinc(archive: Path) -> None:
    config = read_config(archive)[1]["config"]
    assert (config["User"], config["Entrypoint"]) == ("65532:65532", ["/usr/bin/slinc"])
    assert archive.stat().st_size < 40e6


@root_only
def test_it_runs_from_its_own_files_and_holds_nothing_else(archive: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    unpack(archive, root)
    done = subprocess.run(
        ["chroot", "--groups=", "--userspec=+65532:+65532", str(root),
         "/usr/bin/slinc", "bridge", "--help"],
        env={"PATH": os.environ["PATH"]}, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "--lease-namespace" in done.stdout, done.stderr
    assert {path.name for path in root.iterdir()} <= {"usr", "lib", "lib64", "etc"}
    assert {path.name for path in (root / "usr/bin").iterdir()} == {"slinc", "slinc-cpuset-hook"}
    hook = subprocess.run([str(root / "usr/bin/slinc-cpuset-hook"), "--version"], text=True, capture_output=True, check=True)
    assert hook.stdout == "slinc-cpuset-hook\n"  # without the libraries of the image
    modes = [path.stat().st_mode for path in root.rglob("*") if not path.is_symlink()]
    assert not [mode for mode in modes if mode & 0o6022]
