"""State: what the parts of one broker share, and the few moves that keep it whole."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import count
from typing import TypeVar

from tocsin.access.decision import Permit
from tocsin.broker.commit.pending_change import PendingChange
from tocsin.broker.delivery.follower import Follower
from tocsin.broker.effects import Effect, Ended, EndStatus, Level, LogLine, Reply, Token
from tocsin.broker.options import BrokerOptions
from tocsin.broker.state.counters import Counters
from tocsin.broker.state.interest import Interest
from tocsin.broker.state.local_filters import LocalFilters
from tocsin.broker.state.permits import PermitCheck
from tocsin.broker.state.subscriber import Stream, Subscriber
from tocsin.broker.state.timers import Timers
from tocsin.errors import NoSuchSubscription
from tocsin.event.filter import Filter
from tocsin.event.stored import StateChange
from tocsin.event.subscription import Kind, Owner, definition
from tocsin.matching.matcher import Matcher

WATERMARK = "*"
"""The cursor of all who had nothing waiting when it was saved; see `State.cursors_to_save`."""

CLOCK = "@clock"
"""A cursor that is no event's number: the last time of day that was sure, in nanoseconds."""

IDLE = -1
"""A saved cursor that says: nothing waits, I am where the watermark is."""


MATCHING_NS_MAX = 250_000_000
"""So long events are matched in one go; others want something of the broker, too."""

Name = TypeVar("Name", bound=Hashable)

PermitOf = Callable[[Owner | None], Permit | None]
"""Which events the owner of a subscription may be sent; None for every one."""


class State:
    """The tables of a broker. Whoever changes one keeps the others in step."""

    def __init__(
        self,
        options: BrokerOptions,
        new_id: Callable[[], str],
        jitter: Callable[[], float],
        stopwatch: Callable[[], int] = lambda: 0,
        permit_of: PermitOf = lambda owner: None,
    ) -> None:
        self.options = options
        self.permit_of = permit_of
        self.new_id = new_id
        self.jitter = jitter
        self.stopwatch = stopwatch
        self.out: list[Effect] = []
        self.counters = Counters()
        self.timers = Timers()
        self.matcher = Matcher(stopwatch=stopwatch)
        self.interest = Interest()
        self.local_filters: LocalFilters | None = None  # until somebody watches
        self.by_key: dict[int, Subscriber | Stream] = {}
        self.by_id: dict[str, Subscriber] = {}
        self.shift_ns = 0  # from the steady time that the parts are given to the time of day
        self.holds = False  # the clock is in doubt: no lease ends, and nothing goes for its age
        self.head = 0  # the last event on disk
        self.first = 1  # the oldest event still kept
        self.archived: int | None = None  # the log is held for an archive, which has so much
        self.dirty: dict[str, Subscriber] = {}  # whose cursor is to be saved
        self.unsaved = StateChange()  # changes of ours that the next commit takes along
        self.committing = StateChange()  # what the commit under way changes
        self.unsaved_replies: list[Reply] = []  # and who hears of it then
        self.unsaved_ends: list[Ended] = []  # subscriptions that then are over for good
        self.pending: list[PendingChange] = []  # of clients, for the next commit
        self._keys = count(1)

    def time_ns(self, now_ns: int) -> int:
        """The time of day; see `broker/clock.py`."""
        return now_ns + self.shift_ns

    def permits_of(self, owner: Owner | None) -> PermitCheck:
        """For a new subscription of this owner."""
        return PermitCheck(self.permit_of(owner), self.withheld)

    def withheld(self, count: int) -> None:
        self.counters.withheld += count

    def new_key(self) -> int:
        return next(self._keys)

    def new_follower(self, scanned_to: int, *, keep: int | None = None) -> Follower:
        return Follower(
            self.new_key(), scanned_to, keep=keep, window_events=self.options.window_events
        )

    def find(self, subscription_id: str) -> Subscriber:
        subscriber = self.by_id.get(subscription_id)
        if subscriber is None:
            raise no_such_subscription(subscription_id)
        return subscriber

    def enter(self, reader: Subscriber | Stream, filter: Filter) -> None:
        """From now on, matching events are this reader's."""
        self._match(reader, filter)
        self.by_key[reader.follower.key] = reader
        self.stands_differently(reader)

    def refilter(self, reader: Subscriber, filter: Filter) -> None:
        """What already waits was asked for when it matched; the new filter is for the rest."""
        self.matcher.remove(reader.follower.key)
        self._match(reader, filter)
        reader.filter = filter

    def _match(self, reader: Subscriber | Stream, filter: Filter) -> None:
        key = reader.follower.key
        if isinstance(reader, Subscriber) and reader.subscription.kind is Kind.LINK:
            self.matcher.add_open(key)  # what a neighbour wants comes by `want`
            return
        self.matcher.add(key, filter)
        if self.local_filters is not None and _is_of_client(reader):
            self.local_filters.set(key, filter)

    def want(self, link: Subscriber, added: Mapping[Name, Filter], removed: Iterable[Name]) -> None:
        """A neighbour wants these too, by names of its own, and those no longer."""
        matcher, key, wanted = self.matcher, link.follower.key, link.wanted
        for name in removed:
            self._want_no_longer(link, name)
        for name, filter in added.items():
            if name in wanted:
                self._want_no_longer(link, name)
            number = self.new_key()
            wanted[name] = (filter, number)
            matcher.extend(key, filter)
            self.interest.wants(number, filter)

    def _want_no_longer(self, link: Subscriber, name: Hashable) -> None:
        filter, number = link.wanted.pop(name)
        self.matcher.reduce(link.follower.key, filter)
        self.interest.wants(number, None)

    def watch_local_filters(self, notify: Callable[[], None]) -> LocalFilters:
        """What clients of this broker want, from now on; `notify` is called when that changes."""
        self.local_filters = LocalFilters(notify)
        for key, reader in self.by_key.items():
            if _is_of_client(reader):
                self.local_filters.set(key, reader.filter)
        return self.local_filters

    def leave(self, reader: Subscriber | Stream) -> None:
        self.matcher.remove(reader.follower.key)
        del self.by_key[reader.follower.key]
        if self.local_filters is not None:
            self.local_filters.set(reader.follower.key, None)
        if isinstance(reader, Subscriber):
            for _, number in reader.wanted.values():
                self.interest.wants(number, None)
        self.interest.wants(reader.follower.key, None)
        if isinstance(reader, Stream) and reader.asks is not None:
            self.interest.asks_for(reader.follower.key, None)

    def stands_differently(self, reader: Subscriber | Stream) -> None:
        """It came, paused or resumed, or wants something else."""
        if isinstance(reader, Stream) and reader.asks is not None:
            self.interest.asks_for(reader.follower.key, reader.asks)
            return
        active = isinstance(reader, Stream) or (reader.is_active and not reader.is_missing)
        active = active and not reader.permits.is_over()  # who may have nothing wants nothing
        self.interest.wants(reader.follower.key, reader.filter if active else None)

    def hold(self, seq: int) -> None:
        """Somebody begins after `seq`: what the log has not let go of yet stays."""
        self.unsaved.trim_to = min(self.unsaved.trim_to, seq)

    def moved(self, subscriber: Subscriber) -> None:
        """Its cursor is no longer what the disk says."""
        self.dirty[subscriber.subscription.id] = subscriber

    def redefined(self, subscriber: Subscriber) -> None:
        """The broker itself changed it; nobody waits for that to be on disk."""
        subscription = subscriber.subscription
        self.unsaved.subscriptions[subscription.id] = definition(subscription)
        self.moved(subscriber)

    def take_back(self, change: StateChange) -> None:
        """After a full disk: what the broker itself wanted saved is tried again, as it is by then.

        What clients asked for in that commit was refused, and so is not.
        """
        unsaved = self.unsaved
        for subscription_id, data in change.subscriptions.items():
            subscriber = self.by_id.get(subscription_id)
            if subscriber is not None:
                self.redefined(subscriber)
            elif data is None:
                unsaved.subscriptions.setdefault(subscription_id, None)
        for letter_id, record in change.dead.items():
            unsaved.dead.setdefault(letter_id, record)
        unsaved.trim_to = max(unsaved.trim_to, change.trim_to)
        for subscription_id in change.cursors:
            subscriber = self.by_id.get(subscription_id)
            if subscriber is not None:
                self.moved(subscriber)
        if CLOCK in change.cursors:  # without it the next start would believe any clock
            unsaved.cursors.setdefault(CLOCK, change.cursors[CLOCK])

    def cursors_to_save(self, head: int) -> dict[str, int]:
        """The cursors that changed, and the watermark.

        A subscriber with nothing waiting is wherever the head is, and the head moves with every
        event; to write that down for each of them would cost more than the events. So it is
        written once, as the watermark, and they only say that they are idle.
        """
        if not self.dirty:
            return {}
        saved: dict[str, int] = {WATERMARK: head}
        for subscription_id, subscriber in self.dirty.items():
            follower = subscriber.follower
            idle = follower.live and not follower.waiting
            saved[subscription_id] = IDLE if idle else follower.cursor(head)
        self.dirty.clear()
        return saved

    def reply(self, token: Token, result: object) -> None:
        self.out.append(Reply(token, result))

    def reply_when_saved(self, token: Token, result: object) -> None:
        """Answer once the changes made so far are on disk."""
        self.unsaved_replies.append(Reply(token, result))

    def note(self, level: Level, message: str, **fields: object) -> None:
        self.out.append(LogLine(level, message, fields))


def _is_of_client(reader: Subscriber | Stream) -> bool:
    """Not of a service of the broker itself, and not of a neighbour."""
    if isinstance(reader, Stream):
        return reader.asks is None
    return reader.subscription.kind is not Kind.LINK


def endings(subscriber: Subscriber, status: EndStatus, reason: str) -> list[Ended]:
    """The notice of its end, if anybody asked for one."""
    soap = subscriber.subscription.soap
    if soap is None or soap.end_to is None:
        return []
    return [Ended(subscriber.subscription, status, reason)]


def no_such_subscription(subscription_id: str) -> NoSuchSubscription:
    return NoSuchSubscription(
        f"there is no subscription {subscription_id[:64]!r}",
        remedy="`tocsin subs ls` lists those there are.",
    )
