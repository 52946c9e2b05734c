"""T4: the log and its disk."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class DataDirectoryInUse(TocsinError):
    """Another broker works in this data directory. Two would corrupt the log."""

    code = "T401"


class DataDirectoryUnusable(TocsinError):
    """The data directory cannot be created, read or written, or was written by a newer Tocsin."""

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


class LogIncomplete(TocsinError):
    """The log lacks events, subscriptions or cursors that were acknowledged, so the broker does not
    start.

    A file of the data directory was damaged, deleted, or replaced by an older copy. Restore a copy
    of the whole directory. `tocsin serve --accept-loss` goes on without what is missing; numbers
    that were given to lost events are not given again.
    """

    code = "T406"
    http_status = 503


class CorruptLog(TocsinError):
    """A stored record does not match its checksum, or the database's pages are damaged."""

    code = "T405"
    http_status = 500


class BadBackup(TocsinError):
    """A backup cannot be made or used as asked: a place that is not empty, a damaged or unfinished
    backup, or a data directory that is damaged itself. Nothing was changed.
    """

    code = "T408"


class BackupFailed(TocsinError):
    """The machine could not read or write a file of a backup. What was written is removed."""

    code = "T409"
