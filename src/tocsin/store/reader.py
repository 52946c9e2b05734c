"""Reader: the log and the tables beside it, as they were at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import apsw

from tocsin.broker.log import READ_BYTES_MAX, DeadPage, Page
from tocsin.errors import CorruptLog
from tocsin.event.event import Event
from tocsin.event.stored import RepeatKey, Stored
from tocsin.event.topic import TopicPattern
from tocsin.store.directory import LOG_NAME
from tocsin.store.faults import UNREADABLE, open_failed, unreadable
from tocsin.store.record import (
    LogMarks,
    Row,
    decode_key,
    decode_row,
    is_intact,
    seal,
    seal_cursor,
)
from tocsin.store.schema import (
    KEPT_SINCE,
    check_tables,
    connect_reader,
    corrupt,
    lost_ranges,
    read_marks,
)

CORRUPT_LISTED_MAX = 1_000
DAMAGE_LISTED_MAX = 100
CHECK_ROWS = 1_000  # between two reports of progress; no moment of the log is held for longer
COLUMNS = "seq, received_ns, end_bytes, crc, record"
SELECT_RANGE = f"SELECT {COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
SELECT_BACKWARDS = f"{SELECT_RANGE} DESC"
SELECT_ONE = f"SELECT {COLUMNS} FROM events WHERE seq = ?"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a look at every record and every page of the log found."""

    first_seq: int
    last_seq: int
    size_bytes: int
    corrupt_count: int
    corrupt: tuple[int, ...]
    """The first of them, at most CORRUPT_LISTED_MAX."""
    damage: tuple[str, ...]
    """What else is wrong: pages, subscriptions, cursors, dead letters, what services keep."""
    lost: tuple[tuple[int, int], ...] = ()
    """Events that are gone, from and to: an operator had a broker go on without them."""

    @property
    def ok(self) -> bool:
        return not self.corrupt_count and not self.damage


class Reader:
    """Reads while the writer writes. One thread at a time may use it."""

    def __init__(self, connection: apsw.Connection, path: str, *, shared: bool) -> None:
        self._connection = connection
        self._path = path
        self._shared = shared
        self._lost_found: list[tuple[int, int]] | None = None

    @classmethod
    def open(cls, directory: Path | str) -> Self:
        """Read a data directory without holding it: also beside a running broker."""
        path = str(Path(directory) / LOG_NAME)
        try:
            connection = connect_reader(path)
            check_tables(connection, path)
        except apsw.Error as error:
            raise open_failed(path, error) from error
        return cls(connection, path, shared=False)

    def close(self) -> None:
        if not self._shared:
            self._connection.close()

    def marks(self) -> LogMarks:
        try:
            return read_marks(self._connection, self._path)
        except UNREADABLE as error:
            raise unreadable(self._path, error) from error

    # Events

    def bounds(self) -> tuple[int, int]:
        """The oldest event still held, and the newest ever stored."""
        marks = self.marks()
        return marks.trimmed_to + 1, marks.last_seq

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
        assert limit > 0
        events: list[Stored] = []
        lost: list[int] = []
        with self._snapshot() as marks:
            end = marks.last_seq if through is None else min(through, marks.last_seq)
            reached = self._past_lost(max(after, marks.trimmed_to), end)
            for seq, row in self._between(reached, min(reached + limit, end)):
                reached = seq
                if row is None:
                    lost.append(seq)
                    continue
                events.append(decode_row(row))
                bytes_max -= len(row[4])
                if bytes_max <= 0:
                    break
            reached = self._past_lost(reached, end)
        return Page(events, reached, lost)

    def last_on(self, pattern: TopicPattern, above: int, through: int) -> Stored | None:
        """The last event in (above, through] on a topic that fits, but for unreadable ones."""
        return self.last_where(lambda event: pattern.matches(event.topic), above, through)

    def last_where(self, holds: Callable[[Event], bool], above: int, through: int) -> Stored | None:
        """The last event in (above, through] for which this holds, but for unreadable ones."""
        with self._snapshot() as marks:
            above, through = max(above, marks.trimmed_to), min(through, marks.last_seq)
            for row in self._backwards(above, through):
                stored = decode_row(row)
                if holds(stored.event):
                    return stored
        return None

    def read_one(self, seq: int) -> Stored | None:
        """The event, or None if it was trimmed, is yet to come, or cannot be read."""
        row = self.row(seq)
        return decode_row(row) if row else None

    def recent_keys(self, count: int) -> list[tuple[RepeatKey, int]]:
        """What the last `count` events are known by, and their numbers, oldest first, but for
        unreadable ones."""
        with self._snapshot() as marks:
            gone = sum(last - first + 1 for first, last in self._lost())
            start = max(marks.last_seq - count - gone, marks.trimmed_to)
            rows = (row for _, row in self._between(start, marks.last_seq) if row)
            return [(decode_key(row), row[0]) for row in rows]

    def seq_at(self, received_ns: int) -> int:
        """The last event received before that time; what was trimmed before, if there is none."""
        with self._snapshot() as marks:
            return self._last_where(marks, lambda row: row[1] < received_ns)

    def size_bytes(self) -> int:
        """What the events take. The file may be larger: space of trimmed events is used again."""
        marks = self.marks()
        return marks.last_bytes - marks.trimmed_bytes

    def seq_for_size(self, bytes_max: int) -> int:
        """The event through which the log must be trimmed to take at most `bytes_max`."""
        with self._snapshot() as marks:
            cut = marks.last_bytes - bytes_max
            if cut <= marks.trimmed_bytes:
                return marks.trimmed_to
            return min(self._last_where(marks, lambda row: row[2] < cut) + 1, marks.last_seq)

    # What stands beside the events

    def subscriptions(self) -> dict[str, bytes]:
        return self._sealed("SELECT id, definition, crc FROM subscriptions ORDER BY id")

    def cursors(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, seq, crc in self._rows("SELECT id, seq, crc FROM cursors ORDER BY id"):
            if type(name) is not str or type(seq) is not int or crc != seal_cursor(name, seq):
                raise corrupt(self._path, f"the cursor of subscription {name!a} is damaged")
            found[name] = seq
        return found

    def dead_letters(self, after: str = "", limit: int = 100) -> DeadPage:
        query = "SELECT id, record, crc FROM dead WHERE id > ? ORDER BY id LIMIT ?"
        letters = self._sealed(query, (after, limit))
        return DeadPage(letters, max(letters) if len(letters) == limit else None)

    def dead_letter(self, name: str) -> bytes | None:
        return self._sealed("SELECT id, record, crc FROM dead WHERE id = ?", (name,)).get(name)

    def dead_count(self) -> int:
        ((count,),) = self._rows("SELECT count(*) FROM dead")
        assert type(count) is int
        return count

    def service_state(self) -> dict[str, bytes]:
        if self._connection.pragma("user_version") < KEPT_SINCE:
            return {}  # no broker of this version has opened it yet
        return self._sealed("SELECT id, value, crc FROM kept ORDER BY id")

    # Everything

    def check(self, progress: Callable[[int, int], None] | None = None) -> CheckReport:
        """Read every record and page. `progress` gets the events looked at, and events in all."""
        marks = self.marks()
        lost_count = 0
        lost: list[int] = []
        reached = marks.trimmed_to
        while reached < marks.last_seq:
            page = self.read(reached, CHECK_ROWS)
            reached = page.next
            lost_count += len(page.corrupt)
            lost += page.corrupt[: CORRUPT_LISTED_MAX - len(lost)]
            if progress is not None:
                done = min(reached, marks.last_seq) - marks.trimmed_to
                progress(done, marks.last_seq - marks.trimmed_to)
        return CheckReport(
            first_seq=marks.trimmed_to + 1,
            last_seq=marks.last_seq,
            size_bytes=marks.last_bytes - marks.trimmed_bytes,
            corrupt_count=lost_count,
            corrupt=tuple(lost),
            damage=(*self._damaged_pages(), *self._damaged_tables()),
            lost=tuple(each for each in self._lost() if each[1] >= marks.trimmed_to),
        )

    def _damaged_pages(self) -> list[str]:
        try:
            found = self._rows(f"PRAGMA quick_check({DAMAGE_LISTED_MAX})")
        except CorruptLog as error:
            return [error.problem]
        return [str(line) for (line,) in found if line != "ok"]

    def _damaged_tables(self) -> Iterator[str]:
        for read in (self.subscriptions, self.cursors, self._all_dead_letters, self.service_state):
            try:
                read()
            except CorruptLog as error:
                yield error.problem

    def _all_dead_letters(self) -> None:
        after: str | None = ""
        while after is not None:
            after = self.dead_letters(after).next

    # Underneath

    def _lost(self) -> list[tuple[int, int]]:
        """Asked for once: only a start can add to it."""
        if self._lost_found is None:
            self._lost_found = lost_ranges(self._connection)
        return self._lost_found

    def _past_lost(self, reached: int, end: int) -> int:
        """The same, or the end of the lost range that begins there. Such a range may be long."""
        for first, last in self._lost():
            if first <= reached + 1 <= last:
                return max(reached, min(last, end))
        return reached

    def _kept_parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """(start, end] without the ranges whose loss was accepted."""
        parts: list[tuple[int, int]] = []
        for first, last in sorted(self._lost()):
            if last > start and first <= end:
                parts.append((start, first - 1))
                start = last
        return [each for each in (*parts, (start, end)) if each[0] < each[1]]

    @contextmanager
    def _snapshot(self) -> Iterator[LogMarks]:
        """One moment of the log, for several statements."""
        self._connection.execute("BEGIN")
        try:
            yield self.marks()
        finally:
            # Not COMMIT, which fails once a damaged page has been met. Nothing was written.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _between(self, start: int, end: int) -> Iterator[tuple[int, Row | None]]:
        """Each event in (start, end] with its row, or None where that is missing or damaged; those
        whose loss was accepted are passed over."""
        for part in self._kept_parts(start, end):
            yield from self._between_kept(*part)

    def _between_kept(self, start: int, end: int) -> Iterator[tuple[int, Row | None]]:
        reached = start
        try:
            for row in self._connection.execute(SELECT_RANGE, (start, end)):
                if row[0] != reached + 1 or not is_intact(row):
                    break
                reached += 1
                yield reached, row
        except UNREADABLE:
            pass  # from here on event by event, which finds what a damaged page stands before
        for seq in range(reached + 1, end + 1):
            yield seq, self.row(seq)

    def _backwards(self, above: int, through: int) -> Iterator[Row]:
        """The rows of (above, through], the last one first, but for missing or damaged ones."""
        for part in reversed(self._kept_parts(above, through)):
            yield from self._backwards_kept(*part)

    def _backwards_kept(self, above: int, through: int) -> Iterator[Row]:
        reached = through + 1
        try:
            for row in self._connection.execute(SELECT_BACKWARDS, (above, through)):
                if row[0] != reached - 1 or not is_intact(row):
                    break
                reached -= 1
                yield row
        except UNREADABLE:
            pass  # from here on event by event, as in `_between`
        yield from (row for seq in range(reached - 1, above, -1) if (row := self.row(seq)))

    def row(self, seq: int) -> Row | None:
        """The row of an event if it is there and as it was written."""
        try:
            row = self._connection.execute(SELECT_ONE, (seq,)).fetchone()
        except UNREADABLE:
            return None
        return row if row is not None and row[0] == seq and is_intact(row) else None

    def _last_where(self, marks: LogMarks, holds: Callable[[Row], bool]) -> int:
        """The last event for which `holds`, when it holds for a first part of the log only.

        Damaged events are passed over. If in doubt, the answer is an earlier event: asking for
        more of the log than needed does no harm, trimming more would.
        """
        below, above = marks.trimmed_to, marks.last_seq + 1
        while above - below > 1:
            middle = (below + above) // 2
            kept = self._kept_parts(middle - 1, above - 1)
            numbers = (seq for start, end in kept for seq in range(start + 1, end + 1))
            row = next((row for seq in numbers if (row := self.row(seq))), None)
            if row is not None and holds(row):
                below = row[0]
            else:
                above = middle
        return below

    def _sealed(self, query: str, values: tuple[str | int, ...] = ()) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name, content, crc in self._rows(query, values):
            if type(name) is not str or type(content) is not bytes or crc != seal(name, content):
                raise corrupt(self._path, f"what is kept under {name!a} is damaged")
            found[name] = content
        return found

    def _rows(self, query: str, values: tuple[str | int, ...] = ()) -> list[tuple[object, ...]]:
        try:
            return self._connection.execute(query, values).fetchall()
        except UNREADABLE as error:
            raise unreadable(self._path, error) from error
