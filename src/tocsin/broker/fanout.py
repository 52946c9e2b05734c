"""Fanout: what was appended to the log, matched and given to all who are up to date."""

from __future__ import annotations

from tocsin.broker.followers.boxes import Boxes
from tocsin.broker.followers.catchup import Catchup
from tocsin.broker.followers.skipped_filters import SkippedFilters
from tocsin.broker.followers.streams import Streams
from tocsin.broker.push.lanes import PushLanes
from tocsin.broker.state.state import MATCHING_NS_MAX, State
from tocsin.broker.state.subscriber import Stream, Subscriber
from tocsin.event.stored import Stored


class Fanout:
    """From the log to boxes, streams and the lanes of pushes."""

    def __init__(
        self,
        state: State,
        catchup: Catchup,
        push_lanes: PushLanes,
        boxes: Boxes,
        streams: Streams,
        skipped_filters: SkippedFilters,
    ) -> None:
        self._state = state
        self._catchup = catchup
        self._push_lanes = push_lanes
        self._boxes = boxes
        self._streams = streams
        self._skipped_filters = skipped_filters

    def hand_on(self, events: list[Stored], now_ns: int) -> None:
        """Match what is in the log now and give it to everybody who is up to date."""
        if not events:
            return
        state = self._state
        assert events[0].seq == state.head + 1, "events come in the log's order, and all of them"
        state.head = events[-1].seq
        matcher, by_key = state.matcher, state.by_key
        direct: dict[int, list[Stored]] = {}
        woken: dict[int, Subscriber] = {}
        until_ns = state.stopwatch() + MATCHING_NS_MAX
        for stored in events:
            if state.stopwatch() > until_ns:
                self._catchup.take_over(stored.seq - 1)
                break
            for key in matcher.match(stored.event):
                reader = by_key[key]
                follower = reader.follower
                if not follower.live or not reader.permits.allows(stored):
                    continue
                if isinstance(reader, Stream):
                    taken = self._streams.offer(reader, stored, direct)
                else:
                    dropped = follower.dropped
                    taken = follower.offer(stored)
                    woken[key] = reader
                    state.counters.dropped += follower.dropped - dropped
                if not taken:
                    follower.live, follower.scanned_to = False, stored.seq - 1
            if matcher.gave_up:
                self._skipped_filters.report(matcher.gave_up, stored)
        self._streams.write(direct)
        for reader in woken.values():
            self.wake(reader, now_ns)

    def wake(self, reader: Subscriber | Stream, now_ns: int) -> None:
        if isinstance(reader, Stream):
            self._streams.wake(reader)
            return
        self._state.moved(reader)
        if reader.lane is not None:
            self._push_lanes.wake_for(reader, now_ns)
        else:
            self._boxes.wake(reader)
