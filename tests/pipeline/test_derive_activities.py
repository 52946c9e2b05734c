"""What follows from attempts: statistics, cost models, failures, usage. Beside plain Python."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tocsin.archive.record import SCHEMA
from tocsin.pipeline.derive import costs, failures, stats, usage
from tocsin.pipeline.spark.schemas import table_schema
from tocsin.tables.schemas import ACTIVITIES, TABLES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KIND = ("workflow", "activity", "version")
Row = dict[str, Any]


def frame(spark: SparkSession, rows: list[Row], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


def rows_of(df: DataFrame, name: str) -> list[Row]:
    assert df.schema.simpleString() == table_schema(name).simpleString()
    return df.toArrow().cast(TABLES[name]).to_pylist()


def attempt(number: int, **reported: Any) -> Row:
    lasted = reported.get("duration_s")
    ended = NOON + timedelta(minutes=7 * number)
    row = {
        "run": f"run{number % 5}",
        "workflow": "wf",
        "activity": "align",
        "version": "1",
        "id": f"align-{number}",
        "attempt": 1,
        "last": True,
        "state": "succeeded",
        "ended": ended,
        "started": None if lasted is None else ended - timedelta(seconds=lasted),
        "settled_seq": 1_000 + number,
    }
    return {**row, **reported}


def measured() -> list[Row]:
    """Attempts of several kinds: a noisy line, equal values, one alone, no size, absurd values."""
    chance = Random(7)
    rows: list[Row] = []
    states = ("succeeded",) * 8 + ("failed", "retrying", "cancelled", "skipped", "cached")
    for number in range(400):
        size = int(chance.lognormvariate(18, 1))
        rows.append(
            attempt(
                number,
                version=chance.choice(("1", "2", "")),
                state=chance.choice(states),
                duration_s=round((2 + size * 3e-8) * chance.lognormvariate(0, 0.2), 3),
                waited_s=1.5,
                host=chance.choice(("node1", "node2", None)),
                input_bytes=size,
                use_CpuSeconds=1 + size * 1e-8,
                use_MemoryPeak=chance.choice((None, 5e8 + 2.0 * size * chance.random())),
                use_IoReadBytes=1e308 if number % 50 == 0 else float(size),
                use_IoWriteBytes=1e6 + size * chance.random(),
            )
        )
    rows += (attempt(n, activity="constant", duration_s=3.0, input_bytes=10) for n in range(6))
    rows += (attempt(n, activity="zero", duration_s=0.0) for n in range(3))
    rows.append(attempt(0, activity="alone", duration_s=4.0, input_bytes=5))
    rows += (attempt(n, activity="pair", duration_s=n + 1.0, input_bytes=n) for n in range(2))
    rows += (attempt(n, activity="sizeless", duration_s=[1.0, 10.0, 100.0][n]) for n in range(3))
    rows.append(attempt(1, activity="failing", state="failed", duration_s=9.0, host="node1"))
    rows.append(attempt(1, activity="waiting", state="running", ended=None))
    return rows


@pytest.fixture(scope="module")
def attempts(spark: SparkSession) -> DataFrame:
    return frame(spark, measured(), ACTIVITIES)


def by_kind(rows: list[Row]) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in KIND)].append(row)
    return found


def test_statistics_are_those_of_plain_python_and_each_bin_holds_what_its_edges_say(
    attempts: DataFrame,
) -> None:
    ran = ("succeeded", "failed", "retrying", "cancelled")
    expected = by_kind([row for row in measured() if row["state"] in ran])

    found = rows_of(stats.activity_stats(attempts), "activity_stats")

    assert {tuple(row[name] for name in KIND) for row in found} == set(expected)
    for row in found:
        these = expected[tuple(row[name] for name in KIND)]
        good = sorted(each["duration_s"] for each in these if each["state"] == "succeeded")
        assert row["count"] == len(these)
        assert row["runs"] == len({each["run"] for each in these})
        assert row["failed"] == sum(each["state"] in ("failed", "retrying") for each in these)
        assert row["busy_s"] == pytest.approx(sum(each["duration_s"] for each in these))
        assert row["wasted_s"] == pytest.approx(row["busy_s"] - sum(good))
        if not good:
            assert row["p50_s"] is row["mean_s"] is row["histogram"] is None
            continue
        assert row["mean_s"] == pytest.approx(statistics.fmean(good))
        reported = [row[name] for name in ("min_s", "p10_s", "p50_s", "p90_s", "p99_s", "max_s")]
        assert reported == pytest.approx(list(np.quantile(good, [0, 0.1, 0.5, 0.9, 0.99, 1])))
        bins = row["histogram"]
        assert len(bins) == (1 if good[0] == good[-1] else stats.BINS)
        assert (bins[0]["low_s"], bins[-1]["high_s"]) == (good[0], good[-1])
        for place, each in enumerate(bins):
            is_last = place == len(bins) - 1
            within = [
                value
                for value in good
                if each["low_s"] <= value and (is_last or value < each["high_s"])
            ]
            assert each["count"] == len(within), (row["activity"], place)


def test_a_line_is_the_least_squares_line_and_its_error_is_that_of_leaving_each_value_out(
    attempts: DataFrame,
) -> None:
    good = by_kind([row for row in measured() if row["state"] == "succeeded"])

    found = rows_of(costs.cost_models(attempts), "cost_models")

    numbers = [v for row in found for v in row.values() if isinstance(v, float)]
    assert all(map(math.isfinite, numbers))
    models = {(*(row[name] for name in KIND), row["target"]): row for row in found}
    for version in ("1", "2", ""):
        kind = ("wf", "align", version)
        for target, column in costs.TARGETS.items():
            pairs = [
                (row["input_bytes"], row[column])
                for row in good[kind]
                if row.get(column) is not None and row[column] <= 1e100
            ]
            check_line(models[(*kind, target)], pairs)
    constant = models["wf", "constant", "1", "duration_s"]
    assert (constant["slope"], constant["intercept"], constant["rmse"]) == (None, 3.0, 0.0)
    alone = models["wf", "alone", "1", "duration_s"]
    assert (alone["count"], alone["intercept"], alone["rmse"]) == (1, 4.0, None)
    pair = models["wf", "pair", "1", "duration_s"]
    assert (pair["slope"], pair["intercept"], pair["rmse"]) == (None, 1.5, 1.0)
    sizeless = models["wf", "sizeless", "1", "duration_s"]
    assert (sizeless["slope"], sizeless["intercept"]) == (None, 37.0)
    # From the other two: 55 for 1, 50.5 for 10, 5.5 for 100.
    assert sizeless["median_error"] == pytest.approx(4.05)
    assert models["wf", "zero", "1", "duration_s"]["median_error"] is None
    assert not [key for key in models if key[1] in ("failing", "waiting")]


def check_line(model: Row, pairs: list[tuple[int, float]]) -> None:
    x, y = (np.array(each, float) for each in zip(*pairs, strict=True))
    slope, intercept = np.polyfit(x, y, 1)
    assert model["count"] == len(pairs)
    assert model["slope"] == pytest.approx(slope, rel=1e-6)
    assert model["intercept"] == pytest.approx(intercept, rel=1e-6, abs=1e-6 * y.mean())
    misses = []
    for place in range(len(pairs)):
        others = np.arange(len(pairs)) != place
        a, b = np.polyfit(x[others], y[others], 1)
        misses.append(y[place] - a * x[place] - b)
    near = 1e-6 * y.mean()
    assert model["rmse"] == pytest.approx(np.sqrt(np.mean(np.square(misses))), rel=1e-5, abs=near)
    shares = np.abs(misses) / y
    assert model["median_error"] == pytest.approx(np.median(shares), rel=1e-5, abs=1e-6)


def message(seq: int, **reported: Any) -> Row:
    row = {
        "seq": seq,
        "received": NOON + timedelta(seconds=seq),
        "at": NOON + timedelta(seconds=seq),
        "id": str(seq),
        "source": "/s",
        "type": "bb.Message",
        "topic": "t",
    }
    return {**row, **reported}


def test_a_failure_has_the_events_of_its_own_run_before_it_and_how_often_it_was_seen(
    spark: SparkSession,
) -> None:
    events = [message(seq, run=f"run{seq % 3}", activity=f"a{seq}") for seq in range(1, 91)]
    events.append(message(91))  # of no run
    failed = [
        attempt(1, run="run1", id="x", state="failed", settled_seq=4, fault=7),
        attempt(2, run="run1", id="y", state="retrying", settled_seq=40, fault=7),
        attempt(3, run="run1", id="z", state="failed", settled_seq=43, fault=7),
        attempt(4, run="run2", id="x", state="failed", settled_seq=62, fault=8),
        attempt(5, run="run2", id="u", state="failed", settled_seq=62, fault=None),
        attempt(6, run="run2", id="v", state="failed", settled_seq=65, fault=None),
        attempt(7, run="none", id="w", state="failed", settled_seq=99, fault=8),
        attempt(8, run="run0", id="g"),
    ]

    table = failures.failures(
        frame(spark, failed, ACTIVITIES), frame(spark, events, SCHEMA), last_n=4
    )

    found = {(row["run"], row["id"]): row for row in rows_of(table, "failures")}
    expected = [row for row in failed if row["state"] != "succeeded"]
    assert found.keys() == {(row["run"], row["id"]) for row in expected}
    for row in expected:
        reported = found[row["run"], row["id"]]
        before = [
            {name: each[name] for name in ("seq", "at", "type", "activity")}
            for each in events
            if each.get("run") == row["run"] and each["seq"] < row["settled_seq"]
        ]
        assert reported["before"] == before[-4:]
        alike = [r for r in expected if r["fault"] == row["fault"] is not None] or [row]
        assert reported["seen"] == len(alike)
        assert reported["seen_before"] == sum(r["settled_seq"] < row["settled_seq"] for r in alike)
        assert reported["first_seen"] == min(r["ended"] for r in alike)
        assert reported["seq"] == row["settled_seq"]


def test_usage_is_told_by_the_hour_and_an_agent_knows_better_than_attempts_do(
    spark: SparkSession, attempts: DataFrame
) -> None:
    def quantity(value: float, unit: str) -> str:
        return f'{{"value":{value},"unit":"{unit}","accuracy":null}}'

    of_host = '"HostName":"node1"'
    samples = [
        (usage.LOAD, '{"Load1":1.5,"Load5":2.0,%s}'),
        (usage.LOAD, '{"Load1":"2.5",%s}'),
        (usage.CPU, f'{{"Usage":{quantity(80.5, "%")},%s}}'),
        (usage.CPU, f'{{"Usage":{quantity(20.5, "%")},%s}}'),
        (usage.MEMORY, f'{{"Total":{quantity(100, "B")},"Available":{quantity(30, "B")},%s}}'),
        (usage.DISK, f'{{"ReadRate":{quantity(5, "B/s")},"Interval":{quantity(10, "s")},%s}}'),
        (usage.CPU, "this is no JSON %s"),
        ("org.example.other", '{"Usage":1000,%s}'),
    ]
    events = [
        message(seq, type=kind, attributes=text.replace("%s", of_host))
        for seq, (kind, text) in enumerate(samples, 1)
    ]
    ended = [
        row
        for row in measured()
        if row["state"] in ("succeeded", "failed", "retrying", "cancelled")
    ]

    hosts = rows_of(usage.host_usage(frame(spark, events, SCHEMA), attempts), "host_usage")
    hourly = rows_of(usage.activity_usage(attempts), "activity_usage")

    at_noon = {row["host"]: row for row in hosts if row["hour"] == NOON}
    watched = at_noon["node1"]
    assert (watched["samples"], watched["mean_load"]) == (6, 2.0)
    assert (watched["mean_cpu_percent"], watched["max_cpu_percent"]) == (50.5, 80.5)
    assert (watched["max_memory_bytes"], watched["read_bytes"]) == (70.0, 50.0)
    here = [
        row
        for row in ended
        if row.get("host") == "node2" and row["ended"] < NOON + timedelta(hours=1)
    ]
    reported = at_noon["node2"]
    assert (reported["samples"], reported["attempts"], reported["mean_load"]) == (
        0,
        len(here),
        None,
    )
    assert reported["cpu_s"] == pytest.approx(sum(row["use_CpuSeconds"] for row in here))
    assert sum(row["attempts"] for row in hourly) == len(ended)
    assert sum(row["failed"] for row in hourly) == sum(
        row["state"] in ("failed", "retrying") for row in ended
    )
    assert sum(row["busy_s"] for row in hourly) == pytest.approx(
        sum(row["duration_s"] for row in ended)
    )
