"""Hints: activities that ran one after the other although neither needed the other's data."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.monitor.durations import duration_text
from tocsin.wire.api.run_views import HintInfo

TASKS_MAX = 5_000  # of a larger run, the first so many are looked at
LOOK_BACK_MAX = 64  # tasks ended before one started, latest first, that it may have waited for
SLACK_S = 1e-6
TIME_S_MAX = 1e12

# A shorter wait is an engine's own time to start a task.
WAIT_S_MIN = 1.0
WAIT_SHARE_MIN = 0.1  # of the shorter of the two


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """A task that ran: whose output it reads (`data`), which task it has to wait for (`control`).

    `asked_s` is when it was handed to a queue, or tried for the first time: what it waited for
    after that was a slot or itself. `linked` is False if it is unknown what it reads.
    """

    type: str
    started_s: float
    ended_s: float
    data: tuple[int, ...] = ()
    control: tuple[int, ...] = ()
    asked_s: float | None = None
    linked: bool = True

    @property
    def wanted_s(self) -> float:
        """Until when it can have waited for another task."""
        return self.started_s if self.asked_s is None else min(self.asked_s, self.started_s)


def why_no_hints(tasks: Sequence[TaskSpan]) -> str | None:
    """Why there can be no hints; None if there can."""
    if not tasks:
        return "nothing has run to its end yet"
    if not any(task.data or task.control for task in tasks[:TASKS_MAX]):
        return "the engine does not report which activity depends on which"
    return None


def hints(tasks: Sequence[TaskSpan], slots: int) -> list[HintInfo]:
    """What could have run at once, by pairs of types, the most time saved first.

    A task could have started as soon as its data was there and a slot was free. Whatever it waited
    for beyond that is put down to the last task that ended before it started, or to the one that it
    had to wait for. Savings of one pair do not overlap; those of different pairs may. Where
    no dependence was reported, who needs whom is not known, and there are no hints.
    """
    ran = tasks[:TASKS_MAX]
    if why_no_hints(ran) is not None:
        return []
    by_end = sorted(_consistent(ran), key=lambda place: ran[place].ended_s)
    ends_s = [ran[place].ended_s for place in by_end]
    free = _free_times([ran[place] for place in by_end], slots)
    found: dict[tuple[str, str], list[_Wait]] = {}
    for place in by_end:
        task = ran[place]
        if not task.linked:
            continue
        needs = _ancestors(ran, place)
        waited_for = _waited_for(ran, place, by_end, ends_s, needs)
        if waited_for is None:
            continue
        first = ran[waited_for]
        reads = [ran[parent].ended_s for parent in _there(task.data, ran, place)]
        ready_s = max([first.started_s, *reads])
        begin_s = _first_free(free, ready_s, task.wanted_s)
        shorter_s = min(first.ended_s - first.started_s, task.ended_s - task.started_s)
        if task.wanted_s - begin_s >= max(WAIT_S_MIN, WAIT_SHARE_MIN * shorter_s):
            wait = _Wait(begin_s, task.wanted_s, waited_for in task.control)
            found.setdefault((first.type, task.type), []).append(wait)
    made = [_hint(pair, waits) for pair, waits in found.items()]
    return sorted(made, key=lambda hint: (-hint.saves_s, hint.first, hint.second))


@dataclass(frozen=True, slots=True, order=True)
class _Wait:
    begin_s: float
    end_s: float
    is_declared: bool


def _consistent(ran: Sequence[TaskSpan]) -> list[int]:
    """Tasks with times that can be; comparing with what is no number is false."""
    return [
        place for place, task in enumerate(ran) if 0 <= task.started_s <= task.ended_s < TIME_S_MAX
    ]


def _there(places: Sequence[int], ran: Sequence[TaskSpan], itself: int) -> list[int]:
    return [place for place in places if 0 <= place < len(ran) and place != itself]


def _ancestors(ran: Sequence[TaskSpan], place: int) -> set[int]:
    """All tasks whose data it reads, directly or by others."""
    waiting = _there(ran[place].data, ran, place)
    seen = set(waiting)
    while waiting:
        for parent in _there(ran[waiting.pop()].data, ran, place):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return seen


def _waited_for(
    ran: Sequence[TaskSpan],
    place: int,
    by_end: Sequence[int],
    ends_s: Sequence[float],
    needs: set[int],
) -> int | None:
    """Whom it waited for without reading its data: the one it had to, or who ended last."""
    start_s = ran[place].wanted_s + SLACK_S
    controls = [other for other in _there(ran[place].control, ran, place) if other not in needs]
    controls = [other for other in controls if ran[other].ended_s <= start_s]
    if controls:
        return max(controls, key=lambda other: ran[other].ended_s)
    last = bisect_right(ends_s, start_s) - 1
    for other in by_end[max(last + 1 - LOOK_BACK_MAX, 0) : last + 1][::-1]:
        if other != place and ran[other].ended_s > ran[other].started_s:
            return other if other not in needs else None
    return None


def _free_times(tasks: Sequence[TaskSpan], slots: int) -> list[tuple[float, float]]:
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


def _hint(pair: tuple[str, str], waits: Sequence[_Wait]) -> HintInfo:
    """One hint for a pair of types; time saved twice at once is counted once."""
    saves_s, until_s = 0.0, 0.0
    for wait in sorted(waits):
        saves_s += max(wait.end_s - max(wait.begin_s, until_s), 0.0)
        until_s = max(until_s, wait.end_s)
    is_declared = any(wait.is_declared for wait in waits)
    cause = "that order is declared" if is_declared else "the reason for the wait is not known"
    first, second = pair
    count = f"{len(waits)} times" if len(waits) > 1 else "once"
    why = (
        f"{second} waited for {first} {count}, though it reads none of its data and there was "
        f"room for both; {cause}. Side by side they would save up to {duration_text(saves_s)}."
    )
    return HintInfo(first=first, second=second, saves_s=saves_s, why=why)
