"""How many events came on each topic, how fast, and when the last one did.

Kept in memory, so that listing topics never reads the log: publishing pays one look into a table.
After a start the end of the log is counted when somebody asks, and the answer says from which
event on the counts are whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from tocsin.broker.recent.pages import Reading, read_pages
from tocsin.broker.runtime import Semaphore, Signals
from tocsin.event.stored import Stored

TOPICS_MAX: Final = 10_000
FORGOTTEN_AT_ONCE: Final = TOPICS_MAX // 10  # so that what it costs is shared by many events
LOOK_BACK_EVENTS: Final = 20_000  # some 100 ms of the thread that answers questions
WINDOW_NS: Final = 60_000_000_000


class Rate:
    """Events a second, over about the last minute: a window that is filled, and the one before."""

    __slots__ = ("_before", "_now", "_window")

    def __init__(self) -> None:
        self._window = self._now = self._before = 0

    def add(self, at_ns: int, events: int = 1) -> None:
        window = at_ns // WINDOW_NS
        if window != self._window:
            self._before = self._now if window == self._window + 1 else 0
            self._window, self._now = window, 0
        self._now += events

    def per_s(self, now_ns: int) -> float:
        window, part_ns = divmod(now_ns, WINDOW_NS)
        if window == self._window:
            weighed = self._now + self._before * (1 - part_ns / WINDOW_NS)
        elif window == self._window + 1:
            weighed = self._now * (1 - part_ns / WINDOW_NS)
        else:
            return 0.0
        return weighed * 1e9 / WINDOW_NS


class TopicCount(msgspec.Struct):
    """One topic."""

    topic: str
    rate: Rate
    events: int = 0
    last_seq: int = 0
    last_ns: int = 0


class TopicCounts:
    """The topics of the events committed last; past TOPICS_MAX the longest silent are forgotten."""

    def __init__(self, signals: Signals, head: int) -> None:
        self.counted_from = head + 1  # every event from this one on is counted
        self.forgotten = 0  # topics that were known and are not any more
        self.all = Rate()
        self._by_topic: dict[str, TopicCount] = {}
        self._looking = Semaphore(signals)
        self._looked = head == 0

    def add(self, events: Iterable[Stored]) -> None:
        """These were committed."""
        for stored in events:
            self._count(stored)
            self.all.add(stored.received_ns)

    def _count(self, stored: Stored) -> None:
        found = self._by_topic.get(stored.event.topic)
        if found is None:
            if len(self._by_topic) >= TOPICS_MAX:
                self._forget()
            found = self._by_topic[stored.event.topic] = TopicCount(stored.event.topic, Rate())
        found.events += 1
        found.rate.add(stored.received_ns)
        if stored.seq > found.last_seq:
            found.last_seq, found.last_ns = stored.seq, stored.received_ns

    def _count_older(self, events: list[Stored]) -> None:
        """Those from `counted_from` on were counted as they came."""
        for stored in events:
            if stored.seq < self.counted_from:
                self._count(stored)

    def _forget(self) -> None:
        silent = sorted(self._by_topic.values(), key=lambda each: each.last_seq)
        for each in silent[:FORGOTTEN_AT_ONCE]:
            del self._by_topic[each.topic]
        self.forgotten += FORGOTTEN_AT_ONCE

    def topics(self) -> list[TopicCount]:
        """Every topic that is known; events without one have the topic ''."""
        return list(self._by_topic.values())

    async def look_back(self, first: int, read: Reading) -> None:
        """Count the last events that the log had when the broker started, the first time."""
        async with self._looking:
            if self._looked:
                return
            head = self.counted_from - 1
            begin = max(first - 1, head - LOOK_BACK_EVENTS)
            await read_pages(read, begin, head, self._count_older)
            self.counted_from, self._looked = begin + 1, True
