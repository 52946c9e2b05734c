"""Sending to Kafka: the rows of the tables that are summaries, each table to a topic of its own.

    PREFIX.activity_stats    key: what a row is one of, as JSON; value: the row, as JSON
    PREFIX.manifest          the edition they are of, when all of its rows are sent

Every message has the header `tocsin_version`. Of a row that is no longer there, as the estimate of
a run that has ended, the key is sent without a value. If it breaks off, all rows are sent again: a
reader that keeps the last value of each key, as a compacted topic does, is right in the end.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Final

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tocsin.archive.disk_sync import sync_tree
from tocsin.pipeline.kafka.client import client_settings
from tocsin.pipeline.locations import KafkaLocation, on_this_disk
from tocsin.pipeline.spark.schemas import table_schema
from tocsin.pipeline.spark.spark_errors import cause_of, in_a_line
from tocsin.pipeline.state import UNFINISHED, State, write_whole
from tocsin.tables.published import Published

# Which tables, and what a row of each is known by. Not `events`, which Kafka may have had before,
# nor `activities` and `quarantine`: they grow with the events, and are for files.
KEYS: Final = {
    "runs": ("run",),
    "activity_stats": ("workflow", "activity", "version"),
    "cost_models": ("workflow", "activity", "version", "target"),
    "estimates": ("run",),
    "failures": ("run", "id", "attempt"),
    "evolution": ("workflow", "version"),
    "host_usage": ("host", "hour"),
    "activity_usage": ("workflow", "activity", "hour"),
    "deliveries": ("subscription",),
    "discoveries": ("model", "request"),
}
MANIFEST: Final = "manifest"
VERSION: Final = "tocsin_version"
SENT: Final = "sent.json"
_JSON: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX",
    "timeZone": "UTC",
    "ignoreNullFields": "false",  # every row has every column
}


class Sent(msgspec.Struct, frozen=True):
    """Which edition was sent there last."""

    url: str
    version: int
    made: datetime


def copy_rows(spark: SparkSession, tables: Path, found: Published, url: str) -> bool:
    """Send an edition. False if it was sent there before. May OSError."""
    sent = Sent(url, found.version, found.made)
    known = State(tables).directory / f"sent-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    if _read(known / SENT) == sent:
        return False
    location = KafkaLocation.parse(url)
    with _as_os_error():
        rows = reduce(
            DataFrame.unionByName,
            (_messages(spark, found, name, location.topic) for name in KEYS),
        )
        # Before they are sent: if it breaks off, some of these keys are there as well.
        keys = known / f"keys-{found.version}-{found.made:%Y%m%dT%H%M%S%f}"
        _keep(rows.select("topic", "key"), keys)
        former = sorted(str(each) for each in known.glob("keys-*") if each != keys)
        gone = _gone(spark, former, str(keys))
        _write(spark, rows.unionByName(gone), location, found.version)
        manifest = msgspec.json.encode(found.manifest).decode()
        last = spark.createDataFrame(
            [(f"{location.topic}.{MANIFEST}", MANIFEST, manifest)],
            "topic STRING, key STRING, value STRING",
        )
        _write(spark, last, location, found.version)
    write_whole(known / SENT, msgspec.json.encode(sent))
    for each in former:
        shutil.rmtree(each, ignore_errors=True)
    return True


def _read(path: Path) -> Sent | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Sent)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _messages(spark: SparkSession, found: Published, name: str, prefix: str) -> DataFrame:
    files = [on_this_disk(found.directory / name / each) for each in found.tables[name].files]
    rows = spark.read.schema(table_schema(name)).parquet(*files)
    return rows.select(
        F.lit(f"{prefix}.{name}").alias("topic"),
        F.to_json(F.struct(*KEYS[name]), _JSON).alias("key"),
        F.to_json(F.struct("*"), _JSON).alias("value"),
    )


def _keep(keys: DataFrame, directory: Path) -> None:
    """On disk, whole or not at all: what is cut short would be in the way of every later send."""
    unfinished = directory.parent / UNFINISHED
    keys.write.mode("overwrite").parquet(on_this_disk(unfinished))
    sync_tree(unfinished)
    shutil.rmtree(directory, ignore_errors=True)
    unfinished.rename(directory)


def _gone(spark: SparkSession, former: list[str], now: str) -> DataFrame:
    """What was sent before and is no longer there, without a value."""
    reader = spark.read.schema("topic STRING, key STRING")
    there = reader.parquet(on_this_disk(now))
    before = reader.parquet(*map(on_this_disk, former)).distinct() if former else there.limit(0)
    missing = before.join(there, ["topic", "key"], "left_anti")
    return missing.withColumn("value", F.lit(None).cast("string"))


def _write(spark: SparkSession, messages: DataFrame, location: KafkaLocation, version: int) -> None:
    header = F.struct(
        F.lit(VERSION).alias("key"), F.lit(str(version)).cast("binary").alias("value")
    )
    writer = messages.withColumn("headers", F.array(header)).write.format("kafka")
    settings = client_settings(spark, location)
    settings.pop("isolation.level")  # which is a reader's
    for name, value in settings.items():
        writer = writer.option(f"kafka.{name}", value)
    writer.save()


@contextmanager
def _as_os_error() -> Iterator[None]:
    """What went wrong with the other side, as what goes wrong with any."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise OSError(cause_of(error) or in_a_line(error)) from error
