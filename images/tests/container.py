"""container.py - runs an image archive without a container engine, for the tests.

Unpacks the layers, reads the configuration from the archive and starts the entrypoint as PID 1 of
namespaces of its own in that root. Must run as root in a private mount namespace.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any


def read_config(archive: Path) -> tuple[list[str], dict[str, Any]]:
    """The layer digests and the configuration of an archive."""
    with tarfile.open(archive) as tar:

        def load(name: str) -> Any:
            return json.load(tar.extractfile(name))  # type: ignore[arg-type]

        def blob(digest: str) -> Any:
            return load("blobs/" + digest.replace(":", "/"))

        manifest = blob(load("index.json")["manifests"][0]["digest"])
        return [layer["digest"] for layer in manifest["layers"]], blob(manifest["config"]["digest"])


def unpack(archive: Path, root: Path) -> dict[str, Any]:
    """Puts the layers on top of each other as a container engine would."""
    layers, config = read_config(archive)
    for digest in layers:
        name = "blobs/" + digest.replace(":", "/")
        with subprocess.Popen(["tar", "-xOf", archive, name], stdout=subprocess.PIPE) as blob:
            layer = root.with_name(root.name + ".layer")
            layer.mkdir(parents=True)
            subprocess.run(["tar", "-xp", "--xattrs", "-C", layer], stdin=blob.stdout, check=True)
        _apply(layer, root)
    return config


def _apply(layer: Path, root: Path) -> None:
    for mark in sorted(layer.rglob(".wh.*")):
        gone = root / mark.relative_to(layer).parent / mark.name.removeprefix(".wh.")
        if mark.name != ".wh..wh..opq":
            subprocess.run(["rm", "-rf", gone], check=True)
        mark.unlink()
    if root.exists():
        subprocess.run(["cp", "-a", "--force", f"{layer}/.", f"{root}/"], check=True)
        shutil.rmtree(layer)
    else:
        layer.rename(root)


class Container:
    """One image's root, and the process started in it."""

    def __init__(self, archive: Path, work: Path, hostname: str) -> None:
        self.root, self.hostname = work / hostname, hostname
        self.log = work / f"{hostname}.log"
        self.config = unpack(archive, self.root)["config"]
        self.process: subprocess.Popen[bytes] | None = None
        for name in ("sys", "dev"):
            (self.root / name).mkdir(exist_ok=True)
            subprocess.run(["mount", "--rbind", f"/{name}", self.root / name], check=True)

    def mount_memory(self, path: str, options: str) -> None:
        """A memory volume, as the pod would have it."""
        target = self.root / path.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", target], check=True)

    def put(self, path: str, data: bytes | str, mode: int, owner: int = 0, group: int = -1) -> None:
        """A file of a mounted volume; its group has the owner's number unless told."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)
        target.chmod(mode)
        os.chown(target, owner, owner if group < 0 else group)

    def start(self, args: list[str] | None = None, env: dict[str, str] | None = None,
              user: str = "") -> None:  # fmt: skip
        """Entrypoint with the image's Cmd, or with `args` in its place."""
        words = self.config.get("Entrypoint", []) + (
            args if args is not None else self.config.get("Cmd", [])
        )
        script = 'hostname "$1" && mount -t proc proc "$2/proc" && shift 2 && exec "$@"'
        uid, _, gid = (user or self.config.get("User", "0:0")).partition(":")
        command = [
            "unshare", "--mount", "--pid", "--uts", "--fork", "--kill-child",
            "sh", "-c", script, "sh", self.hostname, str(self.root),
            "chroot", "--groups=", f"--userspec=+{uid}:+{gid}", str(self.root), *words,
        ]  # fmt: skip
        environment = dict(pair.split("=", 1) for pair in self.config.get("Env", []))
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, env={**environment, **(env or {})}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip

    def run(self, *words: str, user: str = "0:0", timeout: float = 30) -> str:
        """A command inside, as `kubectl exec` would run it; fails with its output."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-m", "-p", "-u", "chroot", "--groups=",
             f"--userspec=+{user.replace(':', ':+')}", str(self.root), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{self.hostname}: {words}: {done.stdout}\n{self.text()}"
        return done.stdout

    @property
    def pid(self) -> int:
        """The first process inside, as the host numbers it."""
        assert self.process is not None
        parent = self.process.pid
        return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])

    def stop(self) -> tuple[int, float]:
        """TERM to the first process; its exit code and how long it took. A pod has 30 s."""
        assert self.process is not None
        since = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        return self.process.wait(30), time.monotonic() - since

    def text(self) -> str:
        """What it has written so far."""
        return self.log.read_text(errors="replace")
