"""Verifying: every file read to its last byte, and what is wrong with the archive."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.archive.catalog import Catalog, Piece, overlapping
from tocsin.archive.file_names import DAMAGED, date_of, parse_date, parse_range
from tocsin.archive.parquet_reader import read_footer, read_piece
from tocsin.archive.record import VERSION
from tocsin.archive.samples import SCHEMAS
from tocsin.errors.archive import ArchiveFileGone, ArchiveFileNotRead, BadArchiveFile

MOVE_IT: Final = "Restore it from a backup, or move it out of the archive and do without it."
FINDINGS_MAX: Final = 1_000  # then it is said that there are more

# What was not read may be undamaged; but nobody can say that all is well.
Level = Literal["damage", "unread", "note"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person should know of an archive, and do."""

    level: Level
    what: str
    where: str
    remedy: str = ""


@dataclass(slots=True)
class Report:
    """What a look at every file found."""

    files: int = 0
    events: int = 0
    size_bytes: int = 0
    first: int = 0
    last: int = 0
    findings: list[Finding] = field(default_factory=list)
    left_out: int = 0
    """Findings that are not listed."""

    @property
    def ok(self) -> bool:
        return all(each.level == "note" for each in self.findings)

    def add(self, finding: Finding) -> None:
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(finding)
        else:
            self.left_out += 1


def verify(directory: str, progress: Progress | None = None) -> Report:
    """Read everything. `progress` is called with (bytes looked at, bytes in all)."""
    catalog, report = Catalog(directory), Report()
    pieces = _look_through_all(catalog, report, progress)
    report.files, report.size_bytes = len(pieces), sum(each.bytes for each in pieces)
    if pieces:
        report.first, report.last = pieces[0].first, pieces[-1].last
    for foreign in catalog.foreign():
        report.add(Finding("damage", foreign.reason, foreign.path, "Move it out of the archive."))
    beside = (
        _gaps(pieces),
        _broken_samples(directory),
        _leftovers(directory, catalog),
        _set_aside(directory, pieces),
    )
    for finding in chain.from_iterable(beside):
        report.add(finding)
    return report


def _look_through_all(catalog: Catalog, report: Report, progress: Progress | None) -> list[Piece]:
    """Every file that there was at first, ascending. One that was merged into another or let go
    meanwhile is no damage: what is there in its place is looked at."""
    waiting = deque(catalog.pieces())
    last, total = max((each.last for each in waiting), default=0), sum(p.bytes for p in waiting)
    counts: dict[Piece, int] = {}
    done = 0
    while waiting:
        piece = waiting.popleft()
        try:
            counts[piece] = _look_through(piece, report)
            done += piece.bytes
        except ArchiveFileGone as gone:
            now = [each for each in catalog.pieces() if each.first <= last]
            if piece in now:  # listed, and not there: to list it again and again would not end
                report.add(Finding("damage", gone.reason, piece.path, MOVE_IT))
                counts[piece] = 0
            waiting = deque(each for each in now if each not in counts)
            counts = {each: counts[each] for each in now if each in counts}
            done = sum(each.bytes for each in counts)
        if progress is not None:
            progress(min(done, total), total)
    report.events = sum(counts.values())
    return sorted(counts, key=lambda each: each.first)


def _broken_samples(directory: str) -> Iterator[Finding]:
    """What is kept beside the events, and cannot be read."""
    for name in SCHEMAS:
        for path in sorted(Path(directory, name).glob("*/[!.]*.parquet")):
            try:
                pq.read_table(path, partitioning=None).validate()
            except FileNotFoundError:
                continue  # it was let go meanwhile
            except (OSError, pa.ArrowException) as error:
                reason = f"it cannot be read: {str(error).splitlines()[0]}"
                yield Finding("damage", reason, str(path), MOVE_IT)


def _gaps(pieces: list[Piece]) -> Iterator[Finding]:
    for before, after in pairwise(pieces):
        if after.first > before.last + 1:
            yield Finding(
                "damage",
                f"events {before.last + 1} to {after.first - 1} are missing",
                f"between {before.path} and {after.path}",
                "Restore the file that held them from a copy, or do without them.",
            )


def _look_through(piece: Piece, report: Report) -> int:
    """Read one file. Returns how many events it has. Raises ArchiveFileGone."""
    try:
        footer = read_footer(piece)
        _must_be_in_order(piece)
    except ArchiveFileGone:
        raise
    except BadArchiveFile as error:
        report.add(Finding("damage", error.reason, piece.path, MOVE_IT))
        return 0
    except ArchiveFileNotRead as error:
        # Where a disk is failing, what is known of the other files is wanted most.
        words = f"it was not read: {error.reason}"
        report.add(Finding("unread", words, piece.path, error.remedy))
        return 0
    if footer.version > VERSION:
        words = f"a newer Tocsin wrote it (version {footer.version}): what it added is not read"
        report.add(Finding("note", words, piece.path))
    missing = piece.last - piece.first + 1 - footer.count
    if missing:
        words = f"{missing} of its sequence numbers have no event: the log could not give them"
        report.add(Finding("note", words, piece.path))
    return footer.count


def _must_be_in_order(piece: Piece) -> None:
    """Every column can be read, numbers ascend within the file's range, and the date is right."""
    date = parse_date(os.path.basename(os.path.dirname(piece.path)))
    before = piece.first - 1
    for batch in read_piece(piece):
        batch.validate()
        seq = batch.column("seq")
        if seq[0].as_py() <= before or not _ascends(seq):
            raise BadArchiveFile(piece.path, f"its sequence numbers do not ascend after {before}")
        before = seq[-1].as_py()
        found = _dates(piece, batch)
        if len(found) > 1 or (date is not None and found != {date}):
            words = f"it has events of {', '.join(sorted(found))}"
            raise BadArchiveFile(piece.path, words if date is None else f"{words}, not of {date}")
    if before > piece.last:
        raise BadArchiveFile(piece.path, f"it has event {before}, which its name does not cover")


def _dates(piece: Piece, batch: pa.RecordBatch) -> set[str]:
    """The first and the last date of what was received."""
    ends = pc.min_max(batch.column("received").cast("int64")).as_py()
    try:
        return {date_of(ends["min"]), date_of(ends["max"])}
    except (ValueError, OverflowError, OSError) as error:
        reason = "it has an event received at a time that is out of range"
        raise BadArchiveFile(piece.path, reason) from error


def _ascends(seq: object) -> bool:
    steps = pc.pairwise_diff(seq)
    lowest = pc.min(steps).as_py()
    return lowest is None or lowest > 0


def _leftovers(directory: str, catalog: Catalog) -> Iterator[Finding]:
    if catalog.superseded():
        count = len(catalog.superseded())
        words = f"{count} fresh files were merged, and will be removed"
        yield Finding("note", words, directory)


def _set_aside(directory: str, pieces: list[Piece]) -> Iterator[Finding]:
    """Files that were damaged: what of their events no other file covers is missing."""
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(os.path.join(directory, DAMAGED))):
            path = os.path.join(directory, DAMAGED, name)
            covered = parse_range(name)
            missing = _uncovered(*covered, pieces) if covered else []
            for first, last in missing:
                yield Finding(
                    "damage",
                    f"it was damaged, and events {first} to {last} are in no other file",
                    path,
                    "Restore the file that held them from a copy, or delete it to do without them.",
                )
            if not missing:
                words = "it was damaged, and set aside"
                yield Finding("note", words, path, "Delete it when nobody wants to look at it.")


def _uncovered(first: int, last: int, pieces: list[Piece]) -> list[tuple[int, int]]:
    """The parts of `first` through `last` that no file covers. `pieces` ascend."""
    found: list[tuple[int, int]] = []
    for piece in overlapping(pieces, first - 1, last):
        if first < piece.first:
            found.append((first, piece.first - 1))
        first = piece.last + 1
    return [*found, (first, last)] if first <= last else found
