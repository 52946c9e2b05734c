"""Small archives for tests, written as a broker writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, segments
from tocsin.archive.facts import FactsReader
from tocsin.archive.record import to_batch
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_S
from tocsin.event.stored import Stored
from tocsin.ontology import built_in

BEGAN_NS = 1_790_000_000_000_000_000
FACTS_READER = FactsReader(built_in())


def stored(seq: int) -> Stored:
    """An event of a run: every third one ends an activity."""
    pairs = {"RunId": f"run-{seq // 10}", "ActivityId": f"step-{seq % 10}"}
    if seq % 3 == 0:
        pairs |= {"ActivitySucceeded": "2026-09-21T14:00:00Z", "ExitCode": str(seq % 2)}
    event = Event(
        id=f"e{seq}",
        source="/engine",
        type="bb.ActivityExecuting",
        topic=f"workflow/run-{seq // 10}",
        datacontenttype="application/json",
        data=json.dumps(pairs).encode(),
    )
    return Stored(seq, BEGAN_NS + seq * NS_PER_S, event)


def batch_of(first: int, last: int) -> pa.RecordBatch:
    return to_batch([stored(seq) for seq in range(first, last + 1)], FACTS_READER)


def add_fresh(directory: Path, first: int, last: int) -> Path:
    """One fresh file of these events."""
    writer = ArchiveWriter(str(directory), SealLimits())
    (segment,) = segments([batch_of(first, last)], first, last)
    writer.write_fresh(segment)
    return next(Path(directory).glob(f"_fresh/{first:020d}-*.parquet"))


def seal(directory: Path, *, keep_fresh: bool = False) -> None:
    """Each fresh file becomes a sealed one, and goes, unless a crash leaves it behind."""
    _sealed(directory, SealLimits(seal_bytes=1), keep_fresh=keep_fresh)


def merge(directory: Path, *, keep_fresh: bool = False) -> None:
    """All fresh files become one sealed file, and go, unless somebody may still open them."""
    _sealed(directory, SealLimits(seal_bytes=1 << 30, seal_age_s=0), keep_fresh=keep_fresh)


def _sealed(directory: Path, limits: SealLimits, *, keep_fresh: bool) -> None:
    writer = ArchiveWriter(str(directory), limits)
    writer.seal_due(BEGAN_NS / NS_PER_S)
    if not keep_fresh:
        for path in directory.glob("_fresh/*.parquet"):
            path.unlink()


def add_sealed(directory: Path, first: int, last: int) -> Path:
    """One sealed file of these events."""
    add_fresh(directory, first, last)
    seal(directory)
    return next(Path(directory).glob(f"date=*/{first:020d}-*.parquet"))
