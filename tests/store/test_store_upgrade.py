"""A log of the first version becomes one of the present when a broker opens it, or stays."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import apsw
import pytest
from store_samples import append, log_of, make_events, read_all

from tocsin.errors import CorruptLog
from tocsin.event.stored import Batch
from tocsin.store.reader import Reader
from tocsin.store.record import LogMarks, encode_rows, seal, seal_cursor
from tocsin.store.schema import SCHEMA_VERSION
from tocsin.store.store import Store
from tocsin.store.vfs import PowerCut, SimDisk

FIRST_VERSION = """
PRAGMA page_size=8192;
PRAGMA journal_mode=WAL;
BEGIN;
CREATE TABLE events (seq INTEGER PRIMARY KEY, received_ns INTEGER NOT NULL, end_bytes INTEGER NOT NULL, crc INTEGER NOT NULL, record BLOB NOT NULL) STRICT;
CREATE TABLE marks (only INTEGER PRIMARY KEY CHECK (only = 1), trimmed_to INTEGER NOT NULL, trimmed_bytes INTEGER NOT NULL, last_seq INTEGER NOT NULL, last_bytes INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE subscriptions (id TEXT PRIMARY KEY NOT NULL, definition BLOB NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE cursors (id TEXT PRIMARY KEY NOT NULL, seq INTEGER NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE dead (id TEXT PRIMARY KEY NOT NULL, record BLOB NOT NULL, crc INTEGER NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA application_id=0x546F6373;
PRAGMA user_version=1;
COMMIT;
"""  # noqa: E501 - as the first version wrote it
EVENTS = make_events(1, 5)
NAMES = (f"upgrade-{number}" for number in itertools.count())


def make_old_log(path: str, vfs: str | None = None) -> None:
    connection = apsw.Connection(path, vfs=vfs)
    if vfs is not None:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
    connection.execute("PRAGMA synchronous=FULL;" + FIRST_VERSION).fetchall()
    columns, end_bytes = encode_rows(EVENTS, LogMarks())
    connection.execute("BEGIN")
    for start in range(0, len(columns), 5):
        connection.execute("INSERT INTO events VALUES (?,?,?,?,?)", columns[start : start + 5])
    marks = LogMarks(last_seq=5, last_bytes=end_bytes)
    connection.execute("INSERT INTO marks VALUES (1,?,?,?,?,?)", marks.old_row())
    connection.execute("INSERT INTO subscriptions VALUES ('a', ?, ?)", (b"{}", seal("a", b"{}")))
    connection.execute("INSERT INTO cursors VALUES ('a', 3, ?)", (seal_cursor("a", 3),))
    connection.execute("INSERT INTO dead VALUES ('d', ?, ?)", (b"why", seal("d", b"why")))
    connection.execute("COMMIT")
    connection.close()


def assert_all_is_there(reader: Reader) -> None:
    assert read_all(reader) == EVENTS
    assert reader.subscriptions() == {"a": b"{}"}
    assert reader.cursors() == {"a": 3}
    assert reader.dead_letters().letters == {"d": b"why"}
    assert reader.check().ok


def version(directory: Path) -> object:
    return apsw.Connection(str(log_of(directory))).pragma("user_version")


def test_everything_is_still_there_and_more_can_be_kept(tmp_path: Path) -> None:
    make_old_log(str(log_of(tmp_path)))
    store = Store.open(tmp_path)
    assert_all_is_there(store.reader())
    assert store.reader().service_state() == {}

    store.write(Batch(service_state={"k": b"v"}))
    append(store, 1)
    store.close()

    again = Store.open(tmp_path)
    assert again.reader().service_state() == {"k": b"v"}
    assert again.last_seq == 6
    again.close()
    assert version(tmp_path) == SCHEMA_VERSION


def test_who_only_reads_changes_nothing(tmp_path: Path) -> None:
    make_old_log(str(log_of(tmp_path)))

    reader = Reader.open(tmp_path)

    assert_all_is_there(reader)
    assert reader.service_state() == {}
    reader.close()
    assert version(tmp_path) == 1


@pytest.mark.parametrize("damage", ["DROP TABLE dead", "CREATE TABLE kept (a)"])
def test_tables_that_are_not_those_of_the_first_version_are_left_alone(
    tmp_path: Path, damage: str
) -> None:
    make_old_log(str(log_of(tmp_path)))
    connection = apsw.Connection(str(log_of(tmp_path)))
    connection.execute(damage)
    connection.close()

    with pytest.raises(CorruptLog):
        Store.open(tmp_path)
    assert version(tmp_path) == 1


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_the_power_may_go_at_any_moment_of_it(seed: int | None) -> None:
    for cut in itertools.count(1):
        disk = SimDisk(next(NAMES))
        make_old_log("data/log.sqlite", vfs=disk.name)
        disk.cut_at = disk.operations + cut
        finished = True
        try:
            Store.open("data", vfs=disk.name).close()
        except PowerCut:
            finished = False
            disk.crash(None if seed is None else Random(seed * 1000 + cut))
        disk.cut_at = None
        store = Store.open("data", vfs=disk.name)
        assert_all_is_there(store.reader())
        store.write(Batch(service_state={"k": b"v"}))
        assert store.reader().service_state() == {"k": b"v"}
        store.close()
        disk.unregister()
        if finished:
            assert cut > 10
            return
