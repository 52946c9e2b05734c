"""The process that fills an archive: orders by standard input, answers by standard output.

It ends when its input does, and between two files when whoever started it is gone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from tocsin.archive.sample_compaction import merge_due
from tocsin.archive.sample_writer import SampleWriter
from tocsin.drivers.archive.messages import (
    Failed,
    Roll,
    Rolled,
    Samples,
    WriterOptions,
    encode,
    read_options,
    read_task,
)
from tocsin.drivers.archive.roller import Roller, disk_error
from tocsin.drivers.site_ontology import use_ontology
from tocsin.drivers.storage.stores import open_log_reader
from tocsin.errors import TocsinError
from tocsin.errors.archive import ArchiveOfAnotherLog
from tocsin.ontology import in_use

NICENESS: Final = 10  # whoever publishes goes first
WAKE_S: Final = 60.0  # how often rows that wait are looked at when nothing is asked
MERGE_S: Final = 300.0  # between two looks at whether samples can be merged
MERGE_AGAIN_S: Final = 30.0  # if some had to wait: merging takes a tenth of the time at most


class Child:
    """Performs one task after another."""

    def __init__(self, options: WriterOptions) -> None:
        self._options = options
        self._parent = os.getppid()
        self._roller: Roller | None = None
        self._sampler = SampleWriter(options.directory)
        self._unsaved: str | None = None
        self._merge_at_s = time.monotonic()
        self._unmerged = 0

    def run(self) -> None:
        buffered = b""
        while True:
            ready, _, _ = select.select([0], [], [], WAKE_S)
            if ready:
                read = os.read(0, 1 << 16)
                if not read:
                    break
                *lines, buffered = (buffered + read).split(b"\n")
                for line in lines:
                    self._do(line)
            self._write_samples()
        with suppress(OSError):
            self._sampler.write_all()

    def _do(self, line: bytes) -> None:
        task = read_task(line)
        if isinstance(task, Samples):
            self._sampler.add(task.kind, task.rows, time.monotonic())
            return
        answer = self._roll(task)
        sys.stdout.buffer.write(encode(answer) + b"\n")
        sys.stdout.buffer.flush()

    def _roll(self, task: Roll) -> Rolled | Failed:
        try:
            if self._roller is None:
                reader = open_log_reader(self._options.store, self._options.log)
                self._roller = Roller(self._options, reader, in_use())
            rolled = self._roller.work(
                task.through,
                now_s=time.time(),
                by_age=task.by_age,
                is_asked=self._is_asked,
            )
        except TocsinError as error:
            is_final = isinstance(error, ArchiveOfAnotherLog)
            return Failed(error.code, error.problem, error.remedy, is_final)
        except OSError as error:
            failed = disk_error(self._options.directory, error)
            return Failed(failed.code, failed.problem, failed.remedy)
        except Exception:
            return Failed("T000", traceback.format_exc()[-2_000:], "Please report this.")
        self._merge_samples()
        unsaved, self._unsaved = self._unsaved, None
        # Counted with the others: then it is asked again, and they are not left lying.
        return replace(rolled, unsaved=unsaved, superseded=rolled.superseded + self._unmerged)

    def _is_asked(self) -> bool:
        return os.getppid() == self._parent

    def _merge_samples(self) -> None:
        """After a roll, and not without one: the roller has the archive's lock."""
        if time.monotonic() < self._merge_at_s:
            return
        try:
            self._unmerged = merge_due(self._options.directory, time.time(), self._is_asked)
        except (OSError, pa.ArrowException) as error:  # the events are archived all the same
            self._unsaved, self._unmerged = str(error), 0
        pause_s = MERGE_AGAIN_S if self._unmerged else MERGE_S
        self._merge_at_s = time.monotonic() + pause_s

    def _write_samples(self) -> None:
        try:
            self._sampler.write_due(time.monotonic())
        except OSError as error:
            self._unsaved = str(error)


def main(argument: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key pressed at the broker's terminal
    with suppress(OSError):
        os.nice(NICENESS)
    pa.set_cpu_count(1)
    options = read_options(argument.encode())
    use_ontology(options.ontology)
    Child(options).run()


if __name__ == "__main__":
    main(sys.argv[1])
