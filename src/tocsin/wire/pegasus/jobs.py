"""What must be remembered of Pegasus runs while their events come in: little, and bounded.

A job's tries are numbered through the whole workflow (job_inst_id), its DAG comes job by job, and
its end is in several events. All of that can be forgotten: then the plan, the number of a try
or a detail is missing, and never the state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

RUNS_MAX: Final = 1_000
JOBS_MAX: Final = 200_000  # of all runs; up to 1 kB each while they are under way
PLAN_MAX: Final = 1_000_000  # tasks and edges of all runs whose plan was not published yet
TASKS_PER_JOB_MAX: Final = 10_000
PARENTS_MAX: Final = 10_000  # of one job
TRIES_MAX: Final = 1_000  # of one job that are counted
TRIES_KEPT_MAX: Final = 10  # of which more is known; one at a time is under way


@dataclass(slots=True)
class Try:
    """One submission of a job, until its end was published."""

    ended: str | None = None
    """When its main part terminated."""
    exit_code: int | None = None
    failed: bool | None = None
    """What its main part came to; None while that is not known."""
    has_post: bool = False
    """A script runs behind it, and that decides."""
    end_concept: str = ""
    """The concept of its end, once that was published."""
    host: str | None = None
    reason: str | None = None
    """Why it was held, which is often why it fails then."""
    log: str | None = None
    log_file: str | None = None
    command: str | None = None
    cpu_s: float = 0.0
    peak_bytes: int = 0


@dataclass(slots=True)
class Job:
    """One node of the DAG."""

    kind: str = ""
    """What Pegasus calls this kind of job: compute, stage-in-tx and so on."""
    retries_max: int | None = None
    tasks: int = 0
    transformation: str = ""
    parents: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """The submissions so far, as they are numbered in the workflow."""
    forgotten: int = 0
    """Submissions before those."""
    tries: dict[int, Try] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """What its durations may be compared with those of: a cluster is not one of its tasks."""
        if self.tasks > 1:
            return f"cluster of {self.transformation or self.kind}"
        return self.transformation or self.kind

    def attempt(self, number: int) -> int:
        """Which try of the job a submission is."""
        if number not in self.numbers:
            self.numbers.append(number)
            self.numbers.sort()
            del self.numbers[TRIES_MAX:]
        if number not in self.numbers:
            return TRIES_MAX
        return self.forgotten + self.numbers.index(number) + 1

    def is_attempt(self, number: int, attempt: int) -> None:
        """It turned out which try this is: there were others, and we have forgotten them."""
        missing = min(attempt, TRIES_MAX) - self.attempt(number)
        self.forgotten += max(0, missing)

    def try_(self, number: int) -> Try:
        found = self.tries.get(number)
        if found is None:
            found = self.tries[number] = Try()
            if len(self.tries) > TRIES_KEPT_MAX:
                del self.tries[next(iter(self.tries))]
        return found


@dataclass(slots=True)
class Run:
    """One workflow run."""

    id: str
    workflow: str = ""
    planned: str | None = None
    """When it was planned."""
    jobs: dict[str, Job] = field(default_factory=dict)
    transformations: dict[str, str] = field(default_factory=dict)
    """Of the tasks, until the plan is published."""
    edges: int = 0
    """How many parents its jobs have, until the plan is published."""
    is_plan_published: bool = False
    """Once is enough: sent again it would have the same ids, and cost as much as it is long."""


class Runs:
    """The runs of late, as many as fit; the one that was silent longest is forgotten first."""

    def __init__(self, jobs_max: int = JOBS_MAX, plan_max: int = PLAN_MAX) -> None:
        self._jobs_max = jobs_max
        self._plan_max = plan_max
        self._jobs = 0
        self._plan = 0
        self._runs: dict[str, Run] = {}

    def run(self, id: str) -> Run:
        found = self._runs.pop(id, None) or Run(id)
        self._runs[id] = found
        while len(self._runs) > RUNS_MAX:
            self._forget()
        return found

    @property
    def last(self) -> str | None:
        """The run with the latest event."""
        return next(reversed(self._runs), None)

    def job(self, run: Run, id: str) -> Job:
        """The job; one that nobody will remember if this run alone has too many."""
        found = run.jobs.get(id)
        if found is not None:
            return found
        while self._jobs >= self._jobs_max and next(iter(self._runs)) != run.id:
            self._forget()
        found = Job()
        if self._jobs < self._jobs_max:
            run.jobs[id] = found
            self._jobs += 1
        return found

    def task(self, run: Run, id: str, transformation: str) -> None:
        if id in run.transformations or self._has_room(run):
            self._plan += id not in run.transformations
            run.transformations[id] = transformation

    def edge(self, run: Run, parent: str, child: str) -> None:
        """The one job waits for the other."""
        parents = self.job(run, child).parents
        if len(parents) < PARENTS_MAX and self._has_room(run):
            parents.append(parent)
            run.edges += 1
            self._plan += 1

    def plan_published(self, run: Run) -> None:
        """What only the plan was remembered for can go."""
        self._plan -= len(run.transformations) + run.edges
        run.is_plan_published = True
        run.edges = 0
        run.transformations.clear()
        for job in run.jobs.values():
            job.parents = []

    def _has_room(self, run: Run) -> bool:
        """Others' plans go before one's own; False if one's own alone is too long."""
        while self._plan >= self._plan_max and next(iter(self._runs)) != run.id:
            self._forget()
        return self._plan < self._plan_max

    def _forget(self) -> None:
        run = self._runs.pop(next(iter(self._runs)))
        self._jobs -= len(run.jobs)
        self._plan -= len(run.transformations) + run.edges
