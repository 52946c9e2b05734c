"""The classes that Spark calls: batch and stream, over whichever source was named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tocsin.pipeline.source.broker import Broker
from tocsin.pipeline.source.directory import Directory
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.plan import EventSource, Share
from tocsin.pipeline.source.stream_range import begin, must_be_those_read_before, next_end, reach
from tocsin.pipeline.source.user_schema import asked_for

Offset = dict[str, int]


class TocsinSource(DataSource):
    """`spark.read.format("tocsin").load(DIRECTORY or URL)`, and `spark.readStream` likewise."""

    @classmethod
    def name(cls) -> str:
        return "tocsin"

    def schema(self) -> StructType:
        return from_arrow_schema(Options.parse(self.options).schema())

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(Options.parse(self.options), asked_for(schema))

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(Options.parse(self.options), asked_for(schema))


class BatchReader(DataSourceReader):
    """All events there are when the query is planned, or those in (after, through]."""

    def __init__(self, options: Options, wanted: pa.Schema) -> None:
        self._options = options
        self._wanted = wanted
        self._source = _source(options)

    def partitions(self) -> Sequence[InputPartition]:
        extent = self._source.extent()
        after = extent.first - 1 if self._options.after is None else self._options.after
        through = extent.head if self._options.through is None else self._options.through
        # Spark makes one partition of none; an empty range reads as nothing.
        return self._source.shares(after, min(through, extent.head)) or [Share(0, 0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return self._source.batches(partition, self._wanted)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Events as they come. An offset is the last sequence number that was read."""

    def __init__(self, options: Options, wanted: pa.Schema) -> None:
        self._options = options
        self._wanted = wanted
        self._source = _source(options)
        self._target: int | None = None  # with the available-now trigger: where to end
        self._head = 0

    def initialOffset(self) -> Offset:
        return {"seq": begin(self._source, self._options)}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.rows_per_trigger)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        after = start["seq"]
        through = self._reachable() if self._target is None else self._target
        must_be_those_read_before(self._options, after, self._head)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return {"seq": next_end(self._source, after, through, rows)}

    def reportLatestOffset(self) -> Offset:
        return {"seq": self._head}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._reachable()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self._source.shares(start["seq"], end["seq"]) if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return self._source.batches(partition, self._wanted)

    def _reachable(self) -> int:
        found = reach(self._source, self._options)
        self._head = found.head
        return found.through


def _source(options: Options) -> EventSource:
    return Broker(options) if options.is_broker else Directory(options)
