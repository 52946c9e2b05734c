"""Store: the one writer of the log. When `commit` returns, everything is on disk.

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

from tocsin.broker.commit.numbering import Applied, Numbering
from tocsin.broker.log import Listener
from tocsin.event.stored import Append, Batch, StateChange
from tocsin.store.directory import LOG_NAME, DirectoryLock, lock_directory, prepare_directory
from tocsin.store.faults import disk_failed, disk_full, is_full, open_failed, reason, unreadable
from tocsin.store.log_opener import WITHOUT_SHARED_MEMORY, Opened, open_log
from tocsin.store.mark import HighWater, MarkFile
from tocsin.store.reader import Reader
from tocsin.store.record import (
    EVENT_COLUMNS,
    LogMarks,
    encode_rows,
    seal,
    seal_cursor,
    start_bytes,
)
from tocsin.store.schema import REPLACE_MARKS, connect_reader

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
        self._numbering: Numbering | None = None
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

    def open_window(self, *, duplicates_window: int, clock_jump_ns: int) -> None:
        """Take up where the log ends; once, before the first append."""
        assert self._numbering is None
        reader = Reader(self._connection, self._path, shared=True)
        last = reader.last_where(lambda _: True, self._marks.trimmed_to, self._marks.last_seq)
        self._numbering = Numbering(
            duplicates_window=duplicates_window, clock_jump_ns=clock_jump_ns
        )
        self._numbering.restore(
            reader.recent_keys(duplicates_window), 0 if last is None else last.received_ns
        )

    def commit(self, append: Append, change: StateChange) -> Applied:
        """Number the events and keep everything in one transaction, on disk when this returns.

        Raises DiskFull if there is no room: nothing of it is there, and a later commit may succeed;
        only a crash before that may bring it back, whole, if it had reached the disk. Raises
        DiskFailed if the disk did anything else than confirm: what it holds is then not known, and
        every later commit is refused. A failed sync is never tried again, because the kernel may
        answer the second one with success and have dropped the pages.
        """
        if not append.offers:
            applied = Applied([], [], self._marks.last_seq)
            self._write(change, applied)
            return applied
        assert self._numbering is not None, "open_window comes before the first append"
        applied = self._numbering.apply(append, self._marks.last_seq)
        if not applied.events and change.is_empty():
            return applied  # repeats only: what they repeat is on disk
        try:
            self._write(change, applied)
        except BaseException:
            self._numbering.undo(applied)
            raise
        self._numbering.keep()
        return applied

    def follow(self, after: int, listener: Listener) -> None:
        """This process holds the lock of the directory and is its only writer: there is nothing
        that others append."""

    def write(self, batch: Batch) -> None:
        """Keep events that have their numbers already: of a log that this one is a copy of."""
        assert self._numbering is None, "a log that numbers its events takes no others"
        last_seq = batch.events[-1].seq if batch.events else self._marks.last_seq
        self._write(batch, Applied(batch.events, [], last_seq))

    def _write(self, change: StateChange, applied: Applied) -> None:
        if self._failure is not None:
            raise disk_failed(self._path, self._failure)
        columns, end_bytes = encode_rows(applied.events, self._marks)
        try:
            self._checkpoint_if_due()
            self._marks = self._transact(columns, end_bytes, change, applied)
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

    def _transact(
        self, columns: Sequence[Column], end_bytes: int, change: StateChange, applied: Applied
    ) -> LogMarks:
        run = self._cursor.execute
        run("BEGIN IMMEDIATE")
        marks = replace(self._marks, commits=self._marks.commits + 1)
        if columns:
            self._insert(INSERT_EVENTS, EVENT_COLUMNS, columns)
            marks = replace(marks, last_seq=applied.last_seq, last_bytes=end_bytes)
        if change.trim_to > marks.trimmed_to:
            marks = self._trim(marks, change.trim_to)
        run(REPLACE_MARKS, marks.row())
        self._save("subscriptions", change.subscriptions)
        cursors = change.cursors
        if change.starts:
            cursors = cursors | {name: applied.start(at) for name, at in change.starts.items()}
        if cursors:
            rows = [(name, seq, seal_cursor(name, seq)) for name, seq in cursors.items()]
            self._insert(REPLACE_CURSORS, 3, [column for row in rows for column in row])
        for name, definition in change.subscriptions.items():
            if definition is None:
                run("DELETE FROM cursors WHERE id = ?", (name,))
        self._save("dead", change.dead)
        self._save("kept", change.service_state)
        run("COMMIT")
        return marks

    def _save(self, table: str, rows: dict[str, bytes | None]) -> None:
        run = self._cursor.execute
        for name, content in rows.items():
            if content is None:
                run(f"DELETE FROM {table} WHERE id = ?", (name,))
            else:
                run(f"REPLACE INTO {table} VALUES (?, ?, ?)", (name, content, seal(name, content)))

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
