"""Reading: the records of an archive, wherever it is, as far as the tables do not have them yet."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.parquet import read_footer
from tocsin.archive.record import SCHEMA
from tocsin.errors.archive import BadArchiveFile, NoArchive
from tocsin.pipeline.derive.schemas import spark_schema
from tocsin.pipeline.partial import BadFile
from tocsin.pipeline.state import Window

# Not input_file_name(): below it, Spark reads every member of a struct of which one is asked for.
FILE_NAMED: Final = "regexp_replace(_metadata.file_path, '^file:/+', '/')"
FOOTERS_AT_ONCE: Final = 8  # files whose ends are looked at, at a time


@dataclass(frozen=True, slots=True)
class Found:
    """Records that the tables do not have: those of (after, last]."""

    records: DataFrame
    first: int
    last: int
    files: tuple[str, ...] = ()
    bad_files: tuple[BadFile, ...] = ()
    bytes: int = 0
    file: str = "''"
    """An expression for the file that a record is from."""


def is_broker(archive: str) -> bool:
    return archive.startswith(("http://", "https://"))


def is_directory(archive: str) -> bool:
    """True if the archive is on a disk of this machine."""
    return "://" not in archive or archive.startswith("file://")


def directory_of(archive: str) -> Path:
    return Path(archive.removeprefix("file://"))


def new_records(
    spark: SparkSession, archive: str, after: int, window: Window, without: Sequence[BadFile] = ()
) -> Found | None:
    """What came after that event; None if nothing did.

    `without` are files that turned out to be unreadable while they were read.
    """
    if is_directory(archive):
        return _from_directory(spark, directory_of(archive), after, window, without)
    return _from_elsewhere(spark, archive, after, window)


def _from_directory(
    spark: SparkSession, directory: Path, after: int, window: Window, without: Sequence[BadFile]
) -> Found | None:
    if not directory.is_dir():
        raise NoArchive(
            f"there is no directory {directory}",
            remedy="Name an archive with --archive; `tocsin synth` makes one to try with.",
        )
    catalog = Catalog(directory)
    pieces = [each for each in catalog.pieces() if each.last > after and _may_be_in(each, window)]
    foreign = [BadFile(each.path, each.reason) for each in catalog.foreign()] if not after else []
    good, bad = _looked_at(pieces, without)
    if not pieces:
        return None
    records = _records(spark, [each.path for each in good], window, after)
    return Found(
        records,
        after + 1,
        pieces[-1].last,
        tuple(each.path for each in good),
        (*bad, *foreign),
        sum(each.bytes for each in good),
        FILE_NAMED if good else "''",
    )


def _looked_at(
    pieces: list[Piece], without: Sequence[BadFile]
) -> tuple[list[Piece], list[BadFile]]:
    """Those that can be read, by what their ends say, and those that cannot and why."""
    known = {each.path: each for each in without}

    def look(piece: Piece) -> BadFile | None:
        if piece.path in known:
            return known[piece.path]
        try:
            read_footer(piece)
        except BadArchiveFile as error:
            return BadFile(piece.path, error.reason)
        return None

    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
        found = list(pool.map(look, pieces))
    good = [piece for piece, bad in zip(pieces, found, strict=True) if bad is None]
    return good, [bad for bad in found if bad is not None]


def unreadable(archive: str, after: int, last: int) -> list[BadFile]:
    """The files of a directory that begin in (after, last] and cannot be read, by their ends."""
    if not is_directory(archive):
        return []
    pieces = Catalog(directory_of(archive)).pieces()
    return _looked_at([each for each in pieces if after < each.first <= last], ())[1]


def _may_be_in(piece: Piece, window: Window) -> bool:
    """By the date in a sealed file's path; a fresh one may be of any."""
    if piece.is_fresh:
        return True
    date = Path(piece.path).parent.name.removeprefix("date=")
    since = window.since.date().isoformat() if window.since else date
    until = window.until.date().isoformat() if window.until else date
    return since <= date <= until


def _records(spark: SparkSession, paths: list[str], window: Window, after: int) -> DataFrame:
    schema = spark_schema(SCHEMA)
    if not paths:
        return spark.createDataFrame([], schema)
    return _within(spark.read.schema(schema).parquet(*paths), window, after)


def _within(rows: DataFrame, window: Window, after: int) -> DataFrame:
    if after:
        rows = rows.where(F.coalesce(F.col("seq") > after, F.lit(True)))
    if window.since is not None:
        rows = rows.where(F.col("received") >= F.lit(window.since))
    if window.until is not None:
        rows = rows.where(F.col("received") < F.lit(window.until))
    return rows


def _from_elsewhere(spark: SparkSession, archive: str, after: int, window: Window) -> Found | None:
    """A running broker's log, or an object store."""
    if is_broker(archive):
        rows = spark.read.format("tocsin").option("after", after).load(archive)
    else:
        rows = spark.read.schema(spark_schema(SCHEMA)).parquet(archive.rstrip("/") + "/date=*")
    rows = _within(rows, window, after)
    last = rows.agg(F.max("seq")).first()
    if last is None or last[0] is None:
        return None
    return Found(rows.where(F.col("seq") <= last[0]), after + 1, last[0])
