"""Recent: the end of the log, still in memory, for those who are only a little behind.

Whoever reads a bit slower than others publish is caught up from here: without the disk, without
decoding, and with the bytes that were rendered for the others.
"""

from __future__ import annotations

from tocsin.delivery.follower import weight
from tocsin.event.stored import Stored

EVENTS_MAX = 16_384
BYTES_MAX = 32 << 20


class Recent:
    """The events committed last, without a gap."""

    def __init__(self) -> None:
        self._events: list[Stored] = []
        self._bytes = 0

    def add(self, events: list[Stored]) -> None:
        """These were committed, behind all that are here."""
        kept = self._events
        assert not kept or not events or events[0].seq == kept[-1].seq + 1
        kept += events
        self._bytes += sum(weight(stored.event) for stored in events)
        if len(kept) > EVENTS_MAX or self._bytes > BYTES_MAX:
            self._halve()

    def _halve(self) -> None:
        """Half at once, so that what it costs is shared by many commits."""
        kept = self._events
        while kept and (len(kept) > EVENTS_MAX // 2 or self._bytes > BYTES_MAX // 2):
            cut = max(1, len(kept) // 2)
            self._bytes -= sum(weight(stored.event) for stored in kept[:cut])
            del kept[:cut]

    def page(self, after: int, limit: int) -> list[Stored] | None:
        """What follows `after`, or None if that reaches further back than this does."""
        kept = self._events
        if not kept or after + 1 < kept[0].seq or after >= kept[-1].seq:
            return None
        start = after + 1 - kept[0].seq
        return kept[start : start + limit]
