"""Serving: at which brokers there are topic discovery nodes, as the neighbours say.

Each neighbour is told of all those that are not behind it, and then of what changes. What one has
said counts while the broker is behind it; of two that speak of one broker, the larger number.
"""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.errors import RoutingTableFull
from tocsin.overlay.control.effects import Ways
from tocsin.overlay.control.options import ControlOptions
from tocsin.wire.link.messages import Serves

Entries = dict[str, Serves]
"""By the broker that they are about."""


class Serving:
    """Of one broker."""

    def __init__(self, broker: str, options: ControlOptions, ways: Ways) -> None:
        self._broker = broker
        self._options = options
        self.ways = ways
        self._own = Serves(broker, 0)
        self._said: dict[str, Entries] = {}  # by neighbour: those that are connected
        self._sent: dict[str, Entries] = {}
        self._barred: set[tuple[str, str]] = set()  # neighbour and broker: it has no right to
        self._said_by: dict[str, dict[str, None]] = {}  # the neighbours, by broker
        self._changed: dict[str, None] = {}  # brokers of which something is to be told
        self._version: int | None = None  # of the ways, when neighbours were last told

    def __len__(self) -> int:
        """How many other brokers are spoken of."""
        return len(self._said_by)

    @property
    def own(self) -> tuple[str, ...]:
        """The topic discovery nodes at this broker."""
        return self._own.tdns

    def set_own(self, tdns: tuple[str, ...], number: int) -> None:
        """These from now on; the number is to be larger than in earlier lives of this broker."""
        self._own = Serves(self._broker, max(number, self._own.number + 1), tdns)
        self._changed[self._broker] = None

    def link_up(self, neighbour: str) -> None:
        self.link_down(neighbour)
        self._said[neighbour], self._sent[neighbour] = {}, {}
        self._version = None  # it is to be told of everything

    def link_down(self, neighbour: str) -> None:
        """What it said is gone with it."""
        for broker in self._said.pop(neighbour, {}):
            self._forget(neighbour, broker)
        self._sent.pop(neighbour, None)

    def receive(self, neighbour: str, message: Serves) -> None:
        """RoutingTableFull if there is no room for what it says."""
        said = self._said.get(neighbour)
        if said is None or message.broker == self._broker:
            return  # of ourselves it knows by way of a cycle, which is about to be cut
        known = said.get(message.broker)
        if not message.tdns:
            if known is not None:
                del said[message.broker]
                self._forget(neighbour, message.broker)
            return
        if known is None:
            self._check_room(neighbour, message.broker, said)
            self._said_by.setdefault(message.broker, {})[neighbour] = None
        said[message.broker] = message
        self._changed[message.broker] = None

    def said_by(self, neighbour: str) -> list[str]:
        """The brokers that it speaks of."""
        return list(self._said.get(neighbour, ()))

    def bar(self, neighbour: str, broker: str, *, is_barred: bool) -> None:
        """Whether what it says of this broker counts for nothing, as it has no right to."""
        key = (neighbour, broker)
        if is_barred != (key in self._barred) and broker in self._said.get(neighbour, ()):
            self._barred ^= {key}
            self._changed[broker] = None

    def _forget(self, neighbour: str, broker: str) -> None:
        self._changed[broker] = None
        self._barred.discard((neighbour, broker))
        by = self._said_by[broker]
        del by[neighbour]
        if not by:
            del self._said_by[broker]

    def _check_room(self, neighbour: str, broker: str, said: Entries) -> None:
        options = self._options
        if len(said) >= options.tdn_brokers_per_neighbour_max:
            most, where = options.tdn_brokers_per_neighbour_max, f"behind {neighbour}"
        elif broker not in self._said_by and len(self._said_by) >= options.tdn_brokers_max:
            most, where = options.tdn_brokers_max, "in all"
        else:
            return
        raise RoutingTableFull(
            f"{most} brokers with topic discovery nodes are known {where}, as many as may be",
            remedy="Nothing needs to be done: others answer. Or find out who invents them.",
        )

    def at(self, broker: str) -> Serves | None:
        """What there is at a broker that can be reached now, or at this one."""
        if broker == self._broker:
            return self._own if self._own.tdns else None
        ways = self.ways.ways_to(broker)
        found = [
            self._said[each][broker]
            for each in self._said_by.get(broker, ())
            if each in ways and (each, broker) not in self._barred
        ]
        return max(found, key=_number, default=None)

    def brokers(self, tdn: str = "") -> Iterator[Serves]:
        """Those where this topic discovery node is, or any if it is not named; this one among
        them."""
        for broker in (self._broker, *self._said_by):
            entry = self.at(broker)
            if entry is not None and (not tdn or tdn in entry.tdns):
                yield entry

    @property
    def has_news(self) -> bool:
        """True if `news` may have something for a neighbour."""
        return bool(self._changed) or self._version != self.ways.version

    def news(self) -> list[tuple[str, Serves]]:
        """What the neighbours have to be told now, and have not been told."""
        found: list[tuple[str, Serves]] = []
        brokers, self._changed = self._changed, {}
        if self._version != self.ways.version:
            self._version = self.ways.version
            known = {each: None for sent in self._sent.values() for each in sent}
            brokers = {**known, **dict.fromkeys((self._broker, *self._said_by))}
        for broker in brokers:
            entry, ways = self.at(broker), self.ways.ways_to(broker)
            for neighbour, sent in self._sent.items():
                wanted = None if neighbour in ways else entry
                before = sent.get(broker)
                if wanted is not None and wanted != before:
                    sent[broker] = wanted
                    found.append((neighbour, wanted))
                elif wanted is None and before is not None:
                    del sent[broker]
                    found.append((neighbour, Serves(broker, before.number)))
        return found


def _number(entry: Serves) -> int:
    return entry.number
