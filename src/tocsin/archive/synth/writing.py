"""Writing: sealed files of an archive, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.archive.members import TOLD
from tocsin.archive.naming import SUFFIX, UNFINISHED, date_of, format_date, format_range

GROUP_ROWS: Final = 100_000

# Columns whose texts repeat; of the others a dictionary would be made and thrown away.
_REPEATING: Final = (
    *("source", "type", "topic", "datacontenttype", "dataschema", "extensions", "run"),
    *(f"told.{each.name}" for each in TOLD if pa.types.is_string(each.type)),
)


def write_events(table: pa.Table, directory: Path) -> Path:
    """One sealed file of rows that were received on one date, named by their numbers."""
    seq = table.column("seq")
    first, last = seq[0].as_py(), seq[-1].as_py()
    received_us = table.column("received")[0].cast(pa.int64()).as_py()
    said = {
        b"tocsin.first": b"%d" % first,
        b"tocsin.last": b"%d" % last,
        b"tocsin.count": b"%d" % table.num_rows,
    }
    told = table.replace_schema_metadata({**(table.schema.metadata or {}), **said})
    place = directory / format_date(date_of(received_us)) / format_range(first, last)
    _write(told, place)
    return place


def write_sample(table: pa.Table, directory: Path, kind: str) -> Path:
    """Rows of one date, of what the archive keeps beside events."""
    at_us = table.column("at")[0].cast(pa.int64()).as_py()
    place = directory / kind / format_date(date_of(at_us)) / f"{at_us}{SUFFIX}"
    _write(table, place)
    return place


def write_text(text: str, place: Path) -> None:
    unfinished = place.with_name(UNFINISHED + place.name)
    unfinished.write_text(text, "utf-8")
    _finish(unfinished, place)


def _write(table: pa.Table, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(UNFINISHED + place.name)
    pq.write_table(
        table,
        unfinished,
        compression="zstd",
        row_group_size=GROUP_ROWS,
        use_dictionary=[name for name in _REPEATING if name.split(".")[0] in table.column_names],
    )
    _finish(unfinished, place)


def _finish(unfinished: Path, place: Path) -> None:
    _sync(unfinished)
    unfinished.replace(place)
    _sync(place.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
