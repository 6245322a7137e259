"""debs.py - the Debian packages of all images, fetched once and kept with their checksums.

The network is used only by Store.fetch: the machine's apt resolves the packages of every recipe
from the suite, checks signatures and downloads; SLINC_SLURM_SOURCES names a list of other sources
for apt, such as those of another distribution with an older Slurm. From then on the store is a small package
repository of its own (flat, with a Packages index that carries each SHA-256), so that images are
rebuilt from the very same files without a network, also when the suite has moved on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import recipe as recipes

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SLURM_PACKAGE = "slurmctld"
ESSENTIAL = "?essential"  # an apt pattern


class DebsError(Exception):
    """The packages cannot be had; the text is one line for the person."""


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    """Runs a command and returns its output; on failure the last lines say why."""
    done = subprocess.run(
        command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise DebsError(f"{' '.join(command[:3])} ... failed ({done.returncode}):\n{tail}")
    return done.stdout


def apt_conf(settings: dict[str, str]) -> str:
    """The text of an apt.conf; every value is quoted."""
    return "".join(f'{name} "{value}";\n' for name, value in settings.items())


def check_valid_until() -> str:
    """What this machine's own apt says about expired indexes (snapshots of a suite are)."""
    words = run(["apt-config", "dump", "Acquire::Check-Valid-Until"]).split('"')
    return words[1] if len(words) > 1 and words[1] else "true"


class Store:
    """One folder of .deb files for one suite and Slurm version."""

    def __init__(self, folder: Path, suite: str, slurm: str) -> None:
        self.folder, self.suite, self.slurm = folder, suite, slurm
        self.lock_file = folder / "lock.json"

    def lists(self, wanted: dict[str, list[str]]) -> dict[str, list[str]] | None:
        """The stored "file sha256" lines of each image, or None if anything wanted is not there."""
        if not self.lock_file.exists():
            return None
        lock = json.loads(self.lock_file.read_text())
        if any(lock["wanted"].get(title) != packages for title, packages in wanted.items()):
            return None
        names = {line.split()[0] for lines in lock["debs"].values() for line in lines}
        if not all((self.folder / name).exists() for name in names):
            return None
        return dict(lock["debs"])

    def source_line(self) -> str:
        """The apt source for the stored files; trusted because Packages carries their hashes."""
        return f"deb [trusted=yes] copy:{self.folder} ./"

    def fetch(self, wanted: dict[str, list[str]], scratch: Path) -> dict[str, list[str]]:
        """Downloads what the recipes want and writes index and lock, the lock last."""
        env = self._prepare_apt(scratch)
        run(["apt-get", "update", "-q", "--error-on=any"], env)
        self._check_slurm(env)
        chosen = {title: self._resolve(packages, env) for title, packages in wanted.items()}
        everything = sorted({package for names in chosen.values() for package in names})
        run(["apt-get", "install", "-qq", "-y", "--download-only", *everything], env)
        self._adopt(scratch / "archives")
        debs = self._index(self._files(everything))
        result = {
            title: sorted(debs[package] for package in names) for title, names in chosen.items()
        }
        self._write(self.lock_file, json.dumps({"wanted": wanted, "debs": result}, indent=1))
        return result

    def unpack(self, package: str, scratch: Path, out: Path) -> None:
        """Downloads one package of the suite, without those that it needs, and unpacks it: the store keeps nothing of it."""
        env = self._prepare_apt(scratch)
        run(["apt-get", "update", "-q", "--error-on=any"], env)
        self._check_slurm(env)
        run(["sh", "-c", 'cd "$0" && apt-get download -qq "$1"', str(scratch / "archives/partial"), package], env)
        for deb in (scratch / "archives/partial").glob("*.deb"):
            run(["dpkg-deb", "-x", str(deb), str(out)])

    def _prepare_apt(self, scratch: Path) -> dict[str, str]:
        for name in ("lists/partial", "archives/partial", "etc"):
            (scratch / name).mkdir(parents=True, exist_ok=True)
        (scratch / "status").touch()
        sources = Path(os.environ.get("SLINC_SLURM_SOURCES") or scratch / "sources.list").absolute()
        if "SLINC_SLURM_SOURCES" not in os.environ:
            mirror = run([str(recipes.IMAGES.parent / "dev" / "mirror")]).strip()
            sources.write_text(f"deb [signed-by={KEYRING}] {mirror} {self.suite} main\n")
        config = scratch / "apt.conf"
        config.write_text(
            apt_conf(
                {
                    "Dir::Etc": str(scratch / "etc"),
                    "Dir::Etc::sourcelist": str(sources),
                    "Dir::State::lists": str(scratch / "lists"),
                    "Dir::State::status": str(scratch / "status"),
                    "Dir::Cache": str(scratch),
                    "Dir::Cache::archives": str(scratch / "archives"),
                    "APT::Install-Recommends": "false",
                    "APT::Sandbox::User": "root",
                    "APT::Architecture": recipes.architecture(),
                    "APT::Architectures": recipes.architecture(),
                    "Acquire::Languages": "none",
                    "Acquire::Retries": "3",
                    "Acquire::Check-Valid-Until": check_valid_until(),
                    "Debug::NoLocking": "true",
                }
            )
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        for deb in self.folder.glob("*.deb"):  # what is there already is not downloaded again
            os.link(deb, scratch / "archives" / deb.name)
        return {"APT_CONFIG": str(config), "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}

    def _check_slurm(self, env: dict[str, str]) -> None:
        match = re.search(r"Candidate: (\S+)", run(["apt-cache", "policy", SLURM_PACKAGE], env))
        has = match.group(1) if match else "none"
        if not has.startswith(self.slurm + "."):
            raise DebsError(
                f"Debian {self.suite} has Slurm {has}, but {self.slurm}.* is pinned in "
                "dev/versions.env (SLURM_VERSION) and the cache lacks packages that the images want"
            )

    def _resolve(self, packages: list[str], env: dict[str, str]) -> list[str]:
        """Every package that `packages` need on an empty root, as name=version."""
        plan = run(["apt-get", "install", "-qq", "-y", "--simulate", ESSENTIAL, *packages], env)
        return sorted(
            f"{name}={version}" for name, version in re.findall(r"^Inst (\S+) \((\S+)", plan, re.M)
        )

    def _adopt(self, archives: Path) -> None:
        for deb in archives.glob("*.deb"):
            if not (self.folder / deb.name).exists():
                shutil.move(deb, self.folder / deb.name)

    def _files(self, everything: list[str]) -> dict[str, Path]:
        by_start: dict[str, Path] = {}
        for deb in self.folder.glob("*.deb"):
            name, version, _ = deb.name.split("_", 2)
            by_start[f"{name}={version.replace('%3a', ':')}"] = deb
        return {package: by_start[package] for package in everything}

    def _index(self, files: dict[str, Path]) -> dict[str, str]:
        """Writes Packages; gives the lock line of every package. Drops files no image wants."""
        for stale in set(self.folder.glob("*.deb")) - set(files.values()):
            stale.unlink()
        with ThreadPoolExecutor(4) as pool:
            rows = list(pool.map(_stanza, files.values()))
        self._write(self.folder / "Packages", "\n".join(text for text, _ in rows))
        return {name: line for name, (_, line) in zip(files, rows, strict=True)}

    @staticmethod
    def _write(path: Path, text: str) -> None:
        part = path.with_name(path.name + ".part")
        part.write_text(text)
        os.replace(part, path)


def _stanza(deb: Path) -> tuple[str, str]:
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    control = run(["dpkg-deb", "-f", str(deb)]).strip()
    place = f"Filename: ./{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {digest}\n"
    return f"{control}\n{place}", f"{deb.name} {digest}"


def wanted_packages(all_recipes: Iterable[recipes.Recipe]) -> dict[str, list[str]]:
    """The packages of each Debian image, those of its base included."""
    by_title = {item.title: item for item in all_recipes}
    result = {}
    for item in by_title.values():
        if item.is_debian:
            below = by_title[item.base].packages if item.base else []
            result[item.title] = [*below, *item.packages]
    return result
