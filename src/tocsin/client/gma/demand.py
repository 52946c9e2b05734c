"""Demand: somebody wants the events of an offer, at their own rate and through their own filter."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from tocsin.client.gma.encoded_event import EncodedEvent, Failed, read_filter
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.maker import Outcome
from tocsin.client.gma.offers import Offer
from tocsin.client.gma.schedule import PeriodTicks
from tocsin.event.filter import Filter
from tocsin.wire.gma.messages import Parameters
from tocsin.wire.gma.names import PERIOD
from tocsin.wire.gma.parameters import period_of, wanted
from tocsin.wire.gma.period_filter import PeriodFilter

MAKING_S_MAX: Final = 30.0  # then those who wait get an error: it takes too long
BUSY = Failed("Busy", "too many events are waiting to be made")


class Taker(Protocol):
    """Who gets the events."""

    def deliver(self, made: EncodedEvent) -> None:
        """An event that passes the filter."""

    def fail(self, failed: Failed) -> None:
        """Why there is no event this time."""


class Demand:
    """Of the loop's thread alone. Created when it is asked for, it does nothing before `start`."""

    def __init__(
        self,
        thread: LoopThread,
        offer: Offer,
        parameters: Parameters,
        filter: str | None,
        taker: Taker,
    ) -> None:
        asked_s = period_of(parameters)
        self._thread = thread
        self._loop = thread.loop
        self._offer = offer
        self._asked = parameters.elements
        self._filter = read_filter(filter)
        self._taker = taker
        self._period_s = asked_s or offer.period_s
        self._emitted = emitted_filter(parameters, filter)
        # What a broker does with events that others made: both mean the same by a Period.
        self._period_filter = (
            None if asked_s is None else PeriodFilter(asked_s, offer.demands.__len__)
        )
        self._ticks: PeriodTicks | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._asked_at_s: float | None = None  # while events are being made
        self._overdue_reported = False

    def start(self) -> None:
        """Begin: the first event is made at once."""
        self._offer.demands.add(self)
        if self._offer.maker is not None:
            self._ticks = PeriodTicks(self._loop.time(), self._period_s)
            self._tick()

    def stop(self) -> None:
        """No more."""
        self._offer.demands.discard(self)
        self._ticks = None
        if self._timer is not None:
            self._timer.cancel()

    def emitted(self, made: EncodedEvent) -> None:
        """An event happened: at most one sample each Period, and only what passes counts."""
        if made.passes(self._emitted) and self._is_due(made):
            self._taker.deliver(made)

    def _is_due(self, made: EncodedEvent) -> bool:
        if self._period_filter is None:
            return True
        sampled = made.sampled_by(self._offer.parameters)
        return self._period_filter.passes(sampled, int(self._loop.time() * 1e9))

    def _tick(self) -> None:
        if self._ticks is None:
            return
        now_s = self._loop.time()
        self._timer = self._loop.call_at(self._ticks.next_s(now_s), self._tick)
        if self._asked_at_s is not None:
            self._check_overdue(now_s - self._asked_at_s)
            return
        assert self._offer.maker is not None, "without one there are no ticks"
        self._asked_at_s = now_s
        if not self._offer.maker.ask(self._asked, self._done):
            self._asked_at_s = None
            self._taker.fail(BUSY)

    def _check_overdue(self, waited_s: float) -> None:
        if waited_s > MAKING_S_MAX and not self._overdue_reported:
            self._overdue_reported = True
            self._taker.fail(overdue(waited_s))

    def _done(self, outcome: Outcome) -> None:
        """In the maker's thread."""
        self._thread.call(self._take, outcome)

    def _take(self, outcome: Outcome) -> None:
        self._asked_at_s = None
        self._overdue_reported = False
        if self._ticks is None:
            return
        if isinstance(outcome, Failed):
            self._taker.fail(outcome)
            return
        for made in outcome:
            if made.passes(self._filter):
                self._taker.deliver(made)


def emitted_filter(parameters: Parameters, filter: str | None) -> Filter | None:
    """Which of the events that are emitted are wanted: nobody made them to the parameters."""
    if all(each.name == PERIOD for each in parameters.elements):
        return read_filter(filter)
    return wanted(parameters, filter)


def overdue(waited_s: float) -> Failed:
    """It takes too long."""
    return Failed("Overdue", f"the event has been in preparation for {waited_s:.0f} s")
