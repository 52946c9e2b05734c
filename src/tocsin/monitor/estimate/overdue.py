"""Tasks that run longer than any of their kind did before: what they say of an estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.experience import Experience
from tocsin.monitor.estimate.shape import Shape
from tocsin.monitor.estimate.state import State
from tocsin.monitor.words import lasting

BEYOND = 1.5  # times the longest before: less than that is what happens to the longest of many


@dataclass(frozen=True, slots=True)
class Overdue:
    """The task that is furthest beyond what was seen."""

    name: str
    runs_s: float
    longest_s: float

    @property
    def factor(self) -> float:
        return self.runs_s / self.longest_s

    def __str__(self) -> str:
        return (
            f"a task of {self.name or 'no name'} has been running for {lasting(self.runs_s)}, "
            f"and none took more than {lasting(self.longest_s)} before"
        )


def most_overdue(
    shape: Shape, state: State, past: Sequence[Experience], pace: float | None
) -> Overdue | None:
    """Who runs far longer than ever before, if anybody does, and not because all here is slow."""
    beyond = BEYOND * max(pace or 1.0, 1.0)
    longest_s: dict[str, float | None] = {}
    found: Overdue | None = None
    for index, started_s in state.running.items():
        name = shape.types[index]
        if name not in longest_s:
            longest_s[name] = _longest_s(name, past)
        before_s = longest_s[name]
        runs_s = state.elapsed_s - started_s
        if before_s is None or runs_s <= beyond * before_s:
            continue
        each = Overdue(name, runs_s, before_s)
        if found is None or each.factor > found.factor:
            found = each
    return found


def _longest_s(name: str, past: Sequence[Experience]) -> float | None:
    seen = [run.lasted_s(name) for run in past]
    found = [float(np.max(each)) for each in seen if len(each)]
    return max(found, default=0.0) or None
