"""Slower than usual: never without enough history, seldom without reason, and it finds what is."""

from __future__ import annotations

import csv
import json
import random
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.estimate.estimate_runs import run as made_run
from tocsin.monitor.alerts.limits import FALSE_ALARM_RATE, PastDuration, run_alert, slower, usual
from tocsin.monitor.estimate import learn, past_ratios
from tocsin.monitor.evaluation.alerts import TIMES, as_report, evaluate_alerts

SERIES = Path(__file__).parents[3] / "shared/data/monitoring"
LATENCY = "ec2_request_latency_system_failure"


def history(
    count: int, *, runs: int = 5, seed: int = 1, version: str = "", size: int | None = None
) -> list[PastDuration]:
    dice = random.Random(seed)
    return [
        PastDuration(dice.lognormvariate(3, 0.3), str(number % runs), version, size)
        for number in range(count)
    ]


def test_with_too_few_durations_for_the_rate_there_is_no_alert() -> None:
    assert usual(history(98)) is None
    assert usual(history(99)) is not None
    assert usual(history(19), rate=0.05) is not None


def test_with_too_few_runs_there_is_no_alert_however_many_durations() -> None:
    assert usual(history(5_000, runs=2)) is None
    assert slower(None, 1e9) is None


def test_another_version_is_no_history() -> None:
    assert usual(history(500, version="1"), "2") is None


def test_what_takes_ten_times_as_long_is_told_with_the_reason() -> None:
    known = usual(history(500))
    assert known is not None

    said = slower(known, 10 * known.usual_s())

    assert said is not None
    assert said.took_s > said.limit_s > said.usual_s
    assert "500 in 5 past runs" in said.why
    assert slower(known, known.usual_s()) is None


def test_more_input_may_take_longer() -> None:
    dice = random.Random(3)
    past = []
    for number in range(400):
        size = int(10 ** dice.uniform(3, 6))
        past.append(PastDuration(size / 1000, str(number % 4), "", size))
    known = usual(past)
    assert known is not None

    assert slower(known, 900.0, 1_000_000) is None
    assert slower(known, 900.0, 10_000) is not None


@given(
    seed=st.integers(0, 10_000), count=st.integers(99, 600), rate=st.sampled_from([0.01, 0.02, 0.1])
)
def test_of_the_history_itself_no_more_than_the_rate_is_beyond_the_limit(
    seed: int, count: int, rate: float
) -> None:
    past = history(count, seed=seed)

    known = usual(past, rate=rate)

    assert known is not None
    beyond = sum(slower(known, each.seconds) is not None for each in past)
    assert beyond <= rate * (count + 1)


def test_like_activities_set_off_no_more_false_alarms_than_stated() -> None:
    alarms = judged = 0
    for seed in range(30):
        known = usual(history(300, seed=seed))
        assert known is not None
        fresh = history(200, seed=1_000 + seed)
        alarms += sum(slower(known, each.seconds) is not None for each in fresh)
        judged += len(fresh)

    assert alarms / judged <= FALSE_ALARM_RATE


def test_a_run_far_beyond_its_estimate_is_told_once_there_are_runs_to_compare() -> None:
    known = learn([made_run(seed, 6 + seed % 3) for seed in range(12)])
    ratios = past_ratios(known)

    assert len(ratios) == 12
    assert run_alert(ratios, 100.0, 105.0 * max(ratios)) is not None
    assert run_alert(ratios, 100.0, 100.0) is None
    assert run_alert(ratios[:8], 100.0, 1e6) is None
    assert run_alert(past_ratios(learn([])), 100.0, 1e6) is None


def test_the_evaluation_counts_false_alarms_and_what_is_found() -> None:
    runs = [made_run(seed, 30) for seed in range(6)]

    report = as_report({"made up": evaluate_alerts(runs)})

    everything = report["all"]
    assert isinstance(everything, dict)
    assert everything["runs"] == 6
    assert everything["activities"] == 6 * 61
    assert everything["judged"] == 6 * 60  # of merges there are too few
    assert everything["false_alarms"] <= 2 * FALSE_ALARM_RATE
    found = everything["detected"]
    assert found["10"] == 1.0
    assert [found[str(times)] for times in TIMES] == sorted(found.values())


@pytest.mark.skipif(not SERIES.exists(), reason="the labelled series are not here")
def test_a_series_of_latencies_alarms_in_its_failure_and_seldom_elsewhere() -> None:
    windows = json.loads((SERIES / "nab_combined_windows.json").read_text())
    spans = next(found for name, found in windows.items() if LATENCY in name)
    spans = [[datetime.fromisoformat(time) for time in span] for span in spans]
    with (SERIES / f"nab_{LATENCY}.csv").open() as file:
        rows = [
            (datetime.fromisoformat(r["timestamp"]), float(r["value"]))
            for r in csv.DictReader(file)
        ]
    learnt = [row for row in rows if row[0] < min(span[0] for span in spans)]
    known = usual([PastDuration(value, str(time.date())) for time, value in learnt])
    assert known is not None

    outside = [v for t, v in rows[len(learnt) :] if not any(a <= t <= b for a, b in spans)]
    false = sum(slower(known, value) is not None for value in outside)
    found = [
        any(a <= t <= b and slower(known, value) is not None for t, value in rows) for a, b in spans
    ]

    assert false / len(outside) <= FALSE_ALARM_RATE
    assert any(found)
