"""Follower: one subscription's place in the log, and the next events it asked for.

Everything up to `cursor` that matched has been settled. Matched events past it wait here, oldest
first, at most a window of them. While the window has room the follower is *live*: new events that
match are handed to it as they are committed. When the window is full it falls behind on purpose:
it remembers how far it was matched (`scanned_to`), takes nothing more, and is caught up from the
log when it has room again. So a slow consumer costs a window of memory and never an event.
"""

from __future__ import annotations

from collections import deque

from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.value import Quantity

WINDOW_EVENTS = 1024
WINDOW_BYTES = 8 << 20
EVENT_OVERHEAD_BYTES = 256  # context and bookkeeping; what can be large is counted
ATTRIBUTE_OVERHEAD_BYTES = 128


def weight(stored: Stored) -> int:
    """About how many bytes of memory a waiting event holds; worked out once for all who wait."""
    if not stored.weight:
        stored.weight = event_weight(stored.event)
    return stored.weight


def event_weight(event: Event) -> int:
    """The same for an event that has no place in the log yet."""
    size = EVENT_OVERHEAD_BYTES
    if event.data is not None:
        size += len(event.data)
    if event.extensions or event.attributes:
        size += _attributes_weight(event)
    return size


def _attributes_weight(event: Event) -> int:
    size = ATTRIBUTE_OVERHEAD_BYTES * (len(event.extensions) + len(event.attributes))
    for value in (*event.extensions.values(), *event.attributes.values()):
        text = value.value if isinstance(value, Quantity) else value
        if isinstance(text, str):
            size += len(text)
    return size


class Follower:
    """See the module. `key` is its number in the matcher."""

    __slots__ = (
        "drop_before_ns",
        "dropped",
        "held",
        "keep",
        "key",
        "live",
        "parked",
        "scanned_to",
        "stale_to",
        "waiting",
        "waiting_bytes",
        "window",
        "window_events",
    )

    def __init__(
        self,
        key: int,
        scanned_to: int,
        *,
        keep: int | None = None,
        window_events: int = WINDOW_EVENTS,
    ) -> None:
        self.key = key
        self.scanned_to = scanned_to
        self.live = False
        self.parked = False  # paused or not yet allowed: takes nothing, wants nothing
        self.waiting: deque[Stored] = deque()
        self.waiting_bytes = 0
        self.held = 0  # how many at the front are under way to the sink just now
        self.window_events = window_events
        self.keep_at_most(keep)
        self.dropped = 0
        self.drop_before_ns = 0  # what was received before then is no longer kept for it
        self.stale_to = 0  # so far the log wants to forget, and this one holds it back

    def keep_at_most(self, keep: int | None) -> None:
        """The subscription's own limit: past it the oldest are dropped."""
        self.keep = keep
        self.window = self.window_events if keep is None else keep + self.window_events

    def cursor(self, head: int) -> int:
        """Everything up to here that matched is settled."""
        if self.waiting:
            return self.waiting[0].seq - 1
        return head if self.live else self.scanned_to

    def has_room(self) -> bool:
        return len(self.waiting) < self.window and self.waiting_bytes < WINDOW_BYTES

    def wants_more(self) -> bool:
        """Behind, allowed to go on, and with half a window free, so that a read is worth it.

        One that is parked still goes through what is too old to be kept for it, to count that.
        """
        if self.live or self.parked:
            return not self.live and self.scanned_to < self.stale_to
        return len(self.waiting) * 2 <= self.window and self.waiting_bytes * 2 <= WINDOW_BYTES

    def offer(self, stored: Stored) -> bool:
        """Take a matching event. False if it must be found in the log later: no room, or parked."""
        if stored.received_ns < self.drop_before_ns:
            self.dropped += 1
            return True
        if self.parked:
            self.stale_to = 0
            return False
        if self.keep is not None and len(self.waiting) - self.held >= self.keep:
            self._drop_oldest()
        if not self.has_room():
            return False
        self.waiting.append(stored)
        self.waiting_bytes += weight(stored)
        return True

    def settle_through(self, seq: int) -> None:
        """Everything up to `seq` is done with: delivered, released from a box, or a dead letter."""
        waiting = self.waiting
        while waiting and waiting[0].seq <= seq:
            self.waiting_bytes -= weight(waiting.popleft())
        self.held = 0
        if not self.live:
            self.scanned_to = max(self.scanned_to, seq)

    def take_out(self, numbers: list[int]) -> None:
        """These are not for this reader after all."""
        if numbers:
            gone = set(numbers)
            self.waiting_bytes -= sum(weight(each) for each in self.waiting if each.seq in gone)
            self.waiting = deque(each for each in self.waiting if each.seq not in gone)

    def drop_older(self, before_ns: int, *, under_way: bool = False) -> int:
        """Let go of waiting events received before then; of those under way only if said so."""
        count = 0
        while under_way and self.held and self.waiting[0].received_ns < before_ns:
            self.waiting_bytes -= weight(self.waiting.popleft())
            self.held -= 1
            self.dropped += 1
            count += 1
        while len(self.waiting) > self.held and self.waiting[self.held].received_ns < before_ns:
            self._drop_oldest()
            count += 1
        return count

    def _drop_oldest(self) -> None:
        if len(self.waiting) <= self.held:
            return
        self.waiting_bytes -= weight(self.waiting[self.held])
        del self.waiting[self.held]
        self.dropped += 1

    def park(self, head: int) -> None:
        """Take nothing until `unpark`; what comes in between is found in the log."""
        if self.live:
            self.live = False
            self.scanned_to = head
        self.parked = True

    def unpark(self) -> None:
        self.parked = False
