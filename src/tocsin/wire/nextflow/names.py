"""Names: which tasks of a Nextflow run are tries of one activity.

A task that is tried again gets a new task_id and a new hash; what stays is its name, and `attempt`
goes up. The name alone will not do either, because a pipeline may give one tag to many tasks. So
the first task of a name is called by it, another one that is no retry gets its number behind it,
and a retry is taken for the oldest one of its name that failed to be tried again.

What is remembered is lost when the broker stops. Then only tasks that share their name with
another, and were under way meanwhile, may be taken for each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

RUNS_MAX: Final = 1_000
TASKS_MAX: Final = 500_000  # of all runs; some 200 bytes each


@dataclass(slots=True)
class _Run:
    workflow: str = ""
    holders: dict[str, int] = field(default_factory=dict)
    """Which task has the plain name now: the latest try of whoever came first."""
    others: dict[int, str] = field(default_factory=dict)
    """The activity of each task that is not the holder of its name."""
    waiting: dict[tuple[str, int], dict[str, None]] = field(default_factory=dict)
    """Activities that will be tried again, by name and the attempt that failed; the oldest first.
    """


class Names:
    """The runs of late, as many as fit; the one that was silent longest is forgotten first."""

    def __init__(self, tasks_max: int = TASKS_MAX) -> None:
        self._tasks_max = tasks_max
        self._runs: dict[str, _Run] = {}
        self._tasks = 0

    def started(self, run: str, workflow: str) -> None:
        """Of which workflow this is a run; only its first and last messages say so."""
        self._run(run).workflow = workflow

    def workflow(self, run: str) -> str:
        known = self._runs.get(run)
        return "" if known is None else known.workflow

    def activity(self, run: str, task: int | None, name: str, attempt: int) -> str:
        """What the activity is called of which this task is a try."""
        if task is None:
            return name
        known = self._run(run)
        if task in known.others:
            return known.others[task]
        holder = known.holders.get(name)
        if holder == task:
            return name
        self._make_room(run)
        self._tasks += 1
        if holder is None:
            known.holders[name] = task
            return name
        if attempt <= 1:
            known.others[task] = f"{name} #{task}"
            return known.others[task]
        activity = self._next_waiting(known, name, attempt - 1) or name
        if activity == name:
            known.others[holder] = name
            known.holders[name] = task
        else:
            known.others[task] = activity
        return activity

    def will_retry(self, run: str, activity: str, name: str, attempt: int) -> None:
        """This try failed, and Nextflow said that there will be another."""
        known = self._run(run)
        if activity not in known.waiting.get((name, attempt), ()):
            self._make_room(run)
            self._tasks += 1
            known.waiting.setdefault((name, attempt), {})[activity] = None

    def _next_waiting(self, known: _Run, name: str, attempt: int) -> str | None:
        waiting = known.waiting.get((name, attempt))
        if waiting is None:
            return None
        activity = next(iter(waiting))
        del waiting[activity]
        self._tasks -= 1
        if not waiting:
            del known.waiting[name, attempt]
        return activity

    def _run(self, run: str) -> _Run:
        known = self._runs.pop(run, None) or _Run()
        self._runs[run] = known  # the last one is the one with the latest post
        while len(self._runs) > RUNS_MAX:
            self._forget(next(iter(self._runs)))
        return known

    def _make_room(self, run: str) -> None:
        """Forget others' tasks before one's own, and one's own if there are no others."""
        if self._tasks < self._tasks_max:
            return
        oldest = next(iter(self._runs))
        if oldest != run:
            self._forget(oldest)
            return
        known = self._runs[run]
        known.holders.clear()
        known.others.clear()
        known.waiting.clear()
        self._tasks = 0

    def _forget(self, run: str) -> None:
        known = self._runs.pop(run)
        waiting = sum(map(len, known.waiting.values()))
        self._tasks -= len(known.holders) + len(known.others) + waiting
