"""Synthesis: a whole archive from a plan, file by file, and the truth about it beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from tocsin.archive.facts import FactsReader
from tocsin.archive.file_names import date_of
from tocsin.errors.disk import DataDirectoryUnusable
from tocsin.errors.settings import BadSetting
from tocsin.ontology import built_in
from tocsin.synth import broken, evolution
from tocsin.synth.broken import Breaking
from tocsin.synth.making import Making, Window
from tocsin.synth.plan import MS_PER_DAY, Plan
from tocsin.synth.rows import US_PER_MS, At
from tocsin.synth.samples import Samples
from tocsin.synth.special import Special, Telling, batches_of, numbers_used
from tocsin.synth.texts import Ints
from tocsin.synth.truth import Truth
from tocsin.synth.world import made
from tocsin.synth.writing import Writer, write_text

TRUTH_NAME: Final = "_truth.json"


def synthesize(plan: Plan, directory: Path, advance: Callable[[int], None]) -> dict[str, Any]:
    """Write the archive; returns the truth, which is also in the directory.

    It is written last: an archive without it is unfinished.
    """
    try:
        _make_room(directory)
        with Writer(directory) as writer:
            return _Synthesis(plan, directory, writer, advance).run()
    except OSError as error:
        raise DataDirectoryUnusable(
            f"{directory} cannot be written ({error.strerror or error}); it is unfinished",
            remedy="Make room or choose another disk, remove the directory, and begin again.",
        ) from error


def _make_room(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadSetting(
            f"{directory} is there already and not empty",
            remedy="Give a new directory with --out, or remove this one.",
        )
    directory.mkdir(parents=True, exist_ok=True)


class _Synthesis:
    """One archive while it is made."""

    def __init__(
        self, plan: Plan, directory: Path, writer: Writer, advance: Callable[[int], None]
    ) -> None:
        self.plan = plan
        self.directory = directory
        self.writer = writer
        self.advance = advance
        self.world = made(plan)
        self.changes = evolution.told(self.world)
        self.chance = np.random.Generator(np.random.PCG64([plan.seed, 3]))
        self.breaking = Breaking(files=plan.broken_files)
        self.broken_in = self._broken_in_windows()
        self.making = Making(plan, self.world, self._beside())
        self.truth = Truth(self.world, self.making.roster)
        self.telling = Telling(self.world, self.making.roster, plan.seed, FactsReader(built_in()))
        self.samples = Samples(directory, np.random.Generator(np.random.PCG64([plan.seed, 4])))
        self.next_seq = 1

    def run(self) -> dict[str, Any]:
        day_seq = 0
        for window in self.making.windows():
            self.truth.count(window.rows)
            self._write_window(window)
            if (window.number + 1) % self.plan.windows_a_day == 0:
                day_us = window.begin_us // (MS_PER_DAY * US_PER_MS) * MS_PER_DAY * US_PER_MS
                self.samples.write_day(day_us, day_seq, self.next_seq - 1)
                day_seq = self.next_seq - 1
        self.writer.wait()
        self.truth.leave(self.making.waiting)
        told = self._told()
        write_text(
            msgspec.json.format(msgspec.json.encode(told), indent=1).decode(),
            self.directory / TRUTH_NAME,
        )
        return told

    def _told(self) -> dict[str, Any]:
        told = self.truth.told()
        told["events_once"] += len(self.changes)
        told["events"] += len(self.changes) + sum(self.breaking.counts.values())
        return {
            "plan": self.plan.told(),
            **told,
            "broken": self.breaking.counts,
            "evolution": dict(Counter(each.concept for each in self.changes)),
            "last_seq": self.next_seq - 1,
            "files": self.writer.files,
            "samples": self.samples.counts,
            "world": self.world.told(),
        }

    def _broken_in_windows(self) -> Ints:
        upto = np.arange(self.plan.windows + 1) * (self.plan.events * self.plan.broken)
        whole = np.rint(upto / self.plan.windows).astype(np.int64)
        return whole[1:] - whole[:-1]

    def _beside(self) -> Ints:
        beside = self.broken_in.copy()
        for change in self.changes:
            beside[self._window_of(change.received_us)] += 1
        return beside

    def _window_of(self, received_us: int) -> int:
        begin_us, day_us = self.plan.start_ms * US_PER_MS, MS_PER_DAY * US_PER_MS
        length_us = MS_PER_DAY // self.plan.windows_a_day * US_PER_MS
        day, within_us = divmod(received_us - begin_us, day_us)
        part = min(within_us // length_us, self.plan.windows_a_day - 1)
        return int(day * self.plan.windows_a_day + part)

    def _write_window(self, window: Window) -> None:
        """Its rows, with what is special among them, as one file; as more if they are too many."""
        date = date_of(window.begin_us)
        # A number that is met twice needs one before it.
        spoiling = window.number % broken.SPOILED_EVERY == 0 and len(window.rows) > 1
        kinds = self.breaking.kinds(int(self.broken_in[window.number]), spoiling=spoiling)
        parts = np.array_split(window.rows, -(-len(window.rows) // self.plan.files_of) or 1)
        specials = self._changes_in(window) + self._broken(window, kinds, len(parts[0]))
        begin = 0
        for number, rows in enumerate(parts):
            end = begin + len(rows) if number + 1 < len(parts) else len(window.rows) + 1
            here = [
                replace(each, place=each.place - begin)
                for each in specials
                if begin <= each.place < end
            ]
            batches = list(batches_of(rows, here, self.next_seq, self.telling))
            if batches:
                self.writer.write(batches, date)
            self.next_seq += numbers_used(len(rows), here)
            self.advance(len(rows) + len(here))
            begin += len(rows)
        self._write_nulls(window, [kind for kind in kinds if kind in broken.NULLS], date)

    def _changes_in(self, window: Window) -> list[Special]:
        received_us = window.rows[:, At.RECEIVED_US]
        return [
            Special(
                int(np.searchsorted(received_us, each.received_us)), each.received_us, each.event
            )
            for each in self.changes
            if self._window_of(each.received_us) == window.number
        ]

    def _broken(self, window: Window, kinds: list[str], rows: int) -> list[Special]:
        """In bursts, each after some row of the window, and received with it; where there is next
        to none, at the end."""
        among = [kind for kind in kinds if kind not in broken.NULLS]
        if not among:
            return []
        places = self.chance.integers(1, rows, broken.BURSTS_MAX) if rows > 1 else np.array([rows])
        places = np.sort(places)
        found: list[Special] = []
        for number, kind in enumerate(among):
            place = int(places[number % len(places)])
            before = window.rows[:place, At.RECEIVED_US]
            received_us = int(before[-1]) if place else window.end_us - 1
            event, raw = self.breaking.event(kind, received_us)
            found.append(Special(place, received_us, event, raw, repeats=kind == broken.REPEATS))
        return found

    def _write_nulls(self, window: Window, kinds: list[str], date: str) -> None:
        if not kinds:
            return
        received_us = window.end_us - 1
        events = [(kind, self.breaking.event(kind, received_us)[0]) for kind in kinds]
        batch = broken.with_nulls(events, self.next_seq, received_us, self.telling.facts_reader)
        self.writer.write([batch], date)
        self.next_seq += len(events)
        self.advance(len(events))
