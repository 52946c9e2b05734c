"""What the tables of routers would be if nothing had ever failed: routers, linked anew."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import cache

from tocsin.event.filter_text import parse_filter
from tocsin.overlay.routing.effects import Effect, PieceSent, Send
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.overlay.routing.views import EntryView, RoutingView
from tocsin.wire.link.messages import DATA_FORMAT, Message

Edge = tuple[str, str]
Rows = Mapping[tuple[str, str], tuple[object, ...]]
Tables = tuple[Rows, ...]
NOW_NS = 1


def links_of(views: Iterable[RoutingView]) -> set[Edge]:
    """The links that both sides have."""
    sides = {(v.broker, n.broker) for v in views for n in v.neighbours if n.state == "up"}
    return {(one, other) for one, other in sides if one < other and (other, one) in sides}


def is_tree(brokers: Iterable[str], edges: set[Edge]) -> bool:
    """Joined, and without a cycle."""
    parts = [{broker} for broker in brokers]
    is_joined_twice = len(edges) != len(parts) - 1
    for one, other in edges:
        joined = [part for part in parts if one in part or other in part]
        parts = [part for part in parts if part not in joined] + [set().union(*joined)]
    return len(parts) == 1 and not is_joined_twice


def hops(edges: set[Edge], one: str, other: str) -> int:
    """Over how many links of the tree one broker reaches another."""
    reached, number = {one}, 0
    while other not in reached:
        number += 1
        reached |= {end for edge in edges if reached & {*edge} for end in edge}
    return number


def tables_of(view: RoutingView) -> Tables:
    """What has to be the same however it came about."""
    return (
        {(each.broker, ""): (each.state, each.behind) for each in view.neighbours},
        _rows(view.advertisements),
        _rows(view.subscriptions),
    )


def _rows(entries: tuple[EntryView, ...]) -> Rows:
    return {
        (each.origin, each.id): (
            each.filter,
            each.last_hop,
            each.sent_to,
            # When differs, and on the way it is what came by at some time.
            () if each.last_hop else tuple(broker for broker, _ in each.reached),
        )
        for each in entries
    }


class ExpectedTables:
    """Of routers with the same links and the same subscriptions of their clients; made anew when
    these have changed."""

    def __init__(self, options: RoutingOptions) -> None:
        self._options = options
        self._made_from: object = None
        self._tables: dict[str, Tables] = {}

    def of(self, views: Mapping[str, RoutingView]) -> dict[str, Tables]:
        edges = links_of(views.values())
        own = {(each.origin, each.id) for view in views.values() for each in own_entries(view)}
        if (edges, own) != self._made_from:
            network = _Network(views, self._options)
            for edge in sorted(edges):
                network.link(*edge)
            network.tick()
            routers = network.routers.items()
            self._tables = {broker: tables_of(router.tables()) for broker, router in routers}
            self._made_from = edges, own
        return self._tables


def own_entries(view: RoutingView) -> list[EntryView]:
    """What the clients of a broker itself asked for."""
    return [each for each in view.subscriptions if each.origin == view.broker]


_parsed = cache(parse_filter)


class _Network:
    """Routers whose messages arrive at once, in their order."""

    def __init__(self, views: Mapping[str, RoutingView], options: RoutingOptions) -> None:
        self.routers: dict[str, Router] = {}
        self._links: dict[tuple[str, int], tuple[str, int]] = {}  # the other end of each
        self._numbers = 0
        self._queue: deque[tuple[str, int, Message]] = deque()
        for broker, view in views.items():
            router = Router(Identity(broker, f"log-{broker}", DATA_FORMAT, "simulated"), options)
            self.routers[broker] = router
            for entry in own_entries(view):
                router.local_subscribe(entry.id, _parsed(entry.filter), NOW_NS)

    def link(self, one: str, other: str) -> None:
        self._numbers += 1
        number = self._numbers
        self._links[one, number], self._links[other, number] = (other, number), (one, number)
        for broker in (one, other):
            effects = self.routers[broker].link_opened(number, NOW_NS, is_outgoing=broker == one)
            self._do(broker, effects)
        self._settle()

    def tick(self) -> None:
        """What waits for the next second goes out, until nothing more does."""
        for _ in self.routers:  # an answer crosses one link a tick at least
            for broker, router in self.routers.items():
                self._do(broker, router.tick(NOW_NS))
            self._settle()

    def _settle(self) -> None:
        while self._queue:
            receiver, at, message = self._queue.popleft()
            self._do(receiver, self.routers[receiver].receive(at, message, NOW_NS))

    def _do(self, broker: str, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                receiver, number = self._links[broker, effect.link]
                self._queue.append((receiver, number, effect.message))
            elif isinstance(effect, PieceSent):
                self._do(broker, self.routers[broker].send_next_piece(effect.link, NOW_NS))
