"""T4: the log and its disk."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class DataDirectoryInUse(TocsinError):
    """Another broker works in this data directory. Two would spoil each other's log."""

    code = "T401"


class DataDirectoryUnusable(TocsinError):
    """The data directory cannot be made, read or written, or was written by a newer Tocsin."""

    code = "T402"


class DiskFull(TocsinError):
    """The disk has no room. The event was not stored, and nothing that was acknowledged is lost."""

    code = "T403"
    http_status = 507


class DiskFailed(TocsinError):
    """The disk did not confirm a write. The broker stops, because what it then holds is not known.

    No event of that write was acknowledged. Check the disk (dmesg, smartctl), run
    `tocsin doctor --data DIR`, and start the broker again.
    """

    code = "T404"
    http_status = 503


class CorruptLog(TocsinError):
    """A stored record does not fit its checksum, or the database's pages are damaged."""

    code = "T405"
    http_status = 500
