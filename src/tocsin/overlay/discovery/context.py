"""What the parts of discovery share: who this broker is, what it counts, and what it wants done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from heapq import heapify, heappop, heappush

from tocsin.overlay.discovery.effects import Effect, Send
from tocsin.overlay.discovery.memory import Memory
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.wire.link.discovery_messages import (
    Advertise,
    Cancel,
    CoverGone,
    Discover,
    DiscoveryMessage,
    Done,
    Results,
    Unadvertise,
    Update,
)

STALE_MIN = 64  # entries of timers that count no more, before they are taken out
CLIENT = ""  # the last hop of what a client of this broker sent


@dataclass(slots=True)
class Counters:
    """How much was sent to neighbours, looked up and dropped since the start."""

    advertisements: int = 0
    subscriptions: int = 0  # requests: the paper's subscription messages
    publications: int = 0  # packages of results: the paper's publication messages
    results: int = 0  # in those packages
    updates: int = 0
    end_markers: int = 0
    cover_gone: int = 0
    cancels: int = 0
    matching_operations: int = 0  # a request against all advertisements
    covering_lookups: int = 0  # a request against those that may cover it
    covered: int = 0  # requests that found a cover here
    received: int = 0
    dropped: dict[str, int] = field(default_factory=dict)  # by reason

    def plain(self) -> dict[str, object]:
        return asdict(self)


_COUNTED: dict[type[DiscoveryMessage], str] = {
    Advertise: "advertisements",
    Unadvertise: "advertisements",
    Discover: "subscriptions",
    Results: "publications",
    Done: "end_markers",
    CoverGone: "cover_gone",
    Cancel: "cancels",
    Update: "updates",
}


class Timers:
    """What is due when: one time for each thing and id, which may be set anew or cancelled.

    The heap may have entries of before; they are left out when their turn comes, or all at once
    when they are the larger part.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str, str]] = []
        self._entries: dict[tuple[str, str], tuple[int, int, str, str]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def held(self) -> int:
        """How many entries are in memory, those that count no more among them."""
        return len(self._heap)

    def set(self, due_ns: int, what: str, id: str) -> None:
        """In place of an earlier time for the same."""
        self._count += 1
        entry = self._entries[what, id] = due_ns, self._count, what, id
        heappush(self._heap, entry)
        if len(self._heap) > STALE_MIN + 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def cancel(self, what: str, id: str) -> None:
        self._entries.pop((what, id), None)

    def next_due_ns(self) -> int | None:
        while self._heap:
            due_ns, _, what, id = entry = self._heap[0]
            if self._entries.get((what, id)) is entry:
                return due_ns
            heappop(self._heap)
        return None

    def pop_due(self, now_ns: int) -> tuple[str, str] | None:
        """The next of what is due, as what and whose."""
        due_ns = self.next_due_ns()
        if due_ns is None or due_ns > now_ns:
            return None
        _, _, what, id = heappop(self._heap)
        del self._entries[what, id]
        return what, id


IsBehind = Callable[[str, str], bool]
"""Whether a broker is reached through a neighbour, so that it may speak of its resources."""


def everything_is_behind(broker: str, neighbour: str) -> bool:
    """Where nobody knows."""
    return True


MayConnectTo = Callable[[str], bool]
"""Whether results may be sent directly to an address that a request names."""


def no_address(address: str) -> bool:
    """Where whoever drives the core knows all brokers, and needs no address."""
    return not address


@dataclass(slots=True)
class Context:
    """Shared by the parts of one broker's discovery."""

    broker_id: str
    options: DiscoveryOptions
    counters: Counters = field(default_factory=Counters)
    timers: Timers = field(default_factory=Timers)
    memory: Memory = field(default_factory=Memory)
    neighbours: dict[str, None] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    attempts: int = 0
    is_behind: IsBehind = everything_is_behind
    may_connect_to: MayConnectTo = no_address

    def next_attempt(self) -> int:
        """Another number for each time that a request is sent from here (A8)."""
        self.attempts += 1
        return self.attempts

    def send(self, neighbour: str, message: DiscoveryMessage) -> None:
        if neighbour not in self.neighbours:
            return  # its link has ended, and what is kept for it is about to be forgotten
        self.count(message)
        self.effects.append(Send(neighbour, message))

    def count(self, message: DiscoveryMessage) -> None:
        name = _COUNTED[type(message)]
        setattr(self.counters, name, getattr(self.counters, name) + 1)
        if isinstance(message, Results):
            self.counters.results += len(message.results)

    def drop(self, reason: str) -> None:
        self.counters.dropped[reason] = self.counters.dropped.get(reason, 0) + 1

    def take_effects(self) -> list[Effect]:
        taken, self.effects = self.effects, []
        return taken
