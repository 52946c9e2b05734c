"""Recent: the end of the log, still in memory, for those who are only a little behind.

Whoever reads a bit slower than others publish is caught up from here: without the disk, without
decoding, and with the bytes that were rendered for the others. The last event of a topic stays
longer, for those who ask what is current.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tocsin.broker.delivery.follower import weight
from tocsin.event.stored import Stored
from tocsin.event.topic import TopicPattern

EVENTS_MAX = 4_096
BYTES_MAX = 16 << 20
TOPICS_MAX = 4_096  # whose last event is known; the topics silent for longest are forgotten first
TOPICS_BYTES_MAX = 8 << 20  # what dialects rendered of them may be as much again


class Recent:
    """The events committed last, without a gap, and the last one of each topic."""

    def __init__(self, after: int = 0) -> None:
        """Nothing is known yet of what the log has up to `after`."""
        self.known_after = after  # the last events of topics are all known, if they came after this
        self._by_topic: dict[str, Stored] = {}
        self._by_topic_to = after  # those up to this one are in it
        self._by_topic_bytes_max = 0  # it holds at most so many bytes that `_events` does not hold
        self._events: list[Stored] = []
        self._sizes: deque[tuple[int, int]] = deque()  # how many, and their bytes, a commit
        self._bytes = 0

    @property
    def head(self) -> int:
        """The last event that is known."""
        return self._events[-1].seq if self._events else self.known_after

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
        cut = cut_bytes = 0
        left = len(self._events)
        while left - cut > EVENTS_MAX // 2 or self._bytes > BYTES_MAX // 2:
            count, size = self._sizes.popleft()
            cut += count
            cut_bytes += size
            self._bytes -= size
        self._sort_by_topic(cut)
        del self._events[:cut]
        self._by_topic_bytes_max += cut_bytes
        if len(self._by_topic) > TOPICS_MAX or self._by_topic_bytes_max > TOPICS_BYTES_MAX:
            self._forget_silent_topics()

    def _sort_by_topic(self, count: int) -> None:
        """Note which topics the first `count` events are on, unless that was done before."""
        if not count:
            return
        events, by_topic = self._events, self._by_topic
        for stored in events[max(0, self._by_topic_to + 1 - events[0].seq) : count]:
            by_topic[stored.event.topic] = stored
        self._by_topic_to = max(self._by_topic_to, events[count - 1].seq)

    def _forget_silent_topics(self) -> None:
        """Keep half of what may be kept, those of the latest events."""
        kept: dict[str, Stored] = {}
        size = 0
        for stored in sorted(self._by_topic.values(), key=_seq, reverse=True):
            size += weight(stored)
            if len(kept) >= TOPICS_MAX // 2 or size > TOPICS_BYTES_MAX // 2:
                self.known_after = stored.seq
                size -= weight(stored)
                break
            kept[stored.event.topic] = stored
        self._by_topic = kept
        self._by_topic_bytes_max = size

    def latest(self, pattern: TopicPattern) -> Stored | None:
        """The last event on a topic that fits, or None if there is none after `known_after`."""
        self._sort_by_topic(len(self._events))
        name = str(pattern)
        if "*" not in name:
            return self._by_topic.get(name)
        fitting = (s for topic, s in self._by_topic.items() if pattern.matches(topic))
        return max(fitting, key=_seq, default=None)

    def of_type(self, event_type: str) -> list[Stored]:
        """The events of this type that are still here, the last one first."""
        found = [stored for stored in self._events if stored.event.type == event_type]
        first = self._events[0].seq if self._events else 0
        older = [
            stored
            for stored in self._by_topic.values()
            if stored.event.type == event_type and (stored.seq < first or not first)
        ]
        older.sort(key=_seq)
        return [*older, *found][::-1]

    def all(self) -> Iterator[Stored]:
        """Every event that is still here, in no order."""
        self._sort_by_topic(len(self._events))
        yield from self._by_topic.values()
        yield from self._events

    def each_topic(self, after: int) -> list[Stored]:
        """The last event of each topic that is known and had one after this."""
        self._sort_by_topic(len(self._events))
        return [stored for stored in self._by_topic.values() if stored.seq > after]

    def page(self, after: int, limit: int) -> list[Stored] | None:
        """What follows `after`, or None if that reaches further back than this does."""
        kept = self._events
        if not kept or after + 1 < kept[0].seq or after >= kept[-1].seq:
            return None
        start = after + 1 - kept[0].seq
        return kept[start : start + limit]


def _seq(stored: Stored) -> int:
    return stored.seq
