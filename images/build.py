"""build.py - makes the image archives from their recipes, in the cache, only what has changed.

    images/build [NAME...]            build these images (default: all)
    images/build --update [NAME...]   take the suite's newest packages first
    images/build --root-path base     print the folder of the unpacked base root, for its tools
    images/build --archive NAME       print the archive of an image, building it if needed
    images/build --sbom NAME          the same for the list of what it holds (SPDX)

Archives are <cache>/images/<name>-<key>.tar with a link <name>.tar; images.json lists the newest. Beside each archive,
<name>-<key>.spdx.json (and a link) lists what it holds.
A result appears under its final name only when complete, and everything else lives in one work
folder that the next run throws away, so the build may be killed at any point.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import debs
import linked
import pack
import recipe as recipes
import root as roots
import sbom
from recipe import Recipe

INSIDE = "SLINC_IMAGES_INSIDE"  # set in the namespaces' inner run
# Only in the unpacked root, so that its commands run at all; the images get theirs by a mount.
TOOL_CONF = "ClusterName=tools\nSlurmctldHost=localhost\n"
LABEL = "org.opencontainers.image"
KEPT_S = 24 * 3600  # how long a result is kept that nobody asks for
PROGRAM_PATHS = {"pause": "/pause", "init": "/usr/bin/slinc-init"}


class Cache(NamedTuple):
    """Where everything is kept."""

    top: Path

    @property
    def index(self) -> Path:
        return self.top / "images.json"

    @property
    def work(self) -> Path:
        return self.top / "work"

    def archive(self, title: str, key: str) -> Path:
        return self.top / f"{title}-{key}.tar"

    def sbom(self, title: str, key: str) -> Path:
        return self.top / f"{title}-{key}.spdx.json"

    def root(self, title: str, key: str) -> Path:
        return self.top / f"{title}-{key}.root"

    def store(self) -> debs.Store:
        found = recipes.versions()
        suite, slurm = found["SLURM_SUITE"], found["SLURM_VERSION"]
        return debs.Store(self.top / f"debs-{suite}-{slurm}", suite, slurm)


def cache() -> Cache:
    """The cache of this user, or the one SLINC_CACHE names."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Cache(Path(os.environ.get("SLINC_CACHE") or f"{home}/slinc").absolute() / "images")


def say(title: str, text: str, since: float) -> None:
    """One progress line with its duration."""
    print(f"{title}: {text} ... {time.monotonic() - since:.1f} s", file=sys.stderr, flush=True)


# ---- what is to be done -----------------------------------------------------------------------


class Plan(NamedTuple):
    """The chosen images in building order, with their keys; no keys while packages are unknown."""

    chosen: list[Recipe]
    keys: dict[str, str]
    debs: dict[str, list[str]]  # the package files of each image, with those of its base

    def missing(self, where: Cache) -> list[Recipe]:
        return [item for item in self.chosen if not is_built(where, item, self.keys[item.title])]


def make_plan(where: Cache, names: list[str]) -> Plan:
    """Chooses the images and their bases, and computes keys if the store knows the packages."""
    every = [recipes.load(title) for title in recipes.titles()]
    titles = names or [item.title for item in every]
    wanted = {recipes.load(title).title for title in titles}
    wanted |= {item.base for item in every if item.title in wanted and item.base}
    chosen = [item for item in every if item.title in wanted]
    lists = where.store().lists(debs.wanted_packages(every)) or {}
    keys: dict[str, str] = {}
    for item in chosen:
        if not item.is_debian or item.title in lists:
            below = keys.get(item.base, "")
            files = [file for row in item.linked for file in linked.inputs(row)]
            keys[item.title] = recipes.key(item, lists.get(item.title, []), below, files)
    return Plan(chosen, keys, lists)


def is_built(where: Cache, item: Recipe, key: str) -> bool:
    """True when the archive is there and, for a base, its root too."""
    has_root = item.base or not item.is_debian or where.root(item.title, key).is_dir()
    return where.archive(item.title, key).exists() and where.sbom(item.title, key).exists() and bool(has_root)


def is_complete(where: Cache, plan: Plan) -> bool:
    """True when nothing is to be done."""
    return len(plan.keys) == len(plan.chosen) and not plan.missing(where)


# ---- doing it ---------------------------------------------------------------------------------


def build_inside(where: Cache, names: list[str], update: bool) -> None:
    """The whole build; runs in namespaces of its own, one at a time per cache."""
    where.top.mkdir(parents=True, exist_ok=True)
    with open(where.top / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _clean(where)
        plan = make_plan(where, names)
        if update or len(plan.keys) < len(plan.chosen):
            _fetch(where)
            plan = make_plan(where, names)
        for item in plan.missing(where):
            _build_one(where, item, plan)
        shutil.rmtree(where.work)
        _prune(where, plan)


def _clean(where: Cache) -> None:
    shutil.rmtree(where.work, ignore_errors=True)
    where.work.mkdir()


def _fetch(where: Cache) -> None:
    since = time.monotonic()
    every = [recipes.load(title) for title in recipes.titles()]
    lists = where.store().fetch(debs.wanted_packages(every), where.work / "apt")
    count = len({line for lines in lists.values() for line in lines})
    say("packages", f"{count} of Debian {where.store().suite} in the store", since)


def _build_one(where: Cache, item: Recipe, plan: Plan) -> None:
    work = where.work / item.title
    work.mkdir(parents=True)
    keys, key = plan.keys, plan.keys[item.title]
    debs_of_it = plan.debs.get(item.title, [])
    adds = _program_adds(item, work) + _file_adds(item)
    for row in item.linked:
        adds += linked.adds(row, work)
    if not item.is_debian:
        _pack(where, item, key, None, adds, None, debs_of_it)
    elif not item.base:
        _build_base(where, item, key, work, adds, debs_of_it)
    else:
        lower = where.root(item.base, keys[item.base])
        with roots.overlay(lower, work) as (merged, upper):
            _furnish(item, merged, where.store(), work)
            base = where.archive(item.base, keys[item.base])
            _pack(where, item, key, upper, adds, base, debs_of_it)


def _build_base(where: Cache, item: Recipe, key: str, work: Path, adds: list[pack.Add], packages: list[str]) -> None:
    since = time.monotonic()
    root = work / "root"
    roots.bootstrap(root, item, where.store())
    say(item.title, "Debian's essential packages", since)
    _furnish(item, root, where.store(), work)
    _pack(where, item, key, root, adds, None, packages)
    (root / "etc/slurm/slurm.conf").write_text(TOOL_CONF)
    final = where.root(item.title, key)
    shutil.rmtree(final, ignore_errors=True)
    os.replace(root, final)


def _furnish(item: Recipe, root: Path, store: debs.Store, work: Path) -> None:
    since = time.monotonic()
    before = _installed(root)
    roots.furnish(root, item, store, work)
    say(item.title, f"installing {_installed(root) - before} packages", since)


def _installed(root: Path) -> int:
    return (root / "var/lib/dpkg/status").read_text(errors="replace").count("\nStatus: ")


def _program_adds(item: Recipe, work: Path) -> list[pack.Add]:
    adds = []
    for program in item.programs:
        out = work / f"program-{program}"
        sources = recipes.program_sources(program)
        roots.compile_program(program, sources, recipes.SOURCES, out)
        adds.append(pack.Add(out, PROGRAM_PATHS[program], 0o755, (0, 0)))
    return adds


def _file_adds(item: Recipe) -> list[pack.Add]:
    return [
        pack.Add(recipes.IMAGES / file.source, file.path, int(file.mode, 8), (0, 0))
        for file in item.files
    ]


def version_of(item: Recipe, packages: list[str]) -> str:
    """Slurm's where the image has it, else that of the image's own name."""
    for part in sbom.from_debs(packages, ""):
        if part.name == "slurm-client":
            return part.version
    return item.name.rpartition(":")[2]


def _write_sbom(where: Cache, item: Recipe, key: str, digest: str, packages: list[str]) -> None:
    parts = sbom.from_debs(packages, where.store().suite)
    parts += [sbom.Package("slinc-init", linked.version()) for name in item.programs if name == "init"]
    parts += [part for row in item.linked for part in linked.parts(row)]
    found = sbom.document(item.name, digest, version_of(item, packages), parts)
    part = where.work / f"{item.title}.spdx.json"
    part.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    os.replace(part, where.sbom(item.title, key))
    part.symlink_to(where.sbom(item.title, key).name)
    os.replace(part, where.top / part.name)


def _pack(
    where: Cache, item: Recipe, key: str, root: Path | None, adds: list[pack.Add], base: Path | None, packages: list[str]
) -> None:
    since = time.monotonic()
    out = where.archive(item.title, key)
    labels = {f"{LABEL}.title": item.title, f"{LABEL}.version": version_of(item, packages)}
    config = pack.Config(
        item.entrypoint, item.cmd, item.user, [f"{k}={v}" for k, v in item.env.items()],
        item.workdir, [str(port) for port in item.ports], labels, recipes.architecture(),
    )  # fmt: skip
    part = where.work / out.name
    digest = pack.pack(item.name, part, root, adds, base, config)
    _write_sbom(where, item, key, digest, packages)
    os.replace(part, out)
    _note(where, item, {"name": item.name, "archive": out.name, "digest": digest, "key": key,
                        "size": out.stat().st_size})  # fmt: skip
    say(item.title, f"packed, {out.stat().st_size / 1e6:.1f} MB with its base", since)


def _note(where: Cache, item: Recipe, entry: dict[str, Any]) -> None:
    index = read_index(where)
    index[item.title] = entry
    part = where.work / where.index.name
    part.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    os.replace(part, where.index)
    link = where.work / f"{item.title}.tar"
    link.symlink_to(entry["archive"])
    os.replace(link, where.top / f"{item.title}.tar")


def read_index(where: Cache) -> dict[str, Any]:
    """images.json: for every image its name, archive, digest, key and size."""
    return dict(json.loads(where.index.read_text())) if where.index.exists() else {}


def mark_used(where: Cache, plan: Plan) -> None:
    """Notes when these results were last asked for."""
    for title, key in plan.keys.items():
        for path in (where.archive(title, key), where.sbom(title, key), where.root(title, key)):
            if path.exists():
                os.utime(path)


def _prune(where: Cache, plan: Plan) -> None:
    """Removes results of the images just built that nobody asked for since a day: another tree on this machine may have other recipes."""
    for title, key in plan.keys.items():
        for old in where.top.glob(f"{title}-*"):
            name = old.name.removesuffix(".spdx.json").removesuffix(".tar").removesuffix(".root")
            if name in (f"{title}-{key}", old.name) or time.time() - old.lstat().st_mtime < KEPT_S:
                continue
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink()


# ---- the command ------------------------------------------------------------------------------


def run_inside(arguments: list[str]) -> int:
    """Runs this command again in private mount and process namespaces, which end with it."""
    command = [
        "setpriv", "--pdeathsig", "KILL",
        "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
        "--mount-proc", sys.executable, __file__, *arguments,
    ]  # fmt: skip
    with subprocess.Popen(command, env={**os.environ, INSIDE: "1"}) as inner:
        signal.signal(signal.SIGTERM, lambda *_: inner.kill())
        try:
            return inner.wait()
        except KeyboardInterrupt:
            inner.kill()
            return 130


def answer(where: Cache, question: str, title: str) -> int:
    """Prints the path that --root-path, --archive or --sbom ask for."""
    key = make_plan(where, [title]).keys[title]
    path = {"--archive": where.archive, "--sbom": where.sbom, "--root-path": where.root}[question](title, key)
    if not path.exists():
        print(f"images/build: '{title}' has no unpacked root, only a base has", file=sys.stderr)
        return 1
    print(path)
    return 0


def main(arguments: list[str]) -> int:
    """The command images/build."""
    options = [word for word in arguments if word.startswith("-")]
    names = [word for word in arguments if not word.startswith("-")]
    question = options[0] if options and options[0] in ("--root-path", "--archive", "--sbom") else ""
    if options not in ([], ["--update"], [question]) or (question and len(names) != 1):
        print(__doc__.strip() if __doc__ else "", file=sys.stderr)
        return 0 if options == ["--help"] else 2
    where = cache()
    try:
        update = "--update" in options
        if INSIDE in os.environ:
            build_inside(where, names, update)
            return 0
        linked.make([recipes.load(title) for title in names or recipes.titles()])
        if update or not is_complete(where, make_plan(where, names)):
            if os.geteuid() != 0:
                raise debs.DebsError("making a Debian root needs root; run it with sudo")
            code = run_inside(arguments)
            if code != 0:
                return code
        mark_used(where, make_plan(where, names))
        return answer(where, question, names[0]) if question else 0
    except (recipes.RecipeError, debs.DebsError, pack.PackError) as error:
        print(f"images/build: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
