"""Recent: the end of the log, still in memory, for those who are only a little behind.

Whoever reads a bit slower than others publish is caught up from here: without the disk, without
decoding, and with the bytes that were rendered for the others.
"""

from __future__ import annotations

from collections import deque

from tocsin.event.stored import Stored

EVENTS_MAX = 4_096
BYTES_MAX = 16 << 20


class Recent:
    """The events committed last, without a gap."""

    def __init__(self) -> None:
        self._events: list[Stored] = []
        self._sizes: deque[tuple[int, int]] = deque()  # how many, and their bytes, a commit
        self._bytes = 0

    def add(self, events: list[Stored], size: int) -> None:
        """These were committed, behind all that are here; `size` is their bytes."""
        if not events:
            return
        kept = self._events
        assert not kept or events[0].seq == kept[-1].seq + 1
        kept += events
        self._sizes.append((len(events), size))
        self._bytes += size
        if len(kept) > EVENTS_MAX or self._bytes > BYTES_MAX:
            self._halve()

    def _halve(self) -> None:
        """Half at once, so that what it costs is shared by many commits."""
        cut = 0
        left = len(self._events)
        while left - cut > EVENTS_MAX // 2 or self._bytes > BYTES_MAX // 2:
            count, size = self._sizes.popleft()
            cut += count
            self._bytes -= size
        del self._events[:cut]

    def page(self, after: int, limit: int) -> list[Stored] | None:
        """What follows `after`, or None if that reaches further back than this does."""
        kept = self._events
        if not kept or after + 1 < kept[0].seq or after >= kept[-1].seq:
            return None
        start = after + 1 - kept[0].seq
        return kept[start : start + limit]
