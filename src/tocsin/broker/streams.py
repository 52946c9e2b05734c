"""Streams: open connections that follow the log at their own speed (SSE, WebSocket)."""

from __future__ import annotations

from tocsin.broker.catchup import Catchup
from tocsin.broker.effects import StreamDropped, StreamOut
from tocsin.broker.state import State
from tocsin.broker.subscriber import Stream
from tocsin.errors import TooManySubscriptions
from tocsin.event.filter import Filter
from tocsin.event.stored import Stored


class Streams:
    """The open streams by number."""

    def __init__(self, state: State, catchup: Catchup) -> None:
        self._state = state
        self._catchup = catchup
        self._open: dict[int, Stream] = {}

    def __len__(self) -> int:
        """How many clients have; services of the broker itself do not count."""
        return sum(stream.asks is None for stream in self._open.values())

    def open(
        self, filter: Filter, after: int | None, name: str, asks: frozenset[str] | None
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
        stream = Stream(follower.key, name, filter, follower, asks)
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
        if stream.blocked or not follower.waiting:
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

    def lowest_cursor(self) -> int | None:
        head = self._state.head
        return min((s.follower.cursor(head) for s in self._open.values()), default=None)
