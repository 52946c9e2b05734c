"""A whole archive from a plan, file by file, and the truth about it beside the files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from tocsin.archive.disk_sync import sync
from tocsin.archive.facts import FactsReader
from tocsin.archive.file_names import UNFINISHED, date_of, format_date, format_range
from tocsin.archive.parquet_reader import COUNT_KEY, DATE_KEY, FIRST_KEY, LAST_KEY
from tocsin.archive.parquet_writer import ROW_GROUP_ROWS, write_file
from tocsin.errors.disk import DataDirectoryUnusable
from tocsin.errors.settings import BadSetting
from tocsin.ontology import built_in
from tocsin.synth import broken
from tocsin.synth.broken import BrokenRecords
from tocsin.synth.columns import SingleEvent, batches_of
from tocsin.synth.messages import Context
from tocsin.synth.plan import Plan
from tocsin.synth.rows import US_PER_MS, Col
from tocsin.synth.samples import Samples
from tocsin.synth.texts import Ints
from tocsin.synth.truth import Truth
from tocsin.synth.versions import version_events
from tocsin.synth.windows import Window, WindowGenerator
from tocsin.synth.world import world_of

TRUTH_NAME: Final = "_truth.json"


def synthesize(plan: Plan, directory: Path, advance: Callable[[int], None]) -> dict[str, Any]:
    """Write the archive; returns the truth, which is also in the directory.

    The truth is written last: an archive without it is unfinished.
    """
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise BadSetting(
                f"{directory} exists and is not empty",
                remedy="Give a new directory with --out, or remove this one.",
            )
        directory.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="synth") as thread:
            return _Synthesis(plan, directory, thread, advance).run()
    except OSError as error:
        raise DataDirectoryUnusable(
            f"{directory} cannot be written ({error.strerror or error}); it is unfinished",
            remedy="Make room or choose another disk, remove the directory, and begin again.",
        ) from error


class _Synthesis:
    """The state of one archive that is being written."""

    def __init__(
        self,
        plan: Plan,
        directory: Path,
        thread: ThreadPoolExecutor,
        advance: Callable[[int], None],
    ) -> None:
        self.plan = plan
        self.directory = directory
        self.advance = advance
        self.world = world_of(plan)
        self.versions = version_events(self.world)
        self.rng = np.random.default_rng([plan.seed, 3])
        self.broken = BrokenRecords(files=plan.broken_files)
        broken_until = plan.events * plan.broken * np.arange(plan.windows + 1) / plan.windows
        self.broken_in_window = _differences(np.rint(broken_until).astype(np.int64))
        received_us = [each.received_us for each in self.versions]
        versions_until = np.searchsorted(received_us, plan.window_begins_ms() * US_PER_MS)
        singles = self.broken_in_window + _differences(versions_until)
        self.generator = WindowGenerator(plan, self.world, singles)
        self.truth = Truth(self.world, self.generator.runs)
        self.context = Context(self.world, self.generator.runs, plan.seed)
        self.facts_reader = FactsReader(built_in())
        self.samples = Samples(directory, np.random.default_rng([plan.seed, 4]))
        self.next_seq = 1
        self.files = 0
        self._thread = thread
        self._writing: Future[None] | None = None

    def run(self) -> dict[str, Any]:
        day_seq = 0
        for window in self.generator.windows():
            if window.number % self.plan.windows_a_day == 0:
                day_us, day_seq = window.begin_us, self.next_seq - 1
            self.truth.count(window.rows)
            self._write_window(window)
            if (window.number + 1) % self.plan.windows_a_day == 0:
                self.samples.write_day(day_us, day_seq, self.next_seq - 1)
        self._wait()
        truth = self._truth()
        text = msgspec.json.format(msgspec.json.encode(truth), indent=1)
        _write_whole(self.directory / TRUTH_NAME, text)
        return truth

    def _truth(self) -> dict[str, Any]:
        truth = self.truth.to_dict(self.generator.waiting)
        truth["events_once"] += len(self.versions)
        truth["events"] += len(self.versions) + sum(self.broken.counts.values())
        return {
            "plan": self.plan.to_dict(),
            **truth,
            "broken": self.broken.counts,
            "evolution": dict(Counter(each.concept for each in self.versions)),
            "last_seq": self.next_seq - 1,
            "files": self.files,
            "samples": self.samples.counts,
            "world": self.world.to_dict(),
        }

    def _write_window(self, window: Window) -> None:
        """Its rows and single events as one file, or as several if they are too many."""
        # A repeated sequence number needs one before it.
        file_damage = window.number % broken.FILE_DAMAGE_EVERY == 0 and len(window.rows) > 1
        count = int(self.broken_in_window[window.number])
        kinds = self.broken.next_kinds(count, file_damage=file_damage)
        parts = np.array_split(window.rows, -(-len(window.rows) // self.plan.files_of) or 1)
        singles = self._versions_in(window) + self._broken_in(window, kinds, len(parts[0]))
        begin = 0
        for number, rows in enumerate(parts, 1):
            end = begin + len(rows) if number < len(parts) else len(window.rows) + 1
            here = [
                replace(each, place=each.place - begin)
                for each in singles
                if begin <= each.place < end
            ]
            batches = [*batches_of(rows, here, self.next_seq, self.context, self.facts_reader)]
            self._write(batches, window)
            self.next_seq += len(rows) + sum(not each.repeats_seq for each in here)
            begin += len(rows)
        self._write_nulls(window, [kind for kind in kinds if kind in broken.NULLS])

    def _versions_in(self, window: Window) -> list[SingleEvent]:
        received_us = window.rows[:, Col.RECEIVED_US]
        return [
            SingleEvent(
                int(np.searchsorted(received_us, each.received_us)), each.received_us, each.event
            )
            for each in self.versions
            if window.begin_us <= each.received_us < window.end_us
        ]

    def _broken_in(self, window: Window, kinds: list[str], rows: int) -> list[SingleEvent]:
        """In bursts, each after some row of the first file and received with it; at the end if
        there is at most one row."""
        among = [kind for kind in kinds if kind not in broken.NULLS]
        if not among:
            return []
        places = self.rng.integers(1, rows, broken.BURSTS_MAX) if rows > 1 else np.array([rows])
        places = np.sort(places)
        singles: list[SingleEvent] = []
        for number, kind in enumerate(among):
            place = int(places[number % len(places)])
            received_us = window.end_us - 1
            if place:
                received_us = int(window.rows[place - 1, Col.RECEIVED_US])
            event, raw = self.broken.event(kind, received_us)
            is_repeated = kind == broken.REPEATED_SEQ
            singles.append(SingleEvent(place, received_us, event, raw, is_repeated))
        return singles

    def _write_nulls(self, window: Window, kinds: list[str]) -> None:
        if kinds:
            received_us = window.end_us - 1
            events = [(kind, self.broken.event(kind, received_us)[0]) for kind in kinds]
            batch = broken.batch_with_nulls(events, self.next_seq, received_us, self.facts_reader)
            self._write([batch], window)
            self.next_seq += len(events)

    def _write(self, batches: Sequence[pa.RecordBatch], window: Window) -> None:
        """Write while the next file is generated: one at a time, so that two are in memory."""
        if batches:
            self._wait()
            date = date_of(window.begin_us)
            self._writing = self._thread.submit(_write_events, batches, self.directory, date)
            self.files += 1
            self.advance(sum(each.num_rows for each in batches))

    def _wait(self) -> None:
        """Until everything is on disk; raises what went wrong."""
        if self._writing is not None:
            self._writing.result()


def _differences(counts: Ints) -> Ints:
    return counts[1:] - counts[:-1]


def _write_events(batches: Sequence[pa.RecordBatch], directory: Path, date: str) -> None:
    """One sealed file of events received on one date, named by their sequence numbers."""
    first = batches[0].column("seq")[0].as_py()
    last = batches[-1].column("seq")[-1].as_py()
    metadata = {
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
    write_file(folder, format_range(first, last), batches[0].schema, pieces, metadata)


def _write_whole(path: Path, data: bytes) -> None:
    """A small file, complete or not at all."""
    unfinished = path.with_name(UNFINISHED + path.name)
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync(path.parent)
