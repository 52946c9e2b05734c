"""T41: the archive."""

from __future__ import annotations

from tocsin.errors.root import TocsinError

RESTORE = "Restore it from a backup, or move it out of the archive to go on without it."
KEEP_NULLS = (
    "Restore it from a backup; or read its records as they are, with the option nulls=keep of the "
    "Spark source."
)
LOOK_AROUND = (
    "Check the disk, the file's permissions, and what is left of memory and open files; then try "
    "again."
)


class BadArchiveFile(TocsinError):
    """A file in the archive cannot be used: cut short, damaged, or not written by a Tocsin.

    `tocsin archive verify DIR` lists all of them. Restore the file from a copy, or move it out of
    the archive: what it held is then missing, and everything else goes on.
    """

    code = "T410"
    http_status = 500

    def __init__(self, path: str, reason: str = "", *, remedy: str = RESTORE) -> None:
        super().__init__(f"{path}: {reason}" if reason else path, remedy=remedy)
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[BadArchiveFile], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class ArchiveFileGone(BadArchiveFile):
    """A file of the archive is no longer there: it was merged into another, or removed.

    List the archive again: what was merged is there under another name.
    """

    code = "T411"


class IncompleteRecords(BadArchiveFile):
    """A file of the archive has records without what every event has: an id, a source, a time.

    No Tocsin writes such a file. In Spark, `nulls=keep` reads its records as they are; `tocsin
    pipeline` sets those records aside and uses the rest.
    """

    code = "T416"

    def __init__(self, path: str, reason: str = "", *, remedy: str = KEEP_NULLS) -> None:
        super().__init__(path, reason, remedy=remedy)


class ArchiveFileNotRead(TocsinError):
    """The machine did not read a file of the archive. Nothing is known to be wrong with the file.

    The message says why: a permission, the disk, a network file system, too many open files, or
    too little memory. Nothing was set aside or passed over. Fix that, and try again.
    """

    code = "T415"
    http_status = 500

    def __init__(self, path: str, reason: str = "", *, remedy: str = LOOK_AROUND) -> None:
        problem = f"{path} could not be read: {reason}" if reason else path
        super().__init__(problem, remedy=remedy)
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[type[ArchiveFileNotRead], tuple[str, str]]:
        return type(self), (self.path, self.reason)


class NoArchive(TocsinError):
    """There is no archive at the place that was given."""

    code = "T412"
    exit_code = 5


class ArchiveOfAnotherLog(TocsinError):
    """The archive goes further than the log: it was written from a log that is no longer here.

    The broker does not mix the two. Move the old archive elsewhere (it can still be read there),
    or name another directory with archive.directory.
    """

    code = "T413"


def other_log(directory: str, why: str) -> ArchiveOfAnotherLog:
    return ArchiveOfAnotherLog(
        f"the archive {directory} was written from another log: {why}",
        remedy="Move the old archive elsewhere, or name another directory in archive.directory.",
    )


class ArchiveInUse(TocsinError):
    """Another process writes this archive. Two would write the same events twice."""

    code = "T414"
