"""LogOrder: events of a log that several brokers append to, until all that come before are known.

Our own commit is answered by one way, and what others appended is heard of by another; either may
be first. Subscribers get events in the order of the log, so whatever has a gap before it waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.event.stored import Stored


class LogOrder:
    """What is in the log and cannot be handed on yet, by its number."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, Stored] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, events: Iterable[Stored]) -> None:
        """These are in the log."""
        for stored in events:
            self._waiting[stored.seq] = stored

    def take(self, head: int, through: int | None = None) -> list[Stored]:
        """What follows `head` without a gap, and nothing that follows `through`."""
        waiting, run = self._waiting, []
        while (through is None or head < through) and head + 1 in waiting:
            head += 1
            run.append(waiting.pop(head))
        return run
