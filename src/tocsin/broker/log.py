"""The log and the state beside it, as a broker writes them and everybody reads them.

Whoever reads or writes names these protocols and no store. A store is an `EventStore`: SQLite in
the data directory by default, which does both in one transaction; or a `Log` and a `StateStore`
apart, joined by `SplitStore`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tocsin.broker.commit.numbering import Applied
from tocsin.event.event import Event
from tocsin.event.stored import Append, RepeatKey, StateChange, Stored
from tocsin.event.topic import TopicPattern

Listener = Callable[[list[Stored]], None]

READ_BYTES_MAX = (
    8 << 20
)  # what one page of events may hold in memory, unless the options say otherwise


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

    def recent_keys(self, count: int) -> list[tuple[RepeatKey, int]]:
        """What the last `count` events are known by, and their numbers, oldest first, but for
        unreadable ones."""


class StateReader(Protocol):
    """Subscriptions, cursors, dead letters and the state of services."""

    def subscriptions(self) -> dict[str, bytes]: ...

    def cursors(self) -> dict[str, int]: ...

    def dead_letters(self, after: str = "", limit: int = 100) -> DeadPage: ...

    def dead_letter(self, name: str) -> bytes | None: ...

    def dead_count(self) -> int: ...

    def service_state(self) -> dict[str, bytes]: ...


class StoreReader(LogReader, StateReader, Protocol):
    """A store's log and state, as they are at one moment."""


class OpenLogReader(LogReader, Protocol):
    """Events, until its owner closes it. One thread at a time may use it."""

    def close(self) -> None: ...


class OpenReader(OpenLogReader, StateReader, Protocol):
    """A store's log and state, until its owner closes it. One thread at a time may use it."""


class Log(Protocol):
    """Events in one order, that of their numbers. It may have several brokers that append."""

    @property
    def first_seq(self) -> int:
        """The oldest event still held; the next one to come if there is none."""

    @property
    def last_seq(self) -> int:
        """The newest event ever stored, also when it has been trimmed since."""

    def open_window(self, *, duplicates_window: int, clock_jump_ns: int) -> None:
        """Take up where the log ends; once, before the first append."""

    def append(self, append: Append) -> Applied:
        """Number and keep it (see `Numbering`), safe from a crash when this returns.

        DiskFull if nothing of it is kept and a later append may succeed; DiskFailed if what is
        kept is not known, and then every later append is refused.
        """

    def trim(self, through: int) -> None:
        """Events up to this one may go; perhaps not all at once, and not before every broker that
        appends here has said so."""

    def follow(self, after: int, listener: Listener) -> None:
        """Call the listener with what other brokers append past `after`, each event once, in their
        order: what is there now at once, the rest as it comes, from whatever thread that is. A
        later call takes the place of the former. A log with one writer never calls it."""


class StateStore(Protocol):
    """What a broker keeps beside the log."""

    def save(self, change: StateChange, applied: Applied) -> None:
        """Keep all of it but `trim_to`, or nothing. New subscriptions begin where `applied` says.

        Raises as `Log.append` does.
        """


class EventStore(Protocol):
    """Log and state together, as a broker commits to them."""

    @property
    def first_seq(self) -> int: ...

    @property
    def last_seq(self) -> int: ...

    def open_window(self, *, duplicates_window: int, clock_jump_ns: int) -> None: ...

    def commit(self, append: Append, change: StateChange) -> Applied:
        """Apply both. Raises as `Log.append` does."""

    def follow(self, after: int, listener: Listener) -> None:
        """As `Log.follow`."""

    def reader(self) -> OpenReader:
        """For one more thread."""

    def close(self) -> None: ...
