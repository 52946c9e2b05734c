"""The performance desk: what the broker does for producers and consumers, by any transport.

To a consumer the broker is the producer of everything that flows through it; to a producer it is a
consumer that keeps everything: an archive.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import WeakSet

import msgspec

from tocsin.drivers.frames.checks import Checks
from tocsin.drivers.frames.house import House
from tocsin.errors import Busy, TocsinError
from tocsin.event.event import Event, visible
from tocsin.event.facets import facets
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import Seen, passes
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.normal import performance_element, to_event
from tocsin.wire.gma.parameters import wanted
from tocsin.wire.gma.producer_error import NAME as PRODUCER_ERROR
from tocsin.wire.gma.producer_error import producer_error
from tocsin.wire.gma.ready import query_reply
from tocsin.wire.gma.thinning import Thinning
from tocsin.wire.gma.write import write

if TYPE_CHECKING:
    from tocsin.wire.gma.conversation import Subscription

NAMES_SHOWN_MAX = 10
QUERY_NS_MAX = 500_000_000  # for looking at events of the right name, one after the other


class Doors(msgspec.Struct, frozen=True):
    """Where producers and consumers find the broker."""

    frames: str | None = None
    archive: str | None = None
    udp: bool = False
    tls: bool = False
    directory: str = "/directory"


class PerformanceDesk:
    """One for the broker."""

    def __init__(self, node: House) -> None:
        self.node = node
        self.limits = node.settings.frames
        self._checks = Checks(node.settings.event_limits())
        self._run = secrets.token_hex(12)  # makes ids of events that have none unique
        self._ids = count(1)
        self._events = count(1)
        self._thinnings: WeakSet[Thinning] = WeakSet()
        self.received = 0  # events of producers
        self.unreadable = 0  # messages that were refused, or cost their sender the connection
        self.datagrams_lost = 0
        self.connections = 0  # now, by all doors
        self.doors = Doors()  # set when they are open

    def new_id(self) -> str:
        """For a subscription, unique among all of this broker."""
        return str(next(self._ids))

    def thinning(self, period_s: float) -> Thinning:
        """For one subscription with a Period; all of them share what may be remembered."""
        made = Thinning(period_s, self._thinnings.__len__)
        self._thinnings.add(made)
        return made

    def event_of(
        self, subscription: Subscription, message: m.EventMessage, content: bytes | None, peer: str
    ) -> Event:
        """The broker's event; raises what is wrong with it."""
        performance = message.event
        if performance is None:
            performance, content = producer_error(subscription, message, self.node.now_ns())
        assert content is not None, "an event has a content"
        agreed = subscription.agreed
        if message.request_id is not None and agreed is not None and agreed.acknowledge is not None:
            # Whoever connects again, from wherever, is known by the name that it keeps.
            peer = _quoted(agreed.acknowledge)
            event_id = f"{peer}/{message.request_id}"
        else:
            event_id = f"{self._run}.{next(self._events)}"
        event = to_event(performance, content, event_id=event_id, sender=peer)
        self._checks.check(event)
        return event

    async def names(self, request: m.EventNamesRequest) -> bytes:
        """Every kind of event that was published of late."""
        await self.node.types.look_back(self.node.read)
        # A reply has one name or more; what producers cannot make is always there to be had.
        names = self.node.types.names() or (PRODUCER_ERROR,)
        return write(m.EventNamesReply(request.request_id, names=names))

    async def query(self, request: m.QueryRequest) -> bytes:
        """The last event of that name, and with those elements."""
        try:
            filter = wanted(request.parameters, request.filter)
            kind = request.parameters.name.type
            found = await self.node.latest_of(kind, _timed(filter))
        except TocsinError as error:
            return write(m.QueryReply(request.request_id, m.FAILURE, str(error)))
        if found is None:
            detail = await self._nothing_like(request.parameters)
            return write(m.QueryReply(request.request_id, m.FAILURE, detail))
        return query_reply(request.request_id, performance_element(found))

    async def _nothing_like(self, parameters: m.Parameters) -> str:
        await self.node.types.look_back(self.node.read)
        names = self.node.types.names()
        if parameters.name in names:
            return f"no event {parameters.name} like that has arrived recently"
        known = ", ".join(map(str, names[:NAMES_SHOWN_MAX])) or "none yet"
        return f"no event {parameters.name} has arrived recently; EventNamesRequest lists: {known}"


@lru_cache(maxsize=4_096)
def _quoted(name: str) -> str:
    """Without a slash, so that name and number can be joined by one and told apart again."""
    return quote(name, safe="")


def _timed(filter: Filter) -> Callable[[Event], bool]:
    """Asks events whether they pass, for so long and no longer. Called in a thread."""
    began_ns: int | None = None

    def holds(event: Event) -> bool:
        nonlocal began_ns
        now_ns = time.perf_counter_ns()
        began_ns = began_ns or now_ns
        if now_ns - began_ns > QUERY_NS_MAX:
            raise Busy(
                "the query takes too long",
                remedy="Ask with a simpler filter, or subscribe with after= to look further back.",
            )
        values = visible(event)
        return passes(filter, Seen(event, values, facets(values), time.perf_counter_ns))

    return holds
