"""What an error of SQLite means for the broker."""

from __future__ import annotations

import apsw

from tocsin.errors import (
    CorruptLog,
    DataDirectoryUnusable,
    DiskFailed,
    DiskFull,
    TocsinError,
)
from tocsin.store.schema import corrupt

# What SQLite answers when a page, or what it finds on it, is not what it should be. A length read
# from a damaged page may be one that SQLite refuses, or that memory has no room for.
UNREADABLE = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.FormatError,
    apsw.IOError,
    apsw.TooBigError,
    apsw.NoMemError,
    apsw.SQLError,
    MemoryError,
    UnicodeDecodeError,
)


def is_full(error: BaseException) -> bool:
    """True if there was no room, also if it lacked for the index of the write-ahead log."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE
    return isinstance(error, apsw.FullError)


def disk_full(path: str) -> DiskFull:
    return DiskFull(
        f"there is no room left for {path}",
        remedy="Free some space, or keep less: see the settings for retention.",
    )


def reason(error: BaseException) -> str:
    """What SQLite says, with the exact code: a failed sync and a failed read read alike."""
    code = getattr(error, "extendedresult", 0)
    name = apsw.mapping_extended_result_codes.get(code) if code else None
    return f"{error} ({name or type(error).__name__})"


def disk_failed(path: str, reason: str) -> DiskFailed:
    return DiskFailed(
        f"the disk did not confirm a write to {path}: {reason}",
        remedy="Check the disk, run `tocsin doctor`, and start the broker again.",
    )


def open_failed(path: str, error: apsw.Error) -> TocsinError:
    """Why a log could not be opened."""
    if is_full(error):
        return disk_full(path)
    if isinstance(error, apsw.CantOpenError | apsw.ReadOnlyError | apsw.PermissionsError):
        return DataDirectoryUnusable(
            f"{path} cannot be opened for writing: {reason(error)}",
            remedy="Name a directory that this user may write in.",
        )
    if isinstance(error, apsw.IOError):
        return disk_failed(path, reason(error))
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return DataDirectoryUnusable(
            f"another program holds {path}: {reason(error)}", remedy="End it, and start again."
        )
    return unreadable(path, error)


def unreadable(path: str, error: BaseException) -> CorruptLog:
    return corrupt(path, f"it cannot be read: {reason(error)}")
