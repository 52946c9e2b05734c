"""Which kinds of events there are, under the names that consumers of performance events use.

Publishing pays one look into a table; a kind that is new is named once. After a start, the end of
the log is looked at when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.access.decision import Readable
from tocsin.broker.recent.events import Recent
from tocsin.broker.recent.pages import Reading, read_pages
from tocsin.broker.runtime import Semaphore, Signals
from tocsin.event.stored import Stored
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.normal import name_of_event

TYPES_MAX = 4_096  # those that came first are forgotten first
LOOK_BACK_EVENTS = 10_000  # some 50 ms of the thread that answers questions


class SeenTypes:
    """The types of events that were published of late, and what each is called."""

    def __init__(self, signals: Signals, head: int, recent: Recent) -> None:
        self._recent = recent
        self._names: dict[str, EventName] = {}
        self._unread = head  # what the log had up to this one is not looked at yet
        self._one_at_a_time = Semaphore(signals)

    def add(self, events: Iterable[Stored]) -> None:
        """These were committed."""
        known = self._names
        for stored in events:
            if stored.event.type not in known:
                self._add(stored)

    def _add(self, stored: Stored) -> None:
        while len(self._names) >= TYPES_MAX:
            del self._names[next(iter(self._names))]
        self._names[stored.event.type] = name_of_event(stored.event)

    def has(self, event_type: str) -> bool:
        """True if one came since the start, or was found when somebody asked."""
        return event_type in self._names

    def names(self) -> tuple[EventName, ...]:
        """All that are known, in order."""
        return tuple(sorted(set(self._names.values())))

    def names_for(self, readable: Readable | None) -> tuple[EventName, ...]:
        """Those of which somebody may read an event that came of late."""
        if readable is None:
            return self.names()
        known, found = self._names, set[EventName]()
        for stored in self._recent.all():
            name = known.get(stored.event.type)
            if name is not None and name not in found and readable.has_event(stored.event):
                found.add(name)
        return tuple(sorted(found))

    async def look_back(self, read: Reading) -> None:
        """Look at the last events that the log had when the broker started, the first time."""
        async with self._one_at_a_time:
            head = self._unread
            await read_pages(read, max(0, head - LOOK_BACK_EVENTS), head, self.add)
            self._unread = 0
