"""The commands of a page of the documentation, as a reader would type them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from replica import PROGRAM
from slincdev.build import bin_dir
from slincdev.cluster import Cluster
from slincdev.common import PATIENCE, REPO


def commands(page: str, heading: str) -> str:
    """The indented blocks under a heading, without those that are no commands."""
    text = (REPO / "docs" / page).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    assert found, f"docs/{page} has no heading {heading!r}"
    blocks = re.findall(r"(?:^(?: {4,}\S.*|)\n)+", found[1], re.M)
    lines = [line.strip() if line.startswith("    ") else "" for block in blocks for line in block.splitlines()]
    return "\n".join(line for line in lines if re.match(r"[a-zA-Z#({\"$]", line))


class Reader:
    """Somebody in a folder with the charts, whose kubectl, helm and slinc talk to the cluster."""

    def __init__(self, cluster: Cluster, folder: Path, charts: Path = REPO / "charts") -> None:
        self.folder, self.said = folder, ""
        programs = folder / "bin"
        programs.mkdir(parents=True)
        for name, program in {"kubectl": bin_dir() / "kubectl", "helm": bin_dir() / "helm", "slinc": Path(PROGRAM)}.items():
            (programs / name).symlink_to(program)
        (folder / "charts").symlink_to(charts)
        self.env = os.environ | {"KUBECONFIG": str(cluster.admin_config), "PATH": f"{programs}:{os.environ['PATH']}"}

    def type(self, text: str, replace: dict[str, str] | None = None, code: int = 0) -> str:
        """Each pair of `replace` stands for what a reader would put in its place; all of them must occur."""
        for old, new in (replace or {}).items():
            assert re.search(old, text), f"{old!r} is not in:\n{text}"
            text = re.sub(old, new, text)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.folder, env=self.env, text=True, capture_output=True, timeout=600 * PATIENCE)
        self.said = f"{text}\n{done.stdout}{done.stderr}"
        print(self.said)
        assert done.returncode == code, self.said
        return done.stdout
