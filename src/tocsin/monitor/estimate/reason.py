"""The reason for an estimate, in two short sentences: critical path, slowest activity; pace."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from tocsin.monitor.durations import duration_text
from tocsin.monitor.estimate.bounds import Overdue
from tocsin.monitor.estimate.remaining import Rest
from tocsin.monitor.estimate.shape import Shape
from tocsin.monitor.estimate.state import State

STEPS_MAX = 3  # of a long path, the longest steps are named
PACE_WORTH_TELLING = 1.1
FACTOR_SHOWN_MAX = 100
UNNAMED = "tasks not named yet"


def explain(
    shape: Shape,
    state: State,
    rest: Rest,
    path: Sequence[int],
    *,
    has_past: bool,
    overdue: Overdue | None = None,
) -> str:
    """What decides when this run ends."""
    pace = _pace(rest.pace) if has_past else "there is no past run to compare with"
    if overdue is not None:
        pace = str(overdue)
    if not path:
        return _sentence(pace)
    parts = [
        part for part in (_path(shape, rest, path), _slowest(shape, state, rest, path)) if part
    ]
    return f"{_sentence('; '.join(parts))} {_sentence(pace)}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _pace(pace: float | None) -> str:
    if pace is None:
        return "nothing has ended yet, so its pace is that of past runs"
    if pace > PACE_WORTH_TELLING:
        return f"activities take {_times(pace)} as long as usual"
    if pace < 1 / PACE_WORTH_TELLING:
        return f"activities are {_times(1 / pace)} as fast as usual"
    return "the pace is as usual"


def _times(factor: float) -> str:
    return f"{factor:.1f} times" if factor < FACTOR_SHOWN_MAX else f"over {FACTOR_SHOWN_MAX} times"


def _lasts(rest: Rest, index: int) -> float:
    table = rest.timetable
    return (table.ends[index] - table.starts[index]) * rest.drag


def _path(shape: Shape, rest: Rest, path: Sequence[int]) -> str:
    steps = []
    for name, group in groupby(path, key=lambda index: shape.types[index]):
        indexes = list(group)
        label = f"{name or UNNAMED} x {len(indexes)}" if len(indexes) > 1 else name or UNNAMED
        steps.append((label, sum(_lasts(rest, index) for index in indexes)))
    total_s = sum(lasts for _, lasts in steps)
    worth = sorted((lasts for _, lasts in steps), reverse=True)[:STEPS_MAX][-1]
    named = [f"{label} ({duration_text(lasts)})" for label, lasts in steps if lasts >= worth][
        :STEPS_MAX
    ]
    more = len(steps) - len(named)
    rest_of_it = f" and {more} shorter" if more else ""
    way = ", ".join(named)
    in_all = f", {duration_text(total_s)} in all" if len(steps) > 1 else ""
    return f"the critical path is {way}{rest_of_it}{in_all}"


def _slowest(shape: Shape, state: State, rest: Rest, path: Sequence[int]) -> str:
    """The type with the most work left, unless the critical path is all there is."""
    over = set(state.ended)
    work: dict[str, tuple[int, float]] = {}
    for index, name in enumerate(shape.types):
        if index not in over:
            count, lasts = work.get(name, (0, 0.0))
            work[name] = count + 1, lasts + _lasts(rest, index)
    if sum(count for count, _ in work.values()) <= len(path):
        return ""
    name, (count, lasts) = max(work.items(), key=lambda item: item[1][1])
    return f"the most work is left in {name or UNNAMED} ({count:,} to go, {duration_text(lasts)})"
