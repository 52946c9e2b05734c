"""How long a stream takes to learn of new files, in an archive of many small ones."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tocsin.archive.catalog import Catalog
from tocsin.archive.file_names import format_range
from tocsin.archive.parquet_reader import read_piece
from tocsin.archive.record import SCHEMA
from tocsin.pipeline.source import TocsinSource

Row = dict[str, Any]


class SmallFiles:
    """An archive of files of ten events each, to which files are added."""

    def __init__(self, directory: Path, archive: Path, files: int) -> None:
        self.directory = directory
        # What must be there and no more, as in a file of an early version: quick to write.
        columns = [field.name for field in SCHEMA if not field.nullable]
        self._batch = next(read_piece(Catalog(archive).pieces()[0], columns)).slice(0, 10)
        self.last = 0
        for _ in range(files):
            self.add()

    def add(self) -> None:
        first, self.last = self.last + 1, self.last + 10
        place = self._batch.schema.get_field_index("seq")
        numbers = pa.array(range(first, self.last + 1), pa.int64())
        batch = self._batch.set_column(place, self._batch.schema.field(place), numbers)
        keys = {b"tocsin.first": first, b"tocsin.last": self.last, b"tocsin.count": 10}
        described = {key: b"%d" % value for key, value in keys.items()}
        schema = batch.schema.with_metadata({**batch.schema.metadata, **described})
        folder = self.directory / "date=2026-01-01"
        folder.mkdir(parents=True, exist_ok=True)
        name = format_range(first, self.last)
        unfinished = folder / f".{name}"
        pq.write_table(pa.Table.from_batches([batch]).cast(schema), unfinished, compression="zstd")
        unfinished.rename(folder / name)


def polls(small: SmallFiles, count: int) -> Row:
    """What our reader takes, in the process that Spark asks."""
    source = TocsinSource(CaseInsensitiveDict({"path": str(small.directory)}))
    reader = source.streamReader(source.schema())
    took = []
    for number in range(count + 1):
        if number:
            small.add()
        began = time.perf_counter()
        offset = reader.latestOffset({"seq": 0}, ReadAllAvailable())
        took.append(time.perf_counter() - began)
        assert offset == {"seq": small.last}
    return _poll_row("our reader, asked", took[0], took[1:])


def polls_in_spark(name: str, frame: DataFrame, small: SmallFiles, count: int) -> Row:
    """What Spark says that asking takes, of a query that runs while files are added."""
    took: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="tocsin-bench-") as checkpoint:
        query = frame.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
        query.processAllAvailable()
        first_s = sum(
            each["durationMs"].get("latestOffset", 0) / 1e3 for each in query.recentProgress
        )
        for _ in range(count):
            small.add()
            query.processAllAvailable()
            for each in query.recentProgress:
                if each["numInputRows"] == 10:
                    took[each["batchId"]] = each["durationMs"]["latestOffset"] / 1e3
        query.stop()
    return _poll_row(name, first_s, list(took.values()))


def _poll_row(name: str, first_s: float, took: list[float]) -> Row:
    median_s, most_s = statistics.median(took), max(took)
    return {"what": name, "first_s": first_s, "median_s": median_s, "most_s": most_s}


def all_polls(spark: SparkSession, small: SmallFiles) -> list[Row]:
    directory = str(small.directory)
    schema = spark.read.parquet(directory).schema
    plain = spark.readStream.schema(schema).parquet(directory).select("seq")
    stream = spark.readStream.format("tocsin").options(columns="seq", rows_per_trigger=10**9)
    return [
        polls(small, 50),
        polls_in_spark("tocsin, in Spark", stream.load(directory), small, 5),
        polls_in_spark("Spark's Parquet source", plain, small, 5),
    ]
