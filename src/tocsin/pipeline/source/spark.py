"""The classes that Spark calls: batch and stream, over whichever place was named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tocsin.archive.selection import NoSuchColumn, paths, select
from tocsin.errors.spark import BadSourceOption, EventsGone
from tocsin.pipeline.source.broker import Broker
from tocsin.pipeline.source.directory import Directory
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.plan import Place, Share

Offset = dict[str, int]


def register(spark: SparkSession) -> None:
    """Make `format("tocsin")` known to the session, where Spark has not found it by itself."""
    spark.dataSource.register(TocsinSource)


class TocsinSource(DataSource):
    """`spark.read.format("tocsin").load(DIRECTORY or URL)`, and `spark.readStream` likewise."""

    @classmethod
    def name(cls) -> str:
        return "tocsin"

    def schema(self) -> StructType:
        return from_arrow_schema(Options.parse(self.options).schema())

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(Options.parse(self.options), _wanted(schema))

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(Options.parse(self.options), _wanted(schema))


class BatchReader(DataSourceReader):
    """All events there are when the query is planned, or those in (after, through]."""

    def __init__(self, options: Options, wanted: pa.Schema) -> None:
        self._options = options
        self._wanted = wanted
        self._place = _place(options)

    def partitions(self) -> Sequence[InputPartition]:
        extent = self._place.extent()
        after = extent.first - 1 if self._options.after is None else self._options.after
        through = extent.head if self._options.through is None else self._options.through
        # Spark makes one partition of none; an empty range reads as nothing.
        return self._place.shares(after, min(through, extent.head)) or [Share(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return self._place.batches(partition, self._wanted)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Events as they come. An offset is the last sequence number that was read."""

    def __init__(self, options: Options, wanted: pa.Schema) -> None:
        self._options = options
        self._wanted = wanted
        self._place = _place(options)
        self._target: int | None = None  # with the available-now trigger: where to end
        self._head = 0

    def initialOffset(self) -> Offset:
        after = self._options.after
        return {"seq": self._place.extent().first - 1 if after is None else after}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.rows_per_trigger)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        begin = start["seq"]
        end = self._reachable() if self._target is None else self._target
        self._must_be_those_read_before(begin)
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        return {"seq": max(begin, end)}

    def reportLatestOffset(self) -> Offset:
        return {"seq": self._head}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._reachable()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self._place.shares(start["seq"], end["seq"]) if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return self._place.batches(partition, self._wanted)

    def _reachable(self) -> int:
        self._head = self._place.extent().head
        through = self._options.through
        return self._head if through is None else min(self._head, through)

    def _must_be_those_read_before(self, begin: int) -> None:
        if self._head < begin:
            raise EventsGone(
                f"{self._options.path} ends at event {self._head}, and this query has already "
                f"read through {begin}: these are other events than before",
                remedy="Start on them with a new checkpoint (`pipeline stream --anew`), or name "
                "the old place.",
            )


def _place(options: Options) -> Place:
    return Broker(options) if options.is_broker else Directory(options)


def _wanted(schema: StructType) -> pa.Schema:
    """The schema that Spark wants, ours or a user's own, which must be a part of ours."""
    asked: Any = to_arrow_schema(schema, timezone="UTC")
    try:
        known = select(paths(asked))
    except NoSuchColumn as error:
        raise BadSourceOption(f"the schema: {error}", remedy=_SCHEMA_REMEDY) from None
    for field in known:
        if not _same(asked.field(field.name).type, field.type):
            raise BadSourceOption(
                f"the schema has {field.name} as {asked.field(field.name).type}, "
                f"and the archive as {field.type}",
                remedy=_SCHEMA_REMEDY,
            )
    return asked


def _same(asked: pa.DataType, known: pa.DataType) -> bool:
    if pa.types.is_struct(known) and pa.types.is_struct(asked):
        return {each.name: each.type for each in asked} == {each.name: each.type for each in known}
    return bool(asked == known)


_SCHEMA_REMEDY = "Leave .schema() out, and name what you need with the option columns."
