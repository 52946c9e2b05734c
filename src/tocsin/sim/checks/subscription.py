"""SubscriptionRecord: what the world knows of one subscription, beside what the broker knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from msgspec import UNSET

from tocsin.event.event import Event
from tocsin.event.subscription import Change, Config, Kind, State, Subscription
from tocsin.sim.checks.grants import Watched
from tocsin.sim.workload import Want, want_of, wants

T = TypeVar("T")


@dataclass(slots=True)
class _Entry(Generic[T]):
    value: T
    request: int
    until_seq: int | None = None  # the head of the log when a later value was sure to hold


class Uncertain(Generic[T]):
    """A value that clients change, and whose changes may be lost on the way.

    A change that was requested may hold from then on; once it is answered, those before it do not.
    """

    def __init__(self, first: T) -> None:
        self._entries = [_Entry(first, 0)]

    def request(self, number: int, value: T) -> None:
        self._entries.append(_Entry(value, number))

    def withdraw(self, number: int) -> None:
        """What was requested was refused at once."""
        self._entries = [each for each in self._entries if each.request != number]

    def confirm(self, number: int, head: int) -> None:
        if all(entry.request != number for entry in self._entries):
            return
        for entry in self._entries:
            if entry.request == number:
                return
            if entry.until_seq is None:
                entry.until_seq = head

    def now(self) -> list[T]:
        """What may hold now."""
        return [entry.value for entry in self._entries if entry.until_seq is None]

    def since(self, seq: int) -> list[T]:
        """What may have held at some time since the event was stored."""
        return [
            entry.value
            for entry in self._entries
            if entry.until_seq is None or entry.until_seq >= seq
        ]


@dataclass(slots=True)
class SubscriptionRecord:
    """One subscription: what it may be, what it has got, and what it is owed."""

    id: str
    kind: Kind
    start: int
    want: Uncertain[Want]
    sink: Uncertain[str | None]
    expires_ns: Uncertain[int | None]
    may_drop: bool  # it, or the broker, has a limit that lets go of events
    is_soap: bool = False
    taken: set[int] = field(default_factory=set)  # by its sink, or by whoever pulls
    settled: set[int] = field(default_factory=set)  # of those, what the broker knows of
    handed_out: list[int] = field(default_factory=list)  # by the last answer to a pull
    refused: set[int] = field(default_factory=set)  # answered so, and the broker knows
    given_up: set[int] = field(default_factory=set)
    discarded: set[int] = field(default_factory=set)  # dead letters dropped on request
    dropped: int = 0  # by processes that have ended
    is_exact: bool = True  # neither crash nor change: every event is settled or counted as dropped
    is_paused: bool = False  # for sure
    is_ended: bool = False  # for sure
    may_have_ended: bool = False
    last_request: int = 0
    moves: int = 0  # how often it was changed, perhaps to another sink
    sinks: list[str | None] = field(default_factory=list)  # where its events went after each change
    last_confirmed: int = 0
    settled_to: int = 0  # what the broker, since its start, knows to be delivered
    checked_to: int = 0  # no gap up to here
    trim_checked_to: int = 0
    watched: Watched | None = None  # where not everybody may have everything

    def request(self, number: int, change: Change) -> None:
        """A change has reached the broker: from now on it may hold."""
        self.last_request = number
        self.is_exact = False
        self.is_paused &= change.state is not State.ACTIVE and change.sink is None
        if change.filters is not None:
            self.want.request(number, want_of(change.filters))
        if change.sink is not None:
            self.sink.request(number, change.sink)
        if change.expires_ns is not UNSET:
            self.expires_ns.request(number, change.expires_ns)
        self.may_drop |= change.config is not None and may_drop(change.config)

    def take_back(self, number: int, before: SubscriptionRecord) -> None:
        """Whoever asked for this change may not: all is as it was before."""
        for value in (self.want, self.sink, self.expires_ns):
            value.withdraw(number)
        if self.last_request == number:
            self.last_request = before.last_request
            self.is_exact, self.is_paused = before.is_exact, before.is_paused
            self.may_drop = before.may_drop

    def confirm(self, number: int, changed: Subscription, head: int) -> None:
        """The broker has answered: what was before does not hold any more."""
        for value in (self.want, self.sink, self.expires_ns):
            value.confirm(number, head)
        self.moves += 1
        if number > self.last_confirmed:  # an answer may wait for a later commit than the next has
            self.last_confirmed = number
            self.sinks.append(changed.sink)
        # If more was requested since, that may be done already when this answer leaves.
        if self.last_request == number:
            self.is_paused = changed.state is State.PAUSED

    def has_left(self, sink: str, known: int) -> bool:
        """Since `sinks` had so many, its events went elsewhere, if only for a moment."""
        return any(other != sink for other in self.sinks[known:])

    @property
    def changes(self) -> tuple[int, int]:
        """Differs once a change was requested, and again once it is sure to hold."""
        return self.last_request, self.moves

    def may_want(self, seq: int, event: Event) -> bool:
        """Some filter that held since then lets the event pass."""
        return seq > self.start and any(wants(want, event) for want in self.want.since(seq))

    def must_get(self, seq: int, event: Event) -> bool:
        """Every filter that may have held since then lets the event pass.

        What waits when a filter changes was matched by the old one, and what is read from the log
        later is matched by the new one; only what both want is promised.
        """
        return seq > self.start and all(wants(want, event) for want in self.want.since(seq))

    def is_done(self, seq: int) -> bool:
        return seq in self.taken or seq in self.given_up

    def may_be_gone(self, now_ns: int) -> bool:
        """It may have been deleted, ended by its sink, or expired."""
        return (
            self.is_ended
            or self.may_have_ended
            or any(due is not None and due <= now_ns for due in self.expires_ns.now())
        )


def may_drop(config: Config) -> bool:
    """True if the subscription has a limit of its own that lets go of events."""
    return config.backlog is not None or config.backlog_age_s is not None
