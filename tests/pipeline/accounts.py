"""Two accounts of the same events, the live monitor's and the pipeline's, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.kept import Kept
from tocsin.event.stored import Stored
from tocsin.monitor.rules import CURRENT, GROWING
from tocsin.monitor.run_messages import run_message
from tocsin.monitor.views import read_object
from tocsin.ontology import built_in
from tocsin.tables.schemas import USE
from tocsin.wire.api.run_views import ACTIVITY_STATES, ActivityInfo, RunDetails

Row = dict[str, Any]
PAGE = 10_000  # more activities than any run here has


def in_the_monitor(directory: Path, events: Sequence[Stored], *, batch: int = 37) -> Kept:
    kept = Kept(directory)
    reported = (run_message(stored, built_in()) for stored in events)
    kept.fold([each for each in reported if each], batch=batch)
    return kept


def compare(kept: Kept, runs: Iterable[Row], activities: Iterable[Row], now_ns: int) -> int:
    """Both say the same of every run and every attempt. Returns how many activities there are."""
    run_of = {row["run"]: row for row in runs}
    tries: dict[str, dict[str, dict[int, Row]]] = {}
    for row in activities:
        named = tries.setdefault(row["run"], {}).setdefault(row["id"], {})
        assert row["attempt"] not in named
        named[row["attempt"]] = row
    records, more = kept.asked.runs.runs(now_ns, limit=PAGE)
    assert more is None
    assert {each.id for each in records} == run_of.keys()
    for each in records:
        check_run(kept.asked.runs.run(each.id, now_ns), run_of[each.id])
        found, _ = kept.asked.runs.activities(each.id, now_ns, limit=PAGE)
        assert {one.id for one in found} == tries.get(each.id, {}).keys()
        for activity in found:
            rows = tries[each.id][activity.id]
            assert set(rows) == {one.attempt for one in (activity, *activity.tries)}
            for one in (activity, *activity.tries):
                check_activity(one, rows[one.attempt], kind=activity.type)
                assert rows[one.attempt]["last"] == (one is activity)
                assert rows[one.attempt]["workflow"] == run_of[each.id]["workflow"]
    assert faults_in(kept) == {
        (run, id, attempt): row["fault"]
        for run, named in tries.items()
        for id, rows in named.items()
        for attempt, row in rows.items()
        if row["fault"] is not None
    }
    return sum(map(len, tries.values()))


def faults_in(kept: Kept) -> dict[tuple[str, str, int], int]:
    """By which number the monitor knows each failure again."""
    found = kept.asked.index.rows(
        "SELECT r.id, a.activity, a.attempt, a.fault FROM attempts AS a "
        "JOIN runs AS r ON r.no = a.run WHERE a.fault IS NOT NULL"
    )
    return {(run, activity, attempt): fault for run, activity, attempt, fault in found}


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def shown(row: Row, name: str) -> datetime | None:
    """To the millisecond, as records are."""
    value = row[name]
    if value is None:
        return None
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value - timedelta(microseconds=value.microsecond % 1_000)


def used(row: Row) -> dict[str, float]:
    """A sum of nothing is told by one as 0 and by the other not at all."""
    return {name: value for name in (*GROWING, *CURRENT) if (value := row[USE + name])}


def check_activity(record: ActivityInfo, row: Row, *, kind: str) -> None:
    assert row["state"] == record.state
    for name in ("queued", "started", "ended"):
        assert shown(row, name) == moment(getattr(record, name)), name
    for name in (
        *("duration_s", "host", "exit_code", "error", "trace", "command", "log_file", "job"),
        *("container", "input_bytes", "output_bytes", "external_bytes"),
    ):
        assert row[name] == getattr(record, name), name
    for name in ("inputs", "outputs", "parents"):
        assert tuple(row[name] or ()) == getattr(record, name), name
    assert row["activity"] == (kind or record.id)
    assert used(row) == _about({k: v for k, v in record.resources.items() if v})


def check_run(record: RunDetails, row: Row) -> None:
    for name in ("workflow", "version", "engine", "engine_version", "user", "host", "state"):
        assert row[name] == getattr(record, name), name
    for name in ("started", "ended", "last_event"):
        assert shown(row, name) == moment(getattr(record, name)), name
    for name in (
        *("duration_s", "parent", "progress", "error", "exit_code", "command"),
        *("working_directory", "retried"),
    ):
        assert row[name] == getattr(record, name), name
    assert read_object(row["parameters"]) == record.parameters
    assert {state: row[f"n_{state}"] for state in ACTIVITY_STATES} == {
        state: getattr(record.activities, state) for state in ACTIVITY_STATES
    }
    assert row["planned"] == record.activities.total
    assert row["known"] == record.activities.known
    assert used(row) == _about({k: v for k, v in record.resources.items() if v})


def _about(numbers: dict[str, float]) -> Any:
    # Nearly always there are none, and pytest is slow to compare nothing with nothing.
    return pytest.approx(numbers) if numbers else numbers
