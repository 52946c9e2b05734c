"""Hints: activities that ran one after the other although neither needed the other's data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TASKS_MAX = 5_000  # of a larger run, the first so many are looked at
LOOK_BACK_MAX = 64  # tasks ended before one started, latest first, that it may have waited for
SAVES_S_MIN = 1.0
SLACK_S = 1e-6


@dataclass(frozen=True, slots=True)
class Ran:
    """A task that ran: `data` are the tasks whose output it reads, `control` those it was told to
    wait for."""

    type: str
    started_s: float
    ended_s: float
    data: tuple[int, ...] = ()
    control: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Hint:
    """`second` waited for `first` without need; together they would have saved so many seconds."""

    first: str
    second: str
    saves_s: float
    why: str


def hints(tasks: Sequence[Ran], slots: int) -> list[Hint]:
    """What could have run at once, by pairs of types, the most time saved first.

    A task could have started as soon as its data was there and a slot was free. Whatever it waited
    for beyond that is put down to the last task that ended before it started, or to the one that it
    was told to wait for. Savings of one pair do not overlap; those of different pairs may.
    """
    known = [task for task in tasks[:TASKS_MAX] if task.ended_s >= task.started_s]
    number = {id(task): place for place, task in enumerate(tasks[:TASKS_MAX])}
    free = _free_times(known, slots)
    by_end = sorted(known, key=lambda task: task.ended_s)
    found: dict[tuple[str, str], list[tuple[float, float, bool]]] = {}
    for task in known:
        needs = _ancestors(tasks, task, number[id(task)])
        ready_s = max((tasks[parent].ended_s for parent in needs[0]), default=0.0)
        waited_for = _waited_for(tasks, task, by_end, needs[1], number)
        if waited_for is None:
            continue
        first, told = waited_for
        begin_s = max(ready_s, first.started_s, _first_free(free, ready_s, task.started_s))
        if task.started_s - begin_s >= SLACK_S:
            found.setdefault((first.type, task.type), []).append((begin_s, task.started_s, told))
    made = [_hint(pair, spans) for pair, spans in found.items()]
    return sorted(
        (hint for hint in made if hint.saves_s >= SAVES_S_MIN),
        key=lambda hint: (-hint.saves_s, hint.first, hint.second),
    )


def _ancestors(tasks: Sequence[Ran], task: Ran, place: int) -> tuple[list[int], set[int]]:
    """The tasks whose data it reads, and all that those in turn read from."""
    direct = [parent for parent in task.data if 0 <= parent < len(tasks) and parent != place]
    seen = set(direct)
    waiting = list(direct)
    while waiting:
        for parent in tasks[waiting.pop()].data:
            if 0 <= parent < len(tasks) and parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return direct, seen


def _waited_for(
    tasks: Sequence[Ran],
    task: Ran,
    by_end: Sequence[Ran],
    needs: set[int],
    number: dict[int, int],
) -> tuple[Ran, bool] | None:
    """Whom it waited for without reading its data, and whether it was told to."""
    told = [tasks[place] for place in task.control if 0 <= place < len(tasks)]
    told = [other for other in told if number[id(other)] not in needs]
    if told:
        return max(told, key=lambda other: other.ended_s), True
    last = _place_before(by_end, task.started_s + SLACK_S)
    for place in range(last, max(last - LOOK_BACK_MAX, -1), -1):
        other = by_end[place]
        if other is task or other.ended_s <= other.started_s:
            continue
        return (other, False) if number[id(other)] not in needs else None
    return None


def _place_before(by_end: Sequence[Ran], time_s: float) -> int:
    low, high = 0, len(by_end)
    while low < high:
        middle = (low + high) // 2
        if by_end[middle].ended_s <= time_s:
            low = middle + 1
        else:
            high = middle
    return low - 1


def _free_times(tasks: Sequence[Ran], slots: int) -> list[tuple[float, float]]:
    """When at least one slot was free, as spans of time in order."""
    changes = sorted(
        [(task.started_s, 1) for task in tasks] + [(task.ended_s, -1) for task in tasks]
    )
    spans: list[tuple[float, float]] = []
    busy, since_s = 0, 0.0
    for time_s, change in changes:
        if busy < max(slots, 1) and time_s > since_s:
            spans.append((since_s, time_s))
        busy += change
        since_s = time_s
    return spans


def _first_free(spans: Sequence[tuple[float, float]], after_s: float, before_s: float) -> float:
    """The start of the free time that lasts until `before_s`, not before `after_s`."""
    begin_s = before_s
    for start_s, end_s in reversed(spans):
        if start_s >= begin_s:
            continue
        if end_s < begin_s - SLACK_S:
            break
        begin_s = start_s
        if begin_s <= after_s:
            break
    return max(begin_s, after_s)


def _hint(pair: tuple[str, str], spans: Sequence[tuple[float, float, bool]]) -> Hint:
    """One hint for a pair of types; time saved twice at once is counted once."""
    saves_s, until_s = 0.0, float("-inf")
    for begin_s, end_s, _ in sorted(spans):
        saves_s += max(end_s - max(begin_s, until_s), 0.0)
        until_s = max(until_s, end_s)
    told = any(told for *_, told in spans)
    cause = "an order that was declared" if told else "nothing that is known"
    first, second = pair
    count = f"{len(spans)} times" if len(spans) > 1 else "once"
    why = (
        f"{second} waited for {first} {count} though it reads none of its data and a slot was "
        f"free; the cause is {cause}. Side by side they would save up to {saves_s:,.1f} s."
    )
    return Hint(first, second, saves_s, why)
