"""The front: learn from past runs, then say when a run will end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tocsin.monitor.estimate.amounts import Amounts, amounts_in
from tocsin.monitor.estimate.bounds import least_left_s, most_overdue
from tocsin.monitor.estimate.candidates import CANDIDATES, Totals, View, totals, view
from tocsin.monitor.estimate.mixture import Mixture, PastErrors, chosen, fractions, judge, mix
from tocsin.monitor.estimate.reason import explain
from tocsin.monitor.estimate.run_digest import RunDigest, digest
from tocsin.monitor.estimate.schedule import critical_path
from tocsin.monitor.estimate.shape import Floats, compile_plan
from tocsin.monitor.estimate.state import State, state_of
from tocsin.monitor.estimate.types import Estimate, PastRun, RunProgress
from tocsin.monitor.history.tables import WorkflowTables

RUNS_MAX = 60  # the last so many past runs are used; older ones add little, and cost
PLACES = 3
ITS_OWN_PACE = "its own pace"  # all there is to go by without a past run
SIMULATION = "simulation"  # with what the pipeline's tables know of its activities


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What past runs teach: themselves, who was right for a size seen before or not, and by type
    the number that says how much its tasks have to do."""

    runs: tuple[RunDigest, ...]
    seen_size: PastErrors
    new_size: PastErrors
    amounts: Amounts = field(default_factory=dict)


def learn(past: Sequence[PastRun]) -> Knowledge:
    """Learn from past runs, oldest first. Costs up to seconds for dozens of large runs."""
    amounts = amounts_in(past[-RUNS_MAX:])
    digested = (digest(run, amounts) for run in past[-RUNS_MAX:])
    runs = tuple(run for run in digested if run is not None)
    sizes = [run.shape.size for run in runs]
    seen = _lessons(runs, list(range(len(runs))))
    if len(set(sizes)) == len(sizes):
        return Knowledge(runs, seen, seen, amounts)
    unseen = _lessons(runs, [sizes.index(size) for size in sizes])
    return Knowledge(runs, seen, unseen, amounts)


def _lessons(runs: Sequence[RunDigest], groups: Sequence[int]) -> PastErrors:
    """Every run at several moments, as seen from the runs of other groups."""
    whose: list[int] = []
    over: list[float] = []
    places: list[Floats] = []
    errors: list[Floats] = []
    for number, run in enumerate(runs):
        known = [
            other for other, group in zip(runs, groups, strict=True) if group != groups[number]
        ]
        if not known:
            continue
        seen = view(known, run.shape)
        for fraction in fractions(number):
            state = run.at(fraction)
            predicted = totals(seen, state)
            assert predicted is not None
            whose.append(groups[number])
            over.append(fraction)
            places.append(predicted.place)
            errors.append(predicted.logs - math.log(run.makespan_s))
    return PastErrors(
        np.array(whose, dtype=np.intp),
        np.array(over, dtype=np.float64),
        np.array(places).reshape(-1, PLACES),
        np.array(errors).reshape(-1, len(CANDIDATES)),
    )


def estimate(
    knowledge: Knowledge, moment: RunProgress, tables: WorkflowTables | None = None
) -> Estimate | None:
    """When the run will end; None only if there is no past and nothing has ended yet.

    What the pipeline's `tables` know of activities is a part of their past. Who was right about
    past runs is judged without it: those runs are in the tables.
    """
    usual = None if moment.plan.whole else _usual(knowledge.runs)
    shape = compile_plan(moment.plan, usual, knowledge.amounts)
    state = state_of(moment, shape)
    if not shape.count:
        return None
    if len(state.ended) == shape.count and moment.plan.whole:
        return _over(state, len(knowledge.runs))
    seen = view(knowledge.runs, shape, tables)
    predicted = totals(seen, state)
    if predicted is None:
        return None
    known_size = any(run.shape.size == shape.size for run in knowledge.runs)
    lessons = knowledge.seen_size if known_size else knowledge.new_size
    grown = not known_size and not len(lessons.groups) and bool(knowledge.runs)
    verdict = judge(lessons, predicted.place, started=state.elapsed_s > 0, grown=grown)
    path = critical_path(shape, predicted.rest.timetable, state.ended)
    in_plan = tuple(index for index in path if index < len(moment.plan.tasks))
    return _answer(seen, state, predicted, verdict, path, in_plan)


def past_ratios(knowledge: Knowledge) -> tuple[float, ...]:
    """Real over estimated total of each past run, estimated from the others before its start."""
    lessons = knowledge.seen_size
    before = lessons.errors[~lessons.started]
    verdict = judge(lessons, np.zeros(PLACES), started=False)
    return tuple(math.exp(-mix(errors, verdict.weights)) for errors in before)


def _usual(runs: Sequence[RunDigest]) -> dict[str, int]:
    """How many tasks of each type the median past run had."""
    names = {name for run in runs for name in run.shape.members}
    return {
        name: int(np.median([len(run.shape.members.get(name, ())) for run in runs]))
        for name in names
    }


def _over(state: State, past_runs: int) -> Estimate:
    return Estimate(
        total_s=state.elapsed_s,
        remaining_s=0.0,
        low_s=0.0,
        high_s=0.0,
        method="all ended",
        reason="Every task has ended.",
        critical_path=(),
        past_runs=past_runs,
        past_error=0.0,
    )


def _answer(
    seen: View,
    state: State,
    predicted: Totals,
    verdict: Mixture,
    path: tuple[int, ...],
    in_plan: tuple[int, ...],
) -> Estimate:
    """`in_plan` is the part of the critical path that the plan has; the rest is only expected."""
    left_s = least_left_s(seen.shape, state, seen.past)
    least_s = max(predicted.least_s, state.elapsed_s + left_s)
    total_s = max(math.exp(mix(predicted.logs, verdict.weights)), least_s)
    remaining_s = total_s - state.elapsed_s
    low_s, high_s = _interval(verdict, state.elapsed_s, total_s)
    low_s = min(max(low_s, left_s), remaining_s)
    overdue = most_overdue(seen.shape, state, seen.past, predicted.rest.pace)
    if overdue is not None:  # past runs knew nothing of the kind: it may take as long once more
        high_s = max(high_s, remaining_s + overdue.runs_s)
    return Estimate(
        total_s=total_s,
        remaining_s=remaining_s,
        low_s=low_s,
        high_s=high_s,
        method=chosen(verdict.weights) if seen.past else _alone(seen),
        reason=explain(
            seen.shape, state, predicted.rest, path, has_past=seen.has_past, overdue=overdue
        ),
        critical_path=in_plan,
        past_runs=len(seen.past),
        past_error=verdict.error,
        past_attempts=seen.tables.attempts,
        other_versions=seen.tables.other_versions,
    )


def _interval(verdict: Mixture, elapsed_s: float, total_s: float) -> tuple[float, float]:
    """The seconds left that 80 of 100 runs would be within."""
    low, high = math.exp(verdict.low), math.exp(verdict.high)
    if verdict.of_total:
        return max(total_s * low - elapsed_s, 0.0), max(total_s * high, total_s) - elapsed_s
    remaining_s = total_s - elapsed_s
    return remaining_s * low, remaining_s * max(high, 1.0)


def _alone(seen: View) -> str:
    return SIMULATION if seen.tables.activities else ITS_OWN_PACE
