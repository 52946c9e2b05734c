"""T3, from T310: the directory of producers and consumers."""

from __future__ import annotations

from tocsin.errors.root import TocsinError


class BadRegistration(TocsinError):
    """A registration for the directory is invalid. Nothing was changed."""

    code = "T310"


class NoSuchEntry(TocsinError):
    """The directory has no such entry: it never existed, was withdrawn, or its lease has ended.

    A producer or consumer whose lease has ended registers again.
    """

    code = "T311"
    http_status = 404
    exit_code = 5


class DirectoryFull(TocsinError):
    """The directory has as many entries, or as many bytes, as it may have.

    Entries are removed when they are withdrawn, or when their leases end: ask for shorter
    leases.
    """

    code = "T312"
    http_status = 429
