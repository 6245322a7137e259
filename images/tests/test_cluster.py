"""Every Slurm image at work together, from the archives themselves (about 10 s once built)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import build
import pytest

HERE = Path(__file__).resolve().parent
SLURM_IMAGES = ("slurmctld", "slurmd", "slurmrestd", "slurmdbd", "login", "mariadb")


@pytest.mark.skipif(os.getuid() != 0, reason="needs root for namespaces")
def test_a_cluster_of_all_images_works_and_ends_cleanly(tmp_path: Path) -> None:
    where = build.cache()
    missing = [title for title in SLURM_IMAGES if not (where.top / f"{title}.tar").exists()]
    if missing:
        pytest.skip(f"not built: {' '.join(missing)}; run images/build")
    done = subprocess.run(
        ["unshare", "-mnp", "--fork", "--mount-proc", "--kill-child", "--propagation", "private",
         sys.executable, HERE / "cluster.py", where.top, tmp_path],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
