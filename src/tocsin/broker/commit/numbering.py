"""Numbering: the rule by which a log numbers what is appended to it, and knows a repeat.

It depends on the log alone: on what is in it, in which order. So whoever applies the same appends
in the same order gives the same numbers, whichever broker sent them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import repeat

import msgspec

from tocsin.broker.effects import Accepted
from tocsin.event.stored import Append, RepeatKey, Stored, repeat_key


class Applied(msgspec.Struct, frozen=True):
    """What became of an append: its new events with their numbers, and an answer to each offer."""

    events: list[Stored]
    answers: list[Accepted]
    last_seq: int
    """Where the log ends now."""

    def start(self, asked: int) -> int:
        """The cursor of a subscription that begins with this commit (`StateChange.starts`)."""
        return min(asked, self.last_seq)


class Numbering:
    """The end of a log: what its last events are known by, and the last time of receipt."""

    def __init__(self, *, duplicates_window: int, clock_jump_ns: int) -> None:
        self._window = duplicates_window
        self._clock_jump_ns = clock_jump_ns
        # The keys of recent events. Exact, not hashed: a collision here would acknowledge an event
        # and lose it.
        self._recent: dict[RepeatKey, int] = {}
        # The same keys: a dict that loses its oldest looks at all the places they left, each time.
        self._oldest_first: deque[RepeatKey] = deque()
        self._received_ns = 0
        self._before_jump_ns = 0  # the last time before one that was far ahead of it

    def restore(self, keys: Iterable[tuple[RepeatKey, int]], received_ns: int) -> None:
        """Take up the window again after a restart, oldest first, and the last event's time."""
        self._received_ns = received_ns
        self._recent.update(keys)
        self._oldest_first.extend(self._recent)
        self.keep()  # a log with gaps may have given more

    def apply(self, append: Append, head: int) -> Applied:
        """Number what is new from `head` on. Then call `keep`, or `undo` if it was not stored."""
        stored: list[Stored] = []
        answers: list[Accepted] = []
        recent, oldest_first = self._recent, self._oldest_first
        # The log is searched by time, so time does not go back in it, unless what came before was
        # stamped by a clock that was far ahead.
        received_ns = self._stamp_ns(append.received_ns) if append.offers else 0
        for place, events in enumerate(append.offers):
            first = last = duplicates = 0
            arrivals = append.arrivals.get(place) or repeat(None)
            for event, arrival in zip(events, arrivals, strict=False):  # one each, or none at all
                # Written out for what is published here: a call takes a fifth of this loop.
                key = (event.source, event.id) if arrival is None else repeat_key(event, arrival)
                known = recent.get(key)
                if known is None:
                    head += 1
                    known = recent[key] = head
                    oldest_first.append(key)
                    stored.append(Stored(head, received_ns, event, arrival))
                else:
                    duplicates += 1
                if known > last:
                    last = known
                if not first or known < first:
                    first = known
            answers.append(Accepted(len(events), first, last, duplicates))
        return Applied(stored, answers, head)

    def _stamp_ns(self, now_ns: int) -> int:
        jump_ns = self._clock_jump_ns
        if now_ns - self._received_ns > jump_ns:
            self._before_jump_ns = self._received_ns
        is_back = self._received_ns - now_ns > jump_ns
        self._received_ns = max(now_ns, self._before_jump_ns if is_back else self._received_ns)
        return self._received_ns

    def keep(self) -> None:
        """It is stored: keep to the window. Not before: an append that fails must not push out
        what the window still has to know."""
        while len(self._recent) > self._window:
            del self._recent[self._oldest_first.popleft()]

    def undo(self, applied: Applied) -> None:
        """It was not stored, so a repeat of it is none."""
        for _ in applied.events:
            del self._recent[self._oldest_first.pop()]
