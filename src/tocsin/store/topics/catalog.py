"""Catalog: the one writer of topic advertisements. When `put` returns, everything is on disk.

It keeps what it is given and checks no signature. A topic is known by its head for as long as any
version of it could come again: so an older version is refused after a newer one or a withdrawal,
also when those have expired before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import apsw
import msgspec

from tocsin.store.directory import make_private, prepare_directory
from tocsin.store.faults import disk_failed, disk_full, is_full, open_failed, reason
from tocsin.store.schema import set_up_writer
from tocsin.store.topics.rows import (
    Rows,
    checksum,
    gram_tokens,
    pack_hashes,
    unpack_hashes,
    word_tokens,
)
from tocsin.store.topics.tables import FILE_NAME, check_tables, create_tables
from tocsin.topics.queries.indexed import IndexedWithdrawal, Outcome

CHECKPOINT_PAGES = 1_000  # 8 MiB
EXPIRED_AT_ONCE = 64  # some 20 ms: whoever advertises meanwhile waits for it
CACHE_KIB = 32 << 10  # the indexes grow in many places at once
LABELS_MAX = 256  # of policies, which have a few; an index of each is looked at for each query

EVERYBODY = ""  # in the table of usage


class CatalogLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept: topics, and bytes of their advertisements and what is indexed of them."""

    topics_max: int = 100_000
    bytes_max: int = 1 << 30
    creator_topics_max: int = 10_000
    creator_bytes_max: int = 64 << 20


class _Head(msgspec.Struct, frozen=True):
    """What is known of a topic."""

    version: int
    creator: str
    until_ns: int
    size_bytes: int
    advert: int | None
    withdrawal: bytes | None


class Catalog:
    """The catalog of one directory, open for writing."""

    def __init__(self, connection: apsw.Connection, path: str, limits: CatalogLimits) -> None:
        self.path = path
        self.connection = connection
        """For the simulator alone, which has one connection to a simulated disk."""
        self._limits = limits
        self._wal_pages = 0
        self._failure: str | None = None
        connection.set_wal_hook(self._note_wal_pages)

    @classmethod
    def open(
        cls,
        directory: Path | str,
        limits: CatalogLimits | None = None,
        *,
        vfs: str | None = None,
        synchronous: str = "FULL",
    ) -> Self:
        """Made new if there is none. With a `vfs` the disk is a simulated one."""
        path = str(Path(directory) / FILE_NAME)
        if vfs is None:
            prepare_directory(Path(directory))
            make_private(path)
        try:
            connection = apsw.Connection(path, vfs=vfs)
            try:
                set_up_writer(connection, alone=vfs is not None, synchronous=synchronous)
                connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
                create_tables(connection)
                check_tables(connection, path)
                with suppress(apsw.BusyError, apsw.FullError):  # see `store/log_opener.py`
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                return cls(connection, path, limits or CatalogLimits())
            except BaseException:
                with suppress(Exception):  # the first failure is the one to report
                    connection.close()
                raise
        except apsw.Error as error:
            raise open_failed(path, error) from error

    def put(self, given: Sequence[Rows | IndexedWithdrawal], now_ns: int) -> list[Outcome]:
        """Keep these in one transaction. What becomes of one does not depend on the others, but
        for the limits.

        Raises DiskFull if there is no room: then nothing of it is there. Raises DiskFailed if the
        disk did anything else than confirm; every later write is then refused, since what it holds
        is not known.
        """
        with self._writing():
            return [
                self._withdraw(each, now_ns)
                if isinstance(each, IndexedWithdrawal)
                else self._advertise(each, now_ns)
                for each in given
            ]

    def expire(self, now_ns: int) -> int:
        """Remove some of what has expired; call again if that was not nothing."""
        with self._writing():
            adverts = self._rows(
                "SELECT a.uuid, a.id FROM labels AS l JOIN adverts AS a ON a.label = l.no "
                "WHERE a.expires <= ? LIMIT ?",
                *(now_ns, EXPIRED_AT_ONCE),
            )
            for uuid, advert in adverts:
                self._remove(advert)
                head = self._head(uuid)
                assert head is not None
                self._put_head(uuid, head, msgspec.structs.replace(head, advert=None, size_bytes=0))
            heads = self._rows(
                "SELECT uuid FROM heads WHERE until_ns <= ? AND advert IS NULL LIMIT ?",
                *(now_ns, EXPIRED_AT_ONCE),
            )
            for (uuid,) in heads:
                self._put_head(uuid, self._head(uuid), None)
        return len(adverts) + len(heads)

    def usage(self, creator: str = EVERYBODY) -> tuple[int, int]:
        """Topics that are known, withdrawn ones too, and the bytes of them: of a creator or all."""
        found = self._rows("SELECT heads, bytes FROM usage WHERE creator = ?", creator)
        return (found[0][0], found[0][1]) if found else (0, 0)

    def documents(self, after: int = 0, limit: int = 100) -> list[tuple[int, bytes]]:
        """Everything that is kept, for the policy to label it anew; `after` is the last number."""
        return self._rows(
            "SELECT id, document FROM documents WHERE id > ? ORDER BY id LIMIT ?", after, limit
        )

    def close(self) -> None:
        try:
            if self._failure is None:
                with suppress(apsw.FullError, apsw.BusyError):  # read at the next start
                    self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise disk_failed(self.path, reason(error)) from error
        finally:
            self._failure = "the catalog is closed"
            self.connection.close()

    # One advertisement

    def _advertise(self, rows: Rows, now_ns: int) -> Outcome:
        given = rows.advertisement
        head = self._head(given.uuid)
        outcome = _judge(head, given.creator, given.version, given.expires_ns, now_ns)
        if outcome is Outcome.REPEATED and head is not None:
            return self._repeat(rows, head)
        if outcome is not Outcome.STORED:
            return outcome
        until_ns = max(given.expires_ns, head.until_ns if head else 0)
        kept = _Head(given.version, given.creator, until_ns, rows.size_bytes, 0, None)
        full = self._full(given.creator, head, kept)
        if full is not None:
            return full
        label = self._label(given.label)
        if label is None:
            return Outcome.FULL
        advert = self._insert(rows, label, self._remove(head.advert) if head else None)
        self._put_head(given.uuid, head, msgspec.structs.replace(kept, advert=advert))
        return Outcome.STORED

    def _repeat(self, rows: Rows, head: _Head) -> Outcome:
        """The same version again: it may have another label by now."""
        if head.advert is None:
            return Outcome.WITHDRAWN if head.withdrawal is not None else Outcome.OLDER
        given = rows.advertisement
        known = self._rows(
            "SELECT l.name, d.document FROM adverts AS a JOIN labels AS l ON l.no = a.label "
            "JOIN documents AS d ON d.id = a.id WHERE a.id = ?",
            head.advert,
        )
        is_moved = known[0][1] == given.document and known[0][0] != given.label
        if is_moved and (label := self._label(given.label)) is not None:
            self._insert(rows, label, self._remove(head.advert))
        return Outcome.REPEATED

    def _withdraw(self, given: IndexedWithdrawal, now_ns: int) -> Outcome:
        head = self._head(given.uuid)
        outcome = _judge(head, given.creator, given.version, given.expires_ns, now_ns)
        if outcome is Outcome.REPEATED and head is not None and head.withdrawal is None:
            outcome = Outcome.STORED
        if outcome is not Outcome.STORED:
            return outcome
        until_ns = max(given.expires_ns, head.until_ns if head else 0)
        size = len(given.document)
        kept = _Head(given.version, given.creator, until_ns, size, None, given.document)
        # To take something back is possible at any limit: it makes room.
        full = None if head else self._full(given.creator, head, kept)
        if full is not None:
            return full
        if head is not None:
            self._remove(head.advert)
        self._put_head(given.uuid, head, kept)
        return Outcome.STORED

    def _full(self, creator: str, before: _Head | None, after: _Head) -> Outcome | None:
        heads = int(before is None)
        size = after.size_bytes - (before.size_bytes if before else 0)
        limits = self._limits
        for whose, heads_max, bytes_max, outcome in (
            (EVERYBODY, limits.topics_max, limits.bytes_max, Outcome.FULL),
            (creator, limits.creator_topics_max, limits.creator_bytes_max, Outcome.CREATOR_FULL),
        ):
            has_heads, has_bytes = self.usage(whose)
            if (heads and has_heads >= heads_max) or (size > 0 and has_bytes + size > bytes_max):
                return outcome
        return None

    # Rows

    def _head(self, uuid: str) -> _Head | None:
        found = self._rows(
            "SELECT version, creator, until_ns, bytes, advert, withdrawal FROM heads "
            "WHERE uuid = ?",
            uuid,
        )
        return _Head(*found[0]) if found else None

    def _put_head(self, uuid: str, before: _Head | None, after: _Head | None) -> None:
        known = after or before
        assert known is not None
        if after is None:
            self._run("DELETE FROM heads WHERE uuid = ?", uuid)
        else:
            self._run(
                "REPLACE INTO heads VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(uuid, after.version, after.creator, after.until_ns, after.size_bytes),
                *(after.advert, after.withdrawal),
            )
        heads = int(after is not None) - int(before is not None)
        size = (after.size_bytes if after else 0) - (before.size_bytes if before else 0)
        for creator in (EVERYBODY, known.creator):
            self._run(
                "INSERT INTO usage VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET "
                "heads = heads + excluded.heads, bytes = bytes + excluded.bytes",
                *(creator, heads, size),
            )
            self._run("DELETE FROM usage WHERE creator = ? AND heads = 0", creator)

    def _insert(self, rows: Rows, label: int, advert: int | None) -> int:
        """Under the number that an earlier version had: it keeps its place in every search."""
        given = rows.advertisement
        self._run(
            "INSERT INTO adverts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(advert, label, given.uuid, given.version, int(given.is_encrypted)),
            *(given.created_ns, given.expires_ns, given.expires_ns - given.created_ns),
            *(given.creator, given.institution, given.topic),
        )
        number = self.connection.last_insert_rowid()
        crc = checksum(label, given.uuid, given.version, given.document)
        self._run("INSERT INTO documents VALUES (?, ?, ?)", number, crc, given.document)
        hashes = pack_hashes(rows.hashes)
        self._run("INSERT INTO forms VALUES (?, ?, ?, ?)", number, hashes, rows.xml, rows.lines)
        many = self.connection.executemany
        many(
            "INSERT INTO properties VALUES (?, ?, ?, ?, ?, ?)",
            [(number, row[0], label, *row[1:]) for row in rows.properties],
        )
        many(
            "INSERT INTO xml_values VALUES (?, ?, ?)",
            [(label, each, number) for each in rows.hashes],
        )
        full_text = "INSERT INTO {0} (rowid, tokens) VALUES (?, ?)"
        self._run(full_text.format("words"), number, word_tokens(label, rows.words))
        self._run(full_text.format("grams"), number, gram_tokens(label, rows.grams))
        return number

    def _remove(self, advert: int | None) -> int | None:
        """The same number, of which nothing is left but the head."""
        if advert is None:
            return None
        ((label, packed),) = self._rows(
            "SELECT a.label, f.hashes FROM adverts AS a JOIN forms AS f ON f.id = a.id "
            "WHERE a.id = ?",
            advert,
        )
        self.connection.executemany(
            "DELETE FROM xml_values WHERE label = ? AND hash = ? AND advert = ?",
            [(label, each, advert) for each in unpack_hashes(packed)],
        )
        self._run("DELETE FROM properties WHERE advert = ?", advert)
        for table in ("words", "grams"):
            self._run(f"DELETE FROM {table} WHERE rowid = ?", advert)
        for table in ("adverts", "documents", "forms"):
            self._run(f"DELETE FROM {table} WHERE id = ?", advert)
        return advert

    def _label(self, name: str) -> int | None:
        """Its number; None if there are too many."""
        found = self._rows("SELECT no FROM labels WHERE name = ?", name)
        if found:
            return int(found[0][0])
        ((count,),) = self._rows("SELECT count(*) FROM labels")
        if count >= LABELS_MAX:
            return None
        self._run("INSERT INTO labels (name) VALUES (?)", name)
        return self.connection.last_insert_rowid()

    def _run(self, statement: str, *values: object) -> None:
        self.connection.execute(statement, values)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return self.connection.execute(statement, values).fetchall()

    # The transaction

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._failure is not None:
            raise disk_failed(self.path, self._failure)
        try:
            self._checkpoint_if_due()
            self.connection.execute("BEGIN IMMEDIATE")
            yield
            self.connection.execute("COMMIT")
        except apsw.Error as error:
            if is_full(error) and self._roll_back():
                raise disk_full(self.path) from error
            self._failure = reason(error)
            raise disk_failed(self.path, self._failure) from error
        except BaseException as error:
            self._failure = repr(error)
            raise

    def _roll_back(self) -> bool:
        """Leave the transaction, if SQLite has not done so itself. False if that fails too."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except apsw.Error:
            return False
        return True

    def _checkpoint_if_due(self) -> None:
        """Before a write and not after one, as for the log: see `store/store.py`."""
        if self._wal_pages < CHECKPOINT_PAGES:
            return
        with suppress(apsw.BusyError, apsw.FullError):
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._wal_pages = 0

    def _note_wal_pages(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK


def _judge(head: _Head | None, creator: str, version: int, expires_ns: int, now_ns: int) -> Outcome:
    """What is to become of it, by what is known of the topic."""
    if head is not None and head.creator != creator:
        return Outcome.FOREIGN
    if expires_ns <= now_ns:
        return Outcome.EXPIRED
    if head is None or version > head.version:
        return Outcome.STORED
    if version == head.version:
        return Outcome.REPEATED
    return Outcome.WITHDRAWN if head.withdrawal is not None else Outcome.OLDER
