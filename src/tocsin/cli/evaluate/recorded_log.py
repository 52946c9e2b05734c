"""Recorded logs of Snakemake as runs to evaluate: what a broker knew of each at any time.

The records go through the plug-in's code, its messages through the monitor's fold; a moment is
folded from the messages that had been sent by then, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tocsin.errors import BadRunsFile
from tocsin.event.instant import NS_PER_S, seconds_between
from tocsin.integrations.snakemake.recorded_log import sent_by_plugin
from tocsin.monitor.estimate.inputs import (
    Growth,
    Task,
    cores_of,
    growth_of,
    past_run,
    plan_of,
    progress_of,
    task_of,
)
from tocsin.monitor.estimate.types import PastRun, RunProgress
from tocsin.monitor.evaluation.estimates import Case
from tocsin.monitor.fold import ConceptRules, Row, RunMessage, latest, merge_into, parse_message
from tocsin.monitor.states import run_started_ns, run_state
from tocsin.ontology import built_in

APPLICATION = "snakemake"


@dataclass(frozen=True, slots=True)
class RunState:
    """The state of a run after the messages so far."""

    row: Row
    tasks: tuple[Task, ...]


def state_from(messages: Sequence[RunMessage]) -> RunState:
    """Fold messages as the monitor does, activities in the order of their first message."""
    reading = ConceptRules(built_in())
    row: Row = {}
    attempts: dict[str, dict[int, Row]] = {}
    for message in messages:
        found = parse_message(message, reading)
        if found is None:
            continue
        merge_into(row, found.run_row)
        for (name, number), facts in found.activities.items():
            merge_into(attempts.setdefault(name, {}).setdefault(number, {}), facts)
    state = run_state(row)
    return RunState(row, tuple(_task(name, tries, state) for name, tries in attempts.items()))


def _task(name: str, tries: dict[int, Row], run_is: str) -> Task:
    last = tries[max(tries)]
    kind, version = latest(last, "type") or "", latest(last, "version") or ""
    return task_of(name, kind, version, last, run_is, tries if len(tries) > 1 else {})


@dataclass(frozen=True)
class LogCase:
    """A completed run in a recorded log."""

    messages: tuple[RunMessage, ...]
    began_ns: int
    run: PastRun
    growth: Growth | None

    def at(self, elapsed_s: float, past: Sequence[Case]) -> RunProgress:
        """What was known when so many seconds were over; at 0 the plan, and no job has begun."""
        others = [each for each in past if isinstance(each, LogCase)]
        known = self._known(elapsed_s)
        usual = max((each.run.plan.cores for each in others), default=1)
        cores = cores_of(known.row, known.tasks, usual)
        growths = [each.growth for each in others if each.growth is not None]
        plan = plan_of(known.tasks, known.row, cores=cores, ended=False, past=growths)
        return progress_of(plan, known.tasks, self.began_ns, max(elapsed_s, 0.0))

    def _known(self, elapsed_s: float) -> RunState:
        if elapsed_s <= 0:
            return state_from(self._before_the_first_job)
        now_ns = self.began_ns + int(elapsed_s * NS_PER_S)
        return state_from([each for each in self.messages if each.received_ns <= now_ns])

    @cached_property
    def _before_the_first_job(self) -> list[RunMessage]:
        jobs = [number for number, each in enumerate(self.messages) if "ActivityId" in each.pairs]
        return list(self.messages[: jobs[0]]) if jobs else list(self.messages)


def case_of(records: Sequence[dict[str, Any]], where: str) -> LogCase | None:
    """The run in a log; None if it did not complete."""
    messages = tuple(
        RunMessage(message.pairs, seq, round(at_s * NS_PER_S), message.time)
        for seq, (at_s, message) in enumerate(sent_by_plugin(records, APPLICATION), 1)
    )
    known = state_from(messages)
    began_ns, ended_ns = run_started_ns(known.row), known.row.get("ended")
    if began_ns is None:
        raise BadRunsFile(
            f"{where} has no record of Snakemake's start",
            remedy="Give the whole log of one run, a JSON object a record.",
        )
    if run_state(known.row) != "completed" or ended_ns is None or ended_ns <= began_ns:
        return None
    plan = plan_of(known.tasks, known.row, cores=cores_of(known.row, known.tasks), ended=True)
    run = past_run(where, plan, known.tasks, began_ns, seconds_between(began_ns, ended_ns))
    return LogCase(messages, began_ns, run, growth_of(known.row, len(known.tasks)))
