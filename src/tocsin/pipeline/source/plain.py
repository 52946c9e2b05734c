"""Plain: the events of an archive as Spark's own reader of Parquet gives them.

To a source written in Python, Spark tells neither which columns a query asks for nor under which
conditions, and its rows come through a socket. For an archive on a disk neither is needed: its
files are known, and Spark reads them itself.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from tocsin.archive.catalog import Piece
from tocsin.archive.parquet import MERGES_SEEN_MAX, read_footer
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile
from tocsin.errors.spark import BadSourceOption
from tocsin.pipeline.places import on_this_disk
from tocsin.pipeline.source.directory import PASSED_OVER, Directory
from tocsin.pipeline.source.options import Options

TAKEN: Final = ("after", "through", "bad_files", "holes")
FOOTERS_AT_ONCE: Final = 8  # files whose ends are looked at, at a time

_log: Final = logging.getLogger(__name__)


def archived(spark: SparkSession, directory: str, **options: object) -> DataFrame:
    """The events that are in an archive now, each once, with all columns; what a query does not ask
    for is not read.

    Takes `after`, `through`, `bad_files` and `holes`, as `format("tocsin")` does. Raises
    BadSourceOption, NoArchive, EventsGone, BadArchiveFile.
    """
    chosen = Options.parse({"path": directory, **{k: str(v) for k, v in options.items()}})
    _must_be_for_files(chosen, options)
    place = Directory(chosen)
    extent = place.extent()
    after = extent.first - 1 if chosen.after is None else chosen.after
    through = extent.head if chosen.through is None else min(chosen.through, extent.head)
    pieces = _sound(place, after, through, chosen)
    schema = from_arrow_schema(chosen.schema())
    if not pieces:
        return spark.createDataFrame([], schema)
    # In anybody's session: without it, what was damaged on a disk may be read as another number.
    reader = spark.read.schema(schema).option("parquet.page.verify-checksum.enabled", "true")
    found = reader.parquet(*(on_this_disk(each.path) for each in pieces))
    if after < pieces[0].first and pieces[-1].last <= through:
        return found
    return found.where(F.col("seq").between(after + 1, through))


def _must_be_for_files(chosen: Options, given: dict[str, object]) -> None:
    if chosen.is_broker:
        raise BadSourceOption(
            f"{chosen.path} is a broker, and not a directory",
            remedy=f"Read it with spark.read.format('tocsin').load({chosen.path!r}).",
        )
    for name in given:
        if name not in TAKEN:
            raise BadSourceOption(
                f"option {name} is of no use here",
                remedy=f"Select columns from what is returned. It takes: {', '.join(TAKEN)}.",
            )


def _sound(place: Directory, after: int, through: int, chosen: Options) -> list[Piece]:
    """The files that can be read, by what their ends say. Spark would not name one that cannot."""
    merges = 0
    while True:
        pieces = place.pieces_within(after, through)
        try:
            with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
                judged = pool.map(lambda piece: _is_sound(piece, chosen), pieces)
                return [piece for piece, sound in zip(pieces, judged, strict=True) if sound]
        except ArchiveFileGone:
            merges += 1
            if merges > MERGES_SEEN_MAX:
                raise


def _is_sound(piece: Piece, chosen: Options) -> bool:
    try:
        read_footer(piece)
    except ArchiveFileGone:
        raise  # it was merged into another meanwhile
    except BadArchiveFile as error:
        if not chosen.skips_bad_files:
            error.add_note(PASSED_OVER)
            raise
        _log.warning("a file was passed over: %s: %s", error.path, error.reason)
        return False
    return True
