"""The data directory: made if missing, held by one broker at a time, for its owner alone."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from tocsin.errors import DataDirectoryInUse, DataDirectoryUnusable

LOG_NAME = "log.sqlite"
LOCK_NAME = "lock"
DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
PID_BYTES_MAX = 32
LOCKS_FILE = Path("/proc/locks")  # who holds what, where there is such a file


class DirectoryLock:
    """The directory is ours until this is closed, or the process ends.

    The lock is on the directory itself, which nobody can delete while files are in it. The file
    `lock` says who holds it, and is locked too, for brokers that look at nothing else.
    """

    def __init__(self, *descriptors: int) -> None:
        self._descriptors = descriptors

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = ()


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


def make_private(path: str) -> None:
    """Make an empty file for its owner alone, if there is none: SQLite takes an empty file as a new
    database, and gives the files beside it the same permissions."""
    with suppress(OSError):  # it is there; or cannot be made, which SQLite says better
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))


def lock_directory(directory: Path) -> DirectoryLock:
    """Hold the directory, or raise DataDirectoryInUse."""
    held: list[int] = []
    try:
        held.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        fcntl.flock(held[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        held.append(os.open(directory / LOCK_NAME, flags, FILE_MODE))
        fcntl.flock(held[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):  # no room for it: the lock holds without the number in it
            os.ftruncate(held[1], 0)
            os.pwrite(held[1], b"%d\n" % os.getpid(), 0)
    except BlockingIOError:
        in_use = _in_use(directory, held)
        DirectoryLock(*held).close()
        raise in_use from None
    except OSError as error:
        DirectoryLock(*held).close()
        raise _unusable(directory, error) from error
    return DirectoryLock(*held)


def _in_use(directory: Path, ours: list[int]) -> DataDirectoryInUse:
    holder = _holder(ours[-1]) or _noted_holder(directory)
    return DataDirectoryInUse(
        f"process {holder or '(unknown)'} already uses {directory}",
        remedy="Stop that broker, or name another data directory.",
    )


def _noted_holder(directory: Path) -> str:
    try:
        with (directory / LOCK_NAME).open("rb") as file:
            return file.read(PID_BYTES_MAX).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _holder(descriptor: int) -> str:
    """The process that holds the lock of this file, if the system says."""
    inode = os.fstat(descriptor).st_ino
    try:
        lines = LOCKS_FILE.read_text("ascii").splitlines()
    except OSError:
        return ""
    for line in lines:
        # 1: FLOCK  ADVISORY  WRITE 4242 08:01:131073 0 EOF
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].endswith(f":{inode}"):
            return fields[4]
    return ""


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
