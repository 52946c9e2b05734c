"""Files and directories that are on disk before anybody relies on them."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path | str) -> int:
    """Have the content of a file, or the names in a directory, on disk. Returns its size."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def sync_tree(root: Path) -> None:
    """The same for all in a directory: who wrote it (Spark) may not have waited for the disk."""
    for folder, _, names in os.walk(root):
        for name in names:
            sync(os.path.join(folder, name))
        sync(folder)
