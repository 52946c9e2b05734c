"""A tree of brokers in one thread: links with delays, in order, and what clients were told.

Everything follows from the seed. `trace` has every message that was sent.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

from tocsin.event.event import Value
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import (
    Answered,
    Change,
    Current,
    Effect,
    Finished,
    Notice,
    Refused,
    Resource,
    Send,
    SendDirect,
    Summary,
)
from tocsin.overlay.discovery.options import DEFAULTS, DiscoveryOptions
from tocsin.overlay.discovery.requests import (
    ModelType,
    Registration,
    Request,
    parse_registration,
    parse_request,
)
from tocsin.wire.link.discovery_messages import DiscoveryMessage

MS = 1_000_000
S = 1_000 * MS
EVENTS_MAX = 200_000

CoreFactory = Callable[[str, DiscoveryOptions], DiscoveryCore]


@dataclass(frozen=True, slots=True)
class Sent:
    at_ns: int
    sender: str
    receiver: str
    message: DiscoveryMessage


@dataclass(order=True)
class Event:
    at_ns: int
    number: int
    action: Callable[[], None] = field(compare=False)


@dataclass
class Network:
    """Brokers joined by edges."""

    edges: Iterable[tuple[str, str]]
    options: DiscoveryOptions = DEFAULTS
    seed: int = 0
    delay_ms: tuple[int, int] = (1, 1)
    keeps_order: bool = True
    make_core: CoreFactory = DiscoveryCore
    problems: list[str] = field(default_factory=list)  # of those who look at the cores

    now_ns: int = 1_000 * S
    started_ns: int = 0
    cores: dict[str, DiscoveryCore] = field(default_factory=dict)
    links: set[tuple[str, str]] = field(default_factory=set)
    trace: list[Sent] = field(default_factory=list)
    answers: dict[str, list[Resource]] = field(default_factory=dict)
    finished: dict[str, Summary] = field(default_factory=dict)
    finished_at: dict[str, int] = field(default_factory=dict)
    current: dict[str, Summary] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    delivered: int = 0
    lost: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self._queue: list[Event] = []
        self._count = 0
        self._arrivals: dict[tuple[str, str], int] = {}
        self._generation: dict[tuple[str, str], int] = {}
        edges = list(self.edges)
        for name in dict.fromkeys(name for edge in edges for name in edge):
            self.add_broker(name)
        for one, other in edges:
            self.connect(one, other)

    def add_broker(self, name: str) -> None:
        self.cores[name] = self.make_core(name, self.options)

    def connect(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            self.links.add((here, there))
            self._generation[here, there] = self._generation.get((here, there), 0) + 1
        self.perform(one, self.cores[one].link_up(other, self.now_ns))
        self.perform(other, self.cores[other].link_up(one, self.now_ns))

    def disconnect(self, one: str, other: str) -> None:
        for here, there in ((one, other), (other, one)):
            self.links.discard((here, there))
        for here, there in ((one, other), (other, one)):
            core = self.cores[here]
            self.perform(here, core.link_down(there, self.now_ns))
            while core.is_clearing:
                self.perform(here, core.clear(self.now_ns))

    # What clients do.

    def register(
        self,
        broker: str,
        resource_id: str,
        advertisement: str,
        values: Mapping[str, Value] | None = None,
        model: ModelType = ModelType.DYNAMIC,
        lease_ns: int | None = None,
    ) -> None:
        registration = parse_registration(
            resource_id, model, advertisement, values=values, lease_ns=lease_ns
        )
        self.register_it(broker, registration)

    def register_it(self, broker: str, registration: Registration) -> None:
        self.perform(broker, self.cores[broker].register(registration, self.now_ns))

    def update(self, broker: str, resource_id: str, values: Mapping[str, Value]) -> None:
        self.perform(broker, self.cores[broker].update(resource_id, values, self.now_ns))

    def withdraw(self, broker: str, resource_id: str) -> None:
        self.perform(broker, self.cores[broker].withdraw(resource_id, self.now_ns))

    def discover(
        self,
        broker: str,
        request_id: str,
        request: str,
        model: ModelType = ModelType.DYNAMIC,
        max_age_ns: int | None = None,
        first: int = 0,
        lease_ns: int | None = None,
    ) -> None:
        parsed = parse_request(
            request_id, model, request, max_age_ns=max_age_ns, first=first, lease_ns=lease_ns
        )
        self.discover_it(broker, parsed)

    def discover_it(self, broker: str, request: Request) -> None:
        self.perform(broker, self.cores[broker].discover(request, self.now_ns))

    def cancel(self, broker: str, request_id: str) -> None:
        self.perform(broker, self.cores[broker].cancel(request_id, self.now_ns))

    # Time.

    def at(self, at_ns: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, Event(at_ns, self._count, action))

    def settle(self) -> None:
        """Until no message is on its way and nobody wants to do anything."""
        for _ in range(EVENTS_MAX):
            if not self._queue:
                return
            self._step()
        raise AssertionError(f"no end after {EVENTS_MAX} events; seed {self.seed}")

    def run_until(self, at_ns: int) -> None:
        """Everything up to then, also what is due."""
        for _ in range(EVENTS_MAX):
            dues = [due for core in self.cores.values() if (due := core.next_due_ns()) is not None]
            next_due = min(dues, default=at_ns + 1)
            next_event = self._queue[0].at_ns if self._queue else at_ns + 1
            if min(next_due, next_event) > at_ns:
                self.now_ns = max(self.now_ns, at_ns)
                return
            if next_event <= next_due:
                self._step()
            else:
                self.now_ns = max(self.now_ns, next_due)
                for name, core in self.cores.items():
                    if (due := core.next_due_ns()) is not None and due <= self.now_ns:
                        self.perform(name, core.tick(self.now_ns))
        raise AssertionError(f"no end after {EVENTS_MAX} events; seed {self.seed}")

    def _step(self) -> None:
        event = heapq.heappop(self._queue)
        self.now_ns = max(self.now_ns, event.at_ns)
        event.action()

    # Effects.

    def perform(self, broker: str, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(neighbour, message):
                    assert (broker, neighbour) in self.links, (broker, neighbour)
                    self._send(broker, neighbour, message)
                case SendDirect(receiver, message):
                    self._send(broker, receiver, message, is_direct=True)
                case Answered(request_id, results):
                    self.answers.setdefault(request_id, []).extend(results)
                case Finished(request_id, summary):
                    assert request_id not in self.finished, request_id
                    self.finished[request_id] = summary
                    self.finished_at[request_id] = self.now_ns
                case Current(request_id, summary):
                    assert request_id not in self.current, request_id
                    self.current[request_id] = summary
                case Notice():
                    self.notices.append(effect)
                case Refused():
                    self.refused.append(effect)

    def _send(
        self, sender: str, receiver: str, message: DiscoveryMessage, *, is_direct: bool = False
    ) -> None:
        self.trace.append(Sent(self.now_ns, sender, receiver, message))
        link = (sender, receiver)
        arrival = self.now_ns + self.random.randint(*self.delay_ms) * MS
        if self.keeps_order and not is_direct:
            arrival = max(arrival, self._arrivals.get(link, 0))
            self._arrivals[link] = arrival
        generation = self._generation.get(link, 0)

        def deliver() -> None:
            core = self.cores[receiver]
            if is_direct:
                self.delivered += 1
                self.perform(receiver, core.receive_direct(message, self.now_ns))
            elif link in self.links and self._generation[link] == generation:
                self.delivered += 1
                self.perform(receiver, core.receive(sender, message, self.now_ns))
            else:
                self.lost += 1

        self.at(arrival, deliver)

    # What tests look at.

    def found(self, request_id: str) -> list[str]:
        return sorted(resource.id for resource in self.answers.get(request_id, []))

    def reported(self, request_id: str) -> list[tuple[Change, str]]:
        return [
            (notice.change, notice.resource.id)
            for notice in self.notices
            if notice.request_id == request_id
        ]

    def sent(self, kind: type[DiscoveryMessage]) -> list[Sent]:
        return [sent for sent in self.trace if isinstance(sent.message, kind)]

    def dropped(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for core in self.cores.values():
            for reason, count in core.counters.dropped.items():
                total[reason] = total.get(reason, 0) + count
        return total
