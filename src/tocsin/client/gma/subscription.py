"""Subscription: the events that a consumer asked for, one after the other, while wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Self

from tocsin.client.gma.intake import Intake
from tocsin.client.gma.loop import LoopThread
from tocsin.wire.gma.messages import PerformanceEvent

UNSUBSCRIBE_S_MAX: Final = 5.0


class Subscription:
    """Iterate over it, or `take`. If the connection breaks it subscribes again, and where the
    producer keeps a log (a Tocsin broker) goes on where it was.

    An error that the producer sends in place of an event does not end it: `errors` counts them,
    `error` is the last. `seq` is the place in the log of the last event taken, if there is a log.
    """

    def __init__(self, thread: LoopThread, intake: Intake, owner: object) -> None:
        self._thread = thread
        self._intake = intake
        self._owner = owner  # which must not be closed for being forgotten while this is in use
        self._is_unsubscribed = False
        self.seq: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.unsubscribe()

    def __iter__(self) -> Iterator[PerformanceEvent]:
        return self

    def __next__(self) -> PerformanceEvent:
        event = self.take(None)
        if event is None:
            raise StopIteration
        return event

    def take(self, timeout_s: float | None = None) -> PerformanceEvent | None:
        """The next event; None if none came in time, or it has ended.

        Raises what ended it, if the producer could not be reached any more or refused to go on.
        """
        arrival = self._intake.inbox.take(timeout_s)
        if arrival is None:
            return None
        self.seq = arrival.seq if arrival.seq is not None else self.seq
        return arrival.event

    @property
    def ended(self) -> str | None:
        """Why no more comes, once everything that came was taken, or it was unsubscribed."""
        is_empty = self._is_unsubscribed or self._intake.inbox.is_over
        return self._intake.why if is_empty else None

    @property
    def detail(self) -> str | None:
        """What the producer said when it agreed, if it said anything."""
        return self._intake.detail

    @property
    def error(self) -> str | None:
        """What the producer said last in place of an event."""
        return self._intake.error

    @property
    def errors(self) -> int:
        """How often it did."""
        return self._intake.errors

    @property
    def reconnects(self) -> int:
        """How often the connection had to be made anew, or that was tried."""
        return self._intake.reconnects

    def unsubscribe(self) -> None:
        """End it; what has come can still be taken."""
        self._is_unsubscribed = True
        with suppress(RuntimeError, TimeoutError):
            self._thread.ask(self._intake.end(), UNSUBSCRIBE_S_MAX)
