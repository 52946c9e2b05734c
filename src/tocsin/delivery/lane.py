"""Lane: the one ordered way to one sink. One request is under way at a time, so order holds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from tocsin.delivery.deadletter import DeadLetter
from tocsin.event.stored import Stored

Member = TypeVar("Member")
"""What the broker puts on a lane: a subscriber. The lane itself needs to know nothing of it."""

NS_PER_MINUTE = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Redrive:
    """A dead letter on its way again, and who waits to hear of it."""

    letter: DeadLetter
    token: object


class Lane(Generic[Member]):
    """What is known of one sink address."""

    __slots__ = (
        "asks_patience",
        "busy",
        "failures",
        "interval_ns",
        "line",
        "members",
        "missing",
        "not_before_ns",
        "number",
        "only",
        "redrives",
        "sink",
        "timer_ns",
        "unreachable_since_ns",
    )

    def __init__(self, number: int, sink: str) -> None:
        self.number = number
        self.sink = sink
        self.members: dict[int, Member] = {}  # by the number that each has in the matcher
        self.only: Member | None = None  # the one member, where there is just one: mostly
        # Where there are several: who has something to send (the number of its next event, and its
        # own). What stands here may be outdated; whoever takes from it looks.
        self.line: list[tuple[int, int]] = []
        self.busy: tuple[Member, list[Stored]] | Redrive | None = None  # what is under way
        self.redrives: deque[Redrive] = deque()
        self.failures = 0  # in a row, of any kind
        self.unreachable_since_ns: int | None = None
        self.missing = False  # for so long that its subscribers are off some lists
        self.asks_patience = False  # since then it answered, with a 429 or a Retry-After
        self.not_before_ns = 0  # a retry, or the sink's own rate, forbids sending sooner
        self.timer_ns = 0  # the moment for which a wake-up is set
        self.interval_ns = 0

    def limit_rate(self, per_minute: int | None) -> None:
        """Keep to the rate that the sink allowed in its handshake; the lowest one counts."""
        if per_minute:
            self.interval_ns = max(self.interval_ns, NS_PER_MINUTE // per_minute)

    def recovered(self) -> None:
        """The sink took something: it is there, and nothing is held against it."""
        self.failures = 0
        self.unreachable_since_ns = None
        self.missing = False
