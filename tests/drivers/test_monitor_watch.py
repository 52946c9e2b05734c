"""What is slower than usual is told while it runs; what could run side by side, afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.runs import activity_pairs, heard, ns, run_pairs
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.store import MonitorStore
from tocsin.drivers.monitor.watch import Watch
from tocsin.ontology import built_in

OPTIONS = MonitorOptions()


def past_runs(runs: int, each: int) -> Iterator[dict[str, str]]:
    """Runs whose activities take about ten seconds."""
    chance = random.Random(4)
    for run in range(runs):
        name, start = f"p{run}", run * 1_000.0
        yield run_pairs("WorkflowStarted", start, run=name, WorkflowName="w")
        for n in range(each):
            took_s = 10 * chance.lognormvariate(0, 0.1)
            yield activity_pairs(f"align-{n}", "ActivityExecuting", start, run=name)
            yield activity_pairs(f"align-{n}", "ActivitySucceeded", start + took_s, run=name)
        yield run_pairs("WorkflowCompleted", start + 20, run=name)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[MonitorStore, Watch]]:
    store = MonitorStore(tmp_path, OPTIONS, built_in())
    watch = Watch(tmp_path, OPTIONS)
    yield store, watch
    watch.close()
    store.close()


def test_an_activity_that_takes_longer_than_its_kind_ever_did_is_told_of(
    watched: tuple[MonitorStore, Watch],
) -> None:
    store, watch = watched
    now = [
        run_pairs("WorkflowStarted", 9_000, WorkflowName="w"),
        activity_pairs("align-1", "ActivityExecuting", 9_000),
        activity_pairs("align-2", "ActivityExecuting", 9_030),
        activity_pairs("new-1", "ActivityExecuting", 9_000),
    ]
    messages = heard(*past_runs(5, 40), *now, received_ns=ns(9_000))
    store.write(messages, len(messages))

    early, late = watch.run("r", ns(9_008)), watch.run("r", ns(9_040))

    assert early.alerts == ()
    (alert,) = late.alerts
    assert (alert["activity"], alert["kind"], alert["took_s"]) == (
        "align-1",
        "slower than usual",
        40.0,
    )
    assert 9 < alert["usual_s"] < 11
    assert watch.run("p0", ns(9_040)).alerts == ()  # it is over


def test_with_little_history_nothing_is_called_slow(watched: tuple[MonitorStore, Watch]) -> None:
    store, watch = watched
    now = [
        run_pairs("WorkflowStarted", 9_000, WorkflowName="w"),
        activity_pairs("align-1", "ActivityExecuting", 9_000),
    ]
    messages = heard(*past_runs(2, 3), *now, received_ns=ns(9_000))
    store.write(messages, len(messages))

    assert watch.run("r", ns(9_900)).alerts == ()


def test_what_waited_without_reading_anything_is_a_hint(
    watched: tuple[MonitorStore, Watch],
) -> None:
    store, watch = watched
    messages = heard(
        run_pairs("WorkflowStarted", 0, PlannedCores="4"),
        activity_pairs("plot-1", "ActivityExecuting", 0),
        activity_pairs("plot-1", "ActivitySucceeded", 60, OutputFile="plot.png"),
        activity_pairs(
            "sum-1", "ActivityExecuting", 60, ParentActivity="plot-1", InputFile="data.csv"
        ),
        activity_pairs("sum-1", "ActivitySucceeded", 100),
        run_pairs("WorkflowCompleted", 101),
    )
    store.write(messages, len(messages))

    (hint,) = watch.hints("r", ns(200))

    assert (hint.first, hint.second) == ("plot", "sum")
    assert hint.saves_s == pytest.approx(60)


def test_what_reads_what_was_made_before_it_is_no_hint(
    watched: tuple[MonitorStore, Watch],
) -> None:
    store, watch = watched
    messages = heard(
        run_pairs("WorkflowStarted", 0, PlannedCores="4"),
        activity_pairs("make-1", "ActivityExecuting", 0),
        activity_pairs("make-1", "ActivitySucceeded", 60, OutputFile='["a", "b"]'),
        activity_pairs("sum-1", "ActivityExecuting", 60, InputFile='["b", "c"]'),
        activity_pairs("sum-1", "ActivitySucceeded", 100),
    )
    store.write(messages, len(messages))

    assert watch.hints("r", ns(200)) == []
