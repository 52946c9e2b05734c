"""The front: learn from past runs, then say when a run will end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.candidates import CANDIDATES, Totals, View, totals, view
from tocsin.monitor.estimate.choose import STAGES, Verdict, Verdicts, chosen, judge, settle
from tocsin.monitor.estimate.experience import Experience, digest
from tocsin.monitor.estimate.facts import Estimate, Moment, PastRun
from tocsin.monitor.estimate.reason import say_why
from tocsin.monitor.estimate.schedule import critical_path
from tocsin.monitor.estimate.shape import Floats, compile_plan
from tocsin.monitor.estimate.state import State, state_of

RUNS_MAX = 60  # the last so many past runs are learnt from; older ones tell little, and cost


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What past runs teach: themselves, and whom to believe for a size seen before or not."""

    runs: tuple[Experience, ...]
    seen_size: Verdicts
    new_size: Verdicts


def learn(past: Sequence[PastRun]) -> Knowledge:
    """Learn from past runs, oldest first. Costs up to seconds for dozens of large runs."""
    digested = [run for run in map(digest, past[-RUNS_MAX:]) if run is not None]
    runs = tuple(digested)
    seen = _verdicts(runs, lambda run, other: other is not run)
    if len({run.shape.size for run in runs}) == len(runs):
        return Knowledge(runs, seen, seen)
    new = _verdicts(runs, lambda run, other: other.shape.size != run.shape.size)
    return Knowledge(runs, seen, new)


def _verdicts(
    runs: Sequence[Experience], may_know: Callable[[Experience, Experience], bool]
) -> Verdicts:
    """At each stage, judge the candidates by each run as seen from those it may know of."""
    errors: dict[float, list[Floats]] = {stage: [] for stage in STAGES}
    for run in runs:
        known = [other for other in runs if may_know(run, other)]
        if not known:
            continue
        seen = view(known, run.shape)
        for stage in STAGES:
            state = run.at(stage) if stage else _unstarted(run)
            said = totals(seen, state)
            if said is not None:
                errors[stage].append(said.logs - math.log(run.makespan_s))
    width = len(CANDIDATES)
    return judge({stage: np.array(rows).reshape(-1, width) for stage, rows in errors.items()})


def _unstarted(run: Experience) -> State:
    whole = run.whole
    return State(0.0, [], {}, whole.logs, whole.starts, whole.ends)


def estimate(knowledge: Knowledge, moment: Moment) -> Estimate | None:
    """When the run will end; None only if there is no past and nothing has ended yet."""
    shape = compile_plan(moment.plan, None if moment.plan.whole else _usual(knowledge.runs))
    state = state_of(moment, shape)
    seen = view(knowledge.runs, shape)
    said = totals(seen, state) if shape.count else None
    if said is None:
        return None
    known_size = any(run.shape.size == shape.size for run in knowledge.runs)
    verdicts = knowledge.seen_size if known_size else knowledge.new_size
    verdict, total_log = settle(verdicts, said.logs, state.elapsed_s)
    total_s = max(math.exp(total_log), state.elapsed_s)
    if len(state.ended) == shape.count and moment.plan.whole:
        return _over(state, len(knowledge.runs))
    return _answer(seen, state, said, verdict, total_s)


def _usual(runs: Sequence[Experience]) -> dict[str, int]:
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


def _answer(seen: View, state: State, said: Totals, verdict: Verdict, total_s: float) -> Estimate:
    remaining_s = total_s - state.elapsed_s
    low_s = max(total_s * math.exp(verdict.low) - state.elapsed_s, 0.0)
    high_s = max(total_s * math.exp(verdict.high) - state.elapsed_s, remaining_s)
    path = critical_path(seen.shape, said.rest.timetable, state.ended)
    return Estimate(
        total_s=total_s,
        remaining_s=remaining_s,
        low_s=low_s,
        high_s=high_s,
        method=chosen(verdict.weights),
        reason=say_why(seen.shape, state, said.rest, path),
        critical_path=path,
        past_runs=len(seen.past),
        past_error=verdict.error,
    )
