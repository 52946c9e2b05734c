"""Damage: what an error of the monitor's database means, and how a damaged one is set aside.

The tables can be made again from the log, so a database that cannot be read is no reason to stop.
It is not deleted either: somebody may want to see what happened to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import apsw

from tocsin.drivers.monitor.database.schema import FILE_NAME
from tocsin.errors import DataDirectoryUnusable, MonitorOff

SET_ASIDE_MAX: Final = 9  # each may be as large as the monitor's database ever was
SUFFIXES: Final = ("", "-wal", "-shm")  # a database, and what belongs to it

_DAMAGE: Final = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)
# The disk may take it later; every other error would come again with the same message.
_DISK: Final = (
    *(apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError, apsw.CantOpenError),
    *(apsw.ReadOnlyError, apsw.PermissionsError, apsw.ProtocolError, apsw.InterruptError),
)


class DamagedRow(Exception):
    """A row is not as it was written."""


def is_damage(error: BaseException) -> bool:
    """True if the database is not what was written."""
    if isinstance(error, apsw.SQLError):
        return str(error).startswith("no such table")
    return isinstance(error, (*_DAMAGE, DamagedRow))


def is_of_the_disk(error: BaseException) -> bool:
    """True if the same may succeed later."""
    return isinstance(error, _DISK)


def set_aside(directory: Path) -> Path:
    """Give the database another name. Returns that; MonitorOff if there are too many of those."""
    for number in range(1, SET_ASIDE_MAX + 1):
        name = f"{FILE_NAME}.damaged-{number}"
        if any((directory / f"{name}{suffix}").exists() for suffix in SUFFIXES):
            continue
        for suffix in SUFFIXES:
            file = directory / f"{FILE_NAME}{suffix}"
            if file.exists():
                file.rename(directory / f"{name}{suffix}")
        return directory / name
    raise MonitorOff(
        f"{directory / FILE_NAME} is damaged and cannot be set aside: {SET_ASIDE_MAX} are there "
        "already",
        remedy=f"Check the disk, delete {FILE_NAME}.damaged-*, and restart the broker.",
    )


def unusable(directory: Path, error: Exception) -> MonitorOff:
    """Why the monitor's database cannot be used, for those who ask for it."""
    if isinstance(error, MonitorOff):
        return error
    if isinstance(error, DataDirectoryUnusable):
        problem, remedy = error.problem, error.remedy
    else:
        problem = f"{directory / FILE_NAME} cannot be used: {error} ({type(error).__name__})"
        remedy = "See that it is a file that this user may write, and that there is room."
    return MonitorOff(
        f"this broker does not record runs, because {problem}",
        remedy=f"{remedy} Then restart the broker.",
    )


def damaged_again(directory: Path, error: Exception) -> MonitorOff:
    return MonitorOff(
        f"this broker does not record runs, because {directory / FILE_NAME} was damaged a "
        f"second time: {error}",
        remedy="Check the disk, and restart the broker: the database is rebuilt from the log.",
    )
