"""A disk that a test can fill."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A file system of its own, small enough to fill."""
    with tempfile.TemporaryDirectory() as place:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", place],
            capture_output=True,
            check=False,
        )
        if mounted.returncode != 0:
            pytest.skip("may not mount a small file system here")
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "-l", place], check=True)
