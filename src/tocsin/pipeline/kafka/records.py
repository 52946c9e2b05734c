"""Kafka: the messages of a topic that the tables do not have, as records of the archive."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from tocsin.archive.facts import FactsReader
from tocsin.archive.record import SCHEMA, to_batch
from tocsin.errors.root import TocsinError
from tocsin.event.instant import NS_PER_US
from tocsin.event.stored import Stored
from tocsin.ontology import in_use
from tocsin.pipeline.fold.clean import set_aside
from tocsin.pipeline.kafka.client import client_settings, extent, require_connector
from tocsin.pipeline.kafka.offsets import KafkaPlan, Lost, plan
from tocsin.pipeline.locations import KAFKA, KafkaLocation
from tocsin.pipeline.new_records import NewRecords, within
from tocsin.pipeline.partials.partial import BadFile
from tocsin.pipeline.spark.schemas import spark_schema
from tocsin.pipeline.state import Window
from tocsin.wire.cloudevents.kafka import read_message
from tocsin.wire.cloudevents.limits import Limits

PARTITION: Final = "kafka_partition"
OFFSET: Final = "kafka_offset"
REFUSED: Final = "refused"
# A topic's own limit decides what is in it. This one keeps a worker's memory within bounds.
LIMITS: Final = Limits(event_bytes_max=64 << 20)

BESIDE: Final = pa.schema(
    [
        pa.field(PARTITION, pa.int32()),
        pa.field(OFFSET, pa.int64()),
        pa.field(REFUSED, pa.string()),  # why a message is no event; null if it is one
    ]
)
LANDED: Final = pa.schema([each.with_nullable(True) for each in (*SCHEMA, *BESIDE)])


def new_messages(
    spark: SparkSession,
    archive: str,
    after: int,
    window: Window,
    taken: Mapping[str, int],
    messages_max: int | None,
) -> NewRecords | None:
    """What came since those positions, numbered on from `after`; None if nothing did."""
    location = KafkaLocation.parse(archive)
    require_connector(spark)
    begins, ends = extent(spark, location)
    planned = plan(taken, begins, ends, after, messages_max)
    if not planned.messages:
        return None
    return NewRecords(
        within(_records(spark, location, planned), window, 0),
        after + 1,
        after + planned.messages,
        bad_files=tuple(_lost_messages(location, each) for each in planned.lost),
        file=f"concat('{_address(location)}/', {PARTITION}, '/', {OFFSET})",
        positions=planned.positions,
        is_all=planned.is_all,
    )


def parted(landed: DataFrame, file: str) -> tuple[DataFrame, DataFrame]:
    """The events among what came, and the rest as rows of the quarantine."""
    refused = landed.where(f"{REFUSED} IS NOT NULL").withColumn("file", F.expr(file))
    aside = set_aside(refused.withColumnRenamed(REFUSED, "reason"))
    return landed.where(f"{REFUSED} IS NULL"), aside


def _address(location: KafkaLocation) -> str:
    """It has neither quotes nor backslashes: see KafkaLocation."""
    return f"{KAFKA}{location.servers}/{location.topic}"


def _lost_messages(location: KafkaLocation, lost: Lost) -> BadFile:
    return BadFile(
        f"{_address(location)}/{lost.partition}/{lost.start}",
        f"the messages at offsets {lost.start} to {lost.end - 1} were gone from Kafka before "
        "they were read",
    )


def _records(spark: SparkSession, location: KafkaLocation, planned: KafkaPlan) -> DataFrame:
    starts = {str(each.partition): each.start for each in planned.ranges}
    ends = {str(each.partition): each.end for each in planned.ranges}
    reader = (
        spark.read.format("kafka")
        .option("assign", json.dumps({location.topic: [int(each) for each in starts]}))
        .option("startingOffsets", json.dumps({location.topic: starts}))
        .option("endingOffsets", json.dumps({location.topic: ends}))
        .option("includeHeaders", "true")
    )
    for name, value in client_settings(spark, location).items():
        reader = reader.option(f"kafka.{name}", value)
    numbers = {each.partition: each.seq - each.start for each in planned.ranges}
    messages = reader.load().select("partition", "offset", "timestamp", "headers", "value")
    return messages.mapInArrow(as_records(numbers), _nullable(spark_schema(LANDED)))


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(each.name, each.dataType) for each in schema])


def as_records(
    numbers: Mapping[int, int],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Makes records of messages. `numbers` is, by partition, what an offset lacks to a number."""

    concepts = in_use()

    def convert(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        facts_reader = FactsReader(concepts)
        for batch in batches:
            yield from _converted(batch, numbers, facts_reader)

    return convert


def _converted(
    batch: pa.RecordBatch, numbers: Mapping[int, int], facts_reader: FactsReader
) -> Iterator[pa.RecordBatch]:
    """The events of a batch, and then what is none, each as LANDED."""
    events: list[Stored] = []
    positions: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    columns = (batch.column(name) for name in ("partition", "offset", "headers", "value"))
    received = batch.column("timestamp").cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    rows = zip(received.to_pylist(), *(each.to_pylist() for each in columns), strict=True)
    for received_us, partition, offset, headers, value in rows:
        position = {PARTITION: partition, OFFSET: offset}
        seq = numbers[partition] + offset
        try:
            event = read_message(_by_name(headers), value, LIMITS)
        except TocsinError as error:
            why = f"it is not a CloudEvent: {error.problem}"
            refused.append(
                {**position, "seq": seq, "received": received_us, "data": value, REFUSED: why}
            )
            continue
        events.append(Stored(seq, (received_us or 0) * NS_PER_US, event))
        positions.append(position)
    if events:
        beside = pa.RecordBatch.from_pylist(positions, BESIDE)
        arrays = [*to_batch(events, facts_reader).columns, *beside.columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=LANDED)
    if refused:
        yield pa.RecordBatch.from_pylist(refused, LANDED)


def _by_name(headers: list[dict[str, Any]] | None) -> dict[str, bytes]:
    """Of a header that is there twice, the last counts."""
    return {each["key"]: each["value"] or b"" for each in headers or () if each["key"] is not None}
