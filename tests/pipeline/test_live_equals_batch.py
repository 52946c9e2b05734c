"""One fold: the live monitor and the pipeline say the same of the same events, in any order."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from monitor.kept import Kept
from monitor.runs import at
from tocsin.archive.hearing import heard
from tocsin.archive.members import Teller
from tocsin.archive.record import to_batch
from tocsin.archive.tables import USE
from tocsin.event.stored import Stored
from tocsin.monitor.records import ACTIVITY_STATES, ActivityRecord, RunRecord
from tocsin.monitor.rules import CURRENT, FIELD_RULES, GROWING, STATE_RULES
from tocsin.monitor.times import NS_PER_S, read_ns
from tocsin.ontology import built_in
from tocsin.pipeline.attempts import attempt_rows
from tocsin.pipeline.fold import cells_of, folded
from tocsin.pipeline.runs import run_rows, with_activities, with_runs
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event

NOW = datetime(2026, 9, 24, 12, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * NS_PER_S
SILENCE_S = 6 * 3600.0

_MOMENTS = ("", "x", "2026-09-21", at(3), at(7.25), at(8 * 3600 + 7), at(10**8))
_VALUES = (
    *("", "7", "3", "0", "1", "-1.5", "1e3", "nan", "x", "é", "12.25", "99999999999999999999"),
    *('["a","b"]', '[{"path":"f","sha256":"1"}]', "[", '{"a":2,"b":1}', "Error 7 in /tmp/x9\nline"),
)


def stored_of(pairs: dict[str, str], seq: int, time: str | None, received_s: float) -> Stored:
    message = Message(pairs, id=f"m{seq}", source="/test", time=time)
    event = to_event(message, id="", source="", vocabulary=built_in())
    received_ns = read_ns(at(received_s))
    assert received_ns is not None
    return Stored(seq, received_ns + 123_456, event)


def random_events(seed: int, count: int) -> list[Stored]:
    """Messages of a few runs that say anything that a rule listens to, sensible or not."""
    chance = random.Random(seed)
    events = sorted({rule.concept for rule in STATE_RULES} | {"ActivityQueued", "ActivityTimedOut"})
    others = sorted({rule.concept for rule in FIELD_RULES} - set(events) - {"*"})
    found: list[Stored] = []
    for seq in range(1, count + 1):
        pairs = {"RunId": f"r{chance.randrange(12)}"}
        if chance.random() < 0.8:
            pairs["ActivityId"] = f"a{chance.randrange(4)}"
            if chance.random() < 0.5:
                pairs["Attempt"] = chance.choice(("1", "2", "3", "x", "0"))
        for _ in range(chance.randrange(3)):
            odd = chance.random() < 0.2
            pairs[chance.choice(events)] = (
                chance.choice(_MOMENTS) if odd else at(chance.randrange(40_000) / 4)
            )
        for _ in range(chance.randrange(5)):
            pairs[chance.choice(others)] = chance.choice(_VALUES)
        if chance.random() < 0.1:
            pairs["ExitCode"] = chance.choice(("0", "1"))
        if chance.random() < 0.02:
            tasks = [
                {"id": "a1", "type": "t", "parents": ["a0"], "external_bytes": 5},
                {"id": chance.choice(("a9", "")), "checkpoint": True},
            ]
            pairs["ActivityPlan"] = json.dumps(tasks)
        time = chance.choice((None, "x", at(chance.randrange(10_000))))
        found.append(stored_of(pairs, seq, time, 10_000 + chance.randrange(1_000)))
    return found


def in_spark(spark: SparkSession, events: list[Stored]) -> tuple[DataFrame, DataFrame]:
    """The tables of activities and runs: two halves folded apart, and their cells then merged."""
    teller = Teller(built_in())
    half = len(events) // 2
    tables = [
        pa.Table.from_batches([to_batch(part, teller)]) for part in (events[:half], events[half:])
    ]
    folds = {}
    for entity in ("activity", "run"):
        parts = [
            folded(cells_of(spark.createDataFrame(each), entity), entity, 2) for each in tables
        ]
        folds[entity] = folded(parts[0].unionByName(parts[1]), entity, 2)
    runs = run_rows(folds["run"], NOW, SILENCE_S)
    activities = with_runs(attempt_rows(folds["activity"]), runs)
    return activities, with_activities(runs, activities)


def in_the_monitor(directory: Path, events: list[Stored]) -> Kept:
    kept = Kept(directory)
    kept.fold([each for each in (heard(stored, built_in()) for stored in events) if each], batch=37)
    return kept


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def shown(row: dict[str, Any], name: str) -> datetime | None:
    """To the millisecond, as records are."""
    value = row[name]
    if value is None:
        return None
    value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value - timedelta(microseconds=value.microsecond % 1_000)


def used(row: dict[str, Any]) -> dict[str, float]:
    """A sum of nothing is told by one as 0 and by the other not at all."""
    return {name: value for name in (*GROWING, *CURRENT) if (value := row[USE + name])}


def check_activity(record: ActivityRecord, row: dict[str, Any], *, kind: str) -> None:
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
    assert used(row) == pytest.approx({k: v for k, v in record.resources.items() if v})


def check_run(record: RunRecord, row: dict[str, Any]) -> None:
    for name in ("workflow", "version", "engine", "engine_version", "user", "host", "state"):
        assert row[name] == getattr(record, name), name
    for name in ("started", "ended", "last_event"):
        assert shown(row, name) == moment(getattr(record, name)), name
    for name in ("duration_s", "parent", "progress", "error", "exit_code", "command"):
        assert row[name] == getattr(record, name), name
    assert {state: row[f"n_{state}"] for state in ACTIVITY_STATES} == {
        state: getattr(record.activities, state) for state in ACTIVITY_STATES
    }
    assert row["planned"] == record.activities.total
    assert row["known"] == record.activities.known
    assert used(row) == pytest.approx({k: v for k, v in record.resources.items() if v})


def compare(spark: SparkSession, directory: Path, events: list[Stored], *, seed: int) -> int:
    chance = random.Random(seed)
    again = events + chance.sample(events, len(events) // 10)
    chance.shuffle(again)
    activities, runs = in_spark(spark, again)
    run_of = {row["run"]: row for row in (each.asDict() for each in runs.collect())}
    tries: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for each in activities.collect():
        row = each.asDict()
        tries.setdefault((row["run"], row["id"]), {})[row["attempt"]] = row
    kept = in_the_monitor(directory, events)
    try:
        records, _ = kept.asked.runs(NOW_NS, limit=1_000)
        assert {each.id for each in records} == run_of.keys()
        for each in records:
            check_run(kept.asked.run(each.id, NOW_NS), run_of[each.id])
            found, _ = kept.asked.activities(each.id, NOW_NS, limit=1_000)
            assert len(found) == sum(key[0] == each.id for key in tries)
            for activity in found:
                rows = tries[each.id, activity.id]
                assert set(rows) == {one.attempt for one in (activity, *activity.tries)}
                for one in (activity, *activity.tries):
                    check_activity(one, rows[one.attempt], kind=activity.type)
    finally:
        kept.close()
    return len(tries)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_said_in_whatever_order_both_say_the_same(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    assert compare(spark, tmp_path, random_events(seed, 700), seed=seed) > 40
