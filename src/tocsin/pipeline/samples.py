"""Samples: what an archive keeps beside events, of subscriptions and of questions."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from pyarrow.lib import ArrowException
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tocsin.archive.samples import SCHEMAS
from tocsin.pipeline.derive.schemas import spark_schema
from tocsin.pipeline.hadoop import kept_beside
from tocsin.pipeline.partial import BadFile
from tocsin.pipeline.places import directory_of, has_files, is_directory, on_this_disk
from tocsin.pipeline.state import Window

MOMENT: Final = "at"


class Samples:
    """Those of one archive, in one window; of a broker or a topic there are none."""

    def __init__(self, spark: SparkSession, archive: str, window: Window) -> None:
        self._spark = spark
        self._archive = archive
        self.window = window

    def told(self) -> str:
        """How many files there are of each kind, and the last. They never change."""
        last = ((len(each), max(each, default="")) for each in self._files.values())
        return " ".join(f"{count}:{path.rpartition('/')[2]}" for count, path in last)

    def of(self, name: str) -> DataFrame:
        """The samples of one kind."""
        schema = spark_schema(SCHEMAS[name])
        files, _ = self._looked_at[name]
        if not files:
            return self._spark.createDataFrame([], schema)
        # They tell how things went, and stop nothing: what is broken inside is passed over.
        reader = self._spark.read.schema(schema).option("ignoreCorruptFiles", "true")
        rows = reader.parquet(*map(on_this_disk, files))
        if self.window.since is not None:
            rows = rows.where(F.col(MOMENT) >= F.lit(self.window.since))
        if self.window.until is not None:
            rows = rows.where(F.col(MOMENT) < F.lit(self.window.until))
        return rows

    def unreadable(self) -> list[BadFile]:
        """The files that cannot be read, by their ends."""
        return [each for _, some in self._looked_at.values() for each in some]

    @cached_property
    def _files(self) -> dict[str, list[str]]:
        return {name: self._listed(name) for name in SCHEMAS}

    def _listed(self, name: str) -> list[str]:
        if not has_files(self._archive):
            return []
        if not is_directory(self._archive):
            return sorted(kept_beside(self._spark, self._archive, name))
        found = (directory_of(self._archive) / name).glob("*/*.parquet")
        return sorted(map(str, found))

    @cached_property
    def _looked_at(self) -> dict[str, tuple[list[str], list[BadFile]]]:
        if not is_directory(self._archive):
            return {name: (files, []) for name, files in self._files.items()}
        return {name: _parted(files) for name, files in self._files.items()}


def _parted(paths: list[str]) -> tuple[list[str], list[BadFile]]:
    good: list[str] = []
    bad: list[BadFile] = []
    for path in paths:
        try:
            read_metadata(path)
        except (OSError, ArrowException) as error:
            bad.append(BadFile(path, f"it cannot be read: {str(error).splitlines()[0]}"))
        else:
            good.append(path)
    return good, bad
