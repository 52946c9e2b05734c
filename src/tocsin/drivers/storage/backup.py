"""Backup: a consistent copy of a data directory while its broker runs, and the way back.

The order makes the copies fit each other. The monitor comes before the log, so that it has
no event that the copied log lacks. Message boxes come after the log, whose cursors say what was
handed to them: what is in both is delivered twice, and nothing is left out. Of the archive, those
files are copied that end where the copied log ends, or before.

The manifest is written last, and the directory gets its name only then: so what has it is whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Final

import apsw
import msgspec

from tocsin import __version__
from tocsin.archive.catalog import Catalog
from tocsin.archive.disk_sync import sync, sync_tree
from tocsin.archive.file_names import UNFINISHED
from tocsin.drivers.monitor.database.schema import FILE_NAME as MONITOR_NAME
from tocsin.errors.disk import BackupFailed, BadBackup, DataDirectoryInUse
from tocsin.store.directory import (
    DIRECTORY_MODE,
    FILE_MODE,
    LOCK_NAME,
    LOG_NAME,
    lock_directory,
)
from tocsin.store.loss import Loss, accept, loss_in, refused
from tocsin.store.mark import MARK_SUFFIX, read_mark
from tocsin.store.reader import Reader
from tocsin.store.schema import connect_reader, read_marks

MANIFEST_NAME: Final = "backup.json"
FORMAT: Final = 1
ARCHIVE_NAME: Final = "archive"
BOXES_NAME: Final = "boxes"
SAMPLES: Final = ("_deliveries", "_deadletters", "_discoveries")
PAGES_A_STEP: Final = 1_000  # of 8 KiB: between two, progress is shown
READ_BYTES: Final = 1 << 20
# What belongs to a running broker, or is rebuilt from the rest.
LEFT_OUT: Final = frozenset({LOCK_NAME, f"{LOG_NAME}{MARK_SUFFIX}"})
LEFT_OUT_SUFFIXES: Final = ("-wal", "-shm", "-journal", MARK_SUFFIX)

Advance = Callable[[int], None]
"""So many more bytes are done."""


class BackupFile(msgspec.Struct, frozen=True):
    """A file of a backup: its path in it, its size, and its SHA-256."""

    path: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What a backup holds."""

    format: int
    made: datetime
    version: str
    first_seq: int
    last_seq: int
    files: list[BackupFile]
    corrupt: list[int] = []
    """Events that were damaged in the log already: the first of them."""

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.files)


def back_up(data: Path, archive: Path | None, out: Path, advance: Advance) -> Manifest:
    """Copy the data directory to `out`, which must not be there yet.

    Raises BadBackup if there is nothing to copy or something in the way, LogIncomplete or
    CorruptLog if the log itself is damaged, and BackupFailed if the disk says no.
    """
    if not (data / LOG_NAME).is_file():
        raise BadBackup(f"{data} is not a data directory", remedy="Name one with --data.")
    _must_be_free(out)
    if not _is_served(data) and (loss := loss_in(data)) is not None:
        raise refused(str(data / LOG_NAME), loss)
    with _whole_or_not_at_all(out) as unfinished:
        manifest = _copy_all(data, archive, unfinished, advance)
        _write(unfinished / MANIFEST_NAME, msgspec.json.format(msgspec.json.encode(manifest)))
    return manifest


def restore(backup: Path, data: Path, next_seq: int | None, advance: Advance) -> Manifest:
    """Make a data directory of a backup, whole or not at all; `data` must be missing or empty.

    With `next_seq` the next event gets that number, so that none is given twice that was given
    after the backup. Raises BadBackup if the backup is damaged, and BackupFailed.
    """
    manifest = read_manifest(backup)
    _must_be_free(data)
    if next_seq is not None and next_seq <= manifest.last_seq:
        raise BadBackup(
            f"the backup ends with event {manifest.last_seq}, so {next_seq} cannot come next",
            remedy=f"Give a number from {manifest.last_seq + 1} on, or leave it out.",
        )
    with _whole_or_not_at_all(data) as unfinished:
        for file in manifest.files:
            _copy_checked(backup, file, unfinished, advance)
        if next_seq is not None:
            _skip_to(unfinished / LOG_NAME, next_seq)
    return manifest


@contextmanager
def _whole_or_not_at_all(directory: Path) -> Iterator[Path]:
    """A place to write to, which becomes the directory once all of it is on the disk."""
    unfinished = directory.with_name(f".{directory.name}.{os.getpid()}.unfinished")
    try:
        unfinished.mkdir(mode=DIRECTORY_MODE, parents=True)
        yield unfinished
        sync_tree(unfinished)
        os.rename(unfinished, directory)  # also over an empty directory
        sync(directory.parent)
    except OSError as error:
        raise BackupFailed(
            f"{error.filename or directory}: {error.strerror or error}",
            remedy="Make room or name another place; what was copied so far is removed.",
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def read_manifest(backup: Path) -> Manifest:
    """What a backup says that it holds. Raises BadBackup."""
    try:
        manifest = msgspec.json.decode((backup / MANIFEST_NAME).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise BadBackup(
            f"{backup} is not a backup: {MANIFEST_NAME} cannot be read",
            remedy="Name a directory that `tocsin backup` made.",
        ) from error
    if manifest.format != FORMAT:
        raise BadBackup(
            f"{backup} was made by Tocsin {manifest.version}, in a newer format",
            remedy="Restore it with that version or a newer one.",
        )
    for file in manifest.files:
        if Path(file.path).is_absolute() or ".." in Path(file.path).parts:
            raise _damaged(backup, file, "its path leads out of the backup")
    return manifest


def last_given(data: Path) -> int:
    """The highest number that a data directory is known to have given to an event, if that can
    still be found: in its log, or in the mark beside it. Raises BadBackup."""
    path = str(data / LOG_NAME)
    mark = read_mark(path)
    found = 0 if mark is None else mark.last_seq
    try:
        with closing(connect_reader(path)) as connection:
            found = max(found, read_marks(connection, path).last_seq)
    except Exception as error:  # whatever is wrong with it: it is being replaced
        if not found:
            raise BadBackup(
                f"{data} no longer records its last event number",
                remedy="Give the next number with --next.",
            ) from error
    return found


def size_of(data: Path, archive: Path | None) -> int:
    """About how many bytes a backup has."""
    files = [data / LOG_NAME, data / MONITOR_NAME, data / BOXES_NAME / LOG_NAME]
    pieces = Catalog(archive).pieces() if archive is not None and archive.is_dir() else []
    databases = sum(path.stat().st_size for path in files if path.is_file())
    return databases + sum(piece.bytes for piece in pieces)


def _must_be_free(place: Path) -> None:
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise BadBackup(f"{place} is not empty", remedy="Name a directory that does not exist yet.")


def _is_served(data: Path) -> bool:
    """True if a broker works in it now: then what it has not yet noted is no loss."""
    try:
        lock_directory(data).close()
    except DataDirectoryInUse:
        return True
    return False


def _copy_all(data: Path, archive: Path | None, out: Path, advance: Advance) -> Manifest:
    if (data / MONITOR_NAME).is_file():
        _copy_database(data / MONITOR_NAME, out / MONITOR_NAME, advance)
    _copy_database(data / LOG_NAME, out / LOG_NAME, advance)
    corrupt = _corrupt_events(out, data / LOG_NAME)
    if (data / BOXES_NAME / LOG_NAME).is_file():
        (out / BOXES_NAME).mkdir(mode=DIRECTORY_MODE)
        _copy_database(data / BOXES_NAME / LOG_NAME, out / BOXES_NAME / LOG_NAME, advance)
    with closing(connect_reader(str(out / LOG_NAME))) as connection:
        marks = read_marks(connection, str(out / LOG_NAME))
    if archive is not None and archive.is_dir():
        for path in _archive_files(archive, marks.last_seq):
            _copy_file(path, out / ARCHIVE_NAME / path.relative_to(archive), advance)
    for path in sorted(data.iterdir()):
        if _is_other_file(path):
            _copy_file(path, out / path.name, advance)
    files = [
        BackupFile(str(path.relative_to(out)), path.stat().st_size, _sha256(path))
        for path in sorted(out.rglob("*"))
        if path.is_file()
    ]
    return Manifest(
        FORMAT,
        datetime.now(UTC),
        __version__,
        marks.trimmed_to + 1,
        marks.last_seq,
        files,
        corrupt,
    )


def _is_other_file(path: Path) -> bool:
    """What somebody else put here: an ontology, a token, a key."""
    known = {LOG_NAME, MONITOR_NAME, *LEFT_OUT}
    return (
        path.is_file()
        and not path.is_symlink()
        and path.name not in known
        and not path.name.startswith(".")
        and not path.name.endswith(LEFT_OUT_SUFFIXES)
    )


def _archive_files(archive: Path, last_seq: int) -> Iterator[Path]:
    """Those with events of the copied log or before, and the samples beside them."""
    for piece in Catalog(archive).pieces():
        if piece.last <= last_seq:
            yield Path(piece.path)
    for name in SAMPLES:
        for path in sorted((archive / name).glob("*/*.parquet")):
            if not path.name.startswith(UNFINISHED):
                yield path


def _copy_database(source: Path, target: Path, advance: Advance) -> None:
    """One moment of a database that may be written meanwhile, checked, as one file."""
    _write(target, b"")  # SQLite takes an empty file as a new database, and keeps its mode
    with (
        closing(connect_reader(str(source))) as reading,
        closing(apsw.Connection(str(target))) as copy,
    ):
        reading.execute("BEGIN; SELECT count(*) FROM sqlite_schema").fetchall()
        with copy.backup("main", reading, "main") as steps:
            page_bytes, left = reading.pragma("page_size"), None
            while not steps.done:
                steps.step(PAGES_A_STEP)
                done = (left or steps.page_count) - steps.remaining
                left = steps.remaining
                advance(done * page_bytes)
        reading.execute("COMMIT")
        copy.pragma("journal_mode", "delete")
        for (verdict,) in copy.execute("PRAGMA quick_check(1)").fetchall():
            if verdict != "ok":
                raise BadBackup(
                    f"{source} is damaged ({verdict})",
                    remedy="Run `tocsin doctor --data DIR`, and go back to an earlier backup.",
                )


def _corrupt_events(copy: Path, source: Path) -> list[int]:
    """Events whose record is damaged: the others are worth a backup all the same."""
    with closing(Reader.open(copy)) as reader:
        report = reader.check()
    if report.damage:
        raise BadBackup(
            f"{source} is damaged: {report.damage[0]}",
            remedy="Run `tocsin doctor --data DIR`, and go back to an earlier backup.",
        )
    return list(report.corrupt)


def _copy_file(source: Path, target: Path, advance: Advance) -> None:
    """A file that never changes. One that was merged or let go meanwhile is passed over."""
    target.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    try:
        with source.open("rb") as reading, _created(target) as writing:
            shutil.copyfileobj(reading, writing, READ_BYTES)
    except FileNotFoundError:
        return
    advance(target.stat().st_size)


def _copy_checked(backup: Path, file: BackupFile, out: Path, advance: Advance) -> None:
    source, target = backup / file.path, out / file.path
    target.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    try:
        with source.open("rb") as reading, _created(target) as writing:
            while chunk := reading.read(READ_BYTES):
                digest.update(chunk)
                writing.write(chunk)
                size += len(chunk)
                advance(len(chunk))
    except FileNotFoundError:
        raise _damaged(backup, file, "it is missing") from None
    if (size, digest.hexdigest()) != (file.bytes, file.sha256):
        raise _damaged(backup, file, "its checksum is wrong")


def _damaged(backup: Path, file: BackupFile, problem: str) -> BadBackup:
    return BadBackup(
        f"{backup} is damaged: {file.path}: {problem}",
        remedy="Use another backup. Nothing was restored.",
    )


def _skip_to(log: Path, next_seq: int) -> None:
    with closing(apsw.Connection(str(log))) as connection:
        have = read_marks(connection, str(log))
        if next_seq > have.last_seq + 1:
            loss = Loss(have.last_seq, next_seq - 1, have.commits, "restored", is_expected=True)
            accept(connection, str(log), loss, have)


def _created(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb")


def _write(path: Path, content: bytes) -> None:
    with _created(path) as file:
        file.write(content)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
