"""Selection: some of the archive's columns, also single members of `facts`, read at their price.

Most of an event's columns are members of `facts`, and most questions need a handful: reading these
alone is ten times faster than reading all. A selection is written as `seq, run, facts.ExitCode`.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import pyarrow as pa

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
