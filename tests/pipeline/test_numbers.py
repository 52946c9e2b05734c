"""A number stands for one record: of several under one, a sound one keeps it and none is lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pipeline.archives import batch_of
from tocsin.pipeline.fold.row_numbers import ROW, misnumbered, numbered, unnumbered
from tocsin.pipeline.quality import Key, _names_one
from tocsin.pipeline.spark import broadcast as few_rows
from tocsin.pipeline.spark.broadcast import broadcast_rows


def _records(spark: SparkSession, seqs: list[int], ids: list[str | None]) -> DataFrame:
    """One record for each, the first row is nought."""
    table = pa.Table.from_batches([batch_of(1, len(seqs))])
    for name, values in (("seq", seqs), ("id", ids)):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values, table.schema.types[place]))
    frame = spark.createDataFrame(table)
    return frame.withColumn(ROW, F.monotonically_increasing_id()).persist()


def _ids(frame: DataFrame) -> list[tuple[int | None, str | None]]:
    return sorted(((each.seq, each.id) for each in frame.collect()), key=str)


def test_where_every_number_is_met_once_nothing_is_looked_for(spark: SparkSession) -> None:
    records = _records(spark, [1, 2, 3], ["a", "b", "c"])
    with broadcast_rows() as keep:
        assert misnumbered(records, keep) is None
    assert numbered(records, None) is records


def test_of_several_under_one_number_a_sound_one_keeps_it(spark: SparkSession) -> None:
    records = _records(spark, [1, 2, 2, 3], ["a", None, "b", "c"])
    with broadcast_rows() as keep:
        wrong = misnumbered(records, keep)
        assert _ids(numbered(records, wrong)) == [(1, "a"), (2, "b"), (3, "c")]
        assert _ids(unnumbered(records, wrong)) == sorted(
            [(1, "a"), (2, "b"), (3, "c"), (None, None)], key=str
        )


@pytest.mark.parametrize("rows_max", [few_rows.ROWS_MAX, 0])
def test_of_two_that_are_alike_in_everything_one_is_left(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    monkeypatch.setattr(few_rows, "ROWS_MAX", rows_max)
    records = _records(spark, [7, 7, 7, 8], ["a", "a", "a", "b"])
    alike = records.withColumn("received", F.lit(datetime(2026, 2, 1, tzinfo=UTC)))
    with broadcast_rows() as keep:
        wrong = misnumbered(alike, keep)
        assert _ids(numbered(alike, wrong)) == [(7, "a"), (8, "b")]
        assert [seq for seq, _ in _ids(unnumbered(alike, wrong))].count(None) == 2


def test_records_without_a_number_are_left_alone(spark: SparkSession) -> None:
    records = _records(spark, [0, 0, -1, 4, 4], ["a", "b", "c", "d", "e"])
    with broadcast_rows() as keep:
        wrong = misnumbered(records, keep)
        assert [seq for seq, _ in _ids(numbered(records, wrong))] == [-1, 0, 0, 4]


@pytest.mark.parametrize(
    ("seqs", "twice"),
    [([1, 63, 64, 128, 2**40], 0), ([64, 5, 64, 5, 64, 6], 2), ([127, 128, 191, 127], 1), ([], 0)],
)
def test_a_number_that_two_events_have_fails_the_check_of_the_table(
    spark: SparkSession, seqs: list[int], twice: int
) -> None:
    events = spark.createDataFrame([(seq,) for seq in seqs], "seq BIGINT")

    (found,) = _names_one(lambda name: events, Key("events", ("seq",)))

    assert (found.holds, found.count, len(found.rows)) == (not twice, twice, twice)
