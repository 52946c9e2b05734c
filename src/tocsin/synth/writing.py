"""Writing: the files of an archive that was made, by the same writer that a broker's has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

import pyarrow as pa

from tocsin.archive.file_names import UNFINISHED, format_date, format_range
from tocsin.archive.parquet_reader import COUNT_KEY, DATE_KEY, FIRST_KEY, LAST_KEY
from tocsin.archive.parquet_writer import ROW_GROUP_ROWS, sync_folder, write_file


def write_events(batches: Sequence[pa.RecordBatch], directory: Path, date: str) -> None:
    """One sealed file of rows that were received on one date, named by their numbers."""
    first = batches[0].column("seq")[0].as_py()
    last = batches[-1].column("seq")[-1].as_py()
    described = {
        FIRST_KEY: b"%d" % first,
        LAST_KEY: b"%d" % last,
        COUNT_KEY: b"%d" % sum(each.num_rows for each in batches),
        DATE_KEY: date.encode(),
    }
    pieces = [
        each.slice(begin, ROW_GROUP_ROWS)
        for each in batches
        for begin in range(0, each.num_rows, ROW_GROUP_ROWS)
    ]
    folder = str(directory / format_date(date))
    write_file(folder, format_range(first, last), batches[0].schema, pieces, described)


class Writer:
    """Writes files while the next one is made: one at a time, so that two are in memory at most."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="synth")
        self._under_way: Future[None] | None = None
        self.files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def write(self, batches: Sequence[pa.RecordBatch], date: str) -> None:
        """Begin to write; raises what went wrong with the file before."""
        self.wait()
        self._under_way = self._thread.submit(write_events, batches, self._directory, date)
        self.files += 1

    def wait(self) -> None:
        """Until everything is on disk."""
        if self._under_way is not None:
            self._under_way.result()


def write_text(text: str, place: Path) -> None:
    """A small file, whole or not at all."""
    unfinished = place.with_name(UNFINISHED + place.name)
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(place)
    sync_folder(str(place.parent))
