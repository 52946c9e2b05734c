"""Parquet: reading a file of the archive, whichever version of Tocsin wrote it.

What an older one did not know is null, what a newer one added is left out, and what cannot be
made to fit is one error that names the file. What the machine does not read is another: the file
may be undamaged, and nobody may set it aside for that.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tocsin.archive.catalog import Catalog, Piece, overlapping
from tocsin.archive.record import SCHEMA, VERSION_KEY
from tocsin.archive.selection import paths, select
from tocsin.errors.archive import (
    ArchiveFileGone,
    ArchiveFileNotRead,
    BadArchiveFile,
    IncompleteRecords,
)

FIRST_KEY: Final = b"tocsin.first"
LAST_KEY: Final = b"tocsin.last"
COUNT_KEY: Final = b"tocsin.count"
DATE_KEY: Final = b"tocsin.date"

BATCH_ROWS: Final = 65_536
BATCH_BYTES_MAX: Final = 64 << 20  # about, before compression: events may be of a megabyte each
MERGES_SEEN_MAX: Final = 5  # how often a file may be merged under a reader; it takes seconds


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself at its end."""

    count: int
    date: str
    version: int
    members: frozenset[str]
    """The members of `facts` that any of its events has."""


def read_footer(piece: Piece, source: BinaryIO | None = None) -> Footer:
    """Read the end of a file only. Raises BadArchiveFile, ArchiveFileNotRead.

    `source` is the file opened by other means, where its path is none of this machine.
    """
    with _opened(piece, source) as file:
        metadata = file.schema_arrow.metadata
        version, date = metadata[VERSION_KEY], metadata.get(DATE_KEY, b"")
        members = members_present(file.metadata)
        return Footer(file.metadata.num_rows, date.decode(), int(version), members)


def check_records(piece: Piece) -> None:
    """See from the end of a file that it is what its name says, and that each of its records has
    what it must have. Raises BadArchiveFile, ArchiveFileNotRead.
    """
    with _opened(piece) as file:
        held = file.schema_arrow
        _must_have_required(piece, SCHEMA, held.names)
        for field in SCHEMA:
            if not field.nullable and held.field(field.name).nullable and _has_nulls(file, field):
                raise IncompleteRecords(piece.path, _has_nulls_in(field))


def read_through(piece: Piece, source: BinaryIO | None = None) -> None:
    """Read a file to its last byte, for nothing but to see that it can be read, checksums and all.

    `source` is as for `read_footer`. Raises BadArchiveFile, ArchiveFileNotRead.
    """
    with _opened(piece, source) as file:
        for batch in file.iter_batches(_rows_a_batch(file, BATCH_ROWS)):
            batch.validate()


def members_present(metadata: pq.FileMetaData) -> frozenset[str]:
    """By what is counted for each column; one of which that is not known may have something."""
    chunks = (
        metadata.row_group(group).column(place)
        for group in range(metadata.num_row_groups)
        for place in range(metadata.num_columns)
        if metadata.schema.column(place).path.startswith("facts.")
    )
    return frozenset(
        chunk.path_in_schema.split(".")[1]
        for chunk in chunks
        if chunk.statistics is None
        or not chunk.statistics.has_null_count
        or chunk.statistics.null_count < chunk.num_values
    )


def read_piece(
    piece: Piece,
    columns: Sequence[str] | None = None,
    *,
    after: int = 0,
    through: int | None = None,
    rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The events of a file as batches of SCHEMA, or of some of its columns in the order given.

    `after` and `through` leave out what lies outside (after, through]. Raises BadArchiveFile,
    ArchiveFileNotRead.
    """
    wanted = SCHEMA if columns is None else select(columns)
    return read_selected(piece, wanted, after=after, through=through, rows=rows)


def read_selected(
    piece: Piece,
    wanted: pa.Schema,
    *,
    after: int = 0,
    through: int | None = None,
    rows: int = BATCH_ROWS,
    keeps_nulls: bool = False,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The events of a file in (after, through] as batches of a selected schema.

    With `keeps_nulls` a record without what it must have is given as it is, for somebody who sets
    it aside; else the file is bad. Raises BadArchiveFile, ArchiveFileNotRead.
    """
    is_cut = after >= piece.first or (through is not None and through < piece.last)
    read = wanted if not is_cut or "seq" in wanted.names else wanted.append(SCHEMA.field("seq"))
    # Whoever asks may take nulls everywhere, as a schema of Spark does: that makes no file whole.
    judged = read if keeps_nulls else pa.schema([SCHEMA.field(name) for name in read.names])
    with _opened(piece) as file:
        _must_have_required(piece, judged, file.schema_arrow.names)
        groups = _groups_within(file, after, through) if is_cut else range(file.num_row_groups)
        if not groups:
            return
        size = _rows_a_batch(file, rows)
        columns = [*paths(read), *_stand_ins(read, file.schema_arrow)]
        chosen = {"row_groups": list(groups), "columns": columns, "use_threads": use_threads}
        for batch in file.iter_batches(size, **chosen):
            found = batch if batch.schema.equals(read) else _fitted(batch, read)
            if keeps_nulls:
                found = _own_numbers(found, piece)
            else:
                _must_be_whole(piece, found, judged)
            if is_cut:
                found = _within(found, after, through).select(wanted.names)
            if found.num_rows:
                yield found.replace_schema_metadata(SCHEMA.metadata)


def read_range(
    directory: Path | str | Catalog,
    columns: Sequence[str] | None = None,
    *,
    after: int = 0,
    through: int,
    rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """The archived events in (after, through], also while files are merged meanwhile."""
    catalog = directory if isinstance(directory, Catalog) else Catalog(directory)

    def listed(reached: int) -> Iterator[Piece]:
        return overlapping(catalog.pieces(), reached, through)

    def read(piece: Piece, reached: int) -> Iterator[pa.RecordBatch]:
        return read_piece(piece, columns, after=reached, through=through, rows=rows)

    return in_turn(listed(after), after, read, listed)


def in_turn(
    pieces: Iterable[Piece],
    after: int,
    read: Callable[[Piece, int], Iterator[pa.RecordBatch]],
    list_again: Callable[[int], Iterable[Piece]],
) -> Iterator[pa.RecordBatch]:
    """What `read` gives of each file after an event, also while files are merged meanwhile.

    `list_again` gives the files of what is left when one was.
    """
    waiting, merges = deque(pieces), 0
    while waiting:
        piece = waiting.popleft()
        try:
            yield from read(piece, after)
            after = max(after, piece.last)
        except ArchiveFileGone:
            merges += 1
            if merges > MERGES_SEEN_MAX:
                raise
            # Nothing of it was given yet: a file that is open stays readable when removed.
            waiting = deque(list_again(after))


@contextmanager
def _opened(piece: Piece, source: BinaryIO | None = None) -> Iterator[pq.ParquetFile]:
    """The open file, proven to be what its name says; its damage raised as BadArchiveFile.

    What the machine does not read is raised as ArchiveFileNotRead.
    """
    try:
        # Not mapped into memory: a file cut short meanwhile would end the process by a signal.
        with pq.ParquetFile(
            piece.path if source is None else source,
            memory_map=False,
            pre_buffer=False,
            page_checksum_verification=True,
        ) as file:
            _must_be_ours(piece, file)
            yield file
    except FileNotFoundError as error:
        raise ArchiveFileGone(piece.path, "it is no longer there") from error
    except MemoryError as error:
        raise ArchiveFileNotRead(piece.path, "there is not enough memory") from error
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        # pyarrow raises OSError for content as well, and then without a number of the system's.
        if isinstance(error, OSError) and error.errno is not None:
            raise ArchiveFileNotRead(piece.path, os.strerror(error.errno)) from error
        raise BadArchiveFile(piece.path, _short_reason(error)) from error


def _must_be_ours(piece: Piece, file: pq.ParquetFile) -> None:
    metadata = file.schema_arrow.metadata or {}
    if VERSION_KEY not in metadata:
        raise BadArchiveFile(piece.path, "it is Parquet, and was not written by a Tocsin")
    if "told" in file.schema_arrow.names:
        raise BadArchiveFile(
            piece.path,
            "its column 'told' is now named 'facts': a version before the first release wrote it; "
            "move the archive away and let the broker write it again from the log",
        )
    said = (metadata.get(FIRST_KEY), metadata.get(LAST_KEY), metadata.get(COUNT_KEY))
    if said != tuple(b"%d" % n for n in (piece.first, piece.last, file.metadata.num_rows)):
        words = " ".join(
            "nothing" if each is None else each.decode("ascii", "replace") for each in said
        )
        raise BadArchiveFile(
            piece.path, f"its footer describes other events (first, last, count: {words})"
        )


def _must_have_required(piece: Piece, judged: pa.Schema, held: Sequence[str]) -> None:
    missing = [each.name for each in judged if not each.nullable and each.name not in held]
    if missing:
        raise BadArchiveFile(piece.path, f"it has no column {missing[0]!r}")


def _must_be_whole(piece: Piece, batch: pa.RecordBatch, judged: pa.Schema) -> None:
    for field, column in zip(judged, batch.columns, strict=True):
        if not field.nullable and column.null_count:
            raise IncompleteRecords(piece.path, _has_nulls_in(field))


def _has_nulls_in(field: pa.Field) -> str:
    return f"column {field.name!r} has nulls, and may have none"


def _has_nulls(file: pq.ParquetFile, field: pa.Field) -> bool:
    """By what is counted for the column; if nothing is, it is read."""
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    found = [_statistics(group, field.name) for group in groups]
    counts = [each.null_count for each in found if each is not None and each.has_null_count]
    if len(counts) == len(found):
        return any(counts)
    return bool(file.read([field.name]).column(0).null_count)


def _rows_a_batch(file: pq.ParquetFile, rows: int) -> int:
    metadata = file.metadata
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    total: int = sum(group.total_byte_size for group in groups)
    if not metadata.num_rows or not total:
        return rows
    return max(1, min(rows, BATCH_BYTES_MAX * int(metadata.num_rows) // total))


def _groups_within(file: pq.ParquetFile, after: int, through: int | None) -> list[int]:
    """The row groups that may hold events in (after, through], by their statistics."""
    return [
        number
        for number in range(file.num_row_groups)
        if not _is_outside(file.metadata.row_group(number), after, through)
    ]


def _is_outside(group: pq.RowGroupMetaData, after: int, through: int | None) -> bool:
    statistics = _statistics(group, "seq")
    if statistics is None or not statistics.has_min_max:
        return False
    return statistics.max <= after or (through is not None and statistics.min > through)


def _statistics(group: pq.RowGroupMetaData, name: str) -> pq.Statistics | None:
    chunks = (group.column(place) for place in range(group.num_columns))
    return next((each.statistics for each in chunks if each.path_in_schema == name), None)


def _within(batch: pa.RecordBatch, after: int, through: int | None) -> pa.RecordBatch:
    seq = batch.column("seq")
    keep = pc.greater(seq, after)
    if through is not None:
        keep = pc.and_(keep, pc.less_equal(seq, through))
    return batch if pc.all(keep).as_py() else batch.filter(keep)


def _own_numbers(batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
    """A number that is none of the file's is none: a stream that believed one beyond them would go
    on after it."""
    place = batch.schema.get_field_index("seq")
    if place < 0:
        return batch
    numbers = batch.column(place)
    is_own = pc.and_(pc.greater_equal(numbers, piece.first), pc.less_equal(numbers, piece.last))
    own = pc.if_else(is_own, numbers, pa.scalar(None, numbers.type))
    return batch.set_column(place, batch.schema.field(place), own)


def _stand_ins(want: pa.Schema, held: pa.Schema) -> Iterator[str]:
    """For a struct none of whose wanted members a file has, one that it has: a struct that is there
    without them is not null."""
    for field in want:
        if pa.types.is_struct(field.type) and field.name in held.names:
            members = [each.name for each in held.field(field.name).type]
            if members and not any(each.name in members for each in field.type):
                yield f"{field.name}.{members[0]}"


def _fitted(batch: pa.RecordBatch, want: pa.Schema) -> pa.RecordBatch:
    names = batch.schema.names
    arrays = [
        _fit(batch.column(field.name), field.type)
        if field.name in names
        else pa.nulls(batch.num_rows, field.type)
        for field in want
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=want)


def _fit(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array in this type: members of a struct by their names, the rest as a safe cast."""
    if array.type == kind:
        return array
    if pa.types.is_struct(kind) and pa.types.is_struct(array.type):
        held = {field.name for field in array.type}
        members = [
            _fit(array.field(field.name), field.type)
            if field.name in held
            else pa.nulls(len(array), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind) and pa.types.is_list(array.type):
        values = _fit(array.flatten(), kind.value_type)
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        return pa.ListArray.from_arrays(offsets, values, type=kind, mask=array.is_null())
    return array.cast(kind)


def _short_reason(error: Exception) -> str:
    words = " ".join(str(error).split())
    return f"it cannot be read ({words[:300]})"
