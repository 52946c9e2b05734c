"""Selection: some of the archive's columns, also single members of `told`, read at their price.

Most of an event's columns are members of `told`, and most questions need a handful: reading these
alone is ten times faster than reading all. A selection is written as `seq, run, told.ExitCode`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.archive.catalog import Piece
from tocsin.archive.parquet import (
    BATCH_ROWS,
    _fitted,
    _groups_within,
    _must_be_whole,
    _must_have_required,
    _opened,
    _rows_a_batch,
    _within,
    read_piece,
)
from tocsin.archive.record import SCHEMA


class NoSuchColumn(ValueError):
    """The archive has no column, or no member, of that name."""


def select(names: Sequence[str]) -> pa.Schema:
    """The part of SCHEMA that these names make up; members of a struct are named with a dot.

    Columns come in the order in which they are named first, members in that of SCHEMA. Raises
    NoSuchColumn.
    """
    members: dict[str, set[str] | None] = {}
    for name in names:
        column, dot, member = name.strip().partition(".")
        _must_be_one_of(column, SCHEMA.names, "column")
        if not dot:
            members[column] = None
            continue
        kind = SCHEMA.field(column).type
        known = [field.name for field in kind] if pa.types.is_struct(kind) else []
        _must_be_one_of(member, known, f"member of {column}")
        chosen = members.setdefault(column, set())
        if chosen is not None:
            chosen.add(member)
    return pa.schema(
        [_part(SCHEMA.field(column), chosen) for column, chosen in members.items()],
        metadata=SCHEMA.metadata,
    )


def paths(wanted: pa.Schema) -> list[str]:
    """The names that `select` makes this schema of."""
    return [
        path
        for field in wanted
        for path in (
            [field.name]
            if _is_whole(field)
            else [f"{field.name}.{member.name}" for member in field.type]
        )
    ]


def read_selected(
    piece: Piece,
    wanted: pa.Schema,
    *,
    after: int = 0,
    through: int | None = None,
    rows: int = BATCH_ROWS,
    keeps_nulls: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The events of a file in (after, through] as batches of a selected schema.

    With `keeps_nulls` a record without what it must have is given as it is, for somebody who sets
    it aside; else the file is bad. Raises BadArchiveFile.
    """
    if not keeps_nulls and all(_is_whole(field) for field in wanted):
        yield from read_piece(piece, wanted.names, after=after, through=through, rows=rows)
        return
    is_cut = after >= piece.first or (through is not None and through < piece.last)
    read = wanted if not is_cut or "seq" in wanted.names else wanted.append(SCHEMA.field("seq"))
    with _opened(piece) as file:
        held = [name for name in read.names if name in file.schema_arrow.names]
        _must_have_required(piece, read, held)
        groups = _groups_within(file, after, through) if is_cut else range(file.num_row_groups)
        if not groups:
            return
        size = _rows_a_batch(file, rows)
        for batch in file.iter_batches(size, row_groups=list(groups), columns=paths(read)):
            found = _fitted(piece, batch, read)
            if keeps_nulls:
                found = _own_numbers(found, piece.last)
            else:
                _must_be_whole(piece, found)
            if is_cut:
                found = _within(found, after, through).select(wanted.names)
            if found.num_rows:
                yield found.replace_schema_metadata(SCHEMA.metadata)


def _own_numbers(batch: pa.RecordBatch, last: int) -> pa.RecordBatch:
    """A number beyond those of the file is none: a stream that believed it would go on after it."""
    place = batch.schema.get_field_index("seq")
    if place < 0:
        return batch
    numbers = batch.column(place)
    own = pc.if_else(pc.greater(numbers, last), pa.scalar(None, numbers.type), numbers)
    return batch.set_column(place, batch.schema.field(place), own)


def cut_to(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """A batch of SCHEMA, as one of the selected schema."""
    arrays = []
    for field in wanted:
        column = batch.column(field.name)
        if not _is_whole(field):
            parts = [column.field(member.name) for member in field.type]
            column = pa.StructArray.from_arrays(
                parts, fields=list(field.type), mask=column.is_null()
            )
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _is_whole(field: pa.Field) -> bool:
    """False if it has but some of the members that the archive has."""
    if not pa.types.is_struct(field.type) or field.name not in SCHEMA.names:
        return True
    return bool(field.type == SCHEMA.field(field.name).type)


def _part(field: pa.Field, chosen: set[str] | None) -> pa.Field:
    if chosen is None:
        return field
    kept = pa.struct([member for member in field.type if member.name in chosen])
    return pa.field(field.name, kept, nullable=field.nullable)


def _must_be_one_of(name: str, known: Sequence[str], what: str) -> None:
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known) or 'none'}"
    raise NoSuchColumn(f"there is no {what} {name!r}; {hint}")
