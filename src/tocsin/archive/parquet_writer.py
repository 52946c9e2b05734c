"""Writing: a file of the archive is there whole, and on disk, or it is not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.archive.disk_sync import sync
from tocsin.archive.file_names import UNFINISHED

ROW_GROUP_ROWS: Final = 100_000
ROW_GROUP_BYTES: Final = 128 << 20  # before compression: what a writer and a reader hold at once
COMPRESSION: Final = "zstd"


def write_file(
    folder: str,
    name: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    metadata: Mapping[bytes, bytes],
) -> int:
    """Write `folder/name` by way of a temporary name beside it. Returns its size.

    OSError if the disk does not take it; then nothing is left behind.
    """
    make_folder(folder)
    unfinished = os.path.join(folder, f"{UNFINISHED}{name}")
    try:
        described = schema.with_metadata({**(schema.metadata or {}), **metadata})
        with (
            pa.OSFile(unfinished, "wb") as file,
            pq.ParquetWriter(
                file, described, compression=COMPRESSION, write_page_checksum=True
            ) as writer,
        ):
            for group in row_groups(batches, schema):
                writer.write_table(group, row_group_size=max(1, group.num_rows))
        size = sync(unfinished)
        os.replace(unfinished, os.path.join(folder, name))
    except BaseException:
        with suppress(OSError):
            os.unlink(unfinished)
        raise
    sync(folder)
    return size


def row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The batches put together to row groups of a good size."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if waiting and (rows + batch.num_rows > ROW_GROUP_ROWS or size > ROW_GROUP_BYTES):
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def make_folder(path: str) -> None:
    """Make the directory, so that it is on disk as well."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path) or "."
    make_folder(parent)
    with suppress(FileExistsError):
        os.mkdir(path)
    sync(parent)


def sweep_unfinished(folder: str) -> None:
    """Remove what was being written when its writer ended. Only for the one who may write."""
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.startswith(UNFINISHED) and name.endswith(".parquet"):
                os.unlink(os.path.join(folder, name))
