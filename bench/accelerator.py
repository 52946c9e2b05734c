"""Four queries like the pipeline's, by Spark alone and by Spark with Apache DataFusion Comet.

    python bench/accelerator.py --jar comet-spark-spark3.5_2.12-0.12.0.jar --archive DIR

Needs only the PySpark the jar was made for, so give it an environment of its own; with another it
skips. Each turn is a new JVM, without the jar and then with it, and runs each query twice: the
second counts. Seconds of the processor are of the whole process, native threads too (Linux). Rows
are compared by their number and the sum of their hashes: if those differ, the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

EVENT: Final = "seq received id source type topic time subject attributes data at"
TOLD: Final = "ActivityType CpuCores CpuSeconds ExitCode Host CpuPercent IoReadBytes MemoryPeak \
OutputBytes WorkflowName"
SETTINGS: Final = {  # the pipeline's own, where these queries feel them
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.useObjectHashAggregateExec": "false",
}
COMET: Final = {
    "spark.plugins": "org.apache.spark.CometPlugin",
    "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
    "spark.memory.offHeap.enabled": "true",
    "spark.memory.offHeap.size": "2g",
}


def by_run(events: DataFrame) -> DataFrame:
    facts = F.min("at"), F.max("at"), F.min("seq"), F.max("attempt"), F.count("activity")
    return events.groupBy("run").agg(*facts)


def fold(events: DataFrame) -> DataFrame:
    """The latest of ten members of `facts` for each activity, as the pipeline's fold finds it."""
    latest = []
    for name in TOLD.split():
        value = F.col(f"facts.{name}")
        cell = F.struct(F.unix_micros("at"), F.col("seq"), value)
        latest.append(F.max(F.when(value.isNotNull(), cell)).alias(name))
    return events.groupBy("run", "activity").agg(*latest)


def lasted(events: DataFrame) -> DataFrame:
    began, ended = F.min("facts.ActivityExecuting"), F.max("facts.ActivitySucceeded")
    us = (F.unix_micros(ended) - F.unix_micros(began)).alias("us")
    each = events.groupBy("run", "activity").agg(us)
    shares = F.expr("percentile(us, array(0.5, 0.9))")
    return each.groupBy("run").agg(F.count("us"), F.avg("us"), shares)


QUERIES: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    "by run": by_run,
    "fold of told": fold,
    "durations": lasted,
    "read and write": lambda events: events.select(*EVENT.split()),
}


def spent_s(stat: Path) -> float:
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def fingerprint(frame: DataFrame) -> list[str]:
    """How many rows there are, and what their hashes add up to, in whatever order they come."""
    hashes = frame.select(F.expr("xxhash64(*)").cast("decimal(38,0)").alias("hash"))
    found = hashes.agg(F.count("*"), F.sum("hash")).first()
    return [str(each) for each in found or ()]


def turn(archive: Path, jar: Path | None) -> dict[str, Any]:
    """What each query took in a JVM of its own, and the plan that ran."""
    comet = COMET | {"spark.driver.extraClassPath": str(jar)}
    settings: dict[str, Any] = SETTINGS | (comet if jar else {})
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    gateway: Any = spark.sparkContext._gateway
    stat = Path(f"/proc/{gateway.proc.pid}/stat")
    paths = sorted(map(str, archive.glob("date=*/*.parquet")))
    taken: dict[str, Any] = {}
    for name, query in QUERIES.items():
        for _ in range(2):
            frame = query(spark.read.parquet(*paths))
            cpu_s, start_s = spent_s(stat), time.perf_counter()
            if name == "read and write":
                with tempfile.TemporaryDirectory() as place:
                    frame.write.parquet(f"{place}/events")
            else:  # the rows stay in the JVM: none are made for Python
                frame._jdf.queryExecution().toRdd().count()
            wall_s = time.perf_counter() - start_s
            taken[name] = {"cpu_s": spent_s(stat) - cpu_s, "wall_s": wall_s}
        taken[name]["rows"] = fingerprint(frame)
        plan = frame._jdf.queryExecution().executedPlan()
        taken[name]["plan"] = plan.toString()
        if jar:
            info = gateway.jvm.org.apache.comet.ExtendedExplainInfo()
            taken[name]["comet"] = info.generateExtendedInfo(plan)
    return taken


def turns(arguments: list[str], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Both in turns, so that what else the machine does falls on both."""
    taken: dict[str, list[dict[str, Any]]] = {"spark": [], "comet": []}
    for _ in range(rounds):
        for engine, those in taken.items():
            command = [sys.executable, __file__, *arguments, "--one", engine]
            those.append(json.loads(subprocess.check_output(command).splitlines()[-1]))
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jar", type=Path, required=True)
    parser.add_argument("--archive", type=Path, default=Path("out/pipeline/archive-1M"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="all figures and plans, into this file")
    parser.add_argument("--one", choices=("spark", "comet"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    here = ".".join(pyspark.__version__.split(".")[:2])
    if f"spark{here}_" not in asked.jar.name:
        print(f"skipped: {asked.jar.name} is not for the PySpark that is here, {here}")
        return 0
    if asked.one:
        print(json.dumps(turn(asked.archive, asked.jar if asked.one == "comet" else None)))
        return 0
    arguments = ["--jar", str(asked.jar.resolve()), "--archive", str(asked.archive.resolve())]
    taken = turns(arguments, asked.rounds)
    if asked.json:
        asked.json.write_text(json.dumps(taken, indent=1))
    for query in QUERIES:
        for engine, those in taken.items():
            cpu_s = statistics.median(each[query]["cpu_s"] for each in those)
            wall_s = statistics.median(each[query]["wall_s"] for each in those)
            print(f"{query:15} {engine}: {cpu_s:6.1f} s of the processor, {wall_s:6.1f} s in all")
    differing = [
        query
        for query in QUERIES
        if len({tuple(each[query]["rows"]) for those in taken.values() for each in those}) > 1
    ]
    print(f"DIFFERENT: {', '.join(differing)}" if differing else "both give the same rows")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
