"""From what was folded to what an estimate is made from: the plan, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_high
from typing import Final

from tocsin.event.instant import seconds_between
from tocsin.monitor.end_states import DONE_ACTIVITY, ENDED_ACTIVITY
from tocsin.monitor.estimate.types import Done, PastRun, Plan, Planned, RunProgress
from tocsin.monitor.fold import Row, latest
from tocsin.monitor.hints import TaskSpan
from tocsin.monitor.states import AttemptTimes, attempt_times, in_run
from tocsin.monitor.views import inherited, planned_counts, planned_total

CORES_MAX: Final = 1_000_000
_ASKED: Final = ("queued", "started")  # the moments from which on it waited for no other task


@dataclass(frozen=True, slots=True)
class Task:
    """An activity as estimates and hints see it: its last attempt, and its place by any of them.

    `asked_ns` is when the first attempt was queued or began. A task that is `open` may bring more
    tasks when it ends, as a checkpoint does.
    """

    name: str
    type: str
    version: str
    state: str
    times: AttemptTimes
    parents: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    input_bytes: int | None = None
    output_bytes: int | None = None
    external_bytes: int | None = None
    start_received_ns: int | None = None
    """When the event of its start was received."""
    asked_ns: int | None = None
    open: bool = False
    numbers: tuple[tuple[str, float], ...] = ()
    """Those that its command names, by name."""


def task_of(
    name: str, kind: str, version: str, last: Row, run_is: str, attempts: Mapping[int, Row]
) -> Task:
    """An activity by its last attempt's row; `attempts` are the rows of all, if it has several."""
    times = attempt_times(last)
    row = {**inherited(attempts), **last}
    named = [each["numbers"] for each in (*attempts.values(), last) if "numbers" in each]
    numbers: Mapping[str, float] = max(named, key=lambda cell: cell[:2])[2] if named else {}
    asked = [each[at] for each in (*attempts.values(), last) for at in _ASKED if at in each]
    return Task(
        name=name,
        type=kind,
        version=version,
        state=in_run(times.state, run_is),
        times=times,
        parents=tuple(row.get("parents", ())),
        inputs=tuple(row.get("inputs", ())),
        outputs=tuple(row.get("outputs", ())),
        input_bytes=latest(row, "input_bytes"),
        output_bytes=latest(row, "output_bytes"),
        external_bytes=latest(row, "external_bytes"),
        start_received_ns=row.get("started_heard", row.get("last_received")),
        asked_ns=min(asked, default=None),
        open="open" in row,
        numbers=tuple(numbers.items()),
    )


def edges_of(tasks: Sequence[Task]) -> list[tuple[int, ...]]:
    """Which tasks each one waits for: as reported, or else by the files that pass between them.

    Reported dependences are not mixed with those of files: an engine reports all or none.
    """
    place = {task.name: index for index, task in enumerate(tasks)}
    if any(task.parents for task in tasks):
        return [
            tuple(sorted({place[each] for each in task.parents if each in place} - {index}))
            for index, task in enumerate(tasks)
        ]
    maker = {path: index for index, task in enumerate(tasks) for path in task.outputs}
    return [
        tuple(sorted({maker[path] for path in task.inputs if path in maker} - {index}))
        for index, task in enumerate(tasks)
    ]


def executed_tasks(tasks: Sequence[Task]) -> list[TaskSpan]:
    """The tasks that ran from a start to an end, in seconds since the first of them began.

    A task that is to wait for another, and reads none of its files although both name theirs, waits
    for the order's sake and not for data.
    """
    ran = [task for task in tasks if task.times.duration_s is not None and task.times.started_ns]
    first_ns = min((task.times.started_ns or 0 for task in ran), default=0)
    tells_all = any(task.parents for task in ran)  # as in `edges_of`
    found: list[TaskSpan] = []
    for task, parents in zip(ran, edges_of(ran), strict=True):
        control = tuple(each for each in parents if _reads_nothing(task, ran[each]))
        started_s = seconds_between(first_ns, task.times.started_ns or first_ns)
        found.append(
            TaskSpan(
                task.type,
                started_s,
                started_s + (task.times.duration_s or 0.0),
                tuple(each for each in parents if each not in control),
                control,
                None if task.asked_ns is None else seconds_between(first_ns, task.asked_ns),
                linked=tells_all or bool(task.inputs or task.outputs),
            )
        )
    return found


def _reads_nothing(task: Task, parent: Task) -> bool:
    if not task.inputs or not parent.outputs:
        return False
    made = set(parent.outputs)
    return not any(_lies_in(path, made) for path in task.inputs)


def _lies_in(path: str, made: set[str]) -> bool:
    """Whether a file is one of these, or in a directory that is: a task may make a whole one."""
    while path and path not in made:
        path = path.rpartition("/")[0]
    return bool(path)


@dataclass(frozen=True, slots=True)
class Growth:
    """How the plan of a run grew: the first reported total, and how many totals there were."""

    first: int
    totals: int


def growth_of(row: Row, known: int = 0) -> Growth | None:
    """How the plan grew, with all that became `known` without a word; None without a total."""
    totals = {int(each) for each in row.get("planned_totals", ()) if each.isdecimal()}
    if not totals:
        return None
    unannounced = known > max(totals)
    return Growth(min(totals), len(totals) + unannounced)


def may_grow(tasks: Sequence[Task], row: Row, past: Sequence[Growth]) -> bool:
    """True if more tasks are to be expected than were reported.

    A checkpoint has not been reached; or most past runs that began with the same plan, or else most
    of all, grew more often than this one has.
    """
    if any(task.open and task.state not in ENDED_ACTIVITY for task in tasks):
        return True
    here = growth_of(row)
    if here is None or not past:
        return False
    alike = [each.totals for each in past if each.first == here.first]
    return here.totals < median_high(alike or [each.totals for each in past])


def plan_of(
    tasks: Sequence[Task], row: Row, *, cores: int, ended: bool, past: Sequence[Growth] = ()
) -> Plan:
    """What the run is to do, as far as it is known; of a run that has ended, all of it.

    `past` is how the plans of past runs grew.
    """
    known = tuple(
        Planned(
            task.type, parents, task.external_bytes, task.version, task.input_bytes, task.numbers
        )
        for task, parents in zip(tasks, edges_of(tasks), strict=True)
    )
    machines = latest(row, "planned_machines")
    counts = planned_counts(row)
    total = planned_total(row)
    is_declared = "plan" in row or bool(counts) or total is not None
    if not ended and not counts and total is not None and total > len(known):
        counts = _counted(tasks)
        counts[""] = counts.get("", 0) + total - len(known)
    return Plan(
        tasks=known,
        machines=int(machines) if machines is not None and 1 <= machines <= CORES_MAX else 1,
        cores=cores,
        version=latest(row, "version") or "",
        whole=ended or (is_declared and not may_grow(tasks, row, past)),
        counts={} if ended else counts,
    )


def progress_of(plan: Plan, tasks: Sequence[Task], began_ns: int, elapsed_s: float) -> RunProgress:
    """How far the run has come. What failed for good is not waited for."""
    running = {
        index: _since(began_ns, task.times.started_ns) or 0.0
        for index, task in enumerate(tasks)
        if task.state in ("running", "held")
    }
    return RunProgress(plan, elapsed_s, _done(tasks, began_ns), running)


def past_run(
    run_id: str,
    plan: Plan,
    tasks: Sequence[Task],
    began_ns: int,
    makespan_s: float,
    settled_seq: int = 0,
    last_received_ns: int | None = None,
) -> PastRun:
    return PastRun(plan, makespan_s, _done(tasks, began_ns), run_id, settled_seq, last_received_ns)


def cores_of(row: Row, tasks: Sequence[Task], usual: int = 1) -> int:
    """How many can run at a time: as was announced, or else as many as were seen to, or usually."""
    announced = latest(row, "planned_cores")
    if announced is not None and 1 <= announced <= CORES_MAX:
        return int(announced)
    return max(most_at_once(tasks), usual, 1)


def most_at_once(tasks: Sequence[Task]) -> int:
    """The greatest number of tasks that ran at the same moment."""
    turns: list[tuple[int, int]] = []
    for task in tasks:
        started_ns, ended_ns = task.times.started_ns, task.times.ended_ns
        if started_ns is not None:
            turns.append((started_ns, +1))
            if ended_ns is not None and ended_ns >= started_ns:
                turns.append((ended_ns, -1))  # sorts before a start at the same moment
    now = most = 0
    for _, change in sorted(turns):
        now += change
        most = max(most, now)
    return most


def _done(tasks: Sequence[Task], began_ns: int) -> Mapping[int, Done]:
    found: dict[int, Done] = {}
    for index, task in enumerate(tasks):
        if task.state not in ENDED_ACTIVITY:
            continue
        times = task.times
        took_s = times.duration_s if times.duration_s is not None else 0.0
        is_known = task.state in DONE_ACTIVITY and times.duration_s is not None
        found[index] = Done(
            runtime_s=took_s,
            started_s=_since(began_ns, times.started_ns) if is_known else None,
            ended_s=_since(began_ns, times.ended_ns) if is_known else None,
            in_bytes=task.input_bytes,
            out_bytes=task.output_bytes,
        )
    return found


def _since(began_ns: int, moment_ns: int | None) -> float | None:
    return None if moment_ns is None else max(0.0, seconds_between(began_ns, moment_ns))


def _counted(tasks: Sequence[Task]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task.type] = counts.get(task.type, 0) + 1
    return counts
