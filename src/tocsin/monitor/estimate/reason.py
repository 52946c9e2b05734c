"""The reason for an estimate, in one sentence: critical path, slowest activity, pace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tocsin.monitor.estimate.remaining import Rest
from tocsin.monitor.estimate.shape import Shape
from tocsin.monitor.estimate.state import State

STEPS_MAX = 4  # of a long path, the longest steps are named
PACE_WORTH_TELLING = 1.1


def say_why(shape: Shape, state: State, rest: Rest, path: Sequence[int]) -> str:
    """What decides when this run ends."""
    parts = []
    if path:
        parts.append(_path(shape, rest, path))
        parts.append(_slowest(shape, state, rest))
    pace = rest.pace
    if pace is None:
        parts.append("nothing has ended yet, so its pace is that of past runs")
    elif pace > PACE_WORTH_TELLING:
        parts.append(f"activities take {pace:.2g} times as long as usual")
    elif pace < 1 / PACE_WORTH_TELLING:
        parts.append(f"activities take {pace:.2g} of their usual time")
    else:
        parts.append("the pace is as usual")
    sentence = "; ".join(part for part in parts if part)
    return sentence[0].upper() + sentence[1:] + "."


def _lasts(rest: Rest, index: int) -> float:
    table = rest.timetable
    return (table.ends[index] - table.starts[index]) * rest.drag


def _path(shape: Shape, rest: Rest, path: Sequence[int]) -> str:
    steps = []
    for name, group in groupby(path, key=lambda index: shape.types[index]):
        indexes = list(group)
        label = f"{name} x {len(indexes)}" if len(indexes) > 1 else name
        steps.append((label, sum(_lasts(rest, index) for index in indexes)))
    total_s = sum(lasts for _, lasts in steps)
    worth = sorted((lasts for _, lasts in steps), reverse=True)[:STEPS_MAX][-1]
    named = [f"{label} ({_seconds(lasts)})" for label, lasts in steps if lasts >= worth]
    more = len(steps) - len(named)
    rest_of_it = f" and {more} shorter" if more else ""
    way = ", ".join(named[: STEPS_MAX + 1])
    return f"the critical path is {way}{rest_of_it}, {_seconds(total_s)} in all"


def _slowest(shape: Shape, state: State, rest: Rest) -> str:
    over = set(state.ended)
    work: dict[str, tuple[int, float]] = {}
    for index, name in enumerate(shape.types):
        if index not in over:
            count, lasts = work.get(name, (0, 0.0))
            work[name] = count + 1, lasts + _lasts(rest, index)
    if not work:
        return ""
    name, (count, lasts) = max(work.items(), key=lambda item: item[1][1])
    return f"the most work is left in {name} ({count:,} to go, {_seconds(lasts)})"


def _seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 100 else f"{value:.2g} s"
