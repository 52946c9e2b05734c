"""Queries about activities over all runs: by the pipeline's tables, and by what came since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from tocsin.drivers.monitor.database.attempt_rows import decode_row
from tocsin.drivers.monitor.queries.index import RunIndex
from tocsin.drivers.monitor.tables import tables_view
from tocsin.event.instant import rfc3339_or_none
from tocsin.monitor.history.summary import summary
from tocsin.monitor.history.tables import LearnedTables, StatsRow, TablesStatus
from tocsin.monitor.views import activity_record
from tocsin.wire.api.history_views import HistoryInfo, HistoryPartInfo
from tocsin.wire.api.run_views import ActivityInfo, TypeInfo

HISTORY_MAX: Final = 10_000  # attempts that a history is made of, the latest
RECENT_MAX: Final = 20
TYPES_MAX: Final = 10_000
BY_VERSION_MAX: Final = 100  # rows of the tables that are shown one by one, the latest
COST_MODELS_MAX: Final = 500
NAMES_MAX: Final = 10_000  # of the tables, that are looked through for one that is meant
_RAN = "('succeeded', 'failed', 'retrying', 'cancelled')"  # what was skipped or cached did not run
_VERSION = "(CASE WHEN a.version = '' THEN r.version ELSE a.version END)"


@dataclass(frozen=True, slots=True)
class _Ended:
    """An attempt that ended; `settled_seq` is the event that gave it its state,
    `last_received_ns` when the last event of it came. When the event
    itself was received is not kept."""

    state: str
    duration_s: float | None
    workflow: str
    version: str
    ended_ns: int
    settled_seq: int = 0
    last_received_ns: int | None = None


class HistoryQueries:
    """How activities went."""

    def __init__(self, index: RunIndex, tables_status: Callable[[], TablesStatus]) -> None:
        self._index = index
        self._tables_status = tables_status

    def types(self, *, workflow: str | None = None) -> list[TypeInfo]:
        """Every type of activity, with how often it ran and how many of its tries failed."""
        where, values = ("", ()) if workflow is None else (" WHERE r.workflow = ?", (workflow,))
        found = self._index.rows(
            "SELECT t.type, r.workflow, sum(t.count), count(DISTINCT t.run), "
            "(SELECT count(*) FROM attempts AS a JOIN runs AS b ON b.no = a.run "
            "WHERE a.type = t.type AND a.ended_ns IS NOT NULL AND a.fault IS NOT NULL "
            "AND b.workflow = r.workflow) "
            f"FROM tally AS t JOIN runs AS r ON r.no = t.run{where} "
            "GROUP BY t.type, r.workflow ORDER BY t.type, r.workflow LIMIT ?",
            *values,
            TYPES_MAX,
        )
        return [
            TypeInfo(type=kind, workflow=of, activities=activities, runs=runs, failed=failed)
            for kind, of, activities, runs, failed in found
            if activities
        ]

    def names(self) -> list[str]:
        """The types of activities that are known here or to the tables."""
        learned = self._tables_status().learned
        from_tables = [] if learned is None else sorted(learned.workflows)[:NAMES_MAX]
        return [*dict.fromkeys([*(each.type for each in self.types()), *from_tables])]

    def history(
        self, kind: str, now_ns: int, *, workflow: str | None = None, version: str | None = None
    ) -> HistoryInfo:
        """How activities of this type went: by the tables, and over the latest attempts since."""
        status = self._tables_status()
        rows: list[StatsRow] = []
        if status.learned is not None:
            rows = status.learned.rows(kind, workflow=workflow, version=version)
        ended, recent = self._ended(kind, workflow, version, with_place=bool(rows))
        if status.learned is not None and rows:
            ended = _not_in(rows, status.learned, ended)
        found = _summed_up(kind, ended, recent)
        if status.learned is not None and rows:
            found = _with_tables(found, ended, rows, status.learned)
        old_s = self._index.options.tables_old_s
        attempts = sum(row.count for row in rows)
        return replace(found, learned=tables_view(status, now_ns, old_s, attempts=attempts))

    def _ended(
        self, kind: str, workflow: str | None, version: str | None, *, with_place: bool
    ) -> tuple[list[_Ended], list[ActivityInfo]]:
        """The attempts that ended, the latest first; and some of them with all that is known."""
        where, values = ["a.type = ?", "a.ended_ns IS NOT NULL", f"a.state IN {_RAN}"], [kind]
        for clause, value in (("r.workflow = ?", workflow), (f"{_VERSION} = ?", version)):
            if value is not None:
                where.append(clause)
                values.append(value)
        source = f"FROM attempts AS a JOIN runs AS r ON r.no = a.run WHERE {' AND '.join(where)}"
        with self._index.locked():
            found = self._index.rows(
                f"SELECT a.state, a.duration_s, r.workflow, {_VERSION}, a.ended_ns, "
                f"{'a.row' if with_place else 'NULL'} {source} ORDER BY a.ended_ns DESC LIMIT ?",
                *values,
                HISTORY_MAX,
            )
            recent = self._index.rows(
                f"SELECT r.id, a.activity, a.attempt, r.state, a.row {source} "
                "ORDER BY a.ended_ns DESC LIMIT ?",
                *values,
                RECENT_MAX,
            )
        return (
            [
                _Ended(state, duration_s, of, which, ended_ns, *_settled(row))
                for state, duration_s, of, which, ended_ns, row in found
            ],
            [
                activity_record(run, name, {number: decode_row(row)}, run_is, kind=kind)
                for run, name, number, run_is, row in recent
            ],
        )


def _settled(packed: bytes | None) -> tuple[int, int | None]:
    """By which event, and when the last one came."""
    if packed is None:
        return 0, None
    row = decode_row(packed)
    return int(row["state"][2]), row.get("last_received")


def _not_in(
    rows: Sequence[StatsRow], learned: LearnedTables, ended: Sequence[_Ended]
) -> list[_Ended]:
    """The attempts that are not in the tables: settled later, outside of their window, or of what
    those do not have."""
    known = {(row.workflow, row.version) for row in rows}
    return [
        each
        for each in ended
        if (each.workflow, each.version) not in known
        or not learned.may_hold(each.settled_seq, each.last_received_ns)
    ]


def _summed_up(kind: str, ended: Sequence[_Ended], recent: Sequence[ActivityInfo]) -> HistoryInfo:
    return summary(
        kind,
        _durations(ended),
        count=len(ended),
        failed=sum(each.state in ("failed", "retrying") for each in ended),
        versions=sorted({each.version for each in ended if each.version}),
        recent=recent,
    )


def _durations(ended: Sequence[_Ended]) -> list[float]:
    return [
        each.duration_s
        for each in ended
        if each.state == "succeeded" and each.duration_s is not None
    ]


def _with_tables(
    since: HistoryInfo, ended: Sequence[_Ended], rows: Sequence[StatsRow], learned: LearnedTables
) -> HistoryInfo:
    """Both parts as one, and each of them."""
    from tocsin.monitor.history.curves import (
        added,
        cost_model_info,
        curve_of,
        curve_of_row,
        distribution_of_row,
        part_of_rows,
        stats_info,
    )

    curves = [curve for curve in map(curve_of_row, rows) if curve is not None]
    of_tables = distribution_of_row(rows[0]) if len(rows) == 1 else added(curves)
    later = curve_of(_durations(ended))
    whole = of_tables if later is None else added([*curves, later])
    latest = sorted(rows, key=lambda row: -(row.last_ended_ns or 0))[:BY_VERSION_MAX]
    shown = {(row.workflow, row.version) for row in latest}
    models = [
        each
        for workflow in sorted({row.workflow for row in latest})
        for each in learned.cost_models(since.type, workflow=workflow)
        if (each.workflow, each.version) in shown
    ]
    return replace(
        since,
        count=since.count + sum(row.count for row in rows),
        failed=since.failed + sum(row.failed for row in rows),
        mean_s=whole.mean_s,
        p50_s=whole.p50_s,
        p90_s=whole.p90_s,
        p99_s=whole.p99_s,
        histogram=whole.histogram,
        versions=sorted({*since.versions, *(row.version for row in rows if row.version)}),
        exact=whole.is_exact,
        tables=part_of_rows(rows, of_tables),
        since=_part(since, ended),
        by_version=list(map(stats_info, latest)),
        cost_models=list(map(cost_model_info, models[:COST_MODELS_MAX])),
    )


def _part(since: HistoryInfo, ended: Sequence[_Ended]) -> HistoryPartInfo:
    times = [each.ended_ns for each in ended]
    return HistoryPartInfo(
        count=since.count,
        failed=since.failed,
        mean_s=since.mean_s,
        p50_s=since.p50_s,
        p90_s=since.p90_s,
        p99_s=since.p99_s,
        first=rfc3339_or_none(min(times, default=None)),
        last=rfc3339_or_none(max(times, default=None)),
    )
