"""Store: the one writer of the log. When `write` returns, the batch is on disk.

Synchronous, without threads and without a clock: a driver calls it from its writer thread, the
simulator calls it inline on a simulated disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import apsw

from tocsin.event.stored import Batch
from tocsin.store.directory import LOG_NAME, DirectoryLock, lock_directory, prepare_directory
from tocsin.store.faults import disk_failed, disk_full, is_full, open_failed, reason, unreadable
from tocsin.store.mark import HighWater, MarkFile
from tocsin.store.opening import WITHOUT_SHARED_MEMORY, Opened, open_log
from tocsin.store.reader import Reader
from tocsin.store.record import (
    EVENT_COLUMNS,
    LogMarks,
    encode_rows,
    seal,
    seal_cursor,
    start_bytes,
)
from tocsin.store.schema import REPLACE_KEPT, REPLACE_MARKS, connect_reader

TRIM_ROWS_MAX = 2_000  # about 8 ms of deleting: retention must not be felt by a publisher
TRIM_BYTES_MAX = 16 << 20  # the same of large events; twice what one commit adds
CHECKPOINT_PAGES = 500  # 4 MiB; more makes the longest commit longer and none faster
SYNCHRONOUS = ("FULL", "NORMAL", "OFF")

# apsw gives up and retakes the interpreter's lock at every statement, and retaking it may take
# a switch interval when the main thread is busy. So one statement inserts many rows.
ROWS_PER_STATEMENT = (512, 64, 16, 4, 1)


def _many(verb: str, table: str, columns: int) -> dict[int, str]:
    row = f"({','.join('?' * columns)})"
    return {
        rows: f"{verb} INTO {table} VALUES {','.join([row] * rows)}" for rows in ROWS_PER_STATEMENT
    }


INSERT_EVENTS = _many("INSERT", "events", EVENT_COLUMNS)
REPLACE_CURSORS = _many("REPLACE", "cursors", 3)
REPLACE_SUBSCRIPTION = "REPLACE INTO subscriptions VALUES (?, ?, ?)"
REPLACE_DEAD = "REPLACE INTO dead VALUES (?, ?, ?)"

Column = int | str | bytes


class Store:
    """The log of one data directory, open for writing."""

    def __init__(
        self, opened: Opened, path: str, lock: DirectoryLock | None, *, is_synced: bool
    ) -> None:
        self.loss = opened.loss
        """What was acknowledged before, and could not be found at the start. It was accepted."""
        self._connection = opened.connection
        self._cursor = opened.connection.cursor()
        self._path = path
        self._marks = opened.marks
        self._lock = lock
        self._vfs = opened.vfs
        self._is_moved = opened.is_moved
        self._is_synced = is_synced
        self._mark = MarkFile(path, opened.vfs)
        self._wal_pages = 0
        self._failure: str | None = None
        self._connection.set_wal_hook(self._note_wal_pages)
        try:
            self._sync_mark()
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def open(
        cls,
        directory: Path | str,
        *,
        vfs: str | None = None,
        synchronous: str = "FULL",
        lock: bool = True,
        accept_loss: bool = False,
    ) -> Self:
        """Open the log, made new if there is none. With a `vfs` the disk is a simulated one.

        LogIncomplete if it lacks what was acknowledged, unless that is accepted.
        """
        assert synchronous in SYNCHRONOUS
        held: DirectoryLock | None = None
        if vfs is None:
            prepare_directory(Path(directory))
            held = lock_directory(Path(directory)) if lock else None
        path = str(Path(directory) / LOG_NAME)
        try:
            opened = open_log(path, vfs, synchronous, accept_loss=accept_loss)
            return cls(opened, path, held, is_synced=synchronous == "FULL")
        except BaseException as error:
            if held is not None:
                held.close()
            if isinstance(error, apsw.Error):
                raise open_failed(path, error) from error
            if isinstance(error, UnicodeDecodeError | MemoryError):
                raise unreadable(path, error) from error
            raise

    @property
    def first_seq(self) -> int:
        """The oldest event still held; the next one to come if there is none."""
        return self._marks.trimmed_to + 1

    @property
    def last_seq(self) -> int:
        """The newest event ever stored, also when it has been trimmed since."""
        return self._marks.last_seq

    def reader(self) -> Reader:
        """A reader of its own connection, for another thread; on a simulated disk, of this one."""
        if self._vfs not in (None, WITHOUT_SHARED_MEMORY):
            return Reader(self._connection, self._path, shared=True)
        try:
            return Reader(connect_reader(self._path, self._vfs), self._path, shared=False)
        except apsw.Error as error:
            raise open_failed(self._path, error) from error

    def write(self, batch: Batch) -> None:
        """Keep the whole batch, on disk when this returns.

        Raises DiskFull if there is no room: nothing of it is there, and a later write may succeed;
        only a crash before that write may bring it back, whole, if it had reached the disk. Raises
        DiskFailed if the disk did anything else than confirm: what it holds is then not known, and
        every later write is refused. A failed sync is never tried again, because the kernel may
        answer the second one with success and have dropped the pages.
        """
        if self._failure is not None:
            raise disk_failed(self._path, self._failure)
        columns, end_bytes = encode_rows(batch.events, self._marks)
        try:
            self._checkpoint_if_due()
            self._marks = self._commit(batch, columns, end_bytes)
            with suppress(apsw.Error):  # the commit holds without it; the next one writes it too
                self._mark.note(self._reached())
        except apsw.Error as error:
            if is_full(error) and self._roll_back():
                raise disk_full(self._path) from error
            self._failure = reason(error)
            raise disk_failed(self._path, self._failure) from error
        except BaseException as error:
            self._failure = repr(error)
            raise

    def close(self) -> None:
        """Let go of the directory, with everything in the one database file if all went well."""
        try:
            if self._failure is None:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._sync_mark()
        except (apsw.FullError, apsw.BusyError):
            pass  # the write-ahead log has it all, and is read at the next start
        except apsw.Error as error:
            raise disk_failed(self._path, reason(error)) from error
        finally:
            self._failure = "the log is closed"
            self._connection.close()
            self._mark.close()
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def _reached(self) -> HighWater:
        return HighWater(self._marks.commits, self._marks.last_seq, self._is_synced)

    def _sync_mark(self) -> None:
        with suppress(apsw.Error):  # an older mark stays true, and the log says what is wrong
            self._mark.sync(self._reached())

    def _commit(self, batch: Batch, columns: Sequence[Column], end_bytes: int) -> LogMarks:
        run = self._cursor.execute
        run("BEGIN IMMEDIATE")
        marks = replace(self._marks, commits=self._marks.commits + 1)
        if batch.events:
            self._insert(INSERT_EVENTS, EVENT_COLUMNS, columns)
            marks = replace(marks, last_seq=batch.events[-1].seq, last_bytes=end_bytes)
        if batch.trim_to > marks.trimmed_to:
            marks = self._trim(marks, batch.trim_to)
        run(REPLACE_MARKS, marks.row())
        for name, definition in batch.subscriptions.items():
            if definition is None:
                run("DELETE FROM subscriptions WHERE id = ?", (name,))
            else:
                run(REPLACE_SUBSCRIPTION, (name, definition, seal(name, definition)))
        if batch.cursors:
            cursors = [(name, seq, seal_cursor(name, seq)) for name, seq in batch.cursors.items()]
            self._insert(REPLACE_CURSORS, 3, [column for row in cursors for column in row])
        for name, definition in batch.subscriptions.items():
            if definition is None:
                run("DELETE FROM cursors WHERE id = ?", (name,))
        for name, record in batch.dead.items():
            if record is None:
                run("DELETE FROM dead WHERE id = ?", (name,))
            else:
                run(REPLACE_DEAD, (name, record, seal(name, record)))
        for name, value in batch.kept.items():
            if value is None:
                run("DELETE FROM kept WHERE id = ?", (name,))
            else:
                run(REPLACE_KEPT, (name, value, seal(name, value)))
        run("COMMIT")
        return marks

    def _insert(self, statements: dict[int, str], width: int, columns: Sequence[Column]) -> None:
        start = 0
        for rows, statement in statements.items():
            size = rows * width
            while len(columns) - start >= size:
                self._cursor.execute(statement, columns[start : start + size])
                start += size

    def _trim(self, marks: LogMarks, trim_to: int) -> LogMarks:
        reader = Reader(self._connection, self._path, shared=True)
        through = min(trim_to, marks.trimmed_to + TRIM_ROWS_MAX, marks.last_seq)
        while through - marks.trimmed_to > 1 and (row := reader.row(through)):
            if row[2] - marks.trimmed_bytes <= TRIM_BYTES_MAX:
                break
            through = (marks.trimmed_to + through) // 2
        # The first event kept says how much was before it; if it is damaged, the next one does.
        kept = (row for seq in range(through, marks.last_seq) if (row := reader.row(seq + 1)))
        row = next(kept, None)
        self._cursor.execute("DELETE FROM events WHERE seq <= ?", (through,))
        trimmed_bytes = marks.last_bytes if row is None else start_bytes(row)
        return replace(marks, trimmed_to=through, trimmed_bytes=trimmed_bytes)

    def _roll_back(self) -> bool:
        """Leave the transaction, if SQLite has not done so itself. False if that fails too."""
        try:
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")
        except apsw.Error:
            return False
        return True

    def _checkpoint_if_due(self) -> None:
        """Move the write-ahead log into the database, before a write and not after one.

        SQLite's own checkpoint would run after the commit, delay its acknowledgement, and ignore
        a failed sync.
        """
        if not self._is_moved:  # see `opening.py`; DiskFull for as long as there is no room
            with suppress(apsw.BusyError):  # as there, too
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._is_moved = True
        if self._wal_pages < CHECKPOINT_PAGES:
            return
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.BusyError:
            return  # somebody copies the log just now
        except apsw.FullError:
            return  # nothing is lost by it: the write-ahead log keeps what it has
        self._wal_pages = 0

    def _note_wal_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK
