"""A network of brokers in virtual time: the shipped discovery core, links and queues around it.

A link delivers in order after a constant time. A broker is one server with one queue: what it wants
sent leaves when it has worked through the message. What that takes is stated in `Costs`, not
measured, so two runs of one workload are equal to the last message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Any

from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import (
    Answered,
    Effect,
    Notice,
    Refused,
    Send,
    SendDirect,
)
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.region import Regions
from tocsin.sim.discovery.meter import Meter
from tocsin.sim.discovery.topology import Topology
from tocsin.wire.link.discovery_messages import (
    Advertise,
    DiscoveryMessage,
    Results,
    Update,
)

US = 1_000
MS = 1_000_000


@dataclass(frozen=True, slots=True)
class ClientCall:
    """What a client asks of its broker, and for which request if it is one."""

    call: Callable[[DiscoveryCore, int], list[Effect]]
    request_id: str = ""  # empty: the resource that it is about comes or changes


@dataclass(frozen=True, slots=True)
class Costs:
    """What takes how long. A matching operation goes through a rule engine in the paper; here it
    takes a fiftieth of that (`MEASURED`), so figures are made with both."""

    name: str
    link_ns: int
    message_ns: int  # to take one and to hand on what follows from it
    match_ns: int  # a request against all advertisements, or one of these against the requests
    cover_ns: int  # a request against those that may cover it
    result_ns: int  # each result read, filtered or passed on

    def work_ns(self, matches: int, covers: int, results: int) -> int:
        return (
            self.message_ns
            + matches * self.match_ns
            + covers * self.cover_ns
            + results * self.result_ns
        )


PAPER = Costs("paper", 1 * MS, 500 * US, 5 * MS, 100 * US, 20 * US)
MEASURED = Costs("measured", 1 * MS, 50 * US, 100 * US, 50 * US, 10 * US)
FREE = Costs("free", 0, 0, 0, 0, 0)


_Arrival = tuple[int, int, str, str | None, Any]
"""(when, number, broker, sender, what). What was sent first arrives first. The sender of a client's
call is None; of what is sent directly, empty."""


class Network:
    """The brokers of a topology, connected. Time goes on from one workload to the next."""

    def __init__(
        self,
        topology: Topology,
        options: DiscoveryOptions,
        regions: Callable[[], Regions[Any]],
    ) -> None:
        self.topology = topology
        self.cores = {each: DiscoveryCore(each, options, regions) for each in topology.brokers}
        self.now_ns = 0
        self._arrivals: list[_Arrival] = []
        self._sent = 0
        self._free_at_ns = dict.fromkeys(topology.brokers, 0)
        for one, other in topology.links:
            self.cores[one].link_up(other, 0)
            self.cores[other].link_up(one, 0)

    def use(self, options: DiscoveryOptions) -> None:
        """Exchange the options of every broker; between workloads, when nothing is under way."""
        for core in self.cores.values():
            core.options = options

    def connect(self, one: str, other: str) -> None:
        """A link is there: each side tells the other what it knows."""
        for broker, neighbour in ((one, other), (other, one)):
            self.call(self.now_ns, broker, ClientCall(partial(_link_up, neighbour)))

    def disconnect(self, one: str, other: str) -> None:
        """A link is gone, and both sides know. Nothing may be under way."""
        for broker, neighbour in ((one, other), (other, one)):
            self.call(self.now_ns, broker, ClientCall(partial(_link_down, neighbour)))

    @property
    def idle_ns(self) -> int:
        """When the last broker has worked through what it has."""
        return max(self.now_ns, *self._free_at_ns.values())

    def call(self, at_ns: int, broker: str, call: ClientCall) -> None:
        """Have a client call its broker at that time."""
        self._arrive(at_ns, broker, None, call)

    def run(self, costs: Costs, meter: Meter) -> None:
        """Until nothing is under way."""
        while self._arrivals:
            arrival = heappop(self._arrivals)
            self.now_ns = arrival[0]
            self._serve(arrival, costs, meter)

    def pass_time(self, until_ns: int) -> None:
        """Let everything end that ends by itself."""
        for broker, core in self.cores.items():
            for effect in core.tick(until_ns):
                self._perform(effect, broker, until_ns, 0)
        self.now_ns = max(self.now_ns, until_ns)

    def _arrive(self, at_ns: int, broker: str, sender: str | None, what: Any) -> None:
        self._sent += 1
        heappush(self._arrivals, (at_ns, self._sent, broker, sender, what))

    def _serve(self, arrival: _Arrival, costs: Costs, meter: Meter) -> None:
        at_ns, _, broker, sender, message = arrival
        core = self.cores[broker]
        begin_ns = max(at_ns, self._free_at_ns[broker])
        counters = core.counters
        matched, looked_up = counters.matching_operations, counters.covering_lookups
        effects = core.tick(begin_ns)
        if sender is None:
            effects += message.call(core, begin_ns)
        elif sender:
            effects += core.receive(sender, message, begin_ns)
        else:
            effects += core.receive_direct(message, begin_ns)
        matches = counters.matching_operations - matched
        covers = counters.covering_lookups - looked_up
        # A new advertisement or value is compared with the requests that are kept, counted or not.
        compared = matches or int(_is_change(message))
        results = sum(_result_count(effect) for effect in effects)
        end_ns = begin_ns + costs.work_ns(compared, covers, results)
        self._free_at_ns[broker] = end_ns
        meter.looked_up(getattr(message, "request_id", ""), matches, covers)
        for effect in effects:
            meter.performed(broker, effect, end_ns)
            self._perform(effect, broker, end_ns, costs.link_ns)

    def _perform(self, effect: Effect, broker: str, at_ns: int, link_ns: int) -> None:
        match effect:
            case Send(neighbour, message):
                self._arrive(at_ns + link_ns, neighbour, broker, message)
            case SendDirect(other, message):
                self._arrive(at_ns + link_ns, other, "", message)
            case Refused(id, error):
                raise AssertionError(f"{broker} refused {id}: {error}")


def _link_up(neighbour: str, core: DiscoveryCore, now_ns: int) -> list[Effect]:
    return core.link_up(neighbour, now_ns)


def _link_down(neighbour: str, core: DiscoveryCore, now_ns: int) -> list[Effect]:
    effects = core.link_down(neighbour, now_ns)
    while core.is_clearing:
        effects += core.clear(now_ns)
    return effects


def _is_change(message: DiscoveryMessage | ClientCall) -> bool:
    """Whether a resource comes, changes or goes by it."""
    if isinstance(message, ClientCall):
        return not message.request_id
    return isinstance(message, Advertise | Update)


def _result_count(effect: Effect) -> int:
    match effect:
        case Send(_, Results(_, results)) | SendDirect(_, Results(_, results)):
            return len(results)
        case Answered(_, answered):
            return len(answered)
        case Notice():
            return 1
    return 0
