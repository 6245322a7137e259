"""root.py - makes Debian roots: the base by mmdebstrap, the others as overlays above it.

Runs as root inside the private mount and process namespaces that build.py opened, so no mount and
no process outlives the build. Packages come from the store only; the machine's own apt and dpkg do
the work, so the images carry no apt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from debs import Store, apt_conf, run
from recipe import Recipe, architecture, tool

POLICY = "usr/sbin/policy-rc.d"
DPKG_CONF = "etc/dpkg/dpkg.cfg.d/slinc"
SPENT = [  # what installing leaves behind
    "/var/cache/*", "/var/log/*.log", "/var/log/apt", "/var/lib/apt", "/var/lib/dpkg/*-old",
    "/etc/*-", "/tmp/*", "/var/tmp/*", "/etc/apt", "/etc/resolv.conf", "/etc/hostname",
    "/etc/systemd", "/usr/lib/systemd", "/var/lib/systemd", "/etc/init.d", "/etc/rc?.d",
    "/etc/default/*", "/etc/cron.*", "/etc/logrotate.d", "/var/lib/ucf",
]


def bootstrap(root: Path, recipe: Recipe, store: Store) -> None:
    """Debian's essential packages in `root`, without what the recipe strips."""
    options = [f"--dpkgopt={line}" for line in ["force-unsafe-io", *_dpkg_rules(recipe)]]
    run(
        ["mmdebstrap", "--mode=root", f"--arch={architecture()}", "--variant=essential", "--format=directory", *options,
         "--skip=cleanup/apt", "", str(root), store.source_line()],
        {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "0")},
    )  # fmt: skip
    (root / "etc/dpkg/dpkg.cfg.d/99mmdebstrap").unlink(missing_ok=True)
    (root / DPKG_CONF).write_text("\n".join(_dpkg_rules(recipe)) + "\n")


def _dpkg_rules(recipe: Recipe) -> list[str]:
    excluded = [f"path-exclude={pattern}" for pattern in recipe.strip]
    return excluded + [f"path-include={pattern}" for pattern in recipe.keep]


@contextmanager
def overlay(lower: Path, work: Path) -> Iterator[tuple[Path, Path]]:
    """Gives (merged, upper): writes to merged land in upper, and lower stays as it is."""
    upper, inner, merged = work / "upper", work / "inner", work / "merged"
    for folder in (upper, inner, merged):
        folder.mkdir(parents=True)
    options = f"lowerdir={lower},upperdir={upper},workdir={inner}"
    run(["mount", "-t", "overlay", "slinc", "-o", options, str(merged)])
    try:
        yield merged, upper
    finally:
        run(["umount", "--recursive", str(merged)])


def furnish(root: Path, recipe: Recipe, store: Store, scratch: Path) -> None:
    """Users, packages, folders and removals, in the order in which they depend on each other."""
    for user in recipe.users:
        _add_user(root, user.name, user.uid)
    if recipe.packages:
        _install(root, recipe.packages, store, scratch)
    _remove(root, [*SPENT, *recipe.remove])
    for folder in recipe.dirs:
        _make_dir(root, folder.path, folder.owner, folder.mode)


def _add_user(root: Path, name: str, uid: int) -> None:
    rows = {
        "passwd": f"{name}:x:{uid}:{uid}::/nonexistent:/usr/sbin/nologin\n",
        "group": f"{name}:x:{uid}:\n",
        "shadow": f"{name}:!*:0::::::\n",
        "gshadow": f"{name}:!*::\n",
    }
    for file, row in rows.items():
        path = root / "etc" / file
        if path.exists() and not any(
            line.startswith(f"{name}:") for line in path.read_text().splitlines()
        ):
            with open(path, "a", encoding="utf-8") as out:
                out.write(row)


def _install(root: Path, packages: list[str], store: Store, scratch: Path) -> None:
    sources = scratch / "sources.list"
    sources.write_text(store.source_line() + "\n")
    for name in ("lists/partial", "etc"):
        (scratch / name).mkdir(parents=True, exist_ok=True)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True, exist_ok=True)
    (root / "var/lib/apt").mkdir(parents=True, exist_ok=True)
    (root / "var/log/apt").mkdir(parents=True, exist_ok=True)
    config = scratch / "apt.conf"
    config.write_text(
        apt_conf(
            {
                "Dir": f"{root}/",
                "Dir::Etc": str(scratch / "etc"),
                "Dir::Etc::sourcelist": str(sources),
                "Dir::State::lists": str(scratch / "lists"),
                "Dir::State::status": str(root / "var/lib/dpkg/status"),
                "Dir::Bin::dpkg": "/usr/bin/dpkg",
                "Dir::Bin::methods": "/usr/lib/apt/methods",
                "DPkg::Chroot-Directory": str(root),
                "APT::Architecture": architecture(),
                "APT::Architectures": architecture(),
                "APT::Install-Recommends": "false",
                "APT::Sandbox::User": "root",
                "Acquire::Languages": "none",
                "Debug::NoLocking": "true",
                "DPkg::Options::": "--force-unsafe-io",
                "Dpkg::Use-Pty": "false",
            }
        )
    )
    env = {"APT_CONFIG": str(config), "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    with _ready_for_scripts(root):
        run(["apt-get", "update", "-q"], env)
        run(["apt-get", "install", "-q", "-y", *packages], env)


@contextmanager
def _ready_for_scripts(root: Path) -> Iterator[None]:
    """Maintainer scripts find /proc, and no service is started."""
    policy = root / POLICY
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    run(["mount", "-t", "proc", "proc", str(root / "proc")])
    try:
        yield
    finally:
        run(["umount", str(root / "proc")])
        policy.unlink()


def _remove(root: Path, patterns: list[str]) -> None:
    for pattern in patterns:
        for path in sorted(root.glob(pattern.lstrip("/"))):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _make_dir(root: Path, path: str, owner: str, mode: str) -> None:
    folder = root / path.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    uid, gid = (int(number) for number in owner.split(":"))
    os.chown(folder, uid, gid)
    folder.chmod(int(mode, 8))


def compile_program(program: str, sources: list[Path], include: Path, out: Path) -> None:
    """One static program out of its C files."""
    files = [str(path) for path in sources if path.suffix == ".c"]
    flags = ["-std=c17", "-D_GNU_SOURCE", "-Os", "-static", "-s", "-Wall", "-Wextra", "-Werror"]
    hidden = [f"-ffile-prefix-map={include.parent}=."]
    subprocess.run([tool("gcc"), *flags, *hidden, f"-I{include}", "-o", str(out), *files], check=True)
