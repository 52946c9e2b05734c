"""Which topics there are: those that events were published on of late, and those announced.

Publishing pays nothing for it. The memory of the last event of each topic is looked at when
somebody asks, and now and then before it forgets; after a start, the end of the log is.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.broker.recent.events import Recent
from tocsin.broker.recent.pages import Reading, read_pages
from tocsin.broker.recent.topic_counts import TopicCounts
from tocsin.broker.runtime import Signals
from tocsin.event.stored import Stored
from tocsin.wire.soap.topics import TopicName, topic_of
from tocsin.wire.wstopics.tree import TopicTree, steps_of

LOOK_BACK_EVENTS = 10_000  # some 50 ms of the thread that answers questions
KNOWN_MAX = 20_000  # ways to name a topic, which need not be taken apart again


class SeenTopics:
    """The tree of topics; it only grows, up to its limit."""

    def __init__(self, signals: Signals, recent: Recent) -> None:
        self.counts = TopicCounts(signals, recent.head)
        self._recent = recent
        self._looked_to = recent.known_after
        self._tree = TopicTree()
        self._known: set[tuple[object, ...]] = set()  # how events name topics that are seen to

    def tree(self) -> TopicTree:
        """All that is known now."""
        found = self._recent.each_topic(self._looked_to)
        self._add(found)
        self._looked_to = max((stored.seq for stored in found), default=self._looked_to)
        return self._tree

    def announce(self, topic: TopicName) -> None:
        """Somebody will publish on this."""
        steps = steps_of(topic)
        if steps is not None:
            self._tree.add(steps)

    async def look_back(self, head: int, read: Reading) -> None:
        """Look at the last events that the log had when the broker started."""
        await read_pages(read, max(0, head - LOOK_BACK_EVENTS), head, self._add)

    def _add(self, events: Iterable[Stored]) -> None:
        for stored in events:
            event = stored.event
            key = event.topic, event.extensions.get("topicns"), event.extensions.get("wstopic")
            if key in self._known:
                continue
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known.add(key)
            topic = topic_of(event)
            if topic is not None:
                self.announce(topic)
