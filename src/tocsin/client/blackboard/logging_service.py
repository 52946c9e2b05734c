"""The logging service (paper 004, section 3.3): messages into a file or a database, by any link.

At least once: the place in the log is written with the messages, and after a crash it goes on from
there. What came twice is written once.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from tocsin.client.blackboard.link import Delivered, Link, Subscription
from tocsin.client.transport.retry import is_transient
from tocsin.errors import BadSetting, TocsinError

FILE_BYTES_MAX = 64 << 20
FILES_MAX = 10
TAKE_S = 0.5
TAIL_BYTES = 1 << 20
DATABASE_SUFFIXES = frozenset({".db", ".sqlite", ".sqlite3"})


class Journal(Protocol):
    """Where messages are written down."""

    @property
    def place(self) -> int | None:
        """The place in the log of the last message that is kept here; None if there is none."""

    def write(self, messages: Sequence[Delivered]) -> None:
        """Keep them; they are on the disk when this returns."""

    def close(self) -> None: ...


class FileJournal:
    """JSON lines. A full file becomes NAME.1, that one NAME.2, and so on; the oldest goes."""

    def __init__(
        self, path: Path, *, bytes_max: int = FILE_BYTES_MAX, files_max: int = FILES_MAX
    ) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self.place = _last_place(path)
        if self.place is None:
            self.place = _last_place(_numbered(path, 1))
        self._file = path.open("ab")
        self._end_line()

    def _end_line(self) -> None:
        """A line that a crash cut is ended, so that the next one stands by itself."""
        if self._file.tell():
            with self._path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    self._file.write(b"\n")

    def write(self, messages: Sequence[Delivered]) -> None:
        new = [each for each in messages if self.place is None or each.seq > self.place]
        if not new:
            return
        if self._file.tell() >= self._bytes_max:
            self._rotate()
        self._file.write("".join([_line(each) for each in new]).encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self.place = new[-1].seq

    def _rotate(self) -> None:
        self._file.close()
        for number in range(self._files_max - 1, 0, -1):
            older = _numbered(self._path, number - 1)
            if older.exists():
                older.replace(_numbered(self._path, number))
        self._file = self._path.open("ab")

    def close(self) -> None:
        self._file.close()


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def _line(delivered: Delivered) -> str:
    message = delivered.message
    record = {
        "seq": delivered.seq,
        "id": message.id,
        "source": message.source,
        "time": message.time,
        "pairs": message.pairs,
    }
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def _last_place(path: Path) -> int | None:
    """Of the last whole line of a file."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return None
    for line in reversed(lines):
        try:
            return int(json.loads(line)["seq"])
        except (ValueError, KeyError, TypeError):
            continue
    return None


class DatabaseJournal:
    """SQLite: a row for each message, one for each of its pairs, and the place in the log."""

    _SCHEMA = """
        CREATE TABLE IF NOT EXISTS message (
            seq INTEGER PRIMARY KEY, id TEXT NOT NULL, source TEXT NOT NULL, time TEXT
        );
        CREATE TABLE IF NOT EXISTS pair (
            seq INTEGER NOT NULL REFERENCES message, concept TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (seq, concept)
        ) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS pair_by_value ON pair (concept, value);
    """

    def __init__(self, path: Path) -> None:
        try:
            self._database = sqlite3.connect(path)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.executescript(self._SCHEMA)
            [(self.place,)] = self._database.execute("SELECT max(seq) FROM message")
        except sqlite3.Error as error:
            raise BadSetting(
                f"{path} cannot be used as a database: {error}",
                remedy="Name another file, or move that one away.",
            ) from None

    def write(self, messages: Sequence[Delivered]) -> None:
        with self._database:
            self._database.executemany(
                "INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?)",
                [(seq, message.id, message.source, message.time) for seq, message in messages],
            )
            self._database.executemany(
                "INSERT OR IGNORE INTO pair VALUES (?, ?, ?)",
                [(seq, *pair) for seq, message in messages for pair in message.pairs.items()],
            )
        if messages:
            self.place = max(self.place or 0, messages[-1].seq)

    def close(self) -> None:
        self._database.close()


def open_journal(path: Path) -> Journal:
    """A database if the name ends as one, otherwise a file of lines; BadSetting says why not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return DatabaseJournal(path) if path.suffix in DATABASE_SUFFIXES else FileJournal(path)
    except OSError as error:
        raise BadSetting(
            f"{path} cannot be written: {error.strerror}", remedy="Name another file."
        ) from None


def write_log(
    link: Link,
    concepts: Iterable[str],
    journal: Journal,
    *,
    after: int | None = None,
    is_over: Callable[[], bool] = lambda: False,
    count_max: int | None = None,
    on_unreachable: Callable[[TocsinError], None] = lambda error: None,
) -> int:
    """Write what has any of the concepts, until `is_over` or so many came; how many were written.

    Goes on after the journal's own place, or `after` if it is new; without either, from now on.
    A broker that is not there yet is waited for, and `on_unreachable` is called once.
    """
    place = journal.place if journal.place is not None else after
    written = 0
    subscription = _subscribed(link, tuple(concepts), place, is_over, on_unreachable)
    if subscription is None:
        return written
    with subscription:
        while not is_over() and (count_max is None or written < count_max):
            came = subscription.take(TAKE_S)
            if came:
                journal.write(came)
                written += len(came)
    return written


def _subscribed(
    link: Link,
    concepts: tuple[str, ...],
    place: int | None,
    is_over: Callable[[], bool],
    on_unreachable: Callable[[TocsinError], None],
) -> Subscription | None:
    """The subscription, as soon as there is a broker; None if it was over before."""
    reported = False
    while True:
        try:
            return link.subscribe(concepts, after=place)
        except TocsinError as error:
            if not is_transient(error):
                raise
            if not reported:
                on_unreachable(error)
                reported = True
        if is_over():
            return None
        time.sleep(TAKE_S)
