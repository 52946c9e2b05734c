"""The log and the state beside it, as a broker and its services read them.

A store implements these: SQLite in the data directory by default. Whoever reads names these
protocols and no store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.topic import TopicPattern

READ_BYTES_MAX = 8 << 20  # what one page of events may hold in memory, unless told otherwise


@dataclass(frozen=True, slots=True)
class Page:
    """Some events in order. Pass `next` as `after` to go on; `corrupt` could not be read."""

    events: list[Stored]
    next: int
    corrupt: list[int]


@dataclass(frozen=True, slots=True)
class DeadPage:
    """Some dead letters by id. Pass `next` as `after` to go on; None means that was all."""

    letters: dict[str, bytes]
    next: str | None


class LogReader(Protocol):
    """Events by their sequence number."""

    def bounds(self) -> tuple[int, int]:
        """The oldest event still held, and the newest ever stored."""

    def read(
        self,
        after: int,
        limit: int,
        bytes_max: int = READ_BYTES_MAX,
        *,
        through: int | None = None,
    ) -> Page:
        """At most `limit` events that follow `after`, and none that follows `through`; one at
        least, whatever its size."""

    def read_one(self, seq: int) -> Stored | None:
        """One event; None if it was trimmed, is yet to come, or cannot be read."""

    def last_on(self, pattern: TopicPattern, above: int, through: int) -> Stored | None:
        """The last event of (above, through] on a topic that fits."""

    def last_where(self, holds: Callable[[Event], bool], above: int, through: int) -> Stored | None:
        """The last event of (above, through] for which this holds."""

    def seq_at(self, received_ns: int) -> int:
        """The last event received before that time; what was trimmed before, if there is none."""

    def size_bytes(self) -> int:
        """What the events take."""

    def seq_for_size(self, bytes_max: int) -> int:
        """The event through which the log must be trimmed to take at most `bytes_max`."""

    def recent_keys(self, count: int) -> list[tuple[str, str, int]]:
        """(source, id, seq) of the last `count` events, oldest first, but for unreadable ones."""


class StateReader(Protocol):
    """Subscriptions, cursors, dead letters and what services keep."""

    def subscriptions(self) -> dict[str, bytes]: ...

    def cursors(self) -> dict[str, int]: ...

    def dead_letters(self, after: str = "", limit: int = 100) -> DeadPage: ...

    def dead_letter(self, name: str) -> bytes | None: ...

    def dead_count(self) -> int: ...

    def kept(self) -> dict[str, bytes]: ...


class StoreReader(LogReader, StateReader, Protocol):
    """A store's log and state, as they are at one moment."""
