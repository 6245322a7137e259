"""The Containerfiles beside the recipes: as the recipes are, and without a name of any registry."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import containerfile
import pytest
import recipe


@pytest.mark.parametrize("title", recipe.titles())
def test_a_containerfile_is_as_its_recipe(title: str) -> None:
    written = containerfile.path_of(title).read_text()
    assert written == containerfile.text(recipe.load(title)), "write it again: python3 images/containerfile.py"


@pytest.mark.parametrize("title", recipe.titles())
def test_it_has_the_packages_users_files_and_commands_of_the_recipe(title: str) -> None:
    item, text = recipe.load(title), containerfile.path_of(title).read_text()
    final = text.rpartition("\nFROM ")[2]
    installed = re.search(r"--no-install-recommends ([^&\\\n]*)", final)
    assert (installed[1].split() if installed else []) == item.packages
    assert re.findall(r"useradd --uid (\d+)", final) == [str(user.uid) for user in item.users]
    assert re.findall(r"^COPY --chmod=\S+ images/(\S+)", final, re.M) == [file.source for file in item.files]
    entrypoint = re.search(r"^ENTRYPOINT (.*)$", final, re.M)
    assert (json.loads(entrypoint[1]) if entrypoint else []) == item.entrypoint
    users = re.findall(r"^USER (\S+)$", final, re.M)
    assert (users[-1] if users else "") == (item.user or ("0:0" if item.base else ""))


@pytest.mark.parametrize("title", recipe.titles())
def test_every_file_that_it_copies_is_there_and_no_registry_is_named(title: str) -> None:
    text = containerfile.path_of(title).read_text()
    for words in re.findall(r"^COPY (?!--from)(?:--chmod=\S+ )?(.*) \S+$", text, re.M):
        assert all((containerfile.REPO / word).exists() for word in words.split())
    for name in re.findall(r"^ARG (?:DEBIAN|BASE)=(\S+)$", text, re.M):
        assert name.startswith(("debian:", "localhost/"))


def test_a_program_compiles_as_its_stage_says(tmp_path: Path) -> None:
    text = containerfile.text(recipe.load("slurmd"))
    command = re.search(r"^RUN (gcc .*)$", text, re.M)[1]
    here = command.replace(" /", f" {containerfile.REPO}/").replace("-I/src", f"-I{containerfile.REPO}/src")
    here = here.replace(f"-o {containerfile.REPO}/program-init", f"-o {tmp_path}/init")
    subprocess.run(here, shell=True, check=True)
    assert subprocess.run([tmp_path / "init", "--help"], capture_output=True, check=True).stdout.startswith(b"usage: slinc-init")
