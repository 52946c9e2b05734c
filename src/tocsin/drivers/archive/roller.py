"""Rolling: the log's events, taken into an archive. What the filling process does when asked."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable
from typing import IO, Final, Self

import pyarrow as pa

from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, Segment, Waiting, segments
from tocsin.archive.catalog import Piece
from tocsin.archive.facts import FactsReader
from tocsin.archive.file_names import LOCK_NAME
from tocsin.archive.last_event import last_event
from tocsin.archive.parquet_writer import make_folder
from tocsin.archive.record import to_batch
from tocsin.archive.retention import RetentionLimits, remove_expired
from tocsin.broker.log import OpenLogReader, Page
from tocsin.drivers.archive.messages import Rolled, WriterOptions
from tocsin.errors import DiskFailed, DiskFull, TocsinError
from tocsin.errors.archive import ArchiveInUse, other_log
from tocsin.event.stored import Stored
from tocsin.ontology import Vocabulary

PAGE_EVENTS: Final = 10_000
PAGE_BYTES_MAX: Final = 16 << 20
FRESH_EVENTS: Final = 50_000  # of one fresh file
FRESH_BYTES: Final = 64 << 20  # of its events in memory
FILES_PER_ROLL: Final = 10  # then we report how far we came, and may be asked to stop
ENDINGS_MAX: Final = 8  # files that are asked, the last first, for an event that can be read
LOCK_WAIT_S: Final = 10.0  # a broker was killed: its filling process ends with the file it writes
LOCK_POLL_S: Final = 0.1


class Roller:
    """One archive, filled from one log."""

    def __init__(
        self, options: WriterOptions, reader: OpenLogReader, vocabulary: Vocabulary
    ) -> None:
        self._options = options
        self._facts_reader = FactsReader(vocabulary)
        self._reader = reader
        self._lock = lock_archive(options.directory)
        limits = SealLimits(options.seal_bytes, options.seal_age_s)
        self.writer = ArchiveWriter(options.directory, limits)
        self._keep = RetentionLimits(options.retain_age_s, options.retain_bytes)
        self._left_out = 0
        self._skipped_to = 0  # the end of the log, where nothing could be read
        try:
            self.writer.tidy()
            self._must_be_of_this_log()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._reader.close()
        self._lock.close()

    @property
    def through(self) -> int:
        """The last event that was looked at."""
        return max(self.writer.catalog.through(), self._skipped_to)

    def work(
        self,
        through: int,
        *,
        now_s: float,
        by_age: bool = False,
        is_asked: Callable[[], bool] = lambda: True,
    ) -> Rolled:
        """Roll, seal and let go. Returns early when nobody asks any more."""
        self._left_out = 0
        try:
            remove_expired(self.writer.catalog, now_s, self._keep, by_age=by_age)
            if through > self.through:
                self._roll(self.writer.catalog.through(), through, is_asked)
            waiting = self.writer.seal_due(now_s) if is_asked() else Waiting([], [])
            for piece in waiting.damaged:
                self._replace(piece)
            self.writer.remove_superseded(now_s)
        except OSError as error:
            raise disk_error(self._options.directory, error) from error
        pieces = self.writer.catalog.pieces()
        return Rolled(
            through=self.through,
            files=len(pieces),
            fresh=sum(each.is_fresh for each in pieces),
            superseded=len(self.writer.catalog.superseded()),
            size_bytes=sum(each.bytes for each in pieces),
            left_out=self._left_out,
            damaged=tuple(each.path for each in waiting.damaged),
            unread=tuple(each.path for each in waiting.unread),
        )

    # From the log

    def _roll(self, after: int, through: int, is_asked: Callable[[], bool]) -> None:
        for _ in range(FILES_PER_ROLL):
            if after >= through or not is_asked():
                return
            found, after = self._read(after, through)
            self._write(found)
            if not found:
                self._skipped_to = max(self._skipped_to, after)

    def _replace(self, damaged: Piece) -> None:
        """Write a fresh file again, as far as the log has its events."""
        after, written = damaged.first - 1, list[tuple[int, int]]()
        while after < damaged.last:
            found, after = self._read(after, damaged.last)
            self._write(found)
            written += [(each.first, each.last) for each in found]
        self.writer.replaced(damaged, written)

    def _write(self, found: list[Segment]) -> None:
        for segment in found:
            self._must_have_room()
            self.writer.write_fresh(segment)
            # Counted when a file covers them, which is once. Until then every start would.
            self._left_out += segment.last - segment.first + 1 - segment.count

    def _read(self, after: int, through: int) -> tuple[list[Segment], int]:
        """As much as goes into one file, cut by date, and how far that came.

        Where nothing can be read there is nothing to write: the next file covers that as well.
        """
        first = after + 1
        batches: list[pa.RecordBatch] = []
        rows = size = 0
        while after < through and rows < FRESH_EVENTS and size < FRESH_BYTES:
            page = self._reader.read(after, PAGE_EVENTS, PAGE_BYTES_MAX, through=through)
            begins = _begin_of(page)
            if begins is None:  # all of it was let go of meanwhile
                after = after if batches else max(page.next, through)
                break
            if begins > after + 1:  # the log has let go of what was to come
                if batches:
                    break
                first = begins
            found = self._batches(page.events)
            batches += found
            rows += sum(each.num_rows for each in found)
            size += sum(each.nbytes for each in found)
            after = page.next
        return list(segments(batches, first, after)), after

    def _batches(self, events: list[Stored]) -> list[pa.RecordBatch]:
        """The events as columns, without any that cannot be written down."""
        if not events:
            return []
        try:
            return [to_batch(events, self._facts_reader)]
        except Exception:  # whatever is the matter with it, it must not hold up the others
            if len(events) == 1:
                return []
            middle = len(events) // 2
            return self._batches(events[:middle]) + self._batches(events[middle:])

    # Before anything is written

    def _must_have_room(self) -> None:
        free = shutil.disk_usage(self._options.directory).free
        if free < self._options.free_bytes_min:
            raise DiskFull(
                f"the archive's disk has {free:,} bytes left, and "
                f"{self._options.free_bytes_min:,} must stay free",
                remedy="Make room, lower archive.retain_bytes, or move archive.directory.",
            )

    def _must_be_of_this_log(self) -> None:
        """Raise unless the archive's last readable event is the one the log has in its place."""
        pieces = self.writer.catalog.pieces()
        if not pieces:
            return
        (first_seq, last_seq), last = self._reader.bounds(), pieces[-1]
        if last.last > last_seq:
            raise other_log(
                self._options.directory, f"it goes up to {last.last}, the log to {last_seq}"
            )
        # If the last file is damaged or not read, one before it shows whose events these are.
        endings = (last_event(each) for each in reversed(pieces[-ENDINGS_MAX:]))
        archived = next((each for each in endings if each is not None), None)
        if archived is None or archived.seq < first_seq:
            return
        stored = self._reader.read_one(archived.seq)
        if stored is not None and (stored.event.source, stored.event.id) != archived[1:]:
            raise other_log(
                self._options.directory, f"its event {archived.seq} differs from the log's"
            )


def lock_archive(directory: str) -> IO[bytes]:
    """Hold the archive for as long as the file is open. ArchiveInUse if another does."""
    make_folder(directory)
    file = open(os.path.join(directory, LOCK_NAME), "ab")  # noqa: SIM115, it is closed by its holder
    deadline_s = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                file.close()
                raise ArchiveInUse(
                    f"another process writes the archive {directory}",
                    remedy="Give each broker its own archive.directory.",
                ) from None
            time.sleep(LOCK_POLL_S)


def _begin_of(page: Page) -> int | None:
    begins = [each.seq for each in page.events[:1]] + page.corrupt[:1]
    return min(begins, default=None)


def disk_error(directory: str, error: OSError) -> TocsinError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(
            f"the archive's disk has no room ({directory})",
            remedy="Make room, lower archive.retain_bytes, or move archive.directory.",
        )
    return DiskFailed(
        f"the archive {directory} cannot be written: {error}",
        remedy="Check the disk and the directory's permissions.",
    )
