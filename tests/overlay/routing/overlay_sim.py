"""A tree of routers in one process, with delay, links that fail and brokers that crash: one seed.

Connections keep their order. Each side learns at its own time that one has ended. What a router
asks to be saved outlives its crash; nothing else does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Protocol

from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import passes, seen
from tocsin.event.filter_text import parse_filter
from tocsin.overlay.routing.effects import (
    Began,
    CloseLink,
    Effect,
    EntryIgnored,
    EntryKey,
    NeighbourDown,
    NeighbourFilter,
    NeighbourForgotten,
    NeighbourUp,
    Save,
    Send,
    SubscriptionMoved,
)
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.overlay.routing.views import EntryView
from tocsin.wire.framing import HEAD_BYTES
from tocsin.wire.link.codec import decode, encode
from tocsin.wire.link.messages import Message

MS = 1_000_000
S = 1_000 * MS
REDIAL_NS = S
TICK_NS = S
STEPS_MAX = 150_000

Edge = tuple[str, str]

parsed = cache(parse_filter)


@dataclass(eq=False)
class Node:
    """One broker: its router, what is on its disk, and what its clients asked for."""

    router: Router | None
    options: RoutingOptions
    rows: dict[str, bytes] = field(default_factory=dict)
    clients: dict[str, str] = field(default_factory=dict)  # subscription -> filter
    wanted: dict[str, dict[EntryKey, Filter]] = field(default_factory=dict)
    began: dict[str, set[str]] = field(default_factory=dict)
    seen: list[Effect] = field(default_factory=list)
    ends: dict[int, Connection] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=lambda: count(1))


@dataclass(eq=False)
class Connection:
    """Two ends, each with a number of its own, and when the last message arrives at each."""

    ends: dict[str, int]
    busy_ns: dict[str, int]
    is_open: bool = True

    def other(self, broker: str) -> str:
        return next(each for each in self.ends if each != broker)


class Runs(Protocol):
    def __call__(self) -> None: ...


class Overlay:
    """Brokers and the peers that they dial, in simulated time."""

    def __init__(self, seed: int = 0, *, delay_ns_max: int = 50 * MS) -> None:
        self.random = Random(seed)
        self.now_ns = 1
        self.nodes: dict[str, Node] = {}
        self.dials: list[Edge] = []  # who dials whom, whenever they are not connected
        self.blocked: set[frozenset[str]] = set()
        self.messages = 0
        self._delay_ns_max = delay_ns_max
        self._agenda: list[tuple[int, int, Runs]] = []
        self._order = count()
        self._secrets = count()

    # What happens

    def add(self, broker: str, options: RoutingOptions | None = None) -> None:
        chosen = options or RoutingOptions()
        self.nodes[broker] = Node(Router(identity(broker), chosen), chosen)

    def subscribe(self, broker: str, subscription: str, text: str) -> None:
        node = self.nodes[broker]
        node.clients[subscription] = text
        if node.router is not None:
            wanted = parsed(text)
            self._do(broker, node.router.local_subscribe(subscription, wanted, self.now_ns))

    def unsubscribe(self, broker: str, subscription: str) -> None:
        node = self.nodes[broker]
        del node.clients[subscription]
        node.began.pop(subscription, None)
        if node.router is not None:
            self._do(broker, node.router.local_unsubscribe(subscription, self.now_ns))

    def dial(self, caller: str, called: str, replacing: str = "") -> None:
        one, other = self.nodes[caller], self.nodes[called]
        if one.router is None or other.router is None:
            return
        if frozenset((caller, called)) in self.blocked:
            return
        connection = Connection({}, {})
        for broker in (caller, called):
            connection.ends[broker] = number = next(self.nodes[broker].numbers)
            self.nodes[broker].ends[number] = connection
        for broker in (caller, called):
            effects = self.router(broker).link_opened(
                connection.ends[broker],
                self.now_ns,
                is_outgoing=broker == caller,
                replacing=replacing if broker == caller else "",
                nonce=f"nonce-{next(self._secrets)}",
                token=f"token-{next(self._secrets)}",
            )
            self._do(broker, effects)

    def cut(self, one: str, other: str) -> None:
        """Every connection between the two ends; what is on its way is lost."""
        for connection in list(self.nodes[one].ends.values()):
            if other in connection.ends:
                self._end(connection, noticed=())

    def crash(self, broker: str) -> None:
        node = self.nodes[broker]
        node.router = None
        for connection in list(node.ends.values()):
            self._end(connection, noticed=(broker,))
        node.ends.clear()
        node.wanted.clear()
        node.began.clear()

    def restart(self, broker: str) -> None:
        node = self.nodes[broker]
        node.router = Router(identity(broker), node.options)
        self._do(broker, node.router.restore(dict(node.rows), self.now_ns))
        for subscription, text in node.clients.items():
            self.subscribe(broker, subscription, text)

    def forget(self, at: str, broker: str) -> None:
        self._do(at, self.router(at).forget(broker, self.now_ns))

    # Running

    def run(self, for_ns: int) -> None:
        """Let time pass: messages arrive, brokers dial whom they miss, clocks tick."""
        end_ns = self.now_ns + for_ns
        next_tick_ns = self.now_ns
        for _ in range(STEPS_MAX):
            agenda_ns = self._agenda[0][0] if self._agenda else end_ns + 1
            if min(agenda_ns, next_tick_ns) > end_ns:
                self.now_ns = end_ns
                return
            if next_tick_ns <= agenda_ns:
                self.now_ns = next_tick_ns
                next_tick_ns += TICK_NS
                self._tick()
            else:
                self.now_ns, _, action = heappop(self._agenda)
                action()
        raise AssertionError("it never ends: something goes in circles")

    def step(self) -> None:
        """The next thing that happens."""
        self.now_ns, _, action = heappop(self._agenda)
        action()

    def settle(self) -> None:
        """Until no message is on its way, without redialling or ticking."""
        for _ in range(STEPS_MAX):
            if self._agenda:
                self.step()
            elif not self._go_on():
                return
        raise AssertionError("it never ends: something goes in circles")

    def _go_on(self) -> bool:
        """What was too much for one turn. False if nothing was."""
        busy = [b for b, node in self.nodes.items() if node.router and node.router.has_more]
        for broker in busy:
            self._do(broker, self.router(broker).go_on(self.now_ns))
        return bool(busy)

    def _tick(self) -> None:
        for broker, node in self.nodes.items():
            if node.router is not None:
                self._do(broker, node.router.tick(self.now_ns))
        dials = self.dials[:]
        self.random.shuffle(dials)
        for caller, called in dials:
            if not self.has_connection(caller, called):
                wait_ns = self.random.randrange(REDIAL_NS)
                self._at(self.now_ns + wait_ns, lambda a=caller, b=called: self._redial(a, b))

    def _redial(self, caller: str, called: str) -> None:
        if not self.has_connection(caller, called):
            self.dial(caller, called)

    def _at(self, at_ns: int, action: Runs) -> None:
        heappush(self._agenda, (at_ns, next(self._order), action))

    def _arrival_ns(self, connection: Connection, receiver: str) -> int:
        soonest = self.now_ns + self.random.randint(1, self._delay_ns_max)
        arrival_ns = max(soonest, connection.busy_ns.get(receiver, 0) + 1)
        connection.busy_ns[receiver] = arrival_ns
        return arrival_ns

    def _end(self, connection: Connection, noticed: Iterable[str]) -> None:
        """Each side hears of it in its own time, after what it was sent before if that arrived."""
        if not connection.is_open:
            return
        connection.is_open = False
        for broker, number in connection.ends.items():
            if broker in noticed:
                self.nodes[broker].ends.pop(number, None)
            else:
                at_ns = self._arrival_ns(connection, broker) + self.random.randrange(2 * S)
                self._at(at_ns, lambda b=broker, n=number: self._closed(b, n))

    def _closed(self, broker: str, number: int) -> None:
        node = self.nodes[broker]
        if node.ends.pop(number, None) is not None and node.router is not None:
            self._do(broker, node.router.link_closed(number, self.now_ns))

    def _send(self, broker: str, number: int, message: Message) -> None:
        connection = self.nodes[broker].ends.get(number)
        if connection is None or not connection.is_open:
            return
        receiver = connection.other(broker)
        body = encode(message)[HEAD_BYTES:]
        arrival_ns = self._arrival_ns(connection, receiver)
        self._at(arrival_ns, lambda: self._receive(connection, receiver, body))

    def _receive(self, connection: Connection, receiver: str, body: bytes) -> None:
        node = self.nodes[receiver]
        number = connection.ends[receiver]
        if not connection.is_open or number not in node.ends or node.router is None:
            return
        self.messages += 1
        message = decode(body)
        assert isinstance(message, Message)
        self._do(receiver, node.router.receive(number, message, self.now_ns))

    def _do(self, broker: str, effects: list[Effect]) -> None:
        node = self.nodes[broker]
        node.seen.extend(each for each in effects if not isinstance(each, Send | Save))
        for effect in effects:
            match effect:
                case Send(link, message):
                    self._send(broker, link, message)
                case CloseLink(link):
                    self._hang_up(broker, link)
                case Save(key, None):
                    node.rows.pop(key, None)
                case Save(key, bytes() as value):
                    node.rows[key] = value
                case NeighbourFilter(neighbour, added, removed):
                    wanted = node.wanted.setdefault(neighbour, {})
                    wanted.update(added)
                    for key in removed:
                        del wanted[key]
                    if not wanted:
                        del node.wanted[neighbour]
                case Began(subscription, where):
                    node.began.setdefault(subscription, set()).add(where)
                case EntryIgnored():
                    raise AssertionError(effect)
                case NeighbourUp() | NeighbourDown() | NeighbourForgotten() | SubscriptionMoved():
                    pass

    def _hang_up(self, broker: str, number: int) -> None:
        """Closed by one side: what it sent before still arrives."""
        connection = self.nodes[broker].ends.pop(number, None)
        if connection is None or not connection.is_open:
            return
        other = connection.other(broker)
        at_ns = self._arrival_ns(connection, other)

        def ended() -> None:
            connection.is_open = False
            self._closed(other, connection.ends[other])

        self._at(at_ns, ended)

    # What can be seen

    def router(self, broker: str) -> Router:
        router = self.nodes[broker].router
        assert router is not None
        return router

    def has_connection(self, one: str, other: str) -> bool:
        return any(other in each.ends for each in self.nodes[one].ends.values())

    def up(self) -> set[Edge]:
        """The links that both sides have."""
        sides = {
            (broker, each.broker)
            for broker, node in self.nodes.items()
            if node.router is not None
            for each in node.router.tables().neighbours
            if each.state == "up"
        }
        return {(one, other) for one, other in sides if one < other and (other, one) in sides}

    def way(self, event: Event, origin: str) -> dict[str, str]:
        """Where an event comes by, each broker with the one before it, as tables stand now."""
        asked = seen(event)
        came = {origin: ""}
        waiting = deque([origin])
        while waiting:
            at = waiting.popleft()
            router = self.router(at)
            for neighbour, filters in self.nodes[at].wanted.items():
                if router.is_behind(origin, neighbour) or router.way_to(neighbour) is None:
                    continue
                if any(passes(each, asked) for each in filters.values()):
                    assert neighbour not in came, f"{event} comes to {neighbour} twice"
                    came[neighbour] = at
                    waiting.append(neighbour)
        return came

    def wanting(self, event: Event) -> set[str]:
        """The brokers with a client that wants it: the oracle."""
        asked = seen(event)
        return {
            broker
            for broker, node in self.nodes.items()
            if any(passes(parsed(text), asked) for text in node.clients.values())
        }

    def tables(self, broker: str) -> tuple[object, ...]:
        """What has to be the same however it came about."""
        view = self.router(broker).tables()
        return (
            {(each.broker, each.state, each.behind) for each in view.neighbours},
            _rows(view.advertisements),
            _rows(view.subscriptions),
        )


def _rows(entries: tuple[EntryView, ...]) -> Mapping[EntryKey, tuple[object, ...]]:
    return {(e.origin, e.id): (e.filter, e.last_hop, e.sent_to) for e in entries}


def identity(broker: str) -> Identity:
    return Identity(broker, f"log-{broker}", 1, "tocsin/test")


def fresh_like(overlay: Overlay) -> Overlay:
    """The same brokers, links and clients, as if nothing had ever failed."""
    fresh = Overlay(0)
    for broker, node in overlay.nodes.items():
        fresh.add(broker, node.options)
        for subscription, text in node.clients.items():
            fresh.subscribe(broker, subscription, text)
    for one, other in sorted(overlay.up()):
        fresh.dial(one, other)
        fresh.settle()
    return fresh


def is_tree(brokers: Iterable[str], edges: set[Edge]) -> bool:
    """Joined, and without a cycle."""
    return len(edges) == len(list(brokers)) - 1 and len(parts(brokers, edges)) == 1


def parts(brokers: Iterable[str], edges: set[Edge]) -> list[set[str]]:
    found = [{broker} for broker in brokers]
    for one, other in edges:
        joined = [part for part in found if one in part or other in part]
        found = [part for part in found if part not in joined] + [set().union(*joined)]
    return found
