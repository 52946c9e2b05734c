"""A log beside which an archive is filled, and a process that ends in the middle of it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tocsin.archive.parquet_reader import read_range
from tocsin.archive.record import to_events
from tocsin.drivers.archive.messages import Rolled, WriterOptions
from tocsin.drivers.archive.roller import Roller
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.ontology import built_in
from tocsin.store.store import Store

NOON_NS = 1_790_000_000_000_000_000
DAY_NS = 86_400_000_000_000


class Crash(BaseException):
    """The process ended here."""


class Log:
    """A log with events, beside which an archive is filled."""

    def __init__(self, directory: Path, archive: Path | None = None) -> None:
        self.directory = directory
        self.archive = archive or directory / "archive"
        self.store = Store.open(directory)
        self.written: list[Stored] = []

    def write(self, count: int, *, received_ns: int = NOON_NS, size: int = 20) -> None:
        first = self.store.last_seq + 1
        events = [
            Stored(
                seq,
                received_ns + seq * 1_000,
                Event(id=f"e{seq}", source="/t", type="t", topic="a", data=b"x" * size),
            )
            for seq in range(first, first + count)
        ]
        self.store.write(Batch(events=events))
        self.written += events

    def options(self, **changes: object) -> WriterOptions:
        usual = {
            "store": "sqlite",
            "log": str(self.directory),
            "directory": str(self.archive),
            "seal_bytes": 1 << 30,
            "seal_age_s": 3_600.0,
            "retain_age_s": 1e9,
            "retain_bytes": 1 << 40,
            "free_bytes_min": 1,
        }
        return WriterOptions(**{**usual, **changes})  # type: ignore[arg-type]

    def roll(self, *, now_s: float | None = None, **changes: object) -> Rolled:
        with Roller(self.options(**changes), self.store.reader(), built_in()) as roller:
            now_s = time.time() if now_s is None else now_s
            return roller.work(self.store.last_seq, now_s=now_s)

    def archived(self) -> list[Stored]:
        batches = read_range(str(self.archive), through=2**62)
        return [each for batch in batches for each in to_events(batch)]


@contextlib.contextmanager
def crash_at(step: int) -> Iterator[None]:
    """The process ends at the step-th change of a directory, and cleans nothing up."""
    left = [step]

    def dies(real: object) -> object:
        def call(*arguments: object, **options: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Crash
            return real(*arguments, **options)  # type: ignore[operator]

        return call

    with (
        mock.patch.object(os, "replace", dies(os.replace)),
        mock.patch.object(os, "unlink", dies(os.unlink)),
        mock.patch.object(os, "fsync", dies(os.fsync)),
        contextlib.suppress(Crash),
    ):
        yield
