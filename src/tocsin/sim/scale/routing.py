"""A network of routers in virtual time: the shipped routing core, links and queues around it.

As in `sim.discovery.network`: a link delivers in order after a constant time, and a broker is one
server with one queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush

from tocsin.event.filter import Filter
from tocsin.overlay.routing.effects import CloseLink, Effect, EntryIgnored, Send
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.sim.discovery.topology import Topology
from tocsin.wire.link.messages import Message, Reached, Subscribe, Unsubscribe

US = 1_000
MS = 1_000_000

Act = Callable[[int], list[Effect]]


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """What a message takes: on the link, at the broker that receives it, at the one that sends."""

    link_ns: int = 1 * MS
    receive_ns: int = 50 * US
    send_ns: int = 10 * US


@dataclass(slots=True)
class Traffic:
    """Messages since the last time that somebody took this."""

    by_kind: Counter[type[Message]]
    by_broker: Counter[str]

    @property
    def total(self) -> int:
        return self.by_kind.total()

    @property
    def subscriptions(self) -> int:
        return self.by_kind[Subscribe] + self.by_kind[Unsubscribe]

    @property
    def reports(self) -> int:
        """Of where a subscription holds."""
        return self.by_kind[Reached]

    @property
    def busiest(self) -> int:
        """Messages received by the broker that received most."""
        return max(self.by_broker.values(), default=0)


class RoutingNetwork:
    """The routers of a topology. Time goes on from one step to the next."""

    def __init__(self, topology: Topology, options: RoutingOptions, costs: MessageCosts) -> None:
        self.topology = topology
        self.routers = {
            each: Router(Identity(each, f"log-{each}", 1, "tocsin/sim"), options)
            for each in topology.brokers
        }
        self.now_ns = 0
        self.traffic = Traffic(Counter(), Counter())
        self._costs = costs
        self._agenda: list[tuple[int, int, str, Act]] = []
        self._order = 0
        self._free_at_ns = dict.fromkeys(topology.brokers, 0)
        self._links: dict[int, tuple[str, str]] = {}  # both sides use the same number
        self._opened = 0
        for one, other in topology.links:
            self.connect(one, other)
            self.run()

    def connect(self, caller: str, called: str) -> None:
        self._opened += 1
        number = self._opened
        self._links[number] = caller, called
        for broker in (caller, called):
            opened = partial(self.routers[broker].link_opened, number, is_outgoing=broker == caller)
            self._at(self.now_ns, broker, opened)

    def disconnect(self, one: str, other: str) -> None:
        """Both sides learn of it now; what is on its way is lost."""
        ended = [number for number, ends in self._links.items() if {*ends} == {one, other}]
        for number in ended:
            self._end(number)

    def remove(self, broker: str) -> list[str]:
        """The broker is gone. Gives the neighbours that it had."""
        ended = {number: ends for number, ends in self._links.items() if broker in ends}
        del self.routers[broker]
        for number in ended:
            self._end(number)
        return [one if other == broker else other for one, other in ended.values()]

    def _end(self, number: int) -> None:
        for broker in self._links.pop(number):
            if broker in self.routers:
                self._at(self.now_ns, broker, partial(self.routers[broker].link_closed, number))

    def subscribe(self, broker: str, subscription: str, wanted: Filter) -> None:
        act = partial(self.routers[broker].local_subscribe, subscription, wanted)
        self._at(self.now_ns, broker, act)

    def run(self) -> int:
        """Until nothing is under way; gives how long the last broker was busy from now on."""
        begin_ns = end_ns = self.now_ns
        while self._agenda:
            self.now_ns, _, broker, act = heappop(self._agenda)
            if broker in self.routers:
                end_ns = max(end_ns, self._serve(broker, act))
        self.now_ns = end_ns
        return end_ns - begin_ns

    def take_traffic(self) -> Traffic:
        taken, self.traffic = self.traffic, Traffic(Counter(), Counter())
        return taken

    def _at(self, at_ns: int, broker: str, act: Act) -> None:
        self._order += 1
        heappush(self._agenda, (at_ns, self._order, broker, act))

    def _serve(self, broker: str, act: Act) -> int:
        begin_ns = max(self.now_ns, self._free_at_ns[broker])
        effects = act(begin_ns)
        costs = self._costs
        end_ns = begin_ns + costs.receive_ns
        for effect in effects:
            match effect:
                case Send(number, message) if number in self._links:
                    end_ns += costs.send_ns
                    self._deliver(number, broker, message, end_ns + costs.link_ns)
                case CloseLink(number, error) if number in self._links:
                    raise AssertionError(f"{broker} refused a neighbour: {error}")
                case EntryIgnored():
                    raise AssertionError(effect)
        self._free_at_ns[broker] = end_ns
        return end_ns

    def _deliver(self, number: int, sender: str, message: Message, at_ns: int) -> None:
        one, other = self._links[number]
        receiver = other if sender == one else one

        def receive(now_ns: int) -> list[Effect]:
            if number not in self._links:
                return []
            self.traffic.by_kind[type(message)] += 1
            self.traffic.by_broker[receiver] += 1
            return self.routers[receiver].receive(number, message, now_ns)

        self._at(at_ns, receiver, receive)
