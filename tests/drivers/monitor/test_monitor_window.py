"""Tables of a window: what was received outside of it they do not have, and the monitor does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.made_tables import publish_tables, stats
from monitor.runs import activity_pairs, run_pairs
from tocsin.cli.format import table_origin
from tocsin.cli.wf.history import _numbers
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.queries import open_queries
from tocsin.drivers.monitor.tables import Tables
from tocsin.event.instant import NS_PER_S
from tocsin.monitor.fold import RunMessage
from tocsin.ontology import built_in
from tocsin.tables.published import require
from tocsin.wire.api.history_views import HistoryInfo

BEGAN = datetime(2026, 9, 22, tzinfo=UTC)
SINCE, UNTIL = BEGAN + timedelta(days=3), BEGAN + timedelta(days=7)
NOW_NS = int((BEGAN + timedelta(days=30)).timestamp()) * NS_PER_S
DAYS = 10  # in each of which one attempt ended
EVENTS = 2 * DAYS + 1


def reported() -> list[RunMessage]:
    """A run of many days: each day an attempt starts and ends, at its beginning."""
    messages = [run_pairs("WorkflowStarted", 0, run="r1", WorkflowName="blast")]
    for day in range(DAYS):
        at_s = day * 86_400.0
        messages += [
            activity_pairs(f"align-{day}", "ActivityExecuting", at_s, run="r1"),
            activity_pairs(f"align-{day}", "ActivitySucceeded", at_s + 10, run="r1"),
        ]
    began_ns, day_ns = int(BEGAN.timestamp()) * NS_PER_S, 86_400 * NS_PER_S
    return [
        RunMessage(pairs, place + 1, began_ns + max(place - 1, 0) // 2 * day_ns)
        for place, pairs in enumerate(messages)
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    kept = RunWriter(tmp_path, MonitorOptions(), built_in())
    kept.write(reported(), EVENTS)
    kept.close()
    return tmp_path


def asked(store: Path, *, through: int = EVENTS, **window: datetime) -> HistoryInfo:
    """A history with tables that say to have 100 attempts."""
    publish_tables(store / "tables", 1, [stats("align")], through=through, **window)
    tables = Tables(store / "tables", lambda: EVENTS, _nobody)
    watch = open_queries(store, MonitorOptions(), tables)
    try:
        return watch.history.history("align", NOW_NS)
    finally:
        watch.close()


def _nobody(level: str, message: str, **fields: object) -> None:
    raise AssertionError(message)


def since(found: HistoryInfo) -> int:
    assert found.since is not None
    assert found.count == 100 + found.since.count
    return found.since.count


@pytest.mark.parametrize(
    ("window", "kept"),
    [
        ({}, 0),
        ({"since": SINCE}, 3),
        ({"until": UNTIL}, 3),
        ({"since": SINCE, "until": UNTIL}, 6),
    ],
)
def test_attempts_that_a_window_cannot_hold_are_added_to_its_tables(
    store: Path, window: dict[str, Any], kept: int
) -> None:
    found = asked(store, **window)

    assert since(found) == kept


def test_what_came_after_the_tables_is_added_within_a_window_too(store: Path) -> None:
    found = asked(store, through=EVENTS - 4, since=SINCE)

    assert since(found) == 3 + 2


def test_the_window_is_told_with_the_age_of_what_was_learned(store: Path) -> None:
    found = asked(store, since=SINCE, until=UNTIL)

    assert found.learned is not None
    assert found.learned.since == "2026-09-25T00:00:00.000Z"
    assert found.learned.until == "2026-09-29T00:00:00.000Z"
    words = table_origin({"learned": msgspec.to_builtins(found.learned)}) or ""
    assert "of what was received from 2026-09-25 00:00 to 2026-09-29 00:00 UTC" in words
    part = {"count": 6, "failed": 0}
    lines = dict(_numbers("align", {"since": part, "learned": msgspec.to_builtins(found.learned)}))
    assert lines["outside of them"] == "6 times"


def test_tables_that_say_nothing_of_a_window_have_everything(store: Path) -> None:
    """As those have it that an older version made."""
    found = asked(store)
    manifest = require(store / "tables").manifest

    assert (manifest.since, manifest.until) == (None, None)
    assert found.learned is not None
    assert (found.learned.since, found.learned.until) == (None, None)
    assert "received" not in (table_origin({"learned": msgspec.to_builtins(found.learned)}) or "")
