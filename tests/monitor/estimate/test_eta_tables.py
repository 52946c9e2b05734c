"""What the pipeline's tables add to estimates, and what they do not change."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from monitor.estimate.estimate_runs import plan, run, snakemake_runs
from tocsin.event.instant import NS_PER_S
from tocsin.monitor.estimate import Estimate, PastRun, Plan, Planned, RunProgress, estimate, learn
from tocsin.monitor.evaluation.estimates import progress_at
from tocsin.monitor.history.tables import CostModel, LearnedTables, StatsRow, WorkflowTables

DAY_NS = 86_400 * NS_PER_S
NOW_NS = 20_000 * DAY_NS
PAST = [run(seed, samples) for seed, samples in enumerate([8, 8, 10, 12])]
NOTHING = learn([])


def row(activity: str, seconds: float, version: str = "", **reported: float) -> StatsRow:
    """An activity that took about so long in fifty runs."""
    times = dict(zip(("min_s", "p10_s", "p50_s", "p90_s", "p99_s", "max_s"), SPREAD, strict=True))
    numbers = {name: seconds * factor for name, factor in times.items()}
    usual = StatsRow(
        "w",
        activity,
        version,
        runs=50,
        count=500,
        mean_s=seconds,
        stddev_s=0.1 * seconds,
        last_ended_ns=NOW_NS,
        **numbers,
    )
    return replace(usual, **reported)  # type: ignore[arg-type]


SPREAD = (0.8, 0.9, 1.0, 1.1, 1.2, 1.25)


def tables(*rows: StatsRow, models: tuple[CostModel, ...] = (), through: int = 0) -> WorkflowTables:
    stats: dict[tuple[str, str], list[StatsRow]] = {}
    for each in rows:
        stats.setdefault((each.workflow, each.activity), []).append(each)
    by_key = {(each.workflow, each.activity): (each,) for each in models}
    return WorkflowTables(LearnedTables(1, NOW_NS, through, stats, by_key, {}), "w", NOW_NS)


def estimated(past: list[PastRun], made: Plan, known: WorkflowTables | None) -> Estimate:
    found = estimate(learn(past) if past else NOTHING, RunProgress(made, 0.0, {}, {}), known)
    assert found is not None
    return found


TRUE = (row("trim", 5.0), row("align", 20.0), row("merge", 36.0))


def test_without_rows_for_its_activities_an_estimate_is_as_without_tables() -> None:
    others = tables(row("other", 3.0))

    for new in (run(99, 14), *snakemake_runs()[:2]):
        for fraction in (0.0, 0.3, 0.7):
            moment = progress_at(new, fraction * new.makespan_s)
            assert estimate(learn(PAST), moment, others) == estimate(learn(PAST), moment)


def test_a_workflow_that_never_completed_here_is_estimated_from_the_tables() -> None:
    new = run(99, 12)

    before = estimated([], new.plan, tables(*TRUE))
    half = estimate(NOTHING, progress_at(new, new.makespan_s / 2), tables(*TRUE))
    alone = estimate(NOTHING, progress_at(new, new.makespan_s / 2))

    assert before.total_s == pytest.approx(new.makespan_s, rel=0.25)
    assert (before.past_runs, before.past_attempts, before.method) == (0, 1500, "simulation")
    assert half is not None
    assert alone is not None
    assert half.total_s == pytest.approx(new.makespan_s, rel=0.25)
    assert abs(half.total_s - new.makespan_s) < abs(alone.total_s - new.makespan_s)
    assert "no past run" not in half.reason
    assert (alone.past_attempts, alone.method) == (0, "its own pace")


def test_an_activity_is_timed_by_its_input_where_the_line_errs_less_than_the_mean() -> None:
    made = {
        size: Plan((Planned("sort", (), size), Planned("pack", (0,), None, input_bytes=size)))
        for size in (2_000_000, 8_000_000)
    }
    usual = {"count": 40, "intercept": 1.0, "slope": 1e-6, "mean": 5.0, "median_error": 0.02}
    good = [CostModel("w", name, "", "duration_s", rmse=0.05, **usual) for name in ("sort", "pack")]  # type: ignore[arg-type]
    bad = [replace(each, rmse=9.0) for each in good]
    rows = (row("sort", 5.0), row("pack", 5.0))

    by_line = {
        n: estimated([], p, tables(*rows, models=tuple(good))).total_s for n, p in made.items()
    }
    by_mean = {
        n: estimated([], p, tables(*rows, models=tuple(bad))).total_s for n, p in made.items()
    }

    assert by_line[2_000_000] == pytest.approx(2 * max(3.0, 4.0), rel=0.1)  # no shorter than ever
    assert by_line[8_000_000] == pytest.approx(2 * 9.0, rel=0.1)
    assert by_mean[2_000_000] == by_mean[8_000_000] == pytest.approx(10.0, rel=0.1)


def test_a_line_is_not_followed_where_it_was_never_seen() -> None:
    falls = CostModel("w", "a", "", "duration_s", 9, 10.0, -1.0, input_min=1.0, input_max=5.0)

    assert [falls.at(size) for size in (0.0, 3.0, 1e9)] == [9.0, 7.0, 5.0]
    assert replace(falls, slope=2.0).at(100.0) == 210.0
    assert replace(falls, slope=None, mean=4.0).at(100.0) == 4.0


def test_another_version_is_used_for_want_of_the_own_and_named() -> None:
    old = row("align", 60.0, version="1", last_ended_ns=NOW_NS - 9 * DAY_NS)
    newer = row("align", 20.0, version="2")
    known = tables(row("trim", 5.0), old, newer, row("merge", 36.0, version="3"))

    third = estimated([], plan(12, version="3"), known)
    first = estimated([], plan(12, version="1"), known)

    assert third.other_versions == ("trim", "align")
    assert first.other_versions == ("trim", "merge")
    assert first.total_s > 2 * third.total_s


def test_runs_that_are_in_the_tables_and_known_here_do_not_count_twice() -> None:
    settled = [replace(each, settled_seq=number) for number, each in enumerate(PAST, 1)]
    same = tuple(replace(each, runs=len(PAST), p50_s=99.0) for each in TRUE)
    new = plan(10)

    in_both = estimated(settled, new, tables(*same, through=len(PAST)))
    beyond = estimated(settled, new, tables(*same, through=0))

    assert in_both == estimated(settled, new, None)
    assert beyond != in_both


def test_runs_that_a_window_leaves_out_are_not_in_both() -> None:
    settled = [
        replace(each, settled_seq=number, last_received_ns=NOW_NS - number * DAY_NS)
        for number, each in enumerate(PAST, 1)
    ]
    same = tuple(replace(each, runs=len(PAST), p50_s=99.0) for each in TRUE)
    everything = tables(*same, through=len(PAST))
    window = {"all": (NOW_NS - 9 * DAY_NS, NOW_NS), "none": (NOW_NS, None), "past": (None, 0)}

    found = {
        name: estimated(
            settled,
            plan(10),
            replace(
                everything,
                learned=replace(everything.learned, since_ns=since_ns, until_ns=until_ns),
            ),
        )
        for name, (since_ns, until_ns) in window.items()
    }

    assert found["all"] == estimated(settled, plan(10), None)
    assert found["none"] == found["past"] == estimated(settled, plan(10), tables(*same, through=0))


@pytest.mark.parametrize("age_days", [0, 900])
def test_the_tables_move_little_knowledge_more_than_much_and_less_when_they_are_old(
    age_days: int,
) -> None:
    reported = [replace(each, last_ended_ns=NOW_NS - age_days * DAY_NS) for each in TRUE]
    slow = [replace(each, p50_s=2 * (each.p50_s or 0)) for each in reported]
    moment = RunProgress(plan(10), 1.0, {}, {0: 0.0})

    def moved(past: list[PastRun]) -> float:
        known = learn([replace(each, settled_seq=1) for each in past])
        with_tables = estimate(known, moment, tables(*slow))
        without = estimate(known, moment)
        assert with_tables is not None
        assert without is not None
        return math.log(with_tables.total_s / without.total_s)

    few, many = moved(PAST[:1]), moved([run(seed, 10) for seed in range(20)])

    if age_days:
        assert abs(few) < 0.01
    else:
        assert few > 0.02
    assert abs(many) < 0.03
    assert abs(many) <= abs(few) + 1e-9
