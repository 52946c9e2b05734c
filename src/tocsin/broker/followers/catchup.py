"""Catch-up: those who fell behind are matched again, from the log, in one shared pass.

After a restart everybody is behind; one pass from the lowest place serves them all. Nobody's own
filter is run over the log alone: the matcher is asked once per event, as when it was new.

Everybody is also left behind on purpose, when filters take so long that nothing else would get its
turn: what is read from the log can be matched a little at a time.
"""

from __future__ import annotations

from bisect import bisect_left

from tocsin.broker.delivery.follower import Follower
from tocsin.broker.effects import ReadLog
from tocsin.broker.followers.skipped_filters import SkippedFilters
from tocsin.broker.state.state import MATCHING_NS_MAX, State
from tocsin.broker.state.subscriber import Stream, Subscriber
from tocsin.event.stored import Stored


class Catchup:
    """Who is behind, and the one read of the log that is under way for them."""

    def __init__(self, state: State, skipped_filters: SkippedFilters) -> None:
        self._state = state
        self._skipped_filters = skipped_filters
        self._behind: dict[int, Follower] = {}
        self._reading: tuple[int, int] | None = None  # after, and the head when it was asked
        self._in_turn = False  # the next read is for whoever's turn it is

    def add(self, follower: Follower) -> None:
        """This one wants to be caught up when it has room."""
        self._behind[follower.key] = follower

    def take_over(self, through: int) -> None:
        """Everybody who was up to date was matched so far, and is caught up from there."""
        for reader in self._state.by_key.values():
            follower = reader.follower
            if follower.live:
                follower.live = False
                follower.scanned_to = through
                self.add(follower)
                if isinstance(reader, Subscriber):
                    self._state.moved(reader)

    def forget(self, follower: Follower) -> None:
        self._behind.pop(follower.key, None)

    def next_read(self) -> ReadLog | None:
        """The read to start now, if one is wanted and none is under way.

        From the lowest place, so that those who are behind come together and share the rest of the
        way; but every other time from the place of the one whose turn it is, so that nobody stands
        still because others begin again and again.
        """
        if self._reading is not None or not self._behind:
            return None
        state = self._state
        lowest: Follower | None = None
        for follower in list(self._behind.values()):
            if follower.scanned_to >= state.head and not follower.parked:
                self._is_live(follower)
            elif not follower.wants_more():
                del self._behind[follower.key]  # whoever settles something of it adds it again
            elif lowest is None or follower.scanned_to < lowest.scanned_to:
                lowest = follower
        if lowest is None:
            return None
        served = next(iter(self._behind.values())) if self._in_turn else lowest
        self._in_turn = not self._in_turn
        self._behind[served.key] = self._behind.pop(served.key)  # to the end of the line
        self._reading = (served.scanned_to, state.head)
        return ReadLog(served.scanned_to, state.options.read_page_events)

    def read(self, events: list[Stored], through: int) -> list[Subscriber | Stream]:
        """A page of the log, which covers everything up to `through`. Returns who got something."""
        assert self._reading is not None
        after, asked_head = self._reading
        self._reading = None
        if through <= after:  # there is nothing past it, so all that there was has been seen
            through = asked_head
        # The log may hold a commit that was not reported to us yet. It is handed on when we are, to
        # everybody who is live; who took it from here would get it twice.
        head = self._state.head
        through = min(through, head)
        events = [stored for stored in events if stored.seq <= head]
        open_ones = {
            key: follower
            for key, follower in self._behind.items()
            if follower.wants_more() and after <= follower.scanned_to < through
        }
        woken, through = self._hand_out(events, through, open_ones)
        for follower in open_ones.values():
            follower.scanned_to = max(follower.scanned_to, through)
            if follower.scanned_to >= self._state.head and not follower.parked:
                self._is_live(follower)
        return woken

    def _hand_out(
        self, events: list[Stored], through: int, open_ones: dict[int, Follower]
    ) -> tuple[list[Subscriber | Stream], int]:
        """Who got something, and how far it went: not through all, if that would take too long."""
        woken: dict[int, Subscriber | Stream] = {}
        state = self._state
        until_ns = state.stopwatch() + MATCHING_NS_MAX
        for stored in events:
            if not open_ones:
                break
            if stored is not events[0] and state.stopwatch() > until_ns:
                through = stored.seq - 1
                break
            state.counters.read_back += 1
            for key in _among(state.matcher.match(stored.event), open_ones):
                follower = open_ones[key]
                if follower.scanned_to >= stored.seq:
                    continue
                if not state.by_key[key].permits.allows(stored):
                    continue
                dropped = follower.dropped
                if follower.offer(stored):
                    woken[key] = state.by_key[key]
                else:
                    follower.scanned_to = stored.seq - 1
                    del open_ones[key]
                state.counters.dropped += follower.dropped - dropped
            if state.matcher.gave_up:
                self._skipped_filters.report(state.matcher.gave_up, stored)
        return list(woken.values()), through

    def _is_live(self, follower: Follower) -> None:
        follower.live = True
        del self._behind[follower.key]
        reader = self._state.by_key[follower.key]
        if isinstance(reader, Subscriber):
            self._state.moved(reader)


def _among(matched: list[int], open_ones: dict[int, Follower]) -> list[int]:
    """Those of the matched who are being caught up. Where they are few among many they are looked
    for: the matched are in order."""
    if len(open_ones) * 8 > len(matched):
        return [key for key in matched if key in open_ones]
    found: list[int] = []
    for key in open_ones:
        place = bisect_left(matched, key)
        if place < len(matched) and matched[place] == key:
            found.append(key)
    return found
