"""Sampling: rows that are kept beside the events, gathered into files of a good size."""

from __future__ import annotations

import os
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from tocsin.archive.file_names import date_of, format_date
from tocsin.archive.parquet_writer import write_file
from tocsin.archive.samples import SCHEMAS, SampleFile

# Rows are on disk after so long at most: a day is 144 files, or fewer, until it is over and they
# are merged.
WAIT_S: Final = 600.0
ROWS: Final = 5_000  # or when there are so many
ROWS_MAX: Final = 50_000  # kept in memory while the disk does not take them; the oldest go


class SampleWriter:
    """Gathers rows of each kind, and writes them down."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in SCHEMAS}
        self._since_s: dict[str, float] = {}
        self.dropped = 0

    def add(self, kind: str, rows: list[dict[str, Any]], now_s: float) -> None:
        waiting = self._rows[kind]
        waiting += rows
        self._since_s.setdefault(kind, now_s)
        excess = len(waiting) - ROWS_MAX
        if excess > 0:
            del waiting[:excess]
            self.dropped += excess

    def write_due(self, now_s: float) -> None:
        """Write what waited long enough; `now_s` is of a clock that nobody sets. May OSError."""
        for kind, since_s in list(self._since_s.items()):
            if now_s - since_s >= WAIT_S or len(self._rows[kind]) >= ROWS:
                self._write(kind)

    def write_all(self) -> None:
        for kind in list(self._since_s):
            self._write(kind)

    def _write(self, kind: str) -> None:
        rows = self._rows[kind]
        while rows:
            date, some = next(groupby(rows, key=lambda row: date_of(row["at"])))
            written = list(some)
            self._write_date(kind, date, written)
            del rows[: len(written)]  # at once: the next date may find the disk full
        del self._since_s[kind]

    def _write_date(self, kind: str, date: str, rows: list[dict[str, Any]]) -> None:
        folder = os.path.join(self._directory, kind, format_date(date))
        name = _free_name(folder, rows[0]["at"])
        schema = SCHEMAS[kind]
        table = pa.Table.from_pylist(rows, schema=schema)
        write_file(folder, name, schema, table.to_batches(), {})


def _free_name(folder: str, at_us: int) -> str:
    """A name that no file has or covers: what comes late to a merged date is not taken for part of
    it."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for each in sorted(file for name in names if (file := SampleFile.parse(name))):
        if each.first <= at_us <= each.last:
            at_us = each.last + 1
    return SampleFile(at_us, at_us).name
