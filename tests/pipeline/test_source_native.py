"""An archive read by Spark itself: the rows of the source in Python, and no more than is asked."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.archives import add_fresh, add_sealed, merge
from tocsin.pipeline import source
from tocsin.pipeline.source import native

THROUGH_PYTHON = {"bad_files": "skip"}


@pytest.fixture(scope="module")
def native_spark(spark: SparkSession) -> SparkSession:
    return source.register(spark)


def events(spark: SparkSession, archive: Path, **options: object) -> DataFrame:
    return spark.read.format("tocsin").options(**options).load(str(archive))


def plan(frame: DataFrame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def rows(frame: DataFrame) -> pa.Table:
    return frame.orderBy("seq").toArrow()


def numbers(frame: DataFrame) -> list[int]:
    return rows(frame.select("seq")).column("seq").to_pylist()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"after": 10},
        {"through": 325},
        {"after": 50, "through": 60},
        {"after": 0},
        {"after": 330},
        {"columns": "facts.ExitCode,seq,run"},
    ],
)
def test_it_gives_what_the_source_in_python_gives(
    native_spark: SparkSession, tmp_path: Path, options: dict[str, object]
) -> None:
    add_sealed(tmp_path, 1, 300)
    add_fresh(tmp_path, 301, 330)

    ours = events(native_spark, tmp_path, **options)
    slow = events(native_spark, tmp_path, **options, **THROUGH_PYTHON)

    assert "Python" not in plan(ours)
    assert "BatchScan tocsin" in plan(slow)
    assert ours.schema == slow.schema
    assert rows(ours).equals(rows(slow))


def test_a_range_need_not_read_its_numbers(native_spark: SparkSession, tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 40)
    found = events(native_spark, tmp_path, columns="run", after=5, through=30)
    assert found.columns == ["run"]
    assert found.count() == 25


def test_what_a_query_does_not_ask_for_is_not_read(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    add_sealed(tmp_path, 1, 30)

    query = events(native_spark, tmp_path).where("run = 'run-1'").select("facts.ExitCode")

    assert "ReadSchema: struct<run:string,facts:struct<ExitCode:" in plan(query)
    assert "PushedFilters: [IsNotNull(run), EqualTo(run,run-1)]" in plan(query)
    assert query.count() == 10


@pytest.mark.parametrize("options", [{"after": 5}, {"through": 290}, {"after": 5, "through": 295}])
def test_a_range_reads_no_more_than_a_query_asks_for(
    native_spark: SparkSession, tmp_path: Path, options: dict[str, object]
) -> None:
    add_sealed(tmp_path, 1, 200)
    add_fresh(tmp_path, 201, 300)

    def asked(**more: object) -> list[object]:
        found = events(native_spark, tmp_path, **options, **more)
        chosen = found.where("run > 'run-2' and facts.ExitCode = 1 and rand(1) < 2")
        return chosen.where("seq > (select 7)").orderBy("seq").select("id", "facts.Host").collect()

    assert len(asked()) > 10
    assert asked() == asked(**THROUGH_PYTHON)


def test_a_new_query_has_what_came_after_its_frame_was_made(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    add_fresh(tmp_path, 1, 20)
    found, within = events(native_spark, tmp_path), events(native_spark, tmp_path, after=5)
    assert (found.count(), within.count()) == (20, 15)

    add_fresh(tmp_path, 21, 30)
    merge(tmp_path)

    assert (found.count(), within.count()) == (30, 25)
    assert found.inputFiles()[0].startswith("file:///")
    assert found.join(within, "seq").count() == 25


def _in_many_groups(archive: Path, path: Path) -> bytes:
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table, path, row_group_size=100)
    return path.read_bytes()


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_file_that_was_written_anew_is_read_to_its_end(
    native_spark: SparkSession, tmp_path: Path, is_streamed: bool
) -> None:
    archive = tmp_path / "archive"
    path = add_sealed(archive, 1, 1_000)
    whole = _in_many_groups(archive, path)
    path.write_bytes(whole[: len(whole) // 3])

    def read() -> int:
        if not is_streamed:
            return len(numbers(events(native_spark, archive)))
        query = (
            native_spark.readStream.format("tocsin")
            .load(str(archive))
            .select("seq")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        return native_spark.read.parquet(str(tmp_path / "out")).count()

    with pytest.raises(PySparkException, match=path.name):
        read()
    path.write_bytes(whole)  # restored, as the error advises

    assert read() == 1_000


@pytest.fixture
def careless(native_spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose owner would rather have half of the rows than an error."""
    settings = {
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    }
    before = {name: native_spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        native_spark.conf.set(name, value)
    yield native_spark
    for name, value in before.items():
        native_spark.conf.set(name, value)


def test_no_setting_of_a_session_leaves_out_events(careless: SparkSession, tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 20)
    path = add_sealed(tmp_path, 21, 40)
    gone = events(careless, tmp_path)
    gone._jdf.queryExecution().executedPlan().execute()  # planned, with both files
    path.unlink()

    with pytest.raises((PySparkException, Py4JError), match=path.name):
        gone.collect()


def test_no_setting_of_a_session_changes_what_is_read(
    careless: SparkSession, tmp_path: Path
) -> None:
    path = add_sealed(tmp_path, 1, 4)
    table = pq.read_table(path, partitioning=None)
    early = pa.array([-(10**16) * 5] * 4, pa.int64()).cast(table.schema.field("at").type)
    place = table.schema.get_field_index("at")
    pq.write_table(table.set_column(place, table.schema.field("at"), early), path)

    ours = events(careless, tmp_path).selectExpr("unix_micros(at)").distinct().collect()
    assert [row[0] for row in ours] == [-(10**16) * 5]
    content = bytearray(path.read_bytes())
    content[len(content) // 4 : len(content) // 3] = b"?" * (len(content) // 3 - len(content) // 4)
    path.write_bytes(content)
    with pytest.raises((PySparkException, Py4JError), match=path.name):
        events(careless, tmp_path).collect()


def test_an_archive_without_a_file_has_no_events_and_all_columns(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    found = events(native_spark, tmp_path)
    assert found.count() == 0
    assert "facts" in found.columns


def test_any_name_of_a_directory_is_one(native_spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a b", "50%25#?", "größer\nals", "{a,b}*[c]"):
        add_sealed(tmp_path / name, 1, 20)
        assert numbers(events(native_spark, tmp_path / name)) == list(range(1, 21))


def test_sql_reads_it_as_a_view(native_spark: SparkSession, tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 20)
    native_spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW seen USING tocsin OPTIONS (path '{tmp_path}')"
    )
    assert native_spark.sql("SELECT max(seq) FROM seen").first()[0] == 20


def test_all_threads_read_it_natively(native_spark: SparkSession, tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 20)

    def read(_: int) -> tuple[bool, int]:
        found = events(native_spark, tmp_path)
        return "FileScan parquet" in plan(found), found.count()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, range(8))) == {(True, 20)}


def test_events_that_are_gone_are_told_or_passed_over(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    add_sealed(tmp_path, 1, 20)
    add_sealed(tmp_path, 31, 40)

    with pytest.raises(IllegalArgumentException, match=r"events 21 to 30 are not in .* \[T754\]"):
        events(native_spark, tmp_path).count()
    with pytest.raises(IllegalArgumentException, match=r"events 21 to 30 are not in"):
        events(native_spark, tmp_path, after=5).count()
    found = events(native_spark, tmp_path, holes="skip")
    assert numbers(found) == [*range(1, 21), *range(31, 41)]


def test_a_file_with_a_damaged_end_is_named_with_what_to_do(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    add_sealed(tmp_path, 1, 20)
    path = add_sealed(tmp_path, 21, 40)
    path.write_bytes(path.read_bytes()[:-100])

    with pytest.raises(IllegalArgumentException, match=path.name) as refused:
        events(native_spark, tmp_path).count()
    assert "bad_files=skip" in str(refused.value)
    assert numbers(events(native_spark, tmp_path, bad_files="skip")) == list(range(1, 21))


def test_parquet_that_is_not_ours_is_refused_whatever_its_name(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    path = add_sealed(tmp_path, 1, 20)
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table.replace_schema_metadata(None), path)

    with pytest.raises(IllegalArgumentException, match="was not written by a Tocsin"):
        events(native_spark, tmp_path).count()


@pytest.mark.parametrize("statistics", [True, False])
def test_a_record_without_what_it_must_have_makes_its_file_a_bad_one(
    native_spark: SparkSession, tmp_path: Path, statistics: bool
) -> None:
    path = add_sealed(tmp_path, 1, 3)
    table = pq.read_table(path, partitioning=None)
    place = table.schema.get_field_index("topic")
    holed = table.set_column(place, pa.field("topic", pa.string()), pa.array(["a", None, "c"]))
    pq.write_table(holed, path, write_statistics=statistics)

    with pytest.raises(IllegalArgumentException, match="column 'topic' has nulls"):
        events(native_spark, tmp_path).count()
    kept = events(native_spark, tmp_path, nulls="keep", columns="seq,topic")
    assert [row.topic for row in kept.orderBy("seq").collect()] == ["a", None, "c"]


def test_what_an_older_file_does_not_have_is_null(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    path = add_sealed(tmp_path, 1, 12)
    table = pq.read_table(path, partitioning=None)
    reported = table.column("facts").combine_chunks()
    kept = [field.name for field in reported.type if field.name != "ExitCode"]
    fewer = pa.StructArray.from_arrays(
        [reported.field(name) for name in kept], names=kept, mask=reported.is_null()
    )
    older = table.set_column(table.schema.get_field_index("facts"), "facts", fewer)
    pq.write_table(older.drop_columns(["attempt"]), path)
    add_sealed(tmp_path, 13, 24)

    for columns in ("", "seq,attempt,facts.ExitCode", "seq,attempt,facts.ExitCode,facts.Host"):
        ours = events(native_spark, tmp_path, columns=columns)
        slow = events(native_spark, tmp_path, columns=columns, **THROUGH_PYTHON)
        assert rows(ours).equals(rows(slow)), columns


def test_what_was_damaged_within_a_file_is_an_error_and_no_other_number(
    plain_session: SparkSession, tmp_path: Path
) -> None:
    path = add_sealed(tmp_path, 1, 40)
    _flip_one_bit(path, "seq")
    found = events(plain_session, tmp_path).select("seq")

    assert plain_session.read.parquet(str(path)).agg({"seq": "max"}).first()[0] != 40
    with pytest.raises((PySparkException, Py4JError), match=path.name):
        found.collect()


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
def plain_session(native_spark: SparkSession) -> Iterator[SparkSession]:
    """With checksums as anybody's session has them, which is off."""
    settings = native_spark.sparkContext._jsc.hadoopConfiguration()
    name = "parquet.page.verify-checksum.enabled"
    settings.set(name, "false")
    yield native_spark
    settings.set(name, "true")


def test_what_cannot_be_asked_for_is_refused_with_what_can(
    native_spark: SparkSession, tmp_path: Path
) -> None:
    def refused(words: str, where: Path = tmp_path, **options: object) -> None:
        with pytest.raises(IllegalArgumentException, match=words):
            events(native_spark, where, **options)

    refused(r"no directory .*nowhere \[T412\]", tmp_path / "nowhere")
    refused("no column 'rum'; did you mean run", columns="rum")
    refused("Did you mean through", throug=3)
    refused("through is 3, before after, which is 5", after=5, through=3)
    with pytest.raises(IllegalArgumentException, match="the schema has seq as string"):
        native_spark.read.format("tocsin").schema("seq string").load(str(tmp_path))
    for promised in ("subject string not null", "facts struct<ExitCode: bigint not null>"):
        with pytest.raises(IllegalArgumentException, match="is never null, and in an archive"):
            native_spark.read.format("tocsin").schema(promised).load(str(tmp_path))
    with pytest.raises(IllegalArgumentException, match="where the events are"):
        native_spark.read.format("tocsin").load()


def test_a_schema_of_ones_own_chooses_columns(native_spark: SparkSession, tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 9)
    reader = native_spark.read.format("tocsin").schema("run string, facts struct<ExitCode:bigint>")

    found = reader.load(str(tmp_path))

    assert found.columns == ["run", "facts"]
    assert found.where("facts.ExitCode is not null").count() == 3


def test_where_spark_has_no_such_compiler_it_is_said_and_not_a_trace(spark: SparkSession) -> None:
    real = spark.sparkContext._gateway

    class Gateway:
        class jvm:
            org = real.jvm.nowhere

        new_array = real.new_array

    with pytest.raises(native.NotThisSpark, match="our classes cannot be compiled") as reported:
        native._compiled(Gateway, None)
    assert "\n" not in str(reported.value)


def test_where_java_is_another_than_we_know_archives_are_read_all_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse(_jvm: object) -> None:
        raise native.NotThisSpark("no class loader")

    add_sealed(tmp_path, 1, 20)
    monkeypatch.setattr(native, "_loader", refuse)

    assert events(source.register(spark), tmp_path).count() == 20
    assert "archives are read through Python, which is slower: no class loader" in caplog.text
