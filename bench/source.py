"""The Spark source `tocsin` beside Spark's own Parquet source: same files, columns and sink.

    python bench/source.py [--rows N] [--files N] [--archive DIR] [--quick] [--json FILE]

The archive is made by `tocsin synth` (or is one that is there). Both sources read it in turns, in
one session, into Spark's `noop` sink; a first turn that nobody counts warms both up. `M rows/s` is
the median of the rounds and `ratio` ours over Spark's. `per CPU-s` is the same by processor time of
the JVM and of all Python workers, which other work on the machine disturbs less.

`through Python` is the same format in a session where it was not registered. `cut` reads a range
that begins and ends within a file, and as many rows less than Spark's own.

`stream` is a query with the available-now trigger that reads the archive in five batches: rows
over seconds of all but the first (`start`, the seconds of that one). `over HTTP` reads a running
broker on the same machine, which has archived 200,000 events, and has no peer.

`polls` is how long a stream takes to learn whether there is something new in an archive of many
small files, while a file is added each time: asked of our reader, and as Spark tells it for both.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession

import load  # noqa: F401  # with it, what the tests have is within reach
import report
from served import served
from source_polls import SmallFiles, all_polls
from tocsin.archive.catalog import Catalog
from tocsin.pipeline.source import TocsinSource, register
from tocsin.pipeline.spark.session import session
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan

ROUNDS = 5
PYTHON = "tocsin_through_python"
CUT = 1_000  # events that are left out at either end
HTTP_ROWS = 200_000  # published for this, one by one
BATCH = 5_000
ARCHIVED_S_MAX = 120.0
TARGET = 0.8
POLL_TARGET_S = 0.2
COLUMNS = {
    "4 columns": ("seq", "run", "activity", "at"),
    "10, of facts": (
        "seq",
        "run",
        "activity",
        "attempt",
        "at",
        "facts.ActivityExecuting",
        "facts.ExitCode",
        "facts.CpuSeconds",
        "facts.MemoryPeak",
        "facts.Host",
    ),
    "the event": ("seq", "received", "id", "source", "type", "topic", "time", "attributes", "data"),
    "all columns": (),
}
STREAMED = ("4 columns", "10, of facts")
Row = dict[str, Any]


def cpu_s() -> float:
    """Processor time of this process's children, and of theirs: the JVM and its workers."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def spent(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock, and of processors."""
    cpu, began = cpu_s(), time.perf_counter()
    work()
    return time.perf_counter() - began, cpu_s() - cpu


def sink(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def theirs(spark: SparkSession, archive: Path, columns: tuple[str, ...]) -> DataFrame:
    frame = spark.read.parquet(str(archive))
    return frame.select(*columns) if columns else frame.drop("date")


def ours(
    spark: SparkSession, where: object, columns: tuple[str, ...], name: str = "tocsin", **more: int
) -> DataFrame:
    named = spark.read.format(name).option("columns", ",".join(columns))
    return named.options(**more).load(str(where))


def streamed(frame: DataFrame) -> Row:
    """Rows and seconds of every batch but the first, and the seconds of that."""
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as checkpoint:
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    first, *others = [each for each in query.recentProgress if each["numInputRows"]]
    return {
        "start_s": first["durationMs"]["triggerExecution"] / 1e3,
        "rows": sum(each["numInputRows"] for each in others),
        "seconds": sum(each["durationMs"]["triggerExecution"] for each in others) / 1e3,
    }


def compared(name: str, rows: int, rounds: int, work: dict[str, Callable[[], None]]) -> Row:
    """Both in turns; the medians, and ours over theirs."""
    taken: dict[str, list[tuple[float, float]]] = {side: [] for side in work}
    for number in range(rounds + 1):
        for side, run in work.items():
            found = spent(run)
            if number:
                taken[side].append(found)
    row: Row = {"what": name}
    for side, times in taken.items():
        row[f"{side}_rows_s"] = rows / statistics.median(wall for wall, _ in times)
        row[f"{side}_rows_cpu_s"] = rows / statistics.median(cpu for _, cpu in times)
    if "spark" in work:
        row["ratio"] = row["tocsin_rows_s"] / row["spark_rows_s"]
        row["cpu_ratio"] = row["tocsin_rows_cpu_s"] / row["spark_rows_cpu_s"]
    if "python" in work:
        row["ratio_python"] = row["python_rows_s"] / row["spark_rows_s"]
    return row


class ThroughPython(TocsinSource):
    """The format as it is where it was not registered."""

    @classmethod
    def name(cls) -> str:
        return PYTHON


def throughput(spark: SparkSession, archive: Path, rows: int, rounds: int) -> list[Row]:
    found = []
    for name, columns in COLUMNS.items():
        assert ours(spark, archive, columns).count() == rows
        found.append(
            compared(
                f"batch, {name}",
                rows,
                rounds,
                {
                    "spark": lambda c=columns: sink(theirs(spark, archive, c)),
                    "tocsin": lambda c=columns: sink(ours(spark, archive, c)),
                    "python": lambda c=columns: sink(ours(spark, archive, c, PYTHON)),
                },
            )
        )
    found.append(cut(spark, archive, rows, rounds))
    return found + [streams(spark, archive, rows, rounds, name) for name in STREAMED]


def cut(spark: SparkSession, archive: Path, rows: int, rounds: int) -> Row:
    columns = COLUMNS["the event"]
    return compared(
        "cut, the event",
        rows - 2 * CUT,
        rounds,
        {
            "spark": lambda: sink(theirs(spark, archive, columns)),
            "tocsin": lambda: sink(ours(spark, archive, columns, after=CUT, through=rows - CUT)),
        },
    )


def streams(spark: SparkSession, archive: Path, rows: int, rounds: int, name: str) -> Row:
    columns = COLUMNS[name]
    schema = spark.read.parquet(str(archive)).schema
    files = len(list(archive.glob("date=*/*.parquet")))
    plain = spark.readStream.schema(schema).option("maxFilesPerTrigger", max(1, files // 5))
    limited = spark.readStream.format("tocsin").option("columns", ",".join(columns))
    limited = limited.option("rows_per_trigger", rows // 5)
    sides = {
        "spark": plain.parquet(str(archive)).select(*columns),
        "tocsin": limited.load(str(archive)),
    }
    taken: dict[str, list[Row]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, frame in sides.items():
            taken[side].append(streamed(frame))
    row: Row = {"what": f"stream, {name}"}
    for side, found in taken.items():
        row[f"{side}_rows_s"] = statistics.median(each["rows"] / each["seconds"] for each in found)
        row[f"{side}_start_s"] = statistics.median(each["start_s"] for each in found)
    row["ratio"] = row["tocsin_rows_s"] / row["spark_rows_s"]
    return row


def over_http(spark: SparkSession, rows: int, rounds: int) -> list[Row]:
    with served(env={"TOCSIN_ARCHIVE__ROLL_S": "1"}) as broker:
        for first in range(0, rows, BATCH):
            numbers = range(first, min(first + BATCH, rows))
            data = ({"RunId": f"r{n // 40}", "ActivityId": f"a{n % 40}"} for n in numbers)
            broker.publish(*({"type": "bb.ActivityExecuting", "data": each} for each in data))
        until = time.monotonic() + ARCHIVED_S_MAX
        while Catalog(broker.directory / "archive").through() < rows:
            assert time.monotonic() < until, "the archive is not filled"
            time.sleep(0.5)
        assert ours(spark, broker.url, COLUMNS["4 columns"]).count() == rows
        return [
            compared(
                f"over HTTP, {name}",
                rows,
                rounds,
                {"tocsin": lambda c=COLUMNS[name]: sink(ours(spark, broker.url, c))},
            )
            for name in ("4 columns", "the event")
        ]


def show_speeds(speeds: list[Row]) -> None:
    report.table(
        [
            "",
            "tocsin M rows/s",
            "Spark M rows/s",
            "ratio",
            "per CPU-s",
            "through Python",
            "start",
            "Spark's",
        ],
        [
            [
                each["what"],
                each["tocsin_rows_s"] / 1e6,
                each["spark_rows_s"] / 1e6 if "ratio" in each else None,
                each.get("ratio"),
                each.get("cpu_ratio"),
                each.get("ratio_python"),
                each.get("tocsin_start_s"),
                each.get("spark_start_s"),
            ]
            for each in speeds
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=20_000, help="of the archive of small files")
    parser.add_argument("--archive", type=Path, help="one that is there, and is not made anew")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = 300_000 if arguments.quick else arguments.rows
    files = 2_000 if arguments.quick else arguments.files
    rounds = 2 if arguments.quick else arguments.rounds
    spark = session("local[2]", purpose="work")
    register(spark).dataSource.register(ThroughPython)
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as scratch:
        archive = arguments.archive or Path(scratch) / "archive"
        if arguments.archive is None:
            synthesize(Plan(rows, seed=1, broken=0.0), archive, lambda count: None)
        rows = Catalog(archive).through()
        speeds = throughput(spark, archive, rows, rounds)
        show_speeds(speeds)
        speeds += over_http(spark, min(rows, HTTP_ROWS), rounds)
        print()
        show_speeds(speeds[-2:])
        asked = all_polls(spark, SmallFiles(Path(scratch) / "small", archive, files))
        print(f"\n{files:,} files\n")
        report.table(
            ["a poll, s", "first", "median", "most"],
            [[each["what"], each["first_s"], each["median_s"], each["most_s"]] for each in asked],
        )
    spark.stop()
    rated = [each["ratio"] for each in speeds if "ratio" in each]
    results = {
        "rows": rows,
        "files": files,
        "speeds": speeds,
        "polls": asked,
        "ratio_min": min(rated),
        "ratio_target": TARGET,
        "poll_s_most": asked[0]["most_s"],
        "poll_target_over_it": POLL_TARGET_S / asked[0]["most_s"],
    }
    if arguments.json:
        report.write("source", results, arguments.json)


if __name__ == "__main__":
    main()
