"""PerformanceService: what the broker does for producers and consumers, by any transport.

To a consumer the broker is the producer of everything that flows through it; to a producer it is a
consumer that stores everything: an archive. `session.py` has the broker's side of one peer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Protocol
from urllib.parse import quote
from weakref import WeakSet

import msgspec

from tocsin.access.decision import Action, Readable
from tocsin.access.session import Session
from tocsin.broker.log import Page, StoreReader
from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.latest import Reading
from tocsin.broker.recent.types import SeenTypes
from tocsin.errors import Busy, NotAllowed, TocsinError
from tocsin.event.event import Event, visible
from tocsin.event.facets import facets
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import Seen, passes
from tocsin.event.stored import Stored
from tocsin.wire.cloudevents.attributes import check_event, check_time, check_value, too_long
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import Subscription
from tocsin.wire.gma.normal import PRODUCER_ERROR, performance_element, producer_error, to_event
from tocsin.wire.gma.parameters import wanted
from tocsin.wire.gma.period_filter import PeriodFilter
from tocsin.wire.gma.write import query_reply, write

NAMES_SHOWN_MAX = 10
QUERY_S_MAX = 0.5  # for looking at events of the right name, one after the other
CHECKED_MAX = 10_000  # names and hosts; then they are forgotten, and checked again
EVENTS = "events"  # the resource that a query reads
TYPES = "types"  # and that a request for the names of events does


class LatestOfType(Protocol):
    """The last event of a type for which this holds, looked for by `read`."""

    def __call__(
        self, event_type: str, holds: Callable[[Event], bool], read: Reading
    ) -> Awaitable[Stored | None]: ...


@dataclass(frozen=True, slots=True)
class PerformanceOptions:
    """Limits that the operator sets."""

    event_limits: Limits
    subscriptions_max: int = 1_000  # of one peer
    lease_s: float = 600.0  # a subscription by UDP or HTTP ends if it is not used for so long
    leased_peers_max: int = 1_000


class Addresses(msgspec.Struct, frozen=True):
    """Where producers and consumers find the broker."""

    frames: str | None = None
    archive: str | None = None
    udp: bool = False
    tls: bool = False
    directory: str = "/directory"


class PerformanceService:
    """One for the broker."""

    def __init__(
        self,
        port: BrokerPort,
        options: PerformanceOptions,
        types: SeenTypes,
        latest_of_type: LatestOfType,
    ) -> None:
        self.port = port
        self.runtime = port.runtime
        self.options = options
        self.types = types
        self._latest_of_type = latest_of_type
        self._checks = EventChecks(options.event_limits)
        self._run = port.runtime.new_id()  # makes ids of events that have none unique
        self._ids = count(1)
        self._events = count(1)
        self._period_filters: WeakSet[PeriodFilter] = WeakSet()
        self.received = 0  # events of producers
        self.unreadable = 0  # messages that were refused, or cost their sender the connection
        self.datagrams_lost = 0
        self.connections = 0  # now, by all listeners
        self.addresses = Addresses()  # set when the listeners are open

    def new_id(self) -> str:
        """For a subscription, unique among all of this broker."""
        return str(next(self._ids))

    def period_filter(self, period_s: float) -> PeriodFilter:
        """For one subscription with a Period; all of them share what may be remembered."""
        period_filter = PeriodFilter(period_s, self._period_filters.__len__)
        self._period_filters.add(period_filter)
        return period_filter

    def event_of(
        self, subscription: Subscription, message: m.EventMessage, content: bytes | None, host: str
    ) -> Event:
        """The broker's event; raises what is wrong with it."""
        performance = message.event
        if performance is None:
            performance, content = producer_error(
                subscription.parameters.name, message, self.runtime.now_ns()
            )
        assert content is not None, "an event has a content"
        agreed = subscription.agreed
        if message.request_id is not None and agreed is not None and agreed.acknowledge is not None:
            # Whoever connects again, from wherever, is known by the name that it keeps.
            sender = _quoted(agreed.acknowledge)
            event_id = f"{sender}/{message.request_id}"
        else:
            sender, event_id = host, f"{self._run}.{next(self._events)}"
        event = to_event(performance, content, event_id=event_id, sender=sender)
        self._checks.check(event)
        return event

    async def names(self, request: m.EventNamesRequest, caller: Session) -> bytes:
        """The reply: every kind of event that was published of late."""
        try:
            self.port.check(caller, Action.READ, TYPES)
            await self.types.look_back(self._reading(caller, TYPES))
        except TocsinError as error:
            return write(m.EventNamesReply(request.request_id, m.FAILURE, str(error)))
        # A reply has one name or more; what producers cannot make is always there to be had.
        names = self.types.names_for(self.port.readable(caller, TYPES)) or (PRODUCER_ERROR,)
        return write(m.EventNamesReply(request.request_id, names=names))

    async def query(self, request: m.QueryRequest, caller: Session) -> bytes:
        """The reply: the last event of that name, and with those elements."""
        try:
            found = await self._find(request, caller)
            if found is not None:
                return query_reply(request.request_id, performance_element(found))
            detail = await self._nothing_like(request.parameters, caller)
        except TocsinError as error:
            detail = str(error)
        return write(m.QueryReply(request.request_id, m.FAILURE, detail))

    async def _find(self, request: m.QueryRequest, caller: Session) -> Stored | None:
        self.port.check(caller, Action.READ, EVENTS)
        filter = wanted(request.parameters, request.filter)
        holds = self._holds_in_time(filter, self.port.readable(caller))
        kind = request.parameters.name.type

        def read(work: Callable[[StoreReader], Stored | None]) -> Awaitable[Stored | None]:
            return self.port.read(caller, EVENTS, work)

        found = await self._latest_of_type(kind, holds, read)
        if found is None:
            return None
        return next(iter(self.port.still_readable(caller, [found])), None)

    async def _nothing_like(self, parameters: m.Parameters, caller: Session) -> str:
        """Why nothing was found. What else there is, is named only to who may read the types."""
        not_like_that = f"no event {parameters.name} like that has arrived recently"
        try:
            self.port.check(caller, Action.READ, TYPES)
            await self.types.look_back(self._reading(caller, TYPES))
        except NotAllowed:
            return not_like_that
        names = self.types.names_for(self.port.readable(caller, TYPES))
        if parameters.name in names:
            return not_like_that
        known = ", ".join(map(str, names[:NAMES_SHOWN_MAX])) or "none yet"
        return f"no event {parameters.name} has arrived recently; EventNamesRequest lists: {known}"

    def _reading(
        self, caller: Session, resource: str
    ) -> Callable[[Callable[[StoreReader], Page]], Awaitable[Page]]:
        return lambda work: self.port.read(caller, resource, work)

    def _holds_in_time(self, filter: Filter, readable: Readable | None) -> Callable[[Event], bool]:
        """Asks events whether they pass and may be read, for so long and no longer. Called where
        the log is read, which may be another thread."""
        elapsed_s = self.runtime.elapsed_s
        began_s: float | None = None

        def stopwatch_ns() -> int:
            return int(elapsed_s() * 1e9)

        def holds(event: Event) -> bool:
            nonlocal began_s
            now_s = elapsed_s()
            began_s = now_s if began_s is None else began_s
            if now_s - began_s > QUERY_S_MAX:
                raise Busy(
                    "the query takes too long",
                    remedy="Ask with a simpler filter, or subscribe with after= to look further "
                    "back.",
                )
            if readable is not None and not readable.has_event(event):
                return False
            values = visible(event)
            return passes(filter, Seen(event, values, facets(values), stopwatch_ns))

        return holds


class EventChecks:
    """What is asked of every event, at the cost of what differs from those before.

    Name and host of an event repeat, and `to_event` makes its other parts so that they fit. So the
    whole check is made once for each name and host, and then only of what is different in the next.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._checked: set[tuple[str, str, str, str | None]] = set()
        # What no event may hold by default was left out when the attributes were made.
        self._attributes_fit = limits.attribute_text_max >= Limits().attribute_text_max

    def check(self, event: Event) -> None:
        """Raises what is wrong with it."""
        key = event.type, event.source, event.topic, event.subject
        if key not in self._checked or not event.id or not self._attributes_fit:
            check_event(event, self._limits)
            if len(self._checked) >= CHECKED_MAX:
                self._checked.clear()
            self._checked.add(key)
            return
        if event.data is not None and len(event.data) > self._limits.event_bytes_max:
            raise too_long(len(event.data), self._limits)
        check_value("id", event.id, self._limits)
        if event.time is not None:
            check_time(event.time)


@lru_cache(maxsize=4_096)
def _quoted(name: str) -> str:
    """Without a slash, so that name and number can be joined by one and split again."""
    return quote(name, safe="")
