"""The job: what came since the last time, folded into the state, and every table rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.pipeline.build import TableBuilder
from tocsin.pipeline.fold.clean import LATE_S
from tocsin.pipeline.fold.row_numbers import OF_FILES
from tocsin.pipeline.locations import has_files
from tocsin.pipeline.new_records import NewRecords
from tocsin.pipeline.partials.merged_state import added, compacted, due
from tocsin.pipeline.partials.partial import BadFile, Input, Sizes, make_partial
from tocsin.pipeline.read.archive import Limit, has_news, land, new_records
from tocsin.pipeline.read.bad_files import BadFileSearch
from tocsin.pipeline.read.samples import Samples
from tocsin.pipeline.spark.spark_errors import readable_errors
from tocsin.pipeline.state import Partial, State, Window
from tocsin.tables.published import Manifest, published

# One aggregation has a union among sixty columns. With objects in a hash table it would first fill
# that and then sort all the same: sorted from the start it is one pass, and spills where it must.
SETTINGS: Final = {
    "spark.sql.execution.useObjectHashAggregateExec": "false",
    "spark.sql.files.maxPartitionBytes": "64m",
    # `facts` has more members than Spark generates code for by default: it would read row by row.
    "spark.sql.codegen.maxFields": "2000",
    # What is longer is never compiled by Java; smaller pieces of code are.
    "spark.sql.codegen.hugeMethodLimit": "8000",
}
SILENCE_S: Final = 6 * 3600.0  # as the monitor has it: longer without news, and a run is lost
BYTES_A_PARTITION: Final = 24 << 20  # of the archive, compressed: some 200 MB of rows in a sort
BYTES_A_FILE: Final = 128 << 20
PARTITIONS_MAX: Final = 2_000

OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done."""

    archive: str
    tables: Path
    since: datetime | None = None
    until: datetime | None = None
    rebuild: bool = False
    silence_s: float = SILENCE_S
    rows_max: int | None = None
    """About so many are taken at a time, where that can be chosen."""

    late_s: float = LATE_S
    """An event that comes so long after it happened counts as late."""

    moves: bool = False
    """The window goes with the time: where it has moved, the tables are rebuilt."""

    @property
    def window(self) -> Window:
        return Window(self.since, self.until, self.archive, moves=self.moves)


@dataclass(frozen=True, slots=True)
class Done:
    """What was done."""

    manifest: Manifest
    is_new: bool
    """False if there was nothing that the tables did not have."""
    bad_files: tuple[BadFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken in."""

    is_news: bool = False
    bad_files: tuple[BadFile, ...] = ()
    is_all: bool = True
    """False if there was more when it was looked for."""


def run(spark: SparkSession, job: Job, on_step: OnStep = lambda step: None) -> Done:
    """Bring the tables up to date. Running it again changes nothing."""
    state = State(job.tables)
    with readable_errors(), state.held():
        if job.rebuild or state.has_moved(job.window):
            start_over(spark, state, job)
        state.agree_on(job.window)
        taken = take_in(spark, state, job, on_step, Limit(job.rows_max, is_lasting=True))
        bad = taken.bad_files
        if not taken.is_all:
            bad += take_in(spark, state, job, on_step).bad_files
        current = None if job.rebuild else published(job.tables)
        if current is not None and not is_behind(spark, state, job):
            return Done(current.manifest, False, bad)
        return Done(make_tables(spark, state, job, on_step), True, bad)


def already_made(job: Job) -> Done | None:
    """What stands, if the tables have everything already. Of a directory or a broker that is known
    without Spark, which takes seconds to start; None if it is not, or if there is something to do.
    """
    state = State(job.tables)
    current = None if job.rebuild else published(job.tables)
    if current is None or not state.partials_directory.is_dir():
        return None
    with readable_errors(), state.held():
        if state.has_moved(job.window):
            return None
        state.agree_on(job.window)
        if has_news(job.archive, state.through(), job.window, state.last_event()) is not False:
            return None
        return None if is_behind(None, state, job) else Done(current.manifest, False)


def start_over(spark: SparkSession, state: State, job: Job) -> None:
    """Forget what is kept, once the archive is seen to be there: what is kept may be all there is
    of what an archive let go."""
    new_records(spark, job.archive, 0, job.window, limit=Limit(job.rows_max))
    state.forget()


def is_behind(spark: SparkSession | None, state: State, job: Job) -> bool:
    """True if the tables were not made of what is in the state, which may have been started over,
    and of the samples there are. What nothing is counted of, tables do not show."""
    current, parts = published(job.tables), state.partials()
    if current is None:
        return bool(parts)
    manifest = current.manifest
    if manifest.state != state.id or manifest.counts != added(parts):
        return True
    # Versions before this one did not say so, and whoever read them took a part for everything.
    if (manifest.since, manifest.until) != (job.since, job.until):
        return True
    return manifest.samples != Samples(spark, job.archive, job.window).fingerprint()


def make_tables(spark: SparkSession, state: State, job: Job, on_step: OnStep) -> Manifest:
    """A new edition of every table from what is in the state, in fewer parts if that is due."""
    sizes = sizes_for(state.partials())
    _divide(spark, sizes)
    many = due(state.partials())
    if many:
        on_step("compaction")
        compacted(spark, state, many, sizes_for(many))
    samples = Samples(spark, job.archive, job.window)
    builder = TableBuilder(spark, state, samples, sizes, job.silence_s)
    return builder.build(datetime.now(UTC), on_step)


def take_in(
    spark: SparkSession, state: State, job: Job, on_step: OnStep, limit: Limit | None = None
) -> Taken:
    """Fold what is new. A file that cannot be read is set aside, and the rest is not lost by it."""
    search = BadFileSearch(spark, job.archive, job.window)
    while True:
        found = new_records(
            spark,
            job.archive,
            state.through(),
            job.window,
            search.without,
            state.positions(),
            limit or Limit(job.rows_max),
            state.last_event(),
        )
        if found is None:
            return Taken()
        found = _unnamed(found, state)
        on_step("events")
        try:
            _fold(spark, state, job, found)
            return Taken(True, found.bad_files, found.is_all)
        except (PySparkException, Py4JError) as error:
            search.exclude_bad_file(found, error)


def _unnamed(found: NewRecords, state: State) -> NewRecords:
    """Without those files that an earlier part has set aside: each is named once."""
    if not found.bad_files:
        return found
    named = state.files_aside()
    left = tuple(each for each in found.bad_files if each.path not in named)
    return replace(found, bad_files=left)


def _fold(spark: SparkSession, state: State, job: Job, found: NewRecords) -> None:
    now = datetime.now(UTC)
    with ExitStack() as held:
        is_landed = not has_files(job.archive)
        if is_landed:
            found = land(spark, job.archive, found, held.enter_context(state.new_directory()))
        row = OF_FILES if found.files or is_landed else "0L"
        sizes = sizes_of(found.bytes)
        _divide(spark, sizes)
        input = Input(
            found.records,
            found.first,
            found.last,
            now,
            row,
            found.bad_files,
            found.file,
            job.late_s,
            counts={name: count for name, count in found.lacks.items() if count},
            aside=found.aside,
            positions=found.positions,
        )
        make_partial(spark, state, input, sizes)


def sizes_of(archive_bytes: int) -> Sizes:
    """How to divide the work on so much of an archive."""
    partitions = min(PARTITIONS_MAX, max(2, -(-archive_bytes // BYTES_A_PARTITION)))
    return Sizes(partitions, max(1, -(-archive_bytes // BYTES_A_FILE)))


def _divide(spark: SparkSession, sizes: Sizes) -> None:
    """Also what is not divided by hand: two hundred parts of little are mostly beginnings."""
    parts = max(sizes.partitions, 2 * spark.sparkContext.defaultParallelism)
    spark.conf.set("spark.sql.shuffle.partitions", str(parts))


def sizes_for(parts: Sequence[Partial]) -> Sizes:
    """The same, for parts of the state."""
    files = (file for each in parts for file in each.directory.rglob("*.parquet"))
    return sizes_of(sum(file.stat().st_size for file in files))
