"""Streams: open connections that follow the log at their own speed (SSE, WebSocket)."""

from __future__ import annotations

from functools import partial
from typing import Final

from tocsin.access.decision import Permit
from tocsin.access.wording import RIGHT_ENDED
from tocsin.broker.effects import StreamDropped, StreamEnded, StreamOut, StreamWithheld
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.state.permits import PermitCheck
from tocsin.broker.state.state import State
from tocsin.broker.state.subscriber import Stream
from tocsin.errors import TooManySubscriptions
from tocsin.event.filter import Filter
from tocsin.event.instant import NS_PER_S
from tocsin.event.stored import Stored

TELL_WITHHELD_NS: Final = 5 * NS_PER_S  # between two notices to one reader


class Streams:
    """The open streams by number."""

    def __init__(self, state: State, catchup: Catchup) -> None:
        self._state = state
        self._catchup = catchup
        self._open: dict[int, Stream] = {}
        self._untold: dict[int, None] = {}  # by number, those from which something was withheld

    def __len__(self) -> int:
        """How many clients have; services of the broker itself do not count."""
        return sum(stream.asks is None for stream in self._open.values())

    def has(self, number: int) -> bool:
        return number in self._open

    def open(
        self,
        filter: Filter,
        after: int | None,
        name: str,
        asks: frozenset[str] | None = None,
        permit: Permit | None = None,
    ) -> int:
        """Follow from `after`, or from the next event. Returns the stream's number. With `asks`,
        publishers are asked for these concepts and not for what the filter lets pass."""
        state = self._state
        if len(self._open) >= state.options.streams_max and len(self) >= state.options.streams_max:
            raise TooManySubscriptions(
                f"{state.options.streams_max} streams are open",
                remedy="Close some, use a message box, or raise streams_max.",
            )
        gone = max(state.first - 1, state.committing.trim_to)
        start = state.head if after is None else max(after, gone)
        follower = state.new_follower(min(start, state.head))
        permits = PermitCheck(permit, partial(self._withheld, follower.key))
        stream = Stream(follower.key, name, filter, follower, asks, permits=permits)
        state.enter(stream, filter)
        self._open[stream.number] = stream
        if follower.scanned_to == state.head:
            follower.live = True
        else:
            self._catchup.add(follower)
        state.hold(follower.scanned_to)
        if after is not None and after < gone:
            state.out.append(StreamDropped(stream.number, gone - after))
        return stream.number

    def close(self, number: int) -> None:
        """The connection is gone."""
        stream = self._open.pop(number, None)
        if stream is not None:
            self._catchup.forget(stream.follower)
            self._state.leave(stream)

    def _withheld(self, number: int, count: int) -> None:
        self._state.withheld(count)
        self._untold[number] = None

    def tell_withheld(self, now_ns: int) -> None:
        """Notify those who may know of what was withheld from them, each now and then."""
        if not self._untold:
            return
        untold, self._untold = self._untold, {}
        for number in untold:
            stream = self._open.get(number)
            count = None if stream is None else stream.permits.disclosed
            if stream is None or count is None or count == stream.told_withheld:
                continue
            if now_ns < stream.tells_ns:
                again = partial(self._tell_again, number)
                self._state.timers.at(stream.tells_ns, again)
                continue
            self._state.out.append(StreamWithheld(number, count - stream.told_withheld))
            stream.told_withheld, stream.tells_ns = count, now_ns + TELL_WITHHELD_NS

    def _tell_again(self, number: int, now_ns: int) -> None:
        self._untold[number] = None

    def offer(self, stream: Stream, stored: Stored, direct: dict[int, list[Stored]]) -> bool:
        """A new event matched. Written at once while nothing waits; `direct` gathers a burst."""
        follower = stream.follower
        if not stream.blocked and not follower.waiting:
            direct.setdefault(stream.number, []).append(stored)
            return True
        return follower.offer(stored)

    def write(self, direct: dict[int, list[Stored]]) -> None:
        """Write what a burst gathered, once per stream."""
        for number, events in direct.items():
            self._written(self._open[number], events)

    def _written(self, stream: Stream, events: list[Stored]) -> None:
        stream.streamed += len(events)
        self._state.counters.streamed += len(events)
        self._state.out.append(StreamOut(stream.number, events))

    def wake(self, stream: Stream) -> None:
        """Write what waits, if the connection takes it."""
        follower = stream.follower
        if stream.blocked:
            return
        stream.withhold()
        if not follower.waiting:
            return
        events = list(follower.waiting)
        follower.settle_through(events[-1].seq)
        self._written(stream, events)
        if follower.wants_more():
            self._catchup.add(follower)

    def blocked(self, number: int) -> None:
        """The transport is full; `ready` comes when it has drained."""
        stream = self._open.get(number)
        if stream is not None:
            stream.blocked = True

    def ready(self, number: int) -> None:
        stream = self._open.get(number)
        if stream is not None:
            stream.blocked = False
            self.wake(stream)

    def drop_older(self, before_ns: int) -> None:
        """A reader that holds the log back for too long loses the oldest, and is sent how many."""
        for stream in self._open.values():
            count = stream.follower.drop_older(before_ns)
            if count:
                self._state.counters.dropped += count
                self._state.out.append(StreamDropped(stream.number, count))
                if stream.follower.wants_more():
                    self._catchup.add(stream.follower)

    def rights_changed(self) -> None:
        """Streams whose readers may have nothing any more end; of the others, what they may not
        have leaves what waits for them."""
        for stream in self._open.values():
            if stream.permits.is_over():
                self._state.out.append(StreamEnded(stream.number, RIGHT_ENDED))
            elif stream.withhold() and stream.follower.wants_more():
                self._catchup.add(stream.follower)

    def lowest_cursor(self) -> int | None:
        head = self._state.head
        return min((s.follower.cursor(head) for s in self._open.values()), default=None)
