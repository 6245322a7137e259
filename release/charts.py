"""charts.py - the charts of a release: as .tgz files that name the release's registry and digests, and rendered.

In the tree the charts name localhost/slinc, where `make images` puts images. A release puts its own registry there, and the
digests of its images into templates/_release.tpl of each chart.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from slincdev.build import bin_dir, ensure_program
from slincdev.common import Fail, run, versions

import archive
from index import Combined

LOCAL = "localhost/slinc"
ORDER = ["slurm-operator-crds", "slurm-operator", "slurm", "slurm-bridge", "slurm-exporter"]
# What a chart needs to be told where it cannot ask a cluster.
RENDERED = {
    "slurm-operator-crds": [],
    "slurm-operator": ["--set=crds.enabled=false"],
    "slurm-bridge": ["--set=sharedConfig.slurmJwtKey.name=slurm-auth-jwt,trustAnnotations=own,nodePolicy.mode=Deny"],
    "slurm-exporter": ["--set=exporter.secretName=slurm-exporter-token"],
}


def package(dist: Path, source: Path, work: Path, registry: str, images: list[Combined], version: str, epoch: int) -> list[Path]:
    """Writes NAME-VERSION.tgz of every chart into dist/charts."""
    made = []
    (dist / "charts").mkdir(parents=True)
    for name in ORDER:
        tree = work / "charts" / name
        shutil.copytree(source / "charts" / name, tree, ignore=shutil.ignore_patterns("tests"))
        for text in [path for path in tree.rglob("*") if path.suffix in (".yaml", ".tpl", ".md", ".txt")]:
            _set_release(text, registry, images)
        out = dist / "charts" / f"{name}-{version}.tgz"
        archive.write(out, tree, name, epoch)
        made.append(out)
    return made


def _set_release(path: Path, registry: str, images: list[Combined]) -> None:
    text = path.read_text().replace(LOCAL, registry)
    if path.name == "_release.tpl":
        rows = "".join(f"{image.name}: {image.digest}\n" for image in sorted(images))
        text, count = re.subn(r"^slinc: \"\"\n", rows, text, flags=re.M)
        if count != 1:
            raise Fail(f"{path} has no row of digests to fill")
    path.write_text(text)


def render(dist: Path, charts: list[Path], version: str) -> None:
    """Plain manifests, for people without Helm: what the charts render with their defaults, in two files or more."""
    ensure_program("helm")
    (dist / "manifests").mkdir()
    for chart in charts:
        name = chart.name.removesuffix(f"-{version}.tgz")
        if name in RENDERED:
            text = run([bin_dir() / "helm", "template", name, chart, f"--namespace={'slurm' if name == 'slurm-bridge' else 'slinky'}",
                        f"--kube-version={versions()['KUBERNETES_VERSION']}", *RENDERED[name]])  # fmt: skip
            (dist / "manifests" / f"{name}.yaml").write_text(text)
