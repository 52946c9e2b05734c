"""Merging: of each date that is over, the files of samples become one.

Every reader opens all of them, and a year of small ones would be 150,000. The merged file is there
whole, by one rename, before any that it was made of is removed; its name says which these are. A
crash between any two steps neither loses a sample nor has it twice.

A file that cannot be read, or has other columns than ours, stays as it is: what is before it and
what is after it is merged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby, islice
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.archive.file_names import UNFINISHED, date_of, parse_date
from tocsin.archive.parquet_writer import sweep_unfinished, write_file
from tocsin.archive.samples import SCHEMAS, SampleFile, superseded

SETTLED_S: Final = 3_600.0  # after midnight: rows wait for ten minutes, longer if the disk is full
# A reader that has listed a file still finds it for so long after it was merged: Spark lists
# samples, and reads them when their turn comes.
GRACE_S: Final = 600.0
MERGED_BYTES: Final = 64 << 20  # in memory; of so much it is one file, of more several
MERGES_MAX: Final = 10  # at a time: an archive that was never merged does not hold up its events

Run = list[tuple[SampleFile, pa.Table]]


def merge_due(directory: str, now_s: float, is_asked: Callable[[], bool] = lambda: True) -> int:
    """Merge what is due, and remove what was merged long enough ago. May OSError.

    Only for the one who holds the archive's lock. Returns how many files wait for either.
    """
    waiting, merges = 0, MERGES_MAX
    for kind, folder in _folders_past(directory, now_s):
        with suppress(FileNotFoundError, NotADirectoryError):  # it was let go meanwhile
            files = _tidied(folder, now_s)
            merged = superseded(files)
            waiting += len(merged)
            small = _neighbours([each for each in files if each not in merged])
            if not merges:  # none is read for nothing
                waiting += sum(map(len, small))
            for run in islice(_runs(kind, folder, small), merges):
                _merge(kind, folder, run)
                merges -= 1
                waiting += len(run)
                if not is_asked():
                    return waiting
    return waiting


def _folders_past(directory: str, now_s: float) -> Iterator[tuple[str, str]]:
    """The directories of each kind whose date is over, oldest first."""
    today = date_of(int((now_s - SETTLED_S) * 1e6))
    for kind in SCHEMAS:
        with suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(os.listdir(os.path.join(directory, kind))):
                date = parse_date(name)
                if date is not None and date < today:
                    yield kind, os.path.join(directory, kind, name)


def _tidied(folder: str, now_s: float) -> list[SampleFile]:
    """The files of a directory, in order, without what need not be there any more."""
    names = os.listdir(folder)
    if any(name.startswith(UNFINISHED) for name in names):
        with _dated_as_before(folder):
            sweep_unfinished(folder)
    files = sorted(file for name in names if (file := SampleFile.parse(name)))
    gone = {
        each
        for each, merged in superseded(files).items()
        if abs(now_s - os.stat(os.path.join(folder, merged.name)).st_mtime) >= GRACE_S
    }
    if gone:
        with _dated_as_before(folder):
            for each in gone:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, each.name))
    return [each for each in files if each not in gone]


def _runs(kind: str, folder: str, small: list[list[SampleFile]]) -> Iterator[Run]:
    """What goes into one merged file each: two files or more, and none between them that does not
    go into it. Its name would cover that one."""
    for neighbours in small:
        run: Run = []
        size = 0
        for each in neighbours:
            table = _read(kind, os.path.join(folder, each.name))
            if table is None or size >= MERGED_BYTES:
                if len(run) > 1:
                    yield run
                run, size = [], 0
            if table is not None:
                run.append((each, table))
                size += table.nbytes
        if len(run) > 1:
            yield run


def _neighbours(files: list[SampleFile]) -> list[list[SampleFile]]:
    """The small files before, between and after merged ones, where there are two or more."""
    found = [list(some) for _, some in groupby(files, key=lambda each: each.is_merged)]
    return [some for some in found if len(some) > 1 and not some[0].is_merged]


def _read(kind: str, path: str) -> pa.Table | None:
    """All of a file; None if that cannot be read, or not without leaving something out."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
        table.validate(full=True)
    except (OSError, pa.ArrowException):
        return None
    return table if table.schema.equals(SCHEMAS[kind]) else None


def _merge(kind: str, folder: str, run: Run) -> None:
    merged = SampleFile(run[0][0].first, run[-1][0].last, len(run))
    batches = [batch for _, table in run for batch in table.to_batches()]
    with _dated_as_before(folder):
        write_file(folder, merged.name, SCHEMAS[kind], batches, {})


@contextmanager
def _dated_as_before(folder: str) -> Iterator[None]:
    """Whether a date may be let go is read from when samples last came to it, not from this."""
    before = os.stat(folder)
    try:
        yield
    finally:
        with suppress(OSError):
            os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
