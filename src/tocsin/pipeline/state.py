"""State: what the pipeline keeps between runs, in parts that are whole or not there.

    TABLES/_state/partials/<first>-<last>/{events,keys,quarantine,attempts,runs}/part-*.parquet
    TABLES/_state/partials/<first>-<last>/_partial.json

A part is made under a name that nobody reads, and renamed when it is whole. Folded cells may be
merged again and again without harm; so a part that was made twice is one part.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq

from tocsin.archive.disk_sync import sync, sync_tree
from tocsin.archive.file_names import format_range, parse_range
from tocsin.archive.last_event import LastEvent
from tocsin.errors.pipeline import BadPipelineOption, NoTables, PipelineBusy
from tocsin.pipeline.locations import shown

STATE: Final = "_state"
PARTIALS: Final = "partials"
UNFINISHED: Final = ".tmp-"
FACTS: Final = "_partial.json"
WINDOW: Final = "_window.json"
CHECKPOINT: Final = "checkpoint"
FORMAT: Final = 4  # of the parts; grows with every change after which old ones cannot be read


class Window(msgspec.Struct, frozen=True):
    """Which part of the archive the tables are made of; all of it, if nothing is said."""

    since: datetime | None = None
    until: datetime | None = None
    archive: str = ""
    format: int = 1
    moves: bool = False
    """It goes with the time: `the last seven days`."""
    id: str = ""
    """Another one whenever it was started over."""

    def has_date(self, date: str) -> bool:
        """True if any of this day, as 2026-11-16, may be in."""
        since = self.since.date().isoformat() if self.since else date
        until = self.until.date().isoformat() if self.until else date
        return since <= date <= until


class PartialFacts(msgspec.Struct, frozen=True):
    """What a part was made of."""

    first: int
    last: int
    as_of: datetime | None = None
    counts: dict[str, int] = {}
    positions: dict[str, int] = {}
    """Where to go on, by partition, if the archive is a topic of Kafka: see kafka_plan."""
    last_event: LastEvent | None = None
    """Its last event, by which the archive is known again."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A part that is whole."""

    directory: Path
    facts: PartialFacts

    def files(self, name: str) -> list[Path]:
        return sorted((self.directory / name).glob("*.parquet"))


class State:
    """The parts of one directory of tables. Held by one pipeline at a time: see `held`."""

    def __init__(self, tables: Path) -> None:
        self.tables = tables
        self.directory = tables / STATE
        self.partials_directory = self.directory / PARTIALS

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else writes here meanwhile. Raises PipelineBusy."""
        self.partials_directory.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PipelineBusy(
                    f"another pipeline writes the tables in {self.tables}",
                    remedy="Wait for it, stop it, or name another directory with --tables.",
                ) from None
            self._remove_unfinished()
            yield
        finally:
            os.close(lock)

    def _remove_unfinished(self) -> None:
        for directory in (".", PARTIALS, f"{PARTIALS}/*/*"):
            for path in self.directory.glob(f"{directory}/{UNFINISHED}*"):
                path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)

    def has_moved(self, window: Window) -> bool:
        """True if what is kept is of the same archive, of a time that has moved on since."""
        had = self._window()
        if had is None or not window.moves:
            return False
        is_same = (had.since, had.until) == (window.since, window.until)
        return had.moves and had.archive == window.archive and not is_same

    def agree_on(self, window: Window) -> None:
        """Remember what the tables are made of. Raises if they were made of something else."""
        had = self._window()
        window = msgspec.structs.replace(window, format=FORMAT)
        if had is not None and self.partials():
            if had.format != FORMAT:
                raise BadPipelineOption(
                    f"what is kept for the tables in {self.tables} is of another version",
                    remedy="Use --rebuild to rebuild them, or name another directory.",
                )
            if msgspec.structs.replace(had, id="") != window:
                raise BadPipelineOption(
                    f"the tables in {self.tables} are made of {_described(had)}, "
                    f"and this asks for {_described(window)}",
                    remedy="Name another directory with --tables, or use --rebuild to start over.",
                )
            return
        id = uuid.uuid4().hex if had is None else had.id
        window = msgspec.structs.replace(window, id=id)
        write_whole(self.directory / WINDOW, msgspec.json.encode(window))

    def _window(self) -> Window | None:
        try:
            return msgspec.json.decode((self.directory / WINDOW).read_bytes(), type=Window)
        except FileNotFoundError:
            return None

    @property
    def id(self) -> str:
        """Says whether tables were made of what is kept here: it changes when that is forgotten."""
        window = self._window()
        return "" if window is None else window.id

    def partials(self) -> list[Partial]:
        """The parts there are, ascending; one that another holds whole is left out."""
        found: list[Partial] = []
        for path in self.partials_directory.iterdir():
            if parse_range(f"{path.name}.parquet") is None:
                continue
            try:
                facts = msgspec.json.decode((path / FACTS).read_bytes(), type=PartialFacts)
            except (OSError, msgspec.DecodeError) as error:
                raise NoTables(
                    f"{path} cannot be read: {error}",
                    remedy="Rebuild the tables with `tocsin pipeline run --rebuild`.",
                ) from error
            found.append(Partial(path, facts))
        found.sort(key=lambda each: (each.facts.first, -each.facts.last))
        kept: list[Partial] = []
        for partial in found:
            if kept and partial.facts.last <= kept[-1].facts.last:
                continue
            kept.append(partial)
        return kept

    def through(self) -> int:
        """Every event up to this one is in a part."""
        return max((each.facts.last for each in self.partials()), default=0)

    def last_event(self) -> LastEvent | None:
        """The last event there is, as far as a part has one."""
        found = [
            each.facts.last_event for each in self.partials() if each.facts.last_event is not None
        ]
        return max(found, default=None)

    def positions(self) -> dict[str, int]:
        """Where to go on in each partition of a topic; its offsets only grow."""
        found: dict[str, int] = {}
        for each in self.partials():
            for partition, offset in each.facts.positions.items():
                found[partition] = max(offset, found.get(partition, 0))
        return found

    def files_aside(self) -> frozenset[str]:
        """The files of the archive that a part names in its quarantine."""
        files = [path for each in self.partials() for path in each.files("quarantine")]
        read = (pq.read_table(path, columns=["file"]).column(0).unique() for path in files)
        return frozenset(name for names in read for name in names.to_pylist() if name)

    @contextmanager
    def new_directory(self) -> Iterator[Path]:
        """Where a part is made before it is whole. If that fails, nothing is left of it."""
        directory = self.partials_directory / f"{UNFINISHED}{uuid.uuid4().hex}"
        directory.mkdir()
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)  # a full disk needs its room

    def keep(self, directory: Path, facts: PartialFacts) -> Partial:
        """The part is whole: from now on it counts, in place of all that it covers."""
        write_whole(directory / FACTS, msgspec.json.encode(facts))
        sync_tree(directory)
        name = format_range(facts.first, facts.last).removesuffix(".parquet")
        target = self.partials_directory / name
        if target.exists():
            self._remove(target)
        os.rename(directory, target)
        sync(self.partials_directory)
        self._remove_covered(facts, target)
        return Partial(target, facts)

    def _remove_covered(self, facts: PartialFacts, but: Path) -> None:
        for path in self.partials_directory.iterdir():
            covered = parse_range(f"{path.name}.parquet")
            if covered is None or path == but:
                continue
            if facts.first <= covered[0] and covered[1] <= facts.last:
                self._remove(path)

    def forget(self) -> None:
        """Start over: nothing was ever folded."""
        # The checkpoint first: with it and without the parts, a stream would go on in the middle.
        self.forget_checkpoint()
        self._remove(self.partials_directory)
        self.partials_directory.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            (self.directory / WINDOW).unlink()

    def has_checkpoint(self) -> bool:
        """True if a stream was here."""
        return (self.directory / CHECKPOINT).is_dir()

    def forget_checkpoint(self) -> None:
        """A stream that starts then goes on after the last part."""
        self._remove(self.directory / CHECKPOINT)

    def _remove(self, path: Path) -> None:
        """Gone at once, whenever we are killed: what is half removed has a name nobody reads."""
        leaving = self.directory / f"{UNFINISHED}{uuid.uuid4().hex}"
        with suppress(FileNotFoundError):
            os.rename(path, leaving)
            shutil.rmtree(leaving, ignore_errors=True)


def _described(window: Window) -> str:
    of = shown(window.archive) or "an archive"
    return f"{of} since {window.since or 'its start'} until {window.until or 'its end'}"


def write_whole(path: Path, content: bytes) -> None:
    """On disk, whole or not at all."""
    unfinished = path.with_name(f"{UNFINISHED}{uuid.uuid4().hex}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)  # where the disk is full, its room is needed
        raise
