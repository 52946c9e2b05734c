"""Latest: the last event on a topic, from memory or by a short look back into the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from tocsin.broker.log import StoreReader
from tocsin.broker.recent.events import Recent
from tocsin.broker.runtime import Semaphore, Signals
from tocsin.errors import Busy
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.topic import TopicPattern

LOOK_BACK_EVENTS = 10_000  # some 50 ms of the thread that answers questions
PAGE_EVENTS = 1_000  # so that other questions come between
LOOKED_MAX = 1_000  # patterns whose look back is remembered
WAITING_MAX = 64


Reading = Callable[[Callable[[StoreReader], Stored | None]], Awaitable[Stored | None]]
"""Asks the log something."""


class Latest:
    """Who asks again does not make the log be searched again: only what is new since then."""

    def __init__(self, signals: Signals, recent: Recent) -> None:
        self._recent = recent
        # How far the log was searched for a pattern, and the event found, if any.
        self._looked: dict[TopicPattern, tuple[int, int | None]] = {}
        self._one_at_a_time = Semaphore(signals)
        self._asking = 0

    async def on(self, pattern: TopicPattern, read: Reading) -> Stored | None:
        """The last event on a topic that fits; None if there is none as far back as we look.

        `read` is how the caller may read the log, here and below.
        """
        found = self._recent.latest(pattern)
        if found is not None:
            return found
        async with self._turn():
            found = await self._look_back(pattern, read)
        return self._recent.latest(pattern) or found  # one may have come meanwhile

    async def of_type(
        self, event_type: str, holds: Callable[[Event], bool], read: Reading
    ) -> Stored | None:
        """The last event of a type for which this holds, as far back as we look.

        It is asked in the thread that reads the log: what somebody wants to know of an event may
        take long. What it raises ends the search.
        """
        async with self._turn():
            through = self._recent.head
            recent = self._recent.of_type(event_type)
            found = await read(lambda _: _first(recent, holds))
            if found is not None:
                return found

            def is_it(event: Event) -> bool:
                return event.type == event_type and holds(event)

            return await _search(read, is_it, max(0, through - LOOK_BACK_EVENTS), through)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One search at a time, and not too many who wait for theirs."""
        if self._asking >= WAITING_MAX:
            raise Busy(
                f"{self._asking} other requests for the latest event are waiting",
                remedy="Ask again in a second.",
            )
        self._asking += 1
        try:
            async with self._one_at_a_time:
                yield
        finally:
            self._asking -= 1

    async def _look_back(self, pattern: TopicPattern, read: Reading) -> Stored | None:
        through = self._recent.known_after
        looked_to, seq = self._looked.get(pattern, (0, None))
        above = max(looked_to, through - LOOK_BACK_EVENTS)
        found = await _search(read, lambda event: pattern.matches(event.topic), above, through)
        if found is not None:
            seq = found.seq
        elif above > looked_to:
            seq = None  # what was found before need not be the last: a part was left out since
        self._remember(pattern, (max(through, looked_to), seq))
        if found is not None or seq is None:
            return found
        known = seq
        return await read(lambda reader: reader.read_one(known))

    def _remember(self, pattern: TopicPattern, looked: tuple[int, int | None]) -> None:
        self._looked.pop(pattern, None)
        while len(self._looked) >= LOOKED_MAX:
            del self._looked[next(iter(self._looked))]  # the one asked for least lately
        self._looked[pattern] = looked


async def _search(
    read: Reading, holds: Callable[[Event], bool], above: int, through: int
) -> Stored | None:
    while through > above:
        low = max(above, through - PAGE_EVENTS)
        found = await read(partial(_last_where, holds, low, through))
        if found is not None:
            return found
        through = low
    return None


def _first(events: list[Stored], holds: Callable[[Event], bool]) -> Stored | None:
    return next((stored for stored in events if holds(stored.event)), None)


def _last_where(
    holds: Callable[[Event], bool], above: int, through: int, log: StoreReader
) -> Stored | None:
    return log.last_where(holds, above, through)
