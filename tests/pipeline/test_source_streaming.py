"""An archive as a stream that Spark reads itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from pipeline.archives import add_fresh, add_sealed, merge
from tocsin.pipeline import source

THROUGH_PYTHON = {"bad_files": "skip"}


@pytest.fixture(scope="module")
def native_spark(spark: SparkSession) -> SparkSession:
    return source.register(spark)


class Query:
    """A query that is started again and again on one checkpoint."""

    def __init__(self, spark: SparkSession, archive: Path, scratch: Path) -> None:
        self._spark = spark
        self._archive = archive
        self._scratch = scratch

    def run(self, **options: object) -> list[str]:
        """Read what there is; returns the offsets at which the batches ended."""
        named = self._spark.readStream.format("tocsin").options(columns="run,seq", **options)
        query = (
            named.load(str(self._archive))
            .writeStream.format("parquet")
            .option("path", str(self._scratch / "out"))
            .option("checkpointLocation", str(self._scratch / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        reported = [each for each in query.recentProgress if each.numInputRows]
        return [each.sources[0].endOffset for each in reported]

    def seen(self) -> list[int]:
        found = self._spark.read.parquet(str(self._scratch / "out")).collect()
        return sorted(row.seq for row in found)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def query(native_spark: SparkSession, archive: Path, tmp_path: Path) -> Query:
    return Query(native_spark, archive, tmp_path)


def test_batches_end_with_files_where_they_can(query: Query, archive: Path) -> None:
    for first, last in ((1, 20), (21, 50), (51, 200)):
        add_fresh(archive, first, last)

    ends = query.run(rows_per_trigger=60)

    assert ends == [f'{{"seq": {end}}}' for end in (50, 110, 170, 200)]
    assert query.seen() == list(range(1, 201))


def test_it_goes_on_where_python_left_off_and_python_where_it_did(
    query: Query, archive: Path
) -> None:
    add_sealed(archive, 1, 40)
    query.run(**THROUGH_PYTHON)
    add_fresh(archive, 41, 60)
    assert query.run() == ['{"seq": 60}']
    merge(archive)
    add_fresh(archive, 61, 70)
    assert query.run(**THROUGH_PYTHON) == ['{"seq": 70}']
    add_fresh(archive, 71, 80)
    query.run()

    assert query.seen() == list(range(1, 81))


def test_it_goes_on_when_what_it_read_last_was_let_go(query: Query, archive: Path) -> None:
    old = add_sealed(archive, 1, 40)
    query.run()
    add_sealed(archive, 41, 60)
    old.unlink()

    query.run()

    assert query.seen() == list(range(1, 61))


def test_files_merged_across_the_end_of_a_batch_give_each_event_once(
    query: Query, archive: Path
) -> None:
    add_fresh(archive, 1, 30)
    query.run()
    add_fresh(archive, 31, 50)
    merge(archive)
    assert len(list(archive.glob("*/*.parquet"))) == 1, "with events of both batches"

    query.run()

    assert query.seen() == list(range(1, 51))


def test_an_archive_that_is_still_empty_is_waited_for(query: Query, archive: Path) -> None:
    archive.mkdir()
    assert query.run() == []
    add_fresh(archive, 1, 5)
    query.run()
    assert query.seen() == [1, 2, 3, 4, 5]


def test_it_begins_after_an_event_and_ends_with_one(query: Query, archive: Path) -> None:
    add_sealed(archive, 1, 40)
    query.run(after=10, through=25)
    assert query.seen() == list(range(11, 26))


def test_events_that_are_gone_end_it_with_their_numbers(query: Query, archive: Path) -> None:
    add_sealed(archive, 1, 20)
    query.run()
    add_sealed(archive, 31, 40)

    with pytest.raises(StreamingQueryException, match=r"events 21 to 30 are not in .* \[T754\]"):
        query.run()
    query.run(holes="skip")

    assert query.seen() == [*range(1, 21), *range(31, 41)]


def test_a_batch_that_was_planned_and_is_no_longer_all_there_is_not_taken_for_done(
    query: Query, native_spark: SparkSession, archive: Path, tmp_path: Path
) -> None:
    def fail(_batch: object, _number: int) -> None:
        raise RuntimeError("killed, when the offsets of the batch were written down")

    add_sealed(archive, 1, 20)
    query.run()
    lost = add_fresh(archive, 21, 40)
    stream = native_spark.readStream.format("tocsin").option("columns", "run,seq")
    writer = stream.load(str(archive)).writeStream.foreachBatch(fail)
    failing = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException, match="killed"):
        failing.awaitTermination()
    content = lost.read_bytes()
    lost.unlink()

    with pytest.raises(StreamingQueryException, match="events 21 to 40 are not in"):
        query.run()
    lost.write_bytes(content)
    query.run()

    assert query.seen() == list(range(1, 41))


def test_a_shorter_archive_is_another_one(query: Query, archive: Path, tmp_path: Path) -> None:
    add_sealed(archive, 1, 40)
    query.run()
    archive.rename(tmp_path / "old")
    add_sealed(archive, 1, 10)

    with pytest.raises(StreamingQueryException, match="these are other events than before"):
        query.run()


def test_what_is_wrong_with_a_file_ends_it_with_its_name(query: Query, archive: Path) -> None:
    path = add_sealed(archive, 1, 20)
    path.write_bytes(b"PAR1 and then nothing")

    with pytest.raises(StreamingQueryException, match=path.name):
        query.run()
