"""Counters: what happened so far, in plain slots. The hot path adds; a scrape reads."""

from __future__ import annotations


class Counters:
    """All start at zero with the process but `dead_letters`, which are those that are kept now.
    `/metrics` gives each a name of its own."""

    __slots__ = (
        "acknowledged",
        "commits",
        "corrupt",
        "dead_letters",
        "delivered",
        "disk_full",
        "dropped",
        "duplicates",
        "failed_attempts",
        "filters_skipped",
        "given_up",
        "pulled",
        "read_back",
        "refused_busy",
        "rejected",
        "soap_unverified",
        "streamed",
        "withheld",
    )

    def __init__(self) -> None:
        self.acknowledged = 0  # events on disk, and acknowledged to their publisher
        self.duplicates = 0  # repeats, acknowledged and not stored twice
        self.rejected = 0  # publishes answered with an error
        self.refused_busy = 0  # of those, because too much was waiting
        self.disk_full = 0  # commits that the disk had no room for
        self.commits = 0
        self.delivered = 0  # events taken by a webhook
        self.failed_attempts = 0
        self.given_up = 0  # events that became dead letters
        self.dead_letters = 0  # of which so many are kept now
        self.streamed = 0  # events written to open streams
        self.pulled = 0  # events handed out of boxes
        self.withheld = 0  # events that somebody asked for, and has no right to
        self.dropped = 0  # events let go because of a subscription's own limit
        self.read_back = 0  # events read from the log to catch somebody up
        self.corrupt = 0  # records that failed their checksum
        self.soap_unverified = 0  # SOAP requests with WS-Security, in which nothing was verified
        self.filters_skipped = 0  # filters not evaluated for an event: they could take too long
