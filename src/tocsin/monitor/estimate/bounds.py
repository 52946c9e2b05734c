"""What a run cannot do without: the least time that is left, if all goes as fast as it ever did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.durations import duration_text
from tocsin.monitor.estimate.run_digest import RunDigest
from tocsin.monitor.estimate.shape import Shape
from tocsin.monitor.estimate.state import State

LESS = 0.8  # of the input of a past run, or of its tasks of a type: with less, that was larger


def least_left_s(shape: Shape, state: State, past: Sequence[RunDigest]) -> float:
    """The longest chain of tasks that have not ended, and all of them shared among the slots, each
    task as short as the shortest of its type in this run and in past ones.

    A type that never ended takes no time. Past runs of larger input alone say nothing here: how
    short a task of less input can be is not known from them.
    """
    fastest_s = _fastest_s(shape, state, past)
    left_s = [fastest_s.get(name, 0.0) for name in shape.types]
    for index in state.ended:
        left_s[index] = 0.0
    for index, started_s in state.running.items():
        left_s[index] = max(left_s[index] - (state.elapsed_s - started_s), 0.0)
    return max(_longest_chain_s(shape, left_s), sum(left_s) / shape.slots)


def _fastest_s(shape: Shape, state: State, past: Sequence[RunDigest]) -> Mapping[str, float]:
    found: dict[str, float] = {}
    no_larger = [run for run in past if LESS * run.shape.external_bytes <= shape.external_bytes]
    for name, indexes in shape.members.items():
        most = float(shape.flow[indexes].mean()) - math.log(LESS)
        for run in no_larger:
            if name in run.fastest_s and run.types[name].flow <= most:
                found[name] = min(run.fastest_s[name], found.get(name, math.inf))
    ended = np.asarray(state.ended, dtype=np.intp)
    for index, seconds in zip(
        ended.tolist(), (state.ends[ended] - state.starts[ended]).tolist(), strict=True
    ):
        if seconds >= 0:  # and not unknown
            name = shape.types[index]
            found[name] = min(seconds, found.get(name, seconds))
    return found


def _longest_chain_s(shape: Shape, left_s: Sequence[float]) -> float:
    """Tasks on a cycle are passed over."""
    ends = [0.0] * shape.count
    waits = [len(above) for above in shape.parents]
    order = [index for index, wait in enumerate(waits) if not wait]
    for index in order:
        ends[index] += left_s[index]
        for child in shape.children[index]:
            ends[child] = max(ends[child], ends[index])
            waits[child] -= 1
            if not waits[child]:
                order.append(child)
    return max((ends[index] for index in order), default=0.0)


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
            f"a task of {self.name or 'no name'} has been running for "
            f"{duration_text(self.runs_s)}, and none took more than "
            f"{duration_text(self.longest_s)} before"
        )


def most_overdue(
    shape: Shape, state: State, past: Sequence[RunDigest], pace: float | None
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


def _longest_s(name: str, past: Sequence[RunDigest]) -> float | None:
    seen = [run.lasted_s(name) for run in past]
    found = [float(np.max(each)) for each in seen if len(each)]
    return max(found, default=0.0) or None
