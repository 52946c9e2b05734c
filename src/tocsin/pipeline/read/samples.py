"""Samples: what an archive keeps beside events, of subscriptions and of questions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import groupby
from typing import Final

from pyarrow.lib import ArrowException
from pyarrow.parquet import read_metadata
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tocsin.archive.file_names import UNFINISHED, parse_date
from tocsin.archive.samples import SCHEMAS, SampleFile, superseded
from tocsin.pipeline.locations import directory_of, has_files, is_directory, on_this_disk
from tocsin.pipeline.partials.partial import BadFile
from tocsin.pipeline.spark.hadoop import kept_beside
from tocsin.pipeline.spark.schemas import spark_schema
from tocsin.pipeline.state import Window

MOMENT: Final = "at"
LISTINGS_MAX: Final = 5  # how often files may be merged or let go while they are looked at


class Samples:
    """Those of one archive, in one window; of a broker or a topic there are none."""

    def __init__(self, spark: SparkSession | None, archive: str, window: Window) -> None:
        """Without Spark, those of a directory can be listed, and none read."""
        self._spark = spark
        self._archive = archive
        self.window = window
        self._files: dict[str, list[str]] = {}
        """As they were listed last: the fingerprint is of what was read."""
        self._bad: dict[str, list[BadFile]] = {}

    def fingerprint(self) -> str:
        """How many files were written of each kind, and the last. They never change, and those that
        were merged count as before."""
        for name in SCHEMAS:
            if name not in self._files:
                self._files[name] = self._listed(name)
        return " ".join(_fingerprint(self._files[name]) for name in SCHEMAS)

    def of(self, name: str) -> DataFrame:
        """The samples of one kind."""
        assert self._spark is not None
        schema = spark_schema(SCHEMAS[name])
        files = self._readable(name)
        if not files:
            return self._spark.createDataFrame([], schema)
        # They stop nothing: what is broken inside is passed over, and so
        # is what was let go since it was listed.
        reader = self._spark.read.schema(schema).option("ignoreCorruptFiles", "true")
        reader = reader.option("ignoreMissingFiles", "true")
        rows = reader.parquet(*map(on_this_disk, files))
        if self.window.since is not None:
            rows = rows.where(F.col(MOMENT) >= F.lit(self.window.since))
        if self.window.until is not None:
            rows = rows.where(F.col(MOMENT) < F.lit(self.window.until))
        return rows

    def unreadable(self) -> list[BadFile]:
        """The files that cannot be read, by their ends."""
        for name in SCHEMAS:
            if name not in self._bad:
                self._readable(name)
        return [each for some in self._bad.values() for each in some]

    def _readable(self, name: str) -> list[str]:
        """Those there are now: an edition may have been long in the making, and a file that was
        merged is there for some minutes only."""
        good, bad = self._look(name)
        for _ in range(LISTINGS_MAX):
            if all(os.path.lexists(each.path) for each in bad):
                break
            good, bad = self._look(name)  # merged or let go since it was listed
        self._bad[name] = bad
        return good

    def _look(self, name: str) -> tuple[list[str], list[BadFile]]:
        found = self._files[name] = self._listed(name)
        return _parted(found) if is_directory(self._archive) else (found, [])

    def _listed(self, name: str) -> list[str]:
        if not has_files(self._archive):
            return []
        if is_directory(self._archive):
            found = [str(each) for each in (directory_of(self._archive) / name).glob("*/*.parquet")]
        else:
            assert self._spark is not None
            found = kept_beside(self._spark, self._archive, name)
        return current_files(filter(self._may_be_in, found))

    def _may_be_in(self, path: str) -> bool:
        date = parse_date(path.split("/")[-2])
        return date is None or self.window.has_date(date)


def current_files(paths: Iterable[str]) -> list[str]:
    """The files that hold samples, each sample in one: without those that were merged and are still
    there, and without what is being written."""
    found: list[str] = []
    for folder, some in groupby(sorted(paths), key=lambda path: path.rpartition("/")[0]):
        names = [path.rpartition("/")[2] for path in some]
        files = (file for name in names if (file := SampleFile.parse(name)))
        merged = {each.name for each in superseded(files)}
        found += [
            f"{folder}/{name}"
            for name in names
            if name not in merged and not name.startswith(UNFINISHED)
        ]
    return found


def _fingerprint(paths: list[str]) -> str:
    count, last = 0, ("", "")
    for path in paths:
        folder, _, name = path.rpartition("/")
        file = SampleFile.parse(name)
        count += 1 if file is None else file.count
        last = max(last, (folder, name if file is None else file.name_of_last))
    return f"{count}:{last[1]}"


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
