"""The data directory: made if missing, and held by one broker at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from tocsin.errors import DataDirectoryInUse, DataDirectoryUnusable

LOG_NAME = "log.sqlite"
LOCK_NAME = "lock"
DIRECTORY_MODE = 0o700
PID_BYTES_MAX = 32


def prepare_directory(directory: Path) -> None:
    """Make the directory, for its owner only, and have the disk know of it."""
    try:
        if directory.is_dir():
            return
        missing = [directory, *(parent for parent in directory.parents if not parent.exists())]
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        for made in missing:
            _sync_directory(made.parent)
    except OSError as error:
        raise _unusable(directory, error) from error


def lock_directory(directory: Path) -> int:
    """Hold the directory until the descriptor returned is closed, or the process ends."""
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unusable(directory, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    except BlockingIOError:
        holder = os.pread(descriptor, PID_BYTES_MAX, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise DataDirectoryInUse(
            f"process {holder or '(unknown)'} already works in {directory}",
            remedy="Stop that broker, or name another data directory.",
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise _unusable(directory, error) from error
    return descriptor


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(directory: Path, error: OSError) -> DataDirectoryUnusable:
    return DataDirectoryUnusable(
        f"{directory} cannot be used as data directory: {error.strerror}",
        remedy="Name a directory that this user may make and write in.",
    )
