"""Tables: the pipeline's published tables, read without Spark, and read again when they change.

Whoever asks reads them, in a thread that answers questions. Rows stay in Arrow, and become objects
when they are asked for. Tables that cannot be read, or are not of this log, are noted once; the
monitor then works as if there were none, or goes on with those that it had.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from tocsin.drivers.logger import WriteLog
from tocsin.errors import TocsinError
from tocsin.errors.pipeline import NoTables
from tocsin.event.instant import NS_PER_S, NS_PER_US, rfc3339, rfc3339_or_none
from tocsin.monitor.history.tables import Bin, CostModel, Key, LearnedTables, StatsRow, TablesStatus
from tocsin.wire.api.history_views import LearnedInfo

if TYPE_CHECKING:  # pyarrow takes 0.1 s and 40 MB: not before there are tables
    import pyarrow as pa

    from tocsin.tables.published import Published

T = TypeVar("T")

STATS: Final = "activity_stats"
MODELS: Final = "cost_models"
LOOK_EVERY_S: Final = 2.0  # whether there is a new version: a file of some kB is read
AGAIN_AFTER_S: Final = 60.0  # what the machine did not read may be read later
ROWS_MAX: Final = 1_000_000  # of one table: some 500 MB in memory
BYTES_MAX: Final = 256 << 20  # of one table on disk
BINS_MAX: Final = 1_000  # of one histogram that is shown
KEYS_KEPT_MAX: Final = 5_000  # activities whose rows stay objects, once they were asked for
REMEDY: Final = "Rebuild them with `tocsin pipeline run --rebuild`."

_WHOLE: Final = frozenset({"runs", "count", "failed", "cancelled"})
_STATS: Final = tuple(
    name
    for name in StatsRow.__slots__
    if name not in ("workflow", "activity", "version", "first_ended_ns", "last_ended_ns", "bins")
)
_MODELS: Final = tuple(
    name
    for name in CostModel.__slots__
    if name not in ("workflow", "activity", "version", "target", "count")
)


class Tables:
    """The tables of one directory, as they stand whenever somebody asks."""

    def __init__(
        self,
        directory: Path,
        head: Callable[[], int],
        note: WriteLog,
        *,
        is_named: bool = False,
        look_every_s: float = LOOK_EVERY_S,
        again_after_s: float = AGAIN_AFTER_S,
    ) -> None:
        """`head` returns where the log ends: tables that go further are not of this log.

        `is_named`: somebody wants them to be there, and it is noted if they are not.
        """
        self._directory = directory
        self._head = head
        self._note = note
        self._is_named = is_named
        self._look_every_s = look_every_s
        self._again_after_s = again_after_s
        self._turn = threading.Lock()
        self._looked_s: float | None = None
        self._read: tuple[Path, datetime] | None = None
        self._refused: tuple[Path, datetime] | None = None
        self._again_s = math.inf  # when to try those that were refused once more
        self._status = TablesStatus()

    def status(self) -> TablesStatus:
        """What there is now. Reads a version that is new, which takes time: not on the loop."""
        with self._turn:
            now_s = time.monotonic()
            if self._looked_s is None or now_s - self._looked_s >= self._look_every_s:
                self._look()
                self._looked_s = time.monotonic()
            return self._status

    def _look(self) -> None:
        try:
            self._read_new()
        except TocsinError as error:
            self._cannot(self._status.learned, error.problem, error.remedy)
        except Exception as error:  # what a file that somebody else wrote makes of a reader
            problem = f"the tables in {self._directory} cannot be read: {error!r}"
            self._cannot(self._status.learned, problem, REMEDY)

    def _read_new(self) -> None:
        found = None
        if self._directory.exists():  # mostly not: where nobody runs the pipeline
            from tocsin.tables.published import published

            found = published(self._directory)
        if found is None:
            self._none()
            return
        head = self._head()
        if found.through > head:
            self._cannot(
                None,
                f"the tables in {self._directory} belong to another log: they go to event "
                f"{found.through:,}, and this log ends at {head:,}",
                "Name this broker's own tables in pipeline.tables.",
            )
            return
        mark = found.directory, found.made
        if mark == self._refused and time.monotonic() < self._again_s:
            return
        if mark != self._read or self._status.learned is None:
            self._refused, self._again_s = mark, math.inf  # until it was read
            try:
                learned = _learned(found)
            except Exception as error:
                if _may_pass(error):
                    self._again_s = time.monotonic() + self._again_after_s
                raise
            self._read, self._refused = mark, None
        else:
            learned = self._status.learned
        if self._status.problem is not None:
            self._note("info", "the tables can be read again", version=learned.version)
        self._status = TablesStatus(learned)

    def _none(self) -> None:
        if self._is_named:
            problem = f"there are no tables in {self._directory}"
            self._cannot(None, problem, "Make them with `tocsin pipeline run`.")
        else:
            self._status = TablesStatus()

    def _cannot(self, used: LearnedTables | None, problem: str, remedy: str) -> None:
        """Go on with what was read before, if it may be, and say once what is wrong."""
        noted, self._status = self._status.problem, TablesStatus(used, problem)
        if noted != problem:
            version = None if used is None else used.version
            self._note("warning", f"{problem}; the monitor goes on", used=version, remedy=remedy)


def _may_pass(error: Exception) -> bool:
    """True if it was the machine, and not what the tables hold: files, memory, a disk."""
    cause = error.__cause__ or error
    has_number = isinstance(cause, OSError) and cause.errno is not None
    return has_number or isinstance(cause, MemoryError)


class LazyRows(Mapping[Key, Sequence[T]], Generic[T]):
    """Rows of an Arrow table by workflow and activity, made into objects when they are wanted."""

    def __init__(self, table: pa.Table, make: Callable[[pa.Table, list[int]], list[T]]) -> None:
        self._places: dict[Key, list[int]] = {}
        named = (table.column(name).to_pylist() for name in ("workflow", "activity"))
        for place, (workflow, activity) in enumerate(zip(*named, strict=True)):
            if activity:
                self._places.setdefault((workflow or "", activity), []).append(place)
        # Of a run under way the same ones are wanted again and again.
        self._rows = lru_cache(KEYS_KEPT_MAX)(lambda key: tuple(make(table, self._places[key])))

    def __getitem__(self, key: Key) -> Sequence[T]:
        return self._rows(key)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _learned(found: Published) -> LearnedTables:
    """The version that was found; NoTables if it is none that the monitor can use."""
    import pyarrow as pa

    stats, models = _table(found, STATS), _table(found, MODELS)
    for name in ("first_ended", "last_ended"):
        # As numbers: a moment of a wrong clock may be beyond what Python's dates can hold.
        whole = stats.column(name).cast(pa.int64())
        stats = stats.set_column(stats.schema.get_field_index(name), name, whole)
    by_key = LazyRows(stats, _stats_rows)
    workflows: dict[str, list[str]] = {}
    for workflow, activity in sorted(by_key):
        workflows.setdefault(activity, []).append(workflow)
    return LearnedTables(
        found.version,
        int(found.made.timestamp() * NS_PER_S),
        found.through,
        by_key,
        LazyRows(models, _cost_models),
        workflows,
        _edge_ns(found.manifest.since),
        _edge_ns(found.manifest.until),
    )


def _edge_ns(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1e6) * NS_PER_US


def _table(found: Published, name: str) -> pa.Table:
    from tocsin.tables.published import read_table

    facts = found.tables.get(name)
    if facts is not None and (facts.rows > ROWS_MAX or facts.bytes > BYTES_MAX):
        raise NoTables(
            f"the table {name} has {facts.rows:,} rows: more than the monitor reads",
            remedy=f"It reads {ROWS_MAX:,}. Build the tables from fewer workflows.",
        )
    table = read_table(found, name)
    if facts is not None and table.num_rows != facts.rows:
        raise NoTables(
            f"the table {name} has {table.num_rows:,} rows, and should have {facts.rows:,}",
            remedy=REMEDY,
        )
    return table.combine_chunks()


def _stats_rows(table: pa.Table, places: list[int]) -> list[StatsRow]:
    histograms = table.column("histogram")
    plain = table.drop_columns(["histogram"]).take(places).to_pylist()
    return [
        _stats_row(row, partial(_bins, histograms, place))
        for row, place in zip(plain, places, strict=True)
    ]


def _stats_row(row: dict[str, Any], bins: Callable[[], tuple[Bin, ...]]) -> StatsRow:
    numbers: dict[str, Any] = {name: _number(row[name]) for name in _STATS}
    numbers |= {name: int(numbers[name] or 0) for name in _WHOLE}
    return StatsRow(
        workflow=row["workflow"] or "",
        activity=row["activity"],
        version=row["version"] or "",
        first_ended_ns=_moment_ns(row["first_ended"]),
        last_ended_ns=_moment_ns(row["last_ended"]),
        bins=bins,
        **numbers,
    )


def _cost_models(table: pa.Table, places: list[int]) -> list[CostModel]:
    return [
        CostModel(
            workflow=row["workflow"] or "",
            activity=row["activity"],
            version=row["version"] or "",
            target=row["target"] or "",
            count=int(_number(row["count"]) or 0),
            **{name: _number(row[name], is_signed=True) for name in _MODELS},
        )
        for row in table.take(places).to_pylist()
    ]


def _number(value: float | None, *, is_signed: bool = False) -> float | None:
    """A number that can be used; None for what is none. Only lines may be negative."""
    if value is None or not abs(value) < 1e300 or (value < 0 and not is_signed):
        return None
    return value


def _moment_ns(micros: int | None) -> int | None:
    return None if micros is None else micros * NS_PER_US


def _bins(histograms: pa.ChunkedArray, place: int) -> tuple[Bin, ...]:
    bins = histograms[place].as_py() or ()
    found: list[Bin] = []
    for each in bins[:BINS_MAX]:
        low_s, high_s = _number(each["low_s"]), _number(each["high_s"])
        if low_s is not None and high_s is not None and low_s <= high_s:
            found.append(Bin(low_s, high_s, max(each["count"] or 0, 0)))
    return tuple(found)


def tables_view(
    status: TablesStatus,
    now_ns: int,
    old_s: float,
    *,
    attempts: int = 0,
    other_versions: Sequence[str] = (),
) -> LearnedInfo | None:
    """What an answer says of the tables that it comes from; None if there are none."""
    learned, problem = status.learned, status.problem
    if learned is None and problem is None:
        return None
    age_s = None if learned is None else round(learned.age_s(now_ns), 1)
    return LearnedInfo(
        version=None if learned is None else learned.version,
        made=None if learned is None else rfc3339(learned.made_ns),
        age_s=age_s,
        through=None if learned is None else learned.through,
        since=None if learned is None else rfc3339_or_none(learned.since_ns),
        until=None if learned is None else rfc3339_or_none(learned.until_ns),
        old=age_s is not None and age_s > old_s,
        attempts=attempts,
        other_versions=list(other_versions),
        problem=problem,
    )
