"""NewRecords: what an archive has and the tables do not have yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin.archive.catalog import Piece
from tocsin.pipeline.partials.partial import BadFile
from tocsin.pipeline.state import Window


@dataclass(frozen=True, slots=True)
class NewRecords:
    """Records that the tables do not have: those of [first, last]."""

    records: DataFrame
    first: int
    last: int
    pieces: tuple[Piece, ...] = ()
    bad_files: tuple[BadFile, ...] = ()
    bytes: int = 0
    file: str = "''"
    """An expression for the file that a record is from."""
    missing: int = 0
    """Numbers between the files that no file has."""
    unread: int = 0
    """Numbers of the files that cannot be read."""
    expected: int | None = None
    """How many there should be, where that is known only when they are counted."""
    aside: DataFrame | None = None
    """Rows of the quarantine: messages that are no events."""
    positions: Mapping[str, int] = field(default_factory=dict)
    """Where to go on, partition by partition, where one number cannot say it."""
    is_all: bool = True
    """False if there is more, which is to be taken another time."""

    @property
    def files(self) -> tuple[str, ...]:
        """Where the pieces are."""
        return tuple(each.path for each in self.pieces)

    @property
    def lacks(self) -> dict[str, int]:
        """How many events there should be and are not, by why."""
        return {"missing": self.missing, "unread": self.unread}


def within(rows: DataFrame, window: Window, after: int, least: int = 0) -> DataFrame:
    """Those received in the window that came after that event; and those whose number is below
    the least that may be there, which are to be named."""
    if after:
        is_new = (F.col("seq") > after) | (F.col("seq") < min(least, after + 1))
        rows = rows.where(_or_unknown(is_new))
    if window.since is not None:
        rows = rows.where(_or_unknown(F.col("received") >= F.lit(window.since)))
    if window.until is not None:
        rows = rows.where(_or_unknown(F.col("received") < F.lit(window.until)))
    return rows


def _or_unknown(condition: Column) -> Column:
    """Also for a record that has no such time: it is to be set aside, and not to vanish."""
    return F.coalesce(condition, F.lit(True))
