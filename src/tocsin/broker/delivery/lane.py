"""Lane: the one ordered way to one sink. One request is under way at a time, so order holds."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.event.stored import Stored

Member = TypeVar("Member")
"""What the broker puts on a lane: a subscriber. The lane itself needs to know nothing of it."""

NS_PER_MINUTE = 60_000_000_000
EARLY_NS_MIN = 1_000_000_000  # between two tries that somebody at the sink brought about


@dataclass(frozen=True, slots=True)
class Redrive:
    """A dead letter on its way again, and who waits for its outcome."""

    letter: DeadLetter
    token: object


class Lane(Generic[Member]):
    """What is known of one sink address."""

    __slots__ = (
        "asks_patience",
        "busy",
        "early_ns",
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
        "tried",
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
        self.asks_patience = False  # the last failure was a 429, or had a Retry-After
        self.not_before_ns = 0  # a retry, or the sink's own rate, forbids sending sooner
        self.early_ns = 0  # when it was last tried before its delay was over
        self.tried: tuple[str, ...] = ()  # the addresses of `UnreachableSinks` that it is under
        self.timer_ns = 0  # the moment for which a wake-up is set
        self.interval_ns = 0

    def limit_rate(self, per_minute: int | None) -> None:
        """Keep to the rate that the sink allowed in its handshake; the lowest one counts."""
        if per_minute:
            self.interval_ns = max(self.interval_ns, NS_PER_MINUTE // per_minute)

    def forget_delay(self, now_ns: int) -> bool:
        """Somebody at the sink is there: the next try may be now. False if it may not: there is
        nothing to forget, the sink itself asked for patience, or this was a moment ago."""
        early = now_ns - self.early_ns < EARLY_NS_MIN
        if not self.failures or self.asks_patience or early:
            return False
        self.early_ns = now_ns
        self.failures = 1  # the next failure waits no longer than the second one did
        self.not_before_ns = min(self.not_before_ns, now_ns)
        return True

    def recovered(self) -> None:
        """The sink took something: it is there, and nothing is held against it."""
        self.failures = 0
        self.unreachable_since_ns = None
        self.missing = False
