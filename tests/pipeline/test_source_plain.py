"""An archive read by Spark itself: the rows of the source, and no more of them than is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Lock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.archives import add_fresh, add_sealed, seal
from tocsin.archive.catalog import Piece
from tocsin.archive.parquet import Footer, read_footer
from tocsin.errors.archive import BadArchiveFile, NoArchive
from tocsin.errors.spark import BadSourceOption, EventsGone
from tocsin.pipeline.source import archived, plain


def _rows(frame: DataFrame) -> pa.Table:
    return frame.orderBy("seq").toArrow()


def _numbers(frame: DataFrame) -> list[int]:
    return _rows(frame.select("seq")).column("seq").to_pylist()


def _with_hole(archive: Path) -> Path:
    add_sealed(archive, 1, 20)
    add_sealed(archive, 31, 40)
    return archive


@pytest.mark.parametrize(
    "options",
    [{}, {"after": 10}, {"through": 325}, {"after": 50, "through": 60}, {"after": 0}],
)
def test_it_gives_what_the_source_gives(
    spark: SparkSession, tmp_path: Path, options: dict[str, int]
) -> None:
    add_sealed(tmp_path, 1, 300)
    add_fresh(tmp_path, 301, 330)

    ours = spark.read.format("tocsin").options(**options).load(str(tmp_path))
    plainly = archived(spark, str(tmp_path), **options)

    assert plainly.schema.simpleString() == ours.schema.simpleString()
    assert _rows(plainly).cast(_rows(ours).schema).equals(_rows(ours))


def test_what_a_query_does_not_ask_for_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 30)

    query = archived(spark, str(tmp_path)).where("run = 'run-1'").select("told.ExitCode")
    plan = query._jdf.queryExecution().executedPlan().toString()

    assert "ReadSchema: struct<run:string,told:struct<ExitCode:" in plan
    assert "PushedFilters: [IsNotNull(run), EqualTo(run,run-1)]" in plan
    assert query.count() == 10


def test_an_archive_without_a_file_has_no_events_and_all_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = archived(spark, str(tmp_path))
    assert found.count() == 0
    assert "told" in found.columns


def test_events_that_are_gone_are_told_or_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    archive = _with_hole(tmp_path)
    with pytest.raises(EventsGone, match="events 21 to 30"):
        archived(spark, str(archive))
    found = archived(spark, str(archive), holes="skip")
    assert _numbers(found) == [*range(1, 21), *range(31, 41)]


def test_a_damaged_file_is_named_or_passed_over(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_sealed(tmp_path, 1, 20)
    path = add_sealed(tmp_path, 21, 40)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(BadArchiveFile, match=path.name) as refused:
        archived(spark, str(tmp_path))
    assert "bad_files=skip" in refused.value.__notes__[0]
    found = archived(spark, str(tmp_path), bad_files="skip")

    assert _numbers(found) == list(range(1, 21))
    assert path.name in caplog.text


def test_what_was_damaged_within_a_file_is_an_error_and_no_other_number(
    plain_session: SparkSession, tmp_path: Path
) -> None:
    path = add_sealed(tmp_path, 1, 40)
    _flip_one_bit(path, "seq")
    numbers = archived(plain_session, str(tmp_path)).select("seq")

    assert plain_session.read.parquet(str(path)).agg({"seq": "max"}).first()[0] != 40
    with pytest.raises((PySparkException, Py4JError), match=path.name):
        numbers.collect()


def _flip_one_bit(path: Path, column: str) -> None:
    """In the last value of a column, which is then as good a value as any."""
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunk = next(
        c for n in range(group.num_columns) if (c := group.column(n)).path_in_schema == column
    )
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + chunk.total_compressed_size - 8] ^= 64
    path.write_bytes(content)


@pytest.fixture
def plain_session(spark: SparkSession) -> Iterator[SparkSession]:
    """With checksums as anybody's session has them, which is off."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    name = "parquet.page.verify-checksum.enabled"
    settings.set(name, "false")
    yield spark
    settings.set(name, "true")


def test_files_that_are_merged_while_they_are_looked_at_are_listed_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_fresh(tmp_path, 1, 20)
    add_fresh(tmp_path, 21, 40)
    looks: list[Piece] = []
    turn = Lock()  # several are looked at at once

    def merged_first(piece: Piece) -> Footer:
        with turn:
            if not looks:
                seal(tmp_path)
            looks.append(piece)
        return read_footer(piece)

    monkeypatch.setattr(plain, "read_footer", merged_first)

    assert _numbers(archived(spark, str(tmp_path))) == list(range(1, 41))
    assert not looks[-1].is_fresh


def test_what_cannot_be_asked_for_is_refused_with_what_can(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(NoArchive, match="no directory"):
        archived(spark, str(tmp_path / "nowhere"))
    with pytest.raises(BadSourceOption, match=r"format\('tocsin'\)"):
        archived(spark, "http://127.0.0.1:8400")
    with pytest.raises(BadSourceOption, match="option columns is of no use here"):
        archived(spark, str(tmp_path), columns="seq")
    with pytest.raises(BadSourceOption, match="Did you mean through"):
        archived(spark, str(tmp_path), throug=3)
