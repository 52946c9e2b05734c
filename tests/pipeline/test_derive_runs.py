"""What follows from runs and samples: estimates, evolution, deliveries, discoveries."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tocsin.archive.record import SCHEMA
from tocsin.archive.samples import DEADLETTERS_SCHEMA, DELIVERIES_SCHEMA, DISCOVERIES_SCHEMA
from tocsin.pipeline.derive.deliveries import deliveries
from tocsin.pipeline.derive.discoveries import discoveries
from tocsin.pipeline.derive.estimates import estimates
from tocsin.pipeline.derive.evolution import evolution
from tocsin.pipeline.spark.schemas import table_schema
from tocsin.tables.schemas import ACTIVITIES, ACTIVITY_STATS, RUNS, TABLES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def frame(spark: SparkSession, rows: list[Row], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


def rows_of(df: DataFrame, name: str) -> list[Row]:
    assert df.schema.simpleString() == table_schema(name).simpleString()
    return df.toArrow().cast(TABLES[name]).to_pylist()


def run_of(
    name: str, ends: list[float], *, start: float, end: float | None = None, **reported: Any
) -> tuple[Row, list[Row]]:
    """A run and its activities, that end so many seconds after it began."""
    row = {
        "run": name,
        "workflow": "wf",
        "version": "1",
        "state": "running" if end is None else "completed",
        "started": at(start),
        "ended": None if end is None else at(start + end),
        "duration_s": end,
        "last_event": at(start + (end or 0)),
        "known": len(ends),
        "n_succeeded": len(ends),
    }
    activities = [
        {
            "run": name,
            "workflow": "wf",
            "id": f"a{number}",
            "attempt": 1,
            "last": True,
            "state": "succeeded",
            "ended": at(start + each),
        }
        for number, each in enumerate(ends)
    ]
    return {**row, **reported}, activities


def test_what_is_left_is_what_was_left_in_past_runs_that_were_as_far_and_had_waited_as_long(
    spark: SparkSession,
) -> None:
    day = 86_400
    last = [30.0, 40, 50, 60, 70, 80, 90, 100, 110, 120]
    past = [
        run_of(f"p{n}", [10.0, 20.0, end], start=-day * (n + 1), end=end + 5)
        for n, end in enumerate(last)
    ]
    # Of another version, twice as long and with twice as many activities.
    past += [
        run_of(f"q{n}", [20.0, 20, 40, 40, 60, 60], start=-day * (n + 30), end=200, version="2")
        for n in range(3)
    ]
    live = [
        run_of("l1", [10.0, 20.0], start=-35, planned=3),  # 15 s since its second activity ended
        run_of("l2", [10.0, 20.0], start=-1_000, planned=3),  # longer than any has waited
        run_of("l3", [20.0, 20.0, 40.0], start=-40, planned=6, version="2"),  # a version too new
        run_of("l4", [], start=0, planned=3),
        run_of("l5", [10.0], start=-60, workflow="never"),
        run_of("l6", [10.0], start=-60, state="lost"),
    ]
    everything = past + live
    activities = [each for _, some in everything for each in some]

    table = estimates(
        frame(spark, [row for row, _ in everything], RUNS),
        frame(spark, activities, ACTIVITIES),
        NOON,
    )

    found = {row["run"]: row for row in rows_of(table, "estimates")}
    assert found.keys() == {"l1", "l2", "l3", "l4", "l5"}
    first = found["l1"]
    left = [end + 5 - 20 - 15 for end in last if end - 20 > 15]
    reported = [first[name] for name in ("remaining_low_s", "remaining_s", "remaining_high_s")]
    assert reported == pytest.approx(list(np.quantile(left, [0.1, 0.5, 0.9])))
    assert first["ends"] == at(statistics.median(left))
    assert (first["elapsed_s"], first["done"], first["total"], first["runs"]) == (35, 2, 3, 9)
    assert first["basis"] == (
        "completed runs of this version: 9, when as many activities had ended "
        "and the next took as long"
    )
    assert (found["l2"]["remaining_s"], found["l2"]["ends"], found["l2"]["runs"]) == (
        None,
        None,
        10,
    )
    assert found["l2"]["basis"].endswith("had ended; nearly all were over by now")
    assert found["l3"]["runs"] == 13
    assert found["l3"]["basis"].startswith("completed runs of any version: 13, when the same share")
    assert found["l4"]["remaining_s"] == statistics.median(end + 5 for end in last)
    unknown = found["l5"]
    assert (unknown["remaining_s"], unknown["ends"], unknown["runs"]) == (None, None, 0)
    assert unknown["basis"] == "no run of this workflow has completed"


def test_a_version_stands_beside_the_one_it_was_made_from_with_what_became_slower_or_new(
    spark: SparkSession,
) -> None:
    runs = [
        run_of(f"{version}{n}", [], start=start + n, end=lasted + n, version=version)[0]
        for version, start, lasted in (("1", 0, 100), ("2", 1_000, 200), ("3", 2_000, 50))
        for n in range(3)
    ]
    runs += (run_of("x", [], start=0, workflow="unversioned", version="")[0],)
    runs += (run_of("y", [], start=0, workflow="", version="")[0],)
    medians = {
        "1": {"same": 10.0, "slower": 10.0, "slowest": 10.0, "faster": 10.0, "gone": 1.0},
        "2": {"same": 10.5, "slower": 11.0, "slowest": 30.0, "faster": 8.0, "new": 1.0},
    }
    stats = [
        {"workflow": "wf", "version": version, "activity": activity, "p50_s": p50}
        for version, some in medians.items()
        for activity, p50 in some.items()
    ]

    def reported(seq: int, source_id: str, concept: str, **pairs: str) -> Row:
        reported = {"evolution": concept, "WorkflowName": "wf", "WorkflowVersion": "2", **pairs}
        row = {"seq": seq, "received": at(900), "at": at(900), "id": source_id, "source": "/w"}
        return {**row, "type": "bb", "topic": "t", "facts": reported}

    detail = '{"what":"parameter k","was":1,"is":2}'
    changed = {"ActivityType": "slower", "ChangeDetail": detail}
    messages = [
        reported(1, "a", "ParameterChanged", **changed),
        reported(2, "a", "ParameterChanged", **changed),  # once more
        reported(3, "b", "ActivityAdded", ChangeDetail="in words"),
        reported(4, "c", "VersionSaved", PreviousVersion="1"),
        reported(5, "d", "VersionSaved", WorkflowVersion="3", PreviousVersion="1"),
        {**reported(6, "e", "VersionSaved", WorkflowVersion="9"), "run": "of a run"},
    ]

    table = evolution(
        frame(spark, runs, RUNS),
        frame(spark, stats, ACTIVITY_STATS),
        frame(spark, messages, SCHEMA),
    )

    found = {(row["workflow"], row["version"]): row for row in rows_of(table, "evolution")}
    assert found.keys() == {("wf", "1"), ("wf", "2"), ("wf", "3"), ("unversioned", "")}
    first, second, third = (found["wf", version] for version in "123")
    assert (first["previous"], first["ratio"], first["runs"]) == (None, None, 3)
    assert (second["previous"], third["previous"]) == ("1", "1")
    assert (second["p50_s"], second["ratio"]) == (201.0, pytest.approx(201 / 101))
    assert second["first_seen"] == at(900)
    assert second["changes"] == [
        "ParameterChanged slower: parameter k, 1 -> 2",
        "ActivityAdded: in words",
    ]
    assert (second["slower"], second["faster"]) == (["slowest", "slower"], ["faster"])
    assert (second["added"], second["removed"]) == (["new"], ["gone"])
    assert third["removed"] == [], "nothing is known of its activities"
    assert third["ratio"] == pytest.approx(51 / 101)


def test_counters_that_began_again_are_added_up_and_a_subscription_that_falls_behind_is_slow(
    spark: SparkSession,
) -> None:
    def sample(hour: float, name: str, delivered: int, **reported: Any) -> Row:
        row = {"at": at(3_600 * hour), "subscription": name, "delivered": delivered}
        return {"sink": f"http://{name}", "behind": 0, "failed_attempts": 0, **row, **reported}

    samples = [
        sample(0, "good", 100, state="active"),
        sample(1, "good", 160),
        sample(2, "good", 30, last_error="refused", failed_attempts=10),  # the broker restarted
        sample(3, "good", 50, state="paused", failed_attempts=10),
        *(sample(hour, "slow", 10 * hour, behind=200 * hour) for hour in range(5)),
        *(sample(hour, "catching up", 10 * hour, behind=900 - 100 * hour) for hour in range(5)),
    ]
    letters = [
        {"at": at(n), "id": f"d{n % 4}", "subscription": name, "sink": "http://x", "reason": why}
        for n, (name, why) in enumerate([("slow", "503"), ("slow", "503"), ("slow", "404")])
    ]
    letters.append({"at": at(9), "id": "z", "subscription": "unseen", "sink": "s", "reason": "x"})

    table = deliveries(
        frame(spark, samples, DELIVERIES_SCHEMA), frame(spark, letters, DEADLETTERS_SCHEMA)
    )

    found = {row["subscription"]: row for row in rows_of(table, "deliveries")}
    good, slow = found["good"], found["slow"]
    assert (good["delivered"], good["failed_attempts"], good["samples"]) == (210, 10, 4)
    assert good["per_hour"] == pytest.approx((60 + 30 + 20) / 3)
    assert good["failing_share"] == pytest.approx(10 / 220)
    assert (good["state"], good["last_error"], good["slow"]) == ("paused", "refused", False)
    assert (slow["slow"], slow["behind"], slow["max_behind"]) == (True, 800, 800)
    assert slow["reasons"] == [{"reason": "503", "count": 2}, {"reason": "404", "count": 1}]
    assert found["catching up"]["slow"] is False
    unseen = found["unseen"]
    assert (unseen["sink"], unseen["samples"], unseen["first_seen"]) == ("s", 0, at(9))


def test_questions_are_counted_with_what_they_found_and_how_long_that_took(
    spark: SparkSession,
) -> None:
    seconds = [0.1, 0.2, 0.4, 0.9]
    samples = [
        {"at": at(n), "model": "directory", "request": "[a,>,1]", "found": n, "seconds": each}
        for n, each in enumerate(seconds)
    ]
    samples.append({"at": at(9), "model": "dynamic", "request": "[a,>,1]", "shared": 2})

    table = discoveries(frame(spark, samples, DISCOVERIES_SCHEMA))

    found = {row["model"]: row for row in rows_of(table, "discoveries")}
    here = found["directory"]
    assert (here["count"], here["empty"], here["mean_found"]) == (4, 1, 1.5)
    reported = [here[name] for name in ("mean_s", "p50_s", "p90_s", "max_s")]
    assert reported == pytest.approx([0.4, 0.3, np.quantile(seconds, 0.9), 0.9])
    assert (here["first_seen"], here["last_seen"], here["shared"]) == (at(0), at(3), 0)
    assert (found["dynamic"]["p50_s"], found["dynamic"]["shared"]) == (None, 2)
