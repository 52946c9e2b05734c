"""Retention: how far the log may forget. By age and size, never past somebody who waits."""

from __future__ import annotations

from tocsin.broker.effects import CheckRetention
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.followers.streams import Streams
from tocsin.broker.log import LogReader
from tocsin.broker.state.state import State
from tocsin.broker.state.subscriber import Subscriber
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Kind


class Retention:
    """Looks, every so often, at what may go; and at who holds the log back for too long."""

    def __init__(self, state: State, catchup: Catchup, streams: Streams) -> None:
        self._state = state
        self._catchup = catchup
        self._streams = streams

    def check(self, now_ns: int) -> None:
        """Drop what waited longer than its subscription may hold it, then ask how far the limits
        reach; and again later."""
        state, options = self._state, self._state.options
        age_s = options.retain_age_s
        before_ns: int | None = None
        if not state.holds:
            time_ns = state.time_ns(now_ns)
            self._drop_older(time_ns)
            before_ns = None if age_s is None else _before(time_ns, age_s)
        state.out.append(CheckRetention(before_ns, options.retain_bytes))
        state.timers.at(now_ns + int(options.retention_check_s * NS_PER_S), self.check)

    def _drop_older(self, time_ns: int) -> None:
        state = self._state
        oldest_ns = _before(time_ns, state.options.backlog_age_s)
        self._streams.drop_older(oldest_ns)
        for subscriber in state.by_id.values():
            own_s = subscriber.subscription.config.backlog_age_s
            limit_ns = oldest_ns if own_s is None else _before(time_ns, own_s)
            subscriber.follower.drop_before_ns = limit_ns
            # A neighbour has always something under way, and might never say that it has it.
            is_link = subscriber.subscription.kind is Kind.LINK
            count = subscriber.follower.drop_older(limit_ns, under_way=is_link)
            if count:
                self._dropped(subscriber, count)

    def forget_ages(self) -> None:
        """The time of day is another: what was too old by the last one may not be."""
        for subscriber in self._state.by_id.values():
            subscriber.follower.drop_before_ns = 0

    def _dropped(self, subscriber: Subscriber, count: int) -> None:
        state = self._state
        state.counters.dropped += count
        state.moved(subscriber)
        if subscriber.follower.wants_more():
            self._catchup.add(subscriber.follower)
        state.note(
            "warning",
            "events waited longer than the subscription may hold them, and were dropped",
            subscription=subscriber.subscription.id,
            dropped=count,
            **_of_neighbour(subscriber),
        )

    def checked(self, through: int) -> None:
        """The limits reach up to `through`; those who have not had it yet reach less far."""
        state = self._state
        floor = min(through, state.head)
        for subscriber in state.by_id.values():
            follower = subscriber.follower
            cursor = follower.cursor(state.head)
            # A neighbour's place is parked until it is known what it wants: nothing is too old yet.
            is_link = subscriber.subscription.kind is Kind.LINK
            if cursor < through and follower.parked and not is_link:
                follower.stale_to = through
                self._catchup.add(follower)
            floor = min(floor, cursor)
        if state.archived is not None:
            floor = min(floor, state.archived)
        lowest = self._streams.lowest_cursor()
        if lowest is not None:
            floor = min(floor, lowest)
        if floor >= state.first:
            state.unsaved.trim_to = max(state.unsaved.trim_to, floor)


def retention_reach(reader: LogReader, before_ns: int | None, bytes_max: int | None) -> int:
    """The last event that age or size lets go of; zero if none."""
    reach = 0
    if before_ns is not None:
        reach = max(reach, reader.seq_at(before_ns))
    if bytes_max is not None:
        reach = max(reach, reader.seq_for_size(bytes_max))
    return reach


def _of_neighbour(subscriber: Subscriber) -> dict[str, str]:
    """Named, where it is for one: its subscription is known to nobody."""
    neighbour = subscriber.subscription.neighbour
    return {} if neighbour is None else {"neighbour": neighbour}


def _before(now_ns: int, seconds: float) -> int:
    return now_ns - int(seconds * NS_PER_S)
