"""A store in memory: a log that several brokers may share, and the state of one of them.

Nothing outlives the process. Tests use it, and it shows how little a store has to do: the numbers
come from `Numbering`, and `SplitStore` joins the two halves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import islice

from tocsin.broker.commit.numbering import Applied, Numbering
from tocsin.broker.delivery.follower import event_weight
from tocsin.broker.log import READ_BYTES_MAX, DeadPage, Listener, Page
from tocsin.event.event import Event
from tocsin.event.stored import Append, RepeatKey, StateChange, Stored, repeat_key
from tocsin.event.topic import TopicPattern
from tocsin.store.split import SplitStore


class SharedEvents:
    """The events that every broker on this log sees, with the one rule that numbers them."""

    def __init__(self, lock: AbstractContextManager[object] | None = None) -> None:
        """`lock`: a reentrant one, if the brokers append from threads of their own."""
        self.held: list[Stored] = []  # replaced when it is trimmed: a reader keeps what it has
        self.last_seq = 0
        self.numbering: Numbering | None = None
        self.logs: list[MemoryLog] = []
        self.lock = nullcontext() if lock is None else lock

    @property
    def first_seq(self) -> int:
        return self.held[0].seq if self.held else self.last_seq + 1

    def between(self, above: int, through: int) -> list[Stored]:
        """The events of (above, through] that are still held."""
        held = self.held
        start = held[0].seq if held else 1
        return held[max(0, above + 1 - start) : max(0, through + 1 - start)]


class MemoryLog:
    """One broker's way to the log."""

    def __init__(self, shared: SharedEvents | None = None) -> None:
        self.shared = SharedEvents() if shared is None else shared
        self.shared.logs.append(self)
        self._listener: Listener | None = None
        self._may_go = 0  # up to there, as far as this broker is concerned

    @property
    def first_seq(self) -> int:
        return self.shared.first_seq

    @property
    def last_seq(self) -> int:
        return self.shared.last_seq

    def open_window(self, *, duplicates_window: int, clock_jump_ns: int) -> None:
        if self.shared.numbering is None:  # the first broker decides for all
            self.shared.numbering = Numbering(
                duplicates_window=duplicates_window, clock_jump_ns=clock_jump_ns
            )

    def append(self, append: Append) -> Applied:
        shared = self.shared
        with shared.lock:
            assert shared.numbering is not None, "open_window comes before the first append"
            applied = shared.numbering.apply(append, shared.last_seq)
            shared.numbering.keep()
            shared.held += applied.events
            shared.last_seq = applied.last_seq
            for log in shared.logs:
                if log is not self and log._listener is not None and applied.events:
                    log._listener(applied.events)
            return applied

    def trim(self, through: int) -> None:
        shared = self.shared
        with shared.lock:
            self._may_go = max(self._may_go, through)
            least = min(log._may_go for log in shared.logs)
            shared.held = shared.between(max(least, shared.first_seq - 1), shared.last_seq)

    def follow(self, after: int, listener: Listener) -> None:
        shared = self.shared
        with shared.lock:
            self._listener = listener
            if shared.last_seq > after:
                listener(shared.between(after, shared.last_seq))


class MemoryState:
    """What one broker keeps beside the log."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, bytes] = {}
        self.cursors: dict[str, int] = {}
        self.dead: dict[str, bytes] = {}
        self.service_state: dict[str, bytes] = {}

    def save(self, change: StateChange, applied: Applied) -> None:
        self.cursors |= change.cursors
        self.cursors |= {name: applied.start(at) for name, at in change.starts.items()}
        for table, rows in (
            (self.subscriptions, change.subscriptions),
            (self.dead, change.dead),
            (self.service_state, change.service_state),
        ):
            for name, content in rows.items():
                if content is None:
                    table.pop(name, None)
                else:
                    table[name] = content
        for name, definition in change.subscriptions.items():
            if definition is None:
                self.cursors.pop(name, None)


class MemoryReader:
    """Reads both. Every answer is of one moment."""

    def __init__(self, events: SharedEvents, state: MemoryState) -> None:
        self._events = events
        self._state = state

    def close(self) -> None:
        """There is nothing to let go of."""

    def bounds(self) -> tuple[int, int]:
        return self._events.first_seq, self._events.last_seq

    def read(
        self,
        after: int,
        limit: int,
        bytes_max: int = READ_BYTES_MAX,
        *,
        through: int | None = None,
    ) -> Page:
        last = self._events.last_seq if through is None else through
        reached = max(after, self._events.first_seq - 1)
        found: list[Stored] = []
        for stored in islice(self._events.between(reached, last), limit):
            found.append(stored)
            bytes_max -= event_weight(stored.event)
            if bytes_max <= 0:
                break
        return Page(found, found[-1].seq if found else reached, [])

    def read_one(self, seq: int) -> Stored | None:
        return next(iter(self._events.between(seq - 1, seq)), None)

    def last_on(self, pattern: TopicPattern, above: int, through: int) -> Stored | None:
        return self.last_where(lambda event: pattern.matches(event.topic), above, through)

    def last_where(self, holds: Callable[[Event], bool], above: int, through: int) -> Stored | None:
        backwards = reversed(self._events.between(above, through))
        return next((stored for stored in backwards if holds(stored.event)), None)

    def seq_at(self, received_ns: int) -> int:
        held = self._events.held
        place = bisect_left(held, received_ns, key=lambda stored: stored.received_ns)
        return held[place - 1].seq if place else self._events.first_seq - 1

    def size_bytes(self) -> int:
        return sum(event_weight(stored.event) for stored in self._events.held)

    def seq_for_size(self, bytes_max: int) -> int:
        left, through = self.size_bytes(), self._events.first_seq - 1
        for stored in self._events.held:
            if left <= bytes_max:
                break
            left, through = left - event_weight(stored.event), stored.seq
        return through

    def recent_keys(self, count: int) -> list[tuple[RepeatKey, int]]:
        last = self._events.last_seq
        recent = self._events.between(last - count, last)
        return [(repeat_key(stored.event, stored.arrival), stored.seq) for stored in recent]

    def subscriptions(self) -> dict[str, bytes]:
        return dict(sorted(self._state.subscriptions.items()))

    def cursors(self) -> dict[str, int]:
        return dict(sorted(self._state.cursors.items()))

    def dead_letters(self, after: str = "", limit: int = 100) -> DeadPage:
        names = sorted(name for name in self._state.dead if name > after)[:limit]
        letters = {name: self._state.dead[name] for name in names}
        return DeadPage(letters, names[-1] if len(names) == limit else None)

    def dead_letter(self, name: str) -> bytes | None:
        return self._state.dead.get(name)

    def dead_count(self) -> int:
        return len(self._state.dead)

    def service_state(self) -> dict[str, bytes]:
        return dict(sorted(self._state.service_state.items()))


def memory_store(shared: SharedEvents | None = None) -> SplitStore:
    """A store for one broker; with `shared`, on a log that others append to as well."""
    log, state = MemoryLog(shared), MemoryState()
    return SplitStore(log, state, lambda: MemoryReader(log.shared, state))
