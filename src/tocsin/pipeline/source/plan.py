"""Plan: which events there are, and how a range of them is shared out among tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tocsin.archive.catalog import Piece
from tocsin.errors.spark import EventsGone


@dataclass(frozen=True, slots=True)
class Extent:
    """The events that are there: `first` through `head`. None if first is head + 1."""

    first: int
    head: int


@dataclass(frozen=True)
class Share(InputPartition):
    """What one task reads: the events in (after, through], and the files that hold them."""

    after: int
    through: int
    pieces: tuple[Piece, ...] = ()


class EventSource(Protocol):
    """Where events are kept: a directory, or a broker."""

    def extent(self) -> Extent: ...

    def shares(self, after: int, through: int) -> list[Share]:
        """Shares that cover (after, through]; a hole in it is raised or logged."""
        ...

    def whole_until(self, after: int, through: int) -> int:
        """The end of the last file that ends within (after, through]; `through` if none does."""
        ...

    def batches(self, share: Share, wanted: pa.Schema) -> Iterator[pa.RecordBatch]: ...


def cut_evenly(after: int, through: int, rows_max: int) -> list[tuple[int, int]]:
    """(after, through] in as few parts of about the same size as have at most `rows_max` each."""
    count = through - after
    if count <= 0:
        return []
    parts = -(-count // rows_max)
    marks = [after + count * part // parts for part in range(parts + 1)]
    return list(pairwise(marks))


def share_out(pieces: Sequence[Piece], after: int, through: int, rows_max: int) -> Iterator[Share]:
    """Files in runs of about `rows_max` events; one that has much more is cut, and read twice
    only where a cut goes through a row group."""
    held: list[Piece] = []
    begin = after
    for piece in pieces:
        first, last = max(piece.first - 1, after), min(piece.last, through)
        if held and last - begin > rows_max:
            yield Share(begin, held[-1].last, tuple(held))
            held = []
        if not held:
            begin = first
        if last - first > rows_max * 3 // 2:
            for low, high in cut_evenly(first, last, rows_max):
                yield Share(low, high, (piece,))
        else:
            held.append(piece)
    if held:
        yield Share(begin, min(held[-1].last, through), tuple(held))


def holes(pieces: Sequence[Piece], after: int, through: int) -> list[tuple[int, int]]:
    """The ranges within (after, through] that no file covers, as first and last."""
    found: list[tuple[int, int]] = []
    reached = after
    for piece in pieces:
        if piece.first > reached + 1:
            found.append((reached + 1, piece.first - 1))
        reached = piece.last
    if reached < through:
        found.append((reached + 1, through))
    return found


def gone(where: str, missing: Sequence[tuple[int, int]]) -> EventsGone:
    """The error for a hole."""
    (first, last), more = missing[0], len(missing) - 1
    beside = f", and {more} more such {'range' if more == 1 else 'ranges'}" if more else ""
    return EventsGone(
        f"events {first} to {last} are not in {where}{beside}",
        remedy=f"Begin with what is there (option after={last}), or pass over it: holes=skip.",
    )
