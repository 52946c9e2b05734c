"""Cores of control messages on a graph: messages keep their order on a link, and arrive by turns
that a test chooses. Where brokers are is read off the graph."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import count
from random import Random

from tocsin.errors import TocsinError
from tocsin.overlay.control.core import ControlCore
from tocsin.overlay.control.effects import Deliver, Effect, Send
from tocsin.overlay.control.options import ControlOptions
from tocsin.wire.link.codec import decode, encode
from tocsin.wire.link.messages import HOPS_MAX, Control, Serves

STEPS_MAX = 20_000
DEFAULTS = ControlOptions()
S = 1_000_000_000


class Node:
    """One broker: where others are by the graph, and what has been delivered."""

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self.name = name
        self.core = ControlCore(name, network.options)
        self.core.use(self)
        self.delivered: list[Control] = []
        self.problems: list[TocsinError] = []

    @property
    def version(self) -> int:
        return self._network.version

    def ways_to(self, broker: str) -> list[str]:
        links = self._network.links
        return sorted(n for n in links[self.name] if broker in self._network.side(n, self.name))


class Network:
    """See the module."""

    def __init__(self, options: ControlOptions = DEFAULTS, random: Random | None = None) -> None:
        self.options = options
        self.nodes: dict[str, Node] = {}
        self.links: dict[str, set[str]] = {}
        self.version = 0
        self.now_ns = S
        self.crossed: Counter[tuple[str, str]] = Counter()  # links, by control messages
        self._random = random or Random(0)
        self._ways: dict[tuple[str, str], deque[bytes]] = {}
        self._ids = count(1)

    def add(self, *names: str) -> None:
        for name in names:
            self.links[name] = set()
            self.nodes[name] = Node(self, name)

    def link(self, one: str, other: str) -> None:
        for a, b in ((one, other), (other, one)):
            self.links[a].add(b)
            self._ways[a, b] = deque()
        self.version += 1
        for a, b in ((one, other), (other, one)):
            self.nodes[a].core.link_up(b)

    def unlink(self, one: str, other: str) -> None:
        """What is on its way is lost."""
        for a, b in ((one, other), (other, one)):
            self.links[a].discard(b)
            del self._ways[a, b]
        self.version += 1
        for a, b in ((one, other), (other, one)):
            self.nodes[a].core.link_down(b)

    def side(self, start: str, without: str) -> set[str]:
        """The brokers that are reached from here by no way of that one."""
        found, waiting = {start}, [start]
        while waiting:
            fresh = self.links[waiting.pop()] - found - {without}
            found |= fresh
            waiting += fresh
        return found

    def serve(self, broker: str, *tdns: str) -> None:
        self.nodes[broker].core.serving.set_own(tdns, self.now_ns)

    # Messages

    def send(self, origin: str, topic: str, *, to: str = "", ttl: int = HOPS_MAX) -> Control:
        message = Control(f"m{next(self._ids)}", topic, origin, to, ttl, 1, "test", b"x")
        self._do(origin, self.nodes[origin].core.send(message, self.now_ns), "")
        return message

    def inject(self, sender: str, receiver: str, message: Control) -> None:
        """The neighbour sends this, whatever its core would."""
        self._ways[sender, receiver].append(encode(message))

    def settle(self) -> None:
        """Until nothing is on its way and nobody has news."""
        for _ in range(STEPS_MAX):
            if not self.step():
                return
        raise AssertionError("it never comes to an end")

    def step(self) -> bool:
        for node in self.nodes.values():
            for neighbour, message in node.core.serving.news():
                self._ways[node.name, neighbour].append(encode(message))
        busy = sorted(way for way, queue in self._ways.items() if queue)
        if not busy:
            return False
        sender, receiver = self._random.choice(busy)
        message = decode(self._ways[sender, receiver].popleft()[4:])
        node = self.nodes[receiver]
        try:
            if isinstance(message, Serves):
                node.core.serving.receive(sender, message)
            else:
                assert isinstance(message, Control)
                self.crossed[sender, receiver] += 1
                self._do(receiver, node.core.receive(sender, message, self.now_ns), sender)
        except TocsinError as problem:
            node.problems.append(problem)
        return True

    def _do(self, broker: str, effects: list[Effect], came_by: str) -> None:
        for effect in effects:
            match effect:
                case Deliver(_, message):
                    self.nodes[broker].delivered.append(message)
                case Send(neighbour, message):
                    assert neighbour != came_by
                    self._ways[broker, neighbour].append(encode(message))

    def got(self, message: Control) -> list[str]:
        """Where a message was delivered, in the order of the names."""
        return [
            name
            for name, node in sorted(self.nodes.items())
            for each in node.delivered
            if each.id == message.id
        ]

    def hops(self, one: str) -> dict[str, int]:
        """Over how many links each broker is, at least."""
        found, edge, number = {one: 0}, {one}, 0
        while edge:
            number += 1
            edge = {n for at in edge for n in self.links[at]} - found.keys()
            found |= dict.fromkeys(edge, number)
        return found

    def tables(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """The topic discovery nodes that each broker knows, by the brokers where they are."""
        return {
            name: {entry.broker: entry.tdns for entry in node.core.serving.brokers()}
            for name, node in self.nodes.items()
        }


def tree(edges: Iterable[tuple[str, str]], options: ControlOptions = DEFAULTS) -> Network:
    """Brokers with these links."""
    network = Network(options)
    links = list(edges)
    network.add(*dict.fromkeys(name for edge in links for name in edge))
    for edge in links:
        network.link(*edge)
    return network


def chain(length: int, options: ControlOptions = DEFAULTS) -> Network:
    """Brokers b0, b1, ... one after the other."""
    return tree(((f"b{n}", f"b{n + 1}") for n in range(length - 1)), options)
