"""Subscriber and Stream: who gets events, with all that changes while they do."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec

from tocsin.broker.delivery.deadletter import Attempt
from tocsin.broker.delivery.follower import Follower
from tocsin.broker.delivery.lane import Lane
from tocsin.broker.effects import Token
from tocsin.broker.state.permits import PermitCheck
from tocsin.broker.state.timers import Timer
from tocsin.event.filter import Filter
from tocsin.event.subscription import BLACKBOARD, State, Subscription

NOTHING_UNDER_WAY: Final = frozenset[int]()


class Pull(msgspec.Struct, eq=False):
    """Somebody waits at a box."""

    token: Token
    events_max: int
    takes: bool = False  # what it gets is nobody else's until it is released or given back
    gives_in: Timer | None = None  # when the wait is over


class Subscriber:
    """A subscription at work: its definition, its place in the log and how it fares."""

    __slots__ = (
        "acknowledged_dropped",
        "acknowledged_withheld",
        "answered_dropped",
        "answered_withheld",
        "attempts",
        "dead",
        "delivered",
        "failed_attempts",
        "filter",
        "follower",
        "handed_out",
        "in_flight",
        "lane",
        "last_delivered_ns",
        "last_error",
        "lease",
        "lined_up",
        "next_question_ns",
        "permits",
        "pulls",
        "refusals",
        "released",
        "singly_to",
        "subscription",
        "tried_seq",
        "wanted",
    )

    def __init__(
        self,
        subscription: Subscription,
        filter: Filter,
        follower: Follower,
        permits: PermitCheck,
    ) -> None:
        self.subscription = subscription
        self.permits = permits
        self.filter = filter
        self.follower = follower
        self.lane: Lane[Subscriber] | None = None
        self.lined_up: Lane[Subscriber] | None = None  # the lane in whose line it stands
        self.lease: Timer | None = None  # when it expires
        self.next_question_ns: int | None = None  # when its sink is asked for consent again
        self.pulls: list[Pull] = []
        self.handed_out = 0  # of a box: the last event that somebody fetched
        self.in_flight: set[int] = set()  # of a box: taken, and neither released nor given back
        self.released: set[int] = set()  # of a box: done with, while something before them is not
        # Of a neighbour: its filters by names of its own, each with its number among all interests.
        self.wanted: dict[Hashable, tuple[Filter, int]] = {}
        self.tried_seq = 0  # the event that was in front when the last attempt failed
        self.attempts: list[Attempt] = []  # at that event
        self.refusals = 0  # of those, the ones that count towards giving up
        self.singly_to = 0  # events up to this one go one by one: their batch was refused
        self.delivered = 0
        self.failed_attempts = 0
        self.dead = 0
        self.acknowledged_dropped = 0  # of a box: what its owner has acknowledged to know
        self.answered_dropped = 0  # and what the last answer said
        self.acknowledged_withheld = 0  # the same of what was withheld
        self.answered_withheld = 0
        self.last_error: str | None = None
        self.last_delivered_ns: int | None = None

    @property
    def is_active(self) -> bool:
        return self.subscription.state is State.ACTIVE

    @property
    def is_missing(self) -> bool:
        """True for a subscriber of the blackboard that cannot be reached: off the list until it
        can, as paper 004 has it, while its place in the log is kept."""
        lane = self.lane
        return lane is not None and lane.missing and self.subscription.config.mode == BLACKBOARD

    def withhold(self) -> int:
        """Take what its owner may not have any more from what waits."""
        return self.permits.withhold(self.follower, self.in_flight)

    def front_is_settled(self, seq: int) -> None:
        """The waiting events up to `seq` are done with; the next one starts afresh."""
        self.follower.settle_through(seq)
        if self.attempts:
            self.start_afresh()

    def tries(self, seq: int) -> None:
        """This event is in front. What was held against one that was dropped is not its fault."""
        if seq != self.tried_seq:
            self.tried_seq = seq
            self.start_afresh()

    def sink_changed(self) -> None:
        """Its events go elsewhere: nothing that the sink before has answered counts there."""
        self.follower.held = 0
        self.singly_to = 0
        self.last_error = None
        self.start_afresh()

    def start_afresh(self) -> None:
        self.attempts = []
        self.refusals = 0


class Stream:
    """An open connection that follows the log. Gone when it closes; the reader keeps its place."""

    __slots__ = (
        "asks",
        "blocked",
        "filter",
        "follower",
        "name",
        "number",
        "permits",
        "streamed",
        "tells_ns",
        "told_withheld",
    )

    def __init__(
        self,
        number: int,
        name: str,
        filter: Filter,
        follower: Follower,
        asks: frozenset[str] | None = None,
        *,
        permits: PermitCheck,
    ) -> None:
        self.permits = permits
        self.number = number
        self.name = name
        self.filter = filter
        self.follower = follower
        self.asks = asks  # in place of the filter, for those who ask what anybody wants
        self.blocked = False
        self.streamed = 0
        self.told_withheld = 0  # of the events that were withheld, those that it was told of
        self.tells_ns = 0  # no sooner than that it is told of more

    def withhold(self) -> int:
        """Take what its reader may not have any more from what waits."""
        return self.permits.withhold(self.follower, NOTHING_UNDER_WAY)


class SubscriptionView(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may know of a subscription at one moment."""

    subscription: Subscription
    filter: Filter
    cursor: int
    waiting: int
    lagging: bool
    behind: int
    delivered: int
    failed_attempts: int
    dead: int
    dropped: int
    last_error: str | None
    last_delivered_ns: int | None
    next_attempt_ns: int | None
    sink_state: str
    withheld: int = 0  # events that it asked for, and its owner has no right to
    tells_withheld: bool = False  # the owner may know that number
    listed: bool = True  # False of a subscriber of the blackboard while it cannot be reached


def view(subscriber: Subscriber, head: int, shift_ns: int) -> SubscriptionView:
    """The subscriber as it is now; `shift_ns` makes steady times such of the day."""
    follower = subscriber.follower
    cursor = follower.cursor(head)
    return SubscriptionView(
        subscription=subscriber.subscription,
        filter=subscriber.filter,
        cursor=cursor,
        waiting=len(follower.waiting),
        lagging=not follower.live,
        behind=head - cursor,
        delivered=subscriber.delivered,
        failed_attempts=subscriber.failed_attempts,
        dead=subscriber.dead,
        dropped=follower.dropped,
        last_error=subscriber.last_error,
        last_delivered_ns=subscriber.last_delivered_ns,
        next_attempt_ns=_next_attempt_ns(subscriber, shift_ns),
        sink_state=_sink_state(subscriber),
        withheld=subscriber.permits.withheld,
        tells_withheld=subscriber.permits.disclosed is not None,
        listed=subscriber.is_active and not subscriber.is_missing,
    )


def _next_attempt_ns(subscriber: Subscriber, shift_ns: int) -> int | None:
    if subscriber.subscription.state is State.PENDING:
        asked_ns = subscriber.next_question_ns
        return None if asked_ns is None else asked_ns + shift_ns
    lane = subscriber.lane
    waits = lane is not None and lane.busy is None and lane.failures > 0
    return lane.not_before_ns + shift_ns if lane is not None and waits else None


def _sink_state(subscriber: Subscriber) -> str:
    lane = subscriber.lane
    if lane is None:
        return "none"
    if subscriber.subscription.state is State.PENDING:
        return "unconsented"
    if lane.unreachable_since_ns is not None:
        return "busy" if lane.asks_patience else "unreachable"
    return "failing" if lane.failures else "ok"
