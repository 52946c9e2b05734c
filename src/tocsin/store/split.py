"""SplitStore: a log and a state store of different makes, as one store."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.log import Listener, Log, OpenReader, StateStore
from tocsin.errors import DiskFailed, DiskFull
from tocsin.event.stored import Append, StateChange


class SplitStore:
    """Appends first, then saves. A crash in between leaves events that are in the log and cursors
    that are behind it: they are handed on again, and their publishers' repeats are known."""

    def __init__(self, log: Log, state: StateStore, open_reader: Callable[[], OpenReader]) -> None:
        self._log = log
        self._state = state
        self._open_reader = open_reader

    @property
    def first_seq(self) -> int:
        return self._log.first_seq

    @property
    def last_seq(self) -> int:
        return self._log.last_seq

    def open_window(self, *, duplicates_window: int, clock_jump_ns: int) -> None:
        self._log.open_window(duplicates_window=duplicates_window, clock_jump_ns=clock_jump_ns)

    def commit(self, append: Append, change: StateChange) -> Applied:
        if append.offers:
            applied = self._log.append(append)
        else:
            applied = Applied([], [], self._log.last_seq)
        if not change.is_empty():
            self._save(change, applied)
        if change.trim_to:
            self._log.trim(change.trim_to)
        return applied

    def _save(self, change: StateChange, applied: Applied) -> None:
        try:
            self._state.save(change, applied)
        except DiskFull as error:
            if not applied.events:
                raise
            # To answer "nothing was stored" would be false now.
            raise DiskFailed(
                f"events are in the log, and their state is not saved: {error.problem}",
                remedy="Make room, and start the broker again.",
            ) from error

    def follow(self, after: int, listener: Listener) -> None:
        self._log.follow(after, listener)

    def reader(self) -> OpenReader:
        return self._open_reader()

    def close(self) -> None:
        """Whoever opened the two halves closes them."""
