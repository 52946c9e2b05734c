"""What is slower than usual is told while it runs; what could run side by side, afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.runs import activity_pairs, ns, received, run_pairs
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.queries import Queries, open_queries
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
def watched(tmp_path: Path) -> Iterator[tuple[RunWriter, Queries]]:
    store = RunWriter(tmp_path, OPTIONS, built_in())
    watch = open_queries(tmp_path, OPTIONS)
    yield store, watch
    watch.close()
    store.close()


def test_an_activity_that_takes_longer_than_its_kind_ever_did_is_told_of(
    watched: tuple[RunWriter, Queries],
) -> None:
    store, watch = watched
    now = [
        run_pairs("WorkflowStarted", 9_000, WorkflowName="w"),
        activity_pairs("align-1", "ActivityExecuting", 9_000),
        activity_pairs("align-2", "ActivityExecuting", 9_030),
        activity_pairs("new-1", "ActivityExecuting", 9_000),
    ]
    messages = received(*past_runs(5, 40), *now, received_ns=ns(9_000))
    store.write(messages, len(messages))

    early, late = watch.runs.run("r", ns(9_008)), watch.runs.run("r", ns(9_040))

    assert early.alerts == ()
    (alert,) = late.alerts
    assert (alert["activity"], alert["kind"], alert["took_s"]) == (
        "align-1",
        "slower than usual",
        40.0,
    )
    assert 9 < alert["usual_s"] < 11
    assert watch.runs.run("p0", ns(9_040)).alerts == ()  # it is over


def test_with_little_history_nothing_is_called_slow(watched: tuple[RunWriter, Queries]) -> None:
    store, watch = watched
    now = [
        run_pairs("WorkflowStarted", 9_000, WorkflowName="w"),
        activity_pairs("align-1", "ActivityExecuting", 9_000),
    ]
    messages = received(*past_runs(2, 3), *now, received_ns=ns(9_000))
    store.write(messages, len(messages))

    assert watch.runs.run("r", ns(9_900)).alerts == ()


def test_what_waited_without_reading_anything_is_a_hint(
    watched: tuple[RunWriter, Queries],
) -> None:
    store, watch = watched
    messages = received(
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

    (hint,), reason = watch.estimates.hints("r", ns(200))

    assert (hint.first, hint.second) == ("plot", "sum")
    assert hint.saves_s == pytest.approx(60)
    assert reason is None


def test_what_reads_what_was_made_before_it_is_no_hint(
    watched: tuple[RunWriter, Queries],
) -> None:
    store, watch = watched
    messages = received(
        run_pairs("WorkflowStarted", 0, PlannedCores="4"),
        activity_pairs("make-1", "ActivityExecuting", 0),
        activity_pairs("make-1", "ActivitySucceeded", 60, OutputFile='["a", "b"]'),
        activity_pairs("sum-1", "ActivityExecuting", 60, InputFile='["b", "c"]'),
        activity_pairs("sum-1", "ActivitySucceeded", 100),
    )
    store.write(messages, len(messages))

    assert watch.estimates.hints("r", ns(200)) == ([], None)


def test_a_second_attempt_waits_for_what_the_first_was_planned_after(
    watched: tuple[RunWriter, Queries],
) -> None:
    store, watch = watched
    plan = '[{"id": "make-1", "type": "make", "parents": []}, {"id": "sum-1", "type": "sum",'
    plan += ' "parents": ["make-1"]}, {"id": "plot-1", "type": "plot", "parents": ["make-1"]}]'
    messages = received(
        run_pairs("WorkflowStarted", 0, PlannedCores="4", ActivityPlan=plan),
        activity_pairs("make-1", "ActivityExecuting", 0),
        activity_pairs("make-1", "ActivitySucceeded", 60),
        activity_pairs("plot-1", "ActivityExecuting", 60),
        activity_pairs("plot-1", "ActivitySucceeded", 95),
        activity_pairs("sum-1", "ActivityExecuting", 60),
        activity_pairs("sum-1", "ActivityRetrying", 90, ErrorMessage="no memory"),
        activity_pairs("sum-1", "ActivityExecuting", 100, Attempt="2"),
        activity_pairs("sum-1", "ActivitySucceeded", 150, Attempt="2"),
    )
    store.write(messages, len(messages))

    assert watch.estimates.hints("r", ns(200)) == ([], None)
    run_no, _ = watch.index.facts("r")
    tasks = {task.name: task for task in watch.index.tasks(run_no, "running")}
    assert tasks["sum-1"].parents == ("make-1",)
    assert tasks["sum-1"].times.duration_s == 50
    assert watch.runs.run("r", ns(200)).retried == 1


def test_a_run_that_tells_no_dependence_says_so_instead_of_hints(
    watched: tuple[RunWriter, Queries],
) -> None:
    store, watch = watched
    messages = received(
        activity_pairs("a-1", "ActivityExecuting", 0),
        activity_pairs("a-1", "ActivitySucceeded", 60),
        activity_pairs("b-1", "ActivityExecuting", 60),
        activity_pairs("b-1", "ActivitySucceeded", 150),
    )
    store.write(messages, len(messages))

    found, reason = watch.estimates.hints("r", ns(200))

    assert found == []
    assert reason == "the engine does not report which activity depends on which"
