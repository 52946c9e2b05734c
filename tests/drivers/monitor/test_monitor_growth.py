"""Plans that grow while a run goes on, and what past runs teach of that."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from monitor.kept import Kept
from monitor.runs import activity_pairs, ns, received, run_pairs

SAMPLES = 10


def task(name: str, *parents: str, **more: object) -> dict[str, object]:
    return {"id": name, "type": name.partition("-")[0], "parents": [*parents], **more}


def begun(run: str, start: float, **more: object) -> Iterator[dict[str, str]]:
    """What is known before the checkpoint: two of a dozen tasks."""
    plan = json.dumps([task("split", **more), task("all", "split")])
    yield run_pairs("WorkflowStarted", start, run, WorkflowName="w", PlannedCores="1")
    yield run_pairs("ActivityPlanned", start, run, PlannedActivities="2", ActivityPlan=plan)
    yield activity_pairs("split", "ActivityExecuting", start, run)


def grown(run: str, start: float) -> Iterator[dict[str, str]]:
    """What the checkpoint brings: a task for every sample."""
    names = [f"align-{n}" for n in range(SAMPLES)]
    plan = json.dumps([*(task(name, "split") for name in names), task("all", *names)])
    total = str(SAMPLES + 2)
    yield activity_pairs("split", "ActivitySucceeded", start + 2, run)
    yield run_pairs("WorkflowChanged", start + 2, run, PlannedActivities=total, ActivityPlan=plan)


def rest(run: str, start: float) -> Iterator[dict[str, str]]:
    for n in range(SAMPLES):
        yield activity_pairs(f"align-{n}", "ActivityExecuting", start + 2 + 5 * n, run)
        yield activity_pairs(f"align-{n}", "ActivitySucceeded", start + 7 + 5 * n, run)
    yield activity_pairs("all", "ActivityExecuting", start + 52, run)
    yield activity_pairs("all", "ActivitySucceeded", start + 53, run)
    yield run_pairs("WorkflowCompleted", start + 53, run)


def past(runs: int) -> Iterator[dict[str, str]]:
    for number in range(runs):
        run, start = f"p{number}", 1_000.0 * number
        yield from (*begun(run, start), *grown(run, start), *rest(run, start))


@pytest.mark.parametrize("runs", [1, 4])
def test_a_plan_that_grew_in_past_runs_is_expected_to_grow_again(kept: Kept, runs: int) -> None:
    kept.fold(received(*past(runs), *begun("now", 9_000), received_ns=ns(9_000)))

    found = kept.asked.estimates.estimate("now", ns(9_001))

    assert found.remaining_s == pytest.approx(52, rel=0.25)


def test_a_plan_that_has_grown_as_usual_is_taken_as_whole(kept: Kept) -> None:
    now = [*begun("now", 9_000), *grown("now", 9_000)]
    ended = [each for each in rest("now", 9_000) if "WorkflowCompleted" not in each]
    kept.fold(received(*past(4), *now, *ended[:-2], received_ns=ns(9_000)))

    found = kept.asked.estimates.estimate("now", ns(9_052))

    assert found.remaining_s < 5


def test_a_checkpoint_that_is_not_reached_leaves_a_plan_open(kept: Kept) -> None:
    # Past runs of other engines or versions told their whole plan at once.
    whole = [
        {**each, "PlannedActivities": str(SAMPLES + 2)} if "PlannedActivities" in each else each
        for each in past(4)
    ]
    now = begun("now", 9_000, checkpoint=True)
    kept.fold(received(*whole, *now, received_ns=ns(9_000)))

    found = kept.asked.estimates.estimate("now", ns(9_001))

    assert found.remaining_s == pytest.approx(52, rel=0.25)


def test_a_small_run_of_a_workflow_that_never_grew_is_as_small_as_its_plan(kept: Kept) -> None:
    whole = [
        {**each, "PlannedActivities": str(SAMPLES + 2)} if "PlannedActivities" in each else each
        for each in past(4)
    ]
    kept.fold(received(*whole, *begun("now", 9_000), received_ns=ns(9_000)))

    found = kept.asked.estimates.estimate("now", ns(9_001))

    assert found.remaining_s < 40


def test_a_run_whose_id_was_used_twice_teaches_by_each_of_its_uses(kept: Kept) -> None:
    twice = [
        *begun("p0", 5_000),
        *grown("p0", 5_000),
        *(each for each in rest("p0", 5_000)),
    ]
    kept.fold(received(*past(1), *twice, received_ns=ns(9_000)))

    run = kept.asked.runs.run("p0~2", ns(9_100))
    activities, _ = kept.asked.runs.activities("p0~2", ns(9_100), kind="align")
    model = kept.asked.estimates.model("w").latest

    assert (run.state, run.anomaly_list) == ("completed", ())
    assert {each.duration_s for each in activities} == {5.0}
    assert model is not None
    assert model.id == "p0~2"
