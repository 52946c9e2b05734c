"""What a run cannot do without: the least time that is left, if all goes as fast as it ever did."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tocsin.monitor.estimate.experience import Experience
from tocsin.monitor.estimate.shape import Shape
from tocsin.monitor.estimate.state import State

LESS = 0.8  # of the input of a past run, or of its tasks of a type: with less, that was larger


def least_left_s(shape: Shape, state: State, past: Sequence[Experience]) -> float:
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


def _fastest_s(shape: Shape, state: State, past: Sequence[Experience]) -> Mapping[str, float]:
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
