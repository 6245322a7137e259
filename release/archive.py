"""archive.py - tar.gz files that are the same bytes whenever they are made of the same files."""

from __future__ import annotations

import gzip
import os
import tarfile
from pathlib import Path


def write(out: Path, folder: Path, name: str, epoch: int) -> None:
    """Packs what is in `folder` as NAME/..., in the order of names, as root's; links stay links."""
    with open(out, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as zipped:
        with tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in [folder, *sorted(folder.rglob("*"))]:
                inside = path.relative_to(folder)
                entry = tar.gettarinfo(path, os.path.normpath(f"{name}/{inside}"))
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = "root"
                entry.mtime = epoch
                entry.mode = 0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644
                if entry.isreg():
                    with open(path, "rb") as content:
                        tar.addfile(entry, content)
                else:
                    tar.addfile(entry)
