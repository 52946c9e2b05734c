"""The source `tocsin` in a real Spark session: batch, stream, over files and over a broker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pipeline.archives import add_fresh, add_sealed, batch_of, seal
from served import ROOT, Served, served
from tocsin.pipeline import source
from tocsin.pipeline.spark.java import find_java

DOCUMENT = (ROOT / "docs" / "spark-source.md").read_text()


def rows(frame: DataFrame) -> pa.Table:
    return frame.orderBy("seq").toArrow()


@pytest.mark.parametrize("through_python", [False, True])
def test_a_frame_is_the_archive_to_the_value(
    spark: SparkSession, tmp_path: Path, through_python: bool
) -> None:
    add_sealed(tmp_path, 1, 300)
    add_fresh(tmp_path, 301, 330)
    reading = source.register(spark).read.format("tocsin").option("rows_per_partition", 100)
    if through_python:
        reading = reading.option("bad_files", "skip")

    whole = reading.load(str(tmp_path))
    part = reading.options(columns="facts.ExitCode,seq,run", after=10, through=310).load(
        str(tmp_path)
    )

    assert rows(whole).cast(batch_of(1, 1).schema).equals(pa.Table.from_batches([batch_of(1, 330)]))
    assert not through_python or whole.rdd.getNumPartitions() == 4
    assert part.columns == ["facts", "seq", "run"]
    assert part.where("facts.ExitCode = 1").count() == len(range(15, 311, 6))
    assert part.agg({"seq": "min"}).first()[0] == 11
    plain = spark.read.parquet(str(tmp_path)).select("seq", "data", "facts.ExitCode")
    ours = whole.where("seq <= 300").select("seq", "data", "facts.ExitCode")
    assert rows(plain).equals(rows(ours).cast(rows(plain).schema))


def through_stream(spark: SparkSession, where: object, scratch: Path, **options: object) -> int:
    """Run the stream until it has read what there is; returns how many batches it took."""
    reading = spark.readStream.format("tocsin").options(columns="seq,run", **options)
    query = (
        reading.load(str(where))
        .writeStream.format("parquet")
        .option("path", str(scratch / "out"))
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return len([each for each in query.recentProgress if each["numInputRows"]])


def seen(spark: SparkSession, scratch: Path) -> list[int]:
    return sorted(row.seq for row in spark.read.parquet(str(scratch / "out")).collect())


def test_a_stream_started_again_goes_on_also_when_files_were_merged_meanwhile(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    for first in range(1, 101, 20):
        add_fresh(archive, first, first + 19)

    assert through_stream(spark, archive, tmp_path, rows_per_trigger=40) == 3
    assert seen(spark, tmp_path) == list(range(1, 101))
    seal(archive)
    add_fresh(archive, 101, 150)
    assert through_stream(spark, archive, tmp_path) == 1

    assert seen(spark, tmp_path) == list(range(1, 151))


def test_what_is_wrong_is_in_the_words_of_the_error(spark: SparkSession, tmp_path: Path) -> None:
    bad = add_sealed(tmp_path, 1, 20)
    bad.write_bytes(b"PAR1 and then nothing")
    reading = spark.read.format("tocsin")

    with pytest.raises(PySparkException, match=r"no column 'rum'; did you mean run"):
        reading.option("columns", "rum").load(str(tmp_path))
    with pytest.raises(PySparkException) as caught:
        spark.read.format("tocsin").load(str(tmp_path)).collect()
    assert bad.name in str(caught.value)
    assert "bad_files=skip" in str(caught.value)
    assert spark.read.format("tocsin").options(badFiles="skip").load(str(tmp_path)).count() == 0


def test_the_sealed_files_are_a_stream_of_plain_parquet_as_well(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    add_sealed(archive, 1, 40)
    plain = spark.readStream.schema(spark.read.parquet(str(archive)).schema).parquet(str(archive))

    for last in (40, 60):
        query = plain.select("seq").writeStream.format("parquet").trigger(availableNow=True)
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.start(str(tmp_path / "out")).awaitTermination()
        assert seen(spark, tmp_path) == list(range(1, last + 1))
        add_sealed(archive, 41, 60)


@pytest.fixture(scope="module")
def broker() -> object:
    with served() as found:
        found.publish(
            *(
                {"data": {"RunId": "r", "ActivityId": f"a{n}", "ExitCode": str(n % 2)}}
                for n in range(100)
            )
        )
        yield found


def test_a_running_broker_is_read_as_its_archive_would_be(
    spark: SparkSession, broker: Served, tmp_path: Path
) -> None:
    frame = spark.read.format("tocsin").option("rows_per_partition", 30).load(broker.url)

    assert [row.seq for row in frame.orderBy("seq").collect()] == list(range(1, 101))
    assert frame.where("facts.ExitCode = 1").count() == 50
    through_stream(spark, broker.url, tmp_path)
    broker.publish({"subject": "one more"})
    through_stream(spark, broker.url, tmp_path)
    assert seen(spark, tmp_path) == list(range(1, 102))


def test_the_document_runs_as_it_is(spark: SparkSession, broker: Served, tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 30)
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT, re.S)
    assert len(blocks) == 7

    names: dict[str, object] = {}
    for block in blocks:
        placed = block.replace("http://127.0.0.1:8400", broker.url)
        exec(placed.replace("DATA/archive", str(tmp_path)), names)

    assert names["source"] is source
    assert names["events"].count() >= 100  # type: ignore[attr-defined]
    assert names["ends"].count() == 50  # type: ignore[attr-defined]
    assert names["archive"].count() == 30  # type: ignore[attr-defined]
    assert spark.table("seen").count() == names["table"].num_rows  # type: ignore[attr-defined]


UNREGISTERED = """
import sys
from pyspark.sql import SparkSession
from tocsin.pipeline import source
spark = SparkSession.builder.getOrCreate()
for _ in range(2):
    events = spark.read.format("tocsin").load(sys.argv[1])
    plan = events._jdf.queryExecution().executedPlan().toString()
    print(events.count(), "FileScan parquet" in plan)
    source.register(spark)
spark.stop()
again = source.session("local[1]")
print(again.read.format("tocsin").load(sys.argv[1]).count(), source.session() is again)
"""


def test_the_format_is_found_without_registration_and_by_a_session_that_follows_another(
    tmp_path: Path,
) -> None:
    add_sealed(tmp_path, 1, 30)

    done = subprocess.run(
        [sys.executable, "-c", UNREGISTERED, str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )

    assert done.stdout.split() == ["30", "False", "30", "True", "30", "True"], done.stderr[-2_000:]
    assert "replaced a" not in done.stderr  # Spark warns when a source is registered twice


def test_the_example_runs_in_an_environment_that_is_not_activated(broker: Served) -> None:
    passed = ("HOME", "TMPDIR", "LANG")
    environment = {name: os.environ[name] for name in passed if name in os.environ}
    environment |= {"PATH": os.defpath, "JAVA_HOME": str(find_java().home)}

    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "notebook_source.py", broker.url],
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    assert "100 activities ended, 50 of them in failure" in done.stdout


def test_every_option_is_in_the_document_with_its_default() -> None:
    listed = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", DOCUMENT, re.M))
    options = source.options

    assert set(listed) == set(options.KNOWN) - {"path"}
    for name in (
        "rows_per_partition",
        "rows_per_batch",
        "rows_per_trigger",
        "timeout_s",
        "retries",
    ):
        assert listed[name].strip() == f"{getattr(options, name.upper()):,}"
