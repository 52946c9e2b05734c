"""The records of an archive, wherever it is, that the tables do not have yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Final

from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from tocsin.archive.catalog import Catalog, Foreign, Piece
from tocsin.archive.last_event import LastEvent
from tocsin.archive.parquet_reader import Footer, members_present, read_footer, read_through
from tocsin.archive.record import SCHEMA
from tocsin.errors.archive import ArchiveFileGone, BadArchiveFile, NoArchive
from tocsin.pipeline.fold.clean import NOTED
from tocsin.pipeline.kafka.records import new_messages, parted
from tocsin.pipeline.locations import directory_of, is_broker, is_directory, is_kafka, on_this_disk
from tocsin.pipeline.new_records import NewRecords, within
from tocsin.pipeline.partials.partial import BadFile
from tocsin.pipeline.read.same_archive import broker_must_have, must_have, started_over
from tocsin.pipeline.source import register
from tocsin.pipeline.source.broker import Broker
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.spark.hadoop import listed, opened
from tocsin.pipeline.spark.schemas import spark_schema
from tocsin.pipeline.state import Window

# Not input_file_name(): below it, Spark reads every member of a struct of which one is asked for.
FILE_NAMED: Final = "regexp_replace(_metadata.file_path, '^file:/+', '/')"
FOOTERS_AT_ONCE: Final = 8  # files whose ends are looked at, at a time
MERGES_SEEN_MAX: Final = 5  # how often files may be merged while they are looked at

# Fresh files go when they are merged. To fold less than this takes no longer than they stay.
LASTING_BYTES_MIN: Final = 64 << 20

NOTHING_TAKEN: Final[Mapping[str, int]] = {}

Look = Callable[[Piece], Footer]
"""Reads the end of a file. Raises BadArchiveFile."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How much to take at a time."""

    rows: int | None = None
    """About so many, where that can be chosen."""
    is_lasting: bool = False
    """First what will not be merged any more, if it is much; the rest another time."""


EVERYTHING: Final = Limit()


def new_records(
    spark: SparkSession,
    archive: str,
    after: int,
    window: Window,
    without: Sequence[BadFile] = (),
    taken: Mapping[str, int] = NOTHING_TAKEN,
    limit: Limit = EVERYTHING,
    last_event: LastEvent | None = None,
) -> NewRecords | None:
    """What came after that event; None if nothing did.

    `without` are files that turned out to be unreadable while they were read, `taken` is how far
    the partitions of a topic were read, and `ending` the event that the tables end with. Raises
    BadPipelineOption if the archive has another one in its place.
    """
    if is_kafka(archive):
        return new_messages(spark, archive, after, window, taken, limit.rows)
    if is_broker(archive):
        return _from_broker(spark, archive, after, window, limit, last_event)
    merges = 0
    while True:
        try:
            return _from_files(spark, archive, after, window, without, limit, last_event)
        except ArchiveFileGone:
            merges += 1
            if merges > MERGES_SEEN_MAX:
                raise


def has_news(archive: str, after: int, window: Window, last_event: LastEvent | None) -> bool | None:
    """Whether anything came after that event; None if only Spark can know.

    Raises BadPipelineOption as `new_records` does.
    """
    if is_broker(archive):
        begin, head = _extent(archive, after, last_event)
        return head > begin
    if not is_directory(archive):
        return None
    found, _ = _files(None, archive, window)
    return bool(_asked(found, archive, after, window, last_event))


def land(spark: SparkSession, archive: str, found: NewRecords, place: Path) -> NewRecords:
    """What a running broker or Kafka gave, written down: each step would ask for it again."""
    out = place / "landed"
    found.records.write.mode("overwrite").parquet(on_this_disk(out))
    files = list(out.glob("*.parquet"))
    ends = [read_metadata(each) for each in files]
    members = frozenset[str]().union(*map(members_present, ends))
    schema = _with_members(found.records.schema, members)
    records = spark.read.schema(schema).parquet(on_this_disk(out))
    size = sum(each.stat().st_size for each in files)
    if is_kafka(archive):
        events, aside = parted(records, found.file)
        return replace(found, records=events, aside=aside, bytes=size)
    rows = sum(each.num_rows for each in ends)
    missing = 0 if found.expected is None else max(0, found.expected - rows)
    return replace(found, records=records, bytes=size, file=_quoted(archive), missing=missing)


def _quoted(text: str) -> str:
    """A text as Spark's SQL writes one."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _from_files(
    spark: SparkSession,
    archive: str,
    after: int,
    window: Window,
    without: Sequence[BadFile],
    limit: Limit,
    last_event: LastEvent | None,
) -> NewRecords | None:
    found, left_out = _files(spark, archive, window)
    asked = _asked(found, archive, after, window, last_event)
    pieces = _first_of(asked, after, limit)
    if not pieces:
        return None
    foreign = [BadFile(each.path, each.reason) for each in left_out]
    look = read_footer if is_directory(archive) else partial(_look_elsewhere, spark)
    good, bad, members = _looked_at(pieces, without, look)
    return NewRecords(
        within(
            _records(spark, [each.path for each in good], members), window, after, pieces[0].first
        ),
        after + 1,
        pieces[-1].last,
        tuple(good),
        (*bad, *foreign),
        sum(each.bytes for each in good),
        FILE_NAMED if good else "''",
        _missing(pieces, after) if _is_everything(window) else 0,
        _numbers_of(pieces, after) - _numbers_of(good, after),
        is_all=len(pieces) == len(asked),
    )


def _asked(
    found: list[Piece], archive: str, after: int, window: Window, last_event: LastEvent | None
) -> list[Piece]:
    """The files with what came after that event."""
    # What is copied elsewhere is only listed as far as its dates are asked for.
    is_all = is_directory(archive) or _is_everything(window)
    if found and is_all and found[-1].last < after:
        raise started_over(archive, found[-1].last, after)
    if is_directory(archive):
        must_have(archive, found, last_event)
    return [each for each in found if each.last > after and _may_be_in(each, window)]


def _is_everything(window: Window) -> bool:
    return window.since is None and window.until is None


def _numbers_of(pieces: Sequence[Piece], after: int) -> int:
    """How many events there are after that one, by the names of the files."""
    return sum(each.last - max(each.first - 1, after) for each in pieces)


def _missing(pieces: Sequence[Piece], after: int) -> int:
    """How many numbers there are between the files. What was let go before the first is no hole."""
    reached, missing = after or pieces[0].first - 1, 0
    for each in pieces:
        missing += max(0, each.first - 1 - reached)
        reached = max(reached, each.last)
    return missing


def _files(
    spark: SparkSession | None, archive: str, window: Window
) -> tuple[list[Piece], list[Foreign]]:
    """The files of the archive, ascending, and those left out. A directory is listed without
    Spark."""
    if not is_directory(archive):
        assert spark is not None, "a store is listed by Spark"
        listing = listed(spark, archive, window)
        return listing.pieces, listing.foreign
    directory = directory_of(archive)
    if not directory.is_dir():
        raise NoArchive(
            f"there is no directory {directory}",
            remedy="Name an archive with --archive; `tocsin synth` makes one to try with.",
        )
    catalog = Catalog(directory)
    return catalog.pieces(), catalog.foreign()


def is_there(spark: SparkSession, archive: str, window: Window, path: str) -> bool:
    """False if the file was merged into another meanwhile, or let go."""
    found, _ = _files(spark, archive, window)
    return any(each.path == path for each in found)


def _first_of(pieces: list[Piece], after: int, limit: Limit) -> list[Piece]:
    """Those within the limit, and one in any case."""
    if limit.rows is not None:
        last = after + limit.rows
        return [each for each in pieces if each.last <= last] or pieces[:1]
    if limit.is_lasting:
        lasting = list(takewhile(lambda each: not each.is_fresh, pieces))
        if sum(each.bytes for each in lasting) >= LASTING_BYTES_MIN:
            return lasting
    return pieces


def _look_elsewhere(spark: SparkSession, piece: Piece) -> Footer:
    try:
        with opened(spark, piece) as source:
            return read_footer(piece, source)
    except FileNotFoundError as error:
        raise ArchiveFileGone(piece.path, "it is no longer there") from error


def _looked_at(
    pieces: list[Piece], without: Sequence[BadFile], look: Look = read_footer
) -> tuple[list[Piece], list[BadFile], frozenset[str]]:
    """Those that can be read, by what their ends say, those that cannot and why, and which members
    of a message the former have.

    Raises ArchiveFileGone for one that was merged into another meanwhile.
    """
    known = {each.path: each for each in without}

    def judged(piece: Piece) -> Footer | BadFile:
        if piece.path in known:
            return known[piece.path]
        try:
            return look(piece)
        except ArchiveFileGone:
            raise
        except BadArchiveFile as error:
            return BadFile(piece.path, error.reason)

    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
        found = list(pool.map(judged, pieces))
    good = [piece for piece, end in zip(pieces, found, strict=True) if isinstance(end, Footer)]
    members = frozenset[str]().union(*(end.members for end in found if isinstance(end, Footer)))
    return good, [bad for bad in found if isinstance(bad, BadFile)], members


def unreadable(spark: SparkSession, archive: str, pieces: Sequence[Piece]) -> list[BadFile]:
    """Those of the files that turn out to be damaged when each is read to its end.

    Raises ArchiveFileNotRead and the like where it is not the file's fault.
    """

    def judged(piece: Piece) -> BadFile | None:
        try:
            if is_directory(archive):
                read_through(piece)
            else:
                with opened(spark, piece) as source:
                    read_through(piece, source)
        except (ArchiveFileGone, FileNotFoundError):
            return None  # it was merged into another meanwhile
        except BadArchiveFile as error:
            return BadFile(piece.path, error.reason)
        return None

    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
        return [bad for bad in pool.map(judged, pieces) if bad is not None]


def _may_be_in(piece: Piece, window: Window) -> bool:
    """By the date in a sealed file's path; a fresh one may be of any."""
    date = PurePosixPath(piece.path).parent.name.removeprefix("date=")
    return piece.is_fresh or window.has_date(date)


def _records(spark: SparkSession, paths: list[str], members: frozenset[str]) -> DataFrame:
    """What the files hold."""
    schema = spark_schema(SCHEMA)
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(_with_members(schema, members)).parquet(*map(on_this_disk, paths))


def _with_members(schema: StructType, members: frozenset[str]) -> StructType:
    """The schema with those members of `facts` that any message has: each workflow engine reports
    some of the hundred, and reading, sorting and folding the others would take longest."""
    facts = schema["facts"].dataType
    assert isinstance(facts, StructType)
    kept = StructType([each for each in facts if each.name in members or each.name in NOTED])
    return StructType(
        [
            StructField(each.name, kept if each.name == "facts" else each.dataType, each.nullable)
            for each in schema
        ]
    )


def _from_broker(
    spark: SparkSession,
    archive: str,
    after: int,
    window: Window,
    limit: Limit,
    last_event: LastEvent | None,
) -> NewRecords | None:
    begin, head = _extent(archive, after, last_event)
    last = head if limit.rows is None else min(head, begin + limit.rows)
    if last <= begin:
        return None
    register(spark)  # where the package was shipped, Spark does not find its sources by itself
    reader = spark.read.format("tocsin").option("after", begin).option("through", last)
    # What the broker cannot give is counted as missing; it says itself what that is.
    reader = reader.option("holes", "skip").option("bad_files", "skip")
    rows = within(reader.load(archive), window, after)
    expected = last - begin if _is_everything(window) else None
    return NewRecords(rows, after + 1, last, expected=expected, is_all=last == head)


def _extent(archive: str, after: int, last_event: LastEvent | None) -> tuple[int, int]:
    """After which event of a broker to begin, and its last."""
    extent = Broker(Options.parse({"path": archive})).extent()
    if extent.head < after:
        raise started_over(archive, extent.head, after)
    broker_must_have(archive, last_event)
    return after or extent.first - 1, extent.head  # what was let go before the first is no hole
