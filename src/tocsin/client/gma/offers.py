"""What a producer offers, the threads that make its events, and the demand for them.

Each offer that makes events has one thread for it: a slow or stuck offer delays nobody but those
who wait for it, and is never called twice at once. Those who wait with the same parameters share
one call.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from threading import Condition, Lock, Thread
from typing import Final, Protocol

from tocsin.client.event_json import now_text
from tocsin.client.gma.encoded_event import (
    EncodedEvent,
    Failed,
    Result,
    Values,
    encode_events,
    failed,
    read_filter,
    values_of,
)
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.schedule import PeriodTicks
from tocsin.errors import BadMessage, BadSetting
from tocsin.event.filter import Filter
from tocsin.wire.gma.messages import Element, Parameters
from tocsin.wire.gma.names import PERIOD, EventName
from tocsin.wire.gma.parameters import PERIOD_S_MAX, PERIOD_S_MIN, period_of, wanted
from tocsin.wire.gma.period_filter import PeriodFilter

OFFERS_MAX = 1_000
NAMED_MAX = 20  # how many of them an error lists

Make = Callable[[Values], Result]


class EmitSubscriber(Protocol):
    """Somebody who subscribed."""

    def emitted(self, made: EncodedEvent) -> None:
        """An event happened."""


class Offer:
    """A kind of event. Without a maker its events happen when they are emitted."""

    def __init__(
        self,
        name: EventName,
        parameters: tuple[str, ...],
        period_s: float,
        maker: EventMaker | None,
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.period_s = period_s
        self.maker = maker
        self.last: list[EncodedEvent] = []  # what was emitted, all at once
        self.demands: set[EmitSubscriber] = set()

    def check(self, asked: tuple[Element, ...]) -> None:
        """BadMessage if a parameter is none of this offer's: it would be ignored in silence."""
        unknown = [each.name for each in asked if each.name not in (*self.parameters, PERIOD)]
        if unknown:
            known = ", ".join(self.parameters) or "none"
            raise BadMessage(
                f"{self.name} has no parameter {unknown[0][:80]!r}",
                remedy=f"Its parameters: {known}.",
            )
        values_of(asked)


class Offers:
    """All of them, by name."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._adding = Lock()
        self._offers: dict[EventName, Offer] = {}

    @property
    def names(self) -> list[EventName]:
        return list(self._offers)

    def all(self) -> list[Offer]:
        return list(self._offers.values())

    def add(
        self, name: EventName, make: Make | None, parameters: tuple[str, ...], period_s: float
    ) -> Offer:
        """Offer events; BadSetting if they are offered already, or cannot be."""
        with self._adding:
            if name in self._offers:
                raise BadSetting(f"{name} is offered already", remedy="Offer each name once.")
            return self._add(name, make, parameters, period_s)

    def find_or_add(self, name: EventName, period_s: float) -> Offer:
        """The offer of that name; without one, it is offered from now on, to be emitted."""
        with self._adding:
            return self._offers.get(name) or self._add(name, None, (PERIOD,), period_s)

    def _add(
        self, name: EventName, make: Make | None, parameters: tuple[str, ...], period_s: float
    ) -> Offer:
        if len(self._offers) >= OFFERS_MAX:
            raise BadSetting(
                f"{OFFERS_MAX} kinds of events are offered", remedy="Start another producer."
            )
        if not PERIOD_S_MIN <= period_s <= PERIOD_S_MAX:
            raise BadSetting(
                f"period_s is {period_s}",
                remedy=f"Give {PERIOD_S_MIN:g} seconds or more, and at most a year.",
            )
        maker = None if make is None else EventMaker(name.local, self._calling(name, make))
        offer = self._offers[name] = Offer(name, parameters, period_s, maker)
        return offer

    def find(self, name: EventName) -> Offer | None:
        return self._offers.get(name)

    def wanted(self, parameters: Parameters) -> Offer:
        """The offer that a request is about; BadMessage says what there is if it is none."""
        offer = self._offers.get(parameters.name)
        if offer is None:
            raise BadMessage(f"there are no events {parameters.name}", remedy=self.listed())
        offer.check(parameters.elements)
        return offer

    def listed(self) -> str:
        """What there is, for people."""
        if not self._offers:
            return "This producer has no events to offer."
        names = [str(name) for name in sorted(self._offers)]
        more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
        return f"There are: {', '.join(names[:NAMED_MAX])}{more}."

    def close(self) -> None:
        for offer in self._offers.values():
            if offer.maker is not None:
                offer.maker.close()

    def _calling(self, name: EventName, make: Make) -> Callable[[QueryBody], list[EncodedEvent]]:
        def made(asked: QueryBody) -> list[EncodedEvent]:
            return encode_events(name, make(values_of(asked)), host=self.host, now=now_text())

        return made


WAITING_MAX = 10_000  # who may wait for one offer

Outcome = list[EncodedEvent] | Failed
QueryBody = tuple[Element, ...]
Done = Callable[[Outcome], None]


class EventMaker:
    """`make` is called in its thread, and `done` too, with what came of it."""

    def __init__(self, name: str, make: Callable[[QueryBody], list[EncodedEvent]]) -> None:
        self._name = name
        self._make = make
        self._changed = Condition()
        self._waiting: OrderedDict[str, tuple[QueryBody, list[Done]]] = OrderedDict()
        self._waiters = 0
        self._thread: Thread | None = None
        self._closed = False

    def ask(self, asked: QueryBody, done: Done) -> bool:
        """Have events made; False if too many wait already."""
        with self._changed:
            if self._closed or self._waiters >= WAITING_MAX:
                return False
            # By its text, because 1 and True are equal and not the same parameter.
            self._waiting.setdefault(repr(asked), (asked, []))[1].append(done)
            self._waiters += 1
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"tocsin-{self._name}", daemon=True)
                self._thread.start()
            self._changed.notify()
        return True

    def close(self) -> None:
        """End the thread, after the call that it may be in; nobody who waits is notified."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                _, (asked, waiters) = self._waiting.popitem(last=False)
                self._waiters -= len(waiters)
            outcome = self._outcome(asked)
            for done in waiters:
                done(outcome)

    def _outcome(self, asked: QueryBody) -> Outcome:
        try:
            return self._make(asked)
        except (Exception, SystemExit) as error:
            # Whatever it is: consumers get it in place of an event, and this goes on.
            return failed(error)


MAKING_S_MAX: Final = 30.0  # then those who wait get an error: it takes too long
BUSY = Failed("Busy", "too many events are waiting to be made")


class EventReceiver(Protocol):
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
        taker: EventReceiver,
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
