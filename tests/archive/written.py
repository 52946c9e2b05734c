"""Archives for tests: events, the files they are written to, and files that were changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, segments
from tocsin.archive.catalog import Piece
from tocsin.archive.facts import FactsReader
from tocsin.archive.parquet_reader import read_range
from tocsin.archive.record import to_batch
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.ontology import built_in

NOON_NS = 1_790_000_000_000_000_000
DAY_NS = 86_400_000_000_000
FACTS_READER = FactsReader(built_in())


def events(first: int, last: int, received_ns: int = NOON_NS) -> list[Stored]:
    return [
        Stored(
            seq,
            received_ns + seq * 1_000,
            Event(
                id=f"e{seq}",
                source="/t",
                type="t",
                topic="a/b",
                data=b'{"RunId":"r","CpuSeconds":"%d"}' % seq,
            ),
        )
        for seq in range(first, last + 1)
    ]


def write(directory: Path, first: int, last: int, received_ns: int = NOON_NS) -> Piece:
    writer = ArchiveWriter(str(directory), SealLimits())
    writer.tidy()
    batch = to_batch(events(first, last, received_ns), FACTS_READER)
    for segment in segments([batch], first, last):
        writer.write_fresh(segment)
    return next(each for each in writer.catalog.pieces() if each.first == first)


def numbers(directory: Path, through: int = 2**62) -> list[int]:
    batches = read_range(str(directory), ["seq"], through=through)
    return [seq for batch in batches for seq in batch.column("seq").to_pylist()]


def rewrite(piece: Piece, change: Any) -> Piece:
    """The same file with another table in it."""
    table = pq.read_table(piece.path, partitioning=None)
    changed = change(table).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, piece.path)
    return piece
