"""Opening a log to write it: is it whole, is it ours, and is it on the disk."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import apsw

from tocsin.store.directory import make_private
from tocsin.store.faults import is_full
from tocsin.store.loss import Evidence, Loss, accept, find_loss, gather, refused
from tocsin.store.record import LogMarks
from tocsin.store.schema import (
    check_small_tables,
    check_tables,
    create_tables,
    has_tables,
    read_marks,
    set_up_writer,
    upgrade_tables,
)

# SQLite on Unix, with the index of the write-ahead log in this process's memory and not in a file.
# Readers of other processes are then kept out.
WITHOUT_SHARED_MEMORY = "unix-excl"


@dataclass(frozen=True, slots=True)
class Opened:
    """A log that may be written."""

    connection: apsw.Connection
    marks: LogMarks
    loss: Loss | None
    """What was acknowledged once, and is not there: accepted by the operator, or by the setting."""
    vfs: str | None
    is_moved: bool
    """What the last run left in the write-ahead log is in the database now, and synced."""


def open_log(path: str, vfs: str | None, synchronous: str, *, accept_loss: bool) -> Opened:
    """Raises LogIncomplete before anything is changed, unless the loss is accepted."""
    seen = gather(path, vfs)
    is_synced = synchronous == "FULL"
    if not seen.log_bytes:
        _judge(path, find_loss(seen, LogMarks(), is_synced=is_synced), accept_loss)
    if vfs is None:
        make_private(path)
    try:
        return _open(path, vfs, synchronous, seen, accept_loss)
    except apsw.Error as error:
        # No room for the index of the write-ahead log, which is rebuilt at every start. Without
        # it the events can be read, and written as soon as there is room for them.
        if vfs is not None or not is_full(error):
            raise
    return _open(path, WITHOUT_SHARED_MEMORY, synchronous, seen, accept_loss)


def _open(
    path: str, vfs: str | None, synchronous: str, seen: Evidence, accept_loss: bool
) -> Opened:
    connection = apsw.Connection(path, vfs=vfs)
    try:
        alone = vfs is not None and vfs != WITHOUT_SHARED_MEMORY
        set_up_writer(connection, alone=alone, synchronous=synchronous)
        have = LogMarks()
        if has_tables(connection):
            check_tables(connection, path)
            have = read_marks(connection, path)
        loss = find_loss(seen, have, is_synced=synchronous == "FULL")
        _judge(path, loss, accept_loss)
        create_tables(connection)
        check_tables(connection, path)
        upgrade_tables(connection, path)
        check_small_tables(connection, path)
        if loss is not None:
            accept(connection, path, loss, have)
        is_moved = _move(connection)
        return Opened(connection, read_marks(connection, path), loss, vfs, is_moved)
    except BaseException:
        with suppress(Exception):  # the first failure is the one to report
            connection.close()
        raise


def _judge(path: str, loss: Loss | None, accept_loss: bool) -> None:
    if loss is not None and not loss.is_expected and not accept_loss:
        raise refused(path, loss)


def _move(connection: apsw.Connection) -> bool:
    """Write what the last run left in the write-ahead log again, and sync it: if that run ended
    with a failed sync, the log may be in memory only, and look as if it were on disk.

    False if there is no room for it: then it must be done before the first write.
    """
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        pass  # somebody reads; the log is then moved later
    except apsw.FullError:
        return False
    return True
