"""Watch: what goes slower than usual, and what could have gone at the same time."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Final

from tocsin.drivers.monitor.attempt_rows import decode_row
from tocsin.drivers.monitor.live import Live
from tocsin.monitor.fold import latest
from tocsin.monitor.hints import Hint, hints
from tocsin.monitor.moments import Task, cores_of, ran_of
from tocsin.monitor.records import ENDED_RUN, RunRecord
from tocsin.monitor.showing import shown_state
from tocsin.monitor.slower import PastDuration, Usual, slower, usual
from tocsin.monitor.times import seconds_between

HINT_TASKS_MAX: Final = 2_000  # each is looked at with all that it needs
WATCHED_MAX: Final = 5_000  # activities of a run
ALERTS_MAX: Final = 20  # the slowest of them
PAST_MAX: Final = 2_000  # durations of a type that say what is usual, the latest
USUAL_KNOWN_MAX: Final = 1_000  # types
SLOWER: Final = "slower than usual"


@dataclass(frozen=True, slots=True)
class _Known:
    """What is usual for a type, and how many runs had completed when that was worked out."""

    completed: int
    usual: Usual | None


class Watch(Live):
    """Questions of those who keep an eye on a run."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._usual: OrderedDict[tuple[str, str, str], _Known] = OrderedDict()

    def run(self, run_id: str, now_ns: int) -> RunRecord:
        """As everybody sees it; while it is under way, with what is slower than usual."""
        record = super().run(run_id, now_ns)
        if record.state in ENDED_RUN or record.state == "lost":
            return record
        return replace(record, alerts=tuple(self.alerts(run_id, now_ns)))

    def alerts(self, run_id: str, now_ns: int) -> list[dict[str, Any]]:
        """The activities of a run that take, or took, longer than nearly all of their kind."""
        with self._turn:
            run_no, facts = self.facts(run_id)
            workflow = latest(facts.row, "workflow") or ""
            if not workflow:
                return []
            completed = self._completed(workflow)
            if not completed:
                return []
            found: list[tuple[float, dict[str, Any]]] = []
            for task in self._watched(run_no, sum(facts.counts.values())):
                took_s = _took_s(task, now_ns)
                known = self._usual_for(workflow, task, completed)
                alert = None if took_s is None else slower(known, took_s, task.input_bytes)
                if alert is not None:
                    found.append((alert.took_s / alert.limit_s, _shown(task, alert)))
        found.sort(key=lambda each: -each[0])
        return [alert for _, alert in found[:ALERTS_MAX]]

    def hints(self, run_id: str, now_ns: int) -> list[Hint]:
        """Activities that followed each other without need, the most time saved first."""
        with self._turn:
            run_no, facts = self.facts(run_id)
            run_is = shown_state(facts.row, now_ns, self.options.silence_s)
            tasks = self.tasks(run_no, run_is, most=HINT_TASKS_MAX)
        return hints(ran_of(tasks), cores_of(facts.row, tasks))

    def _watched(self, run_no: int, known: int) -> list[Task]:
        """Those that run; unless there are too many, those that have succeeded too."""
        states = ("running", "succeeded") if known <= WATCHED_MAX else ("running",)
        return [
            task
            for state in states
            for task in self.tasks(run_no, "running", most=WATCHED_MAX, state=state)
        ]

    def _completed(self, workflow: str) -> int:
        ((count,),) = self.rows(
            "SELECT count(*) FROM runs WHERE workflow = ? AND state = 'completed'", workflow
        )
        return int(count)

    def _usual_for(self, workflow: str, task: Task, completed: int) -> Usual | None:
        key = (workflow, task.type, task.version)
        known = self._usual.get(key)
        if known is None or known.completed != completed:
            past = self._past_durations(workflow, task.type)
            known = _Known(completed, usual(past, task.version))
            self._usual[key] = known
            if len(self._usual) > USUAL_KNOWN_MAX:
                self._usual.popitem(last=False)
        return known.usual

    def _past_durations(self, workflow: str, kind: str) -> list[PastDuration]:
        found = self.rows(
            "SELECT r.id, a.duration_s, a.version, a.row FROM attempts AS a "
            "JOIN runs AS r ON r.no = a.run WHERE a.type = ? AND a.ended_ns IS NOT NULL "
            "AND a.state = 'succeeded' AND a.duration_s IS NOT NULL AND r.workflow = ? "
            "AND r.state = 'completed' ORDER BY a.ended_ns DESC LIMIT ?",
            kind,
            workflow,
            PAST_MAX,
        )
        return [
            PastDuration(seconds, run, version, latest(decode_row(row), "input_bytes"))
            for run, seconds, version, row in found
        ]


def _took_s(task: Task, now_ns: int) -> float | None:
    """How long it took; of one that runs, how long so far."""
    if task.state == "succeeded":
        return task.times.duration_s
    started_ns = task.times.started_ns
    if started_ns is None or started_ns > now_ns:
        return None
    return seconds_between(started_ns, now_ns)


def _shown(task: Task, alert: Any) -> dict[str, Any]:
    return {
        "kind": SLOWER,
        "activity": task.name,
        "type": task.type,
        "state": task.state,
        "took_s": round(alert.took_s, 3),
        "usual_s": round(alert.usual_s, 3),
        "limit_s": round(alert.limit_s, 3),
        "why": alert.why,
    }
