"""Which numbers say how much a task has to do: found out from past runs, for each type by itself.

A command may name a count of records, a seed and a place in a list; nobody says which is which. A
number is believed if, with it, runs that were left out would have been explained better: not only
some of them, and by more than chance would. It then counts as input of its tasks does (`shape`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tocsin.monitor.estimate.run_digest import slope
from tocsin.monitor.estimate.shape import Amount, Floats, Shape, compile_plan, numbers_of
from tocsin.monitor.estimate.state import log_runtime
from tocsin.monitor.estimate.types import PastRun

NAMES_MAX = 16  # of one type
LEFT_MAX = 0.8  # of the squared errors: a number that explains less is not worth its risk
GAIN_MIN = 6.0  # twice the logarithm of how much likelier runs left out must be with a number

Amounts = Mapping[str, Amount]


@dataclass(frozen=True, slots=True)
class _Run:
    """A past run: its plan compiled without any number, and which tasks took how long."""

    run: PastRun
    shape: Shape
    logs: Floats


def amounts_in(past: Sequence[PastRun]) -> Amounts:
    """By type, the number that explains its tasks best, and whether those after them follow it."""
    with_numbers = {task.type for run in past for task in run.plan.tasks if task.numbers}
    if len(past) < 2 or not with_numbers:
        return {}
    runs = [_Run(run, shape := compile_plan(run.plan), _logs(run, shape)) for run in past]
    found: dict[str, Amount] = {}
    for name in sorted(with_numbers):
        number = _best_number(name, runs)
        if number is not None:
            found[name] = Amount(number, handed_on=True)
    return _handed_on(found, runs)


def _logs(run: PastRun, shape: Shape) -> Floats:
    """The logarithm of each task's runtime; NaN for one whose runtime is not known."""
    logs = np.full(shape.count, math.nan)
    for index, done in run.done.items():
        if 0 <= index < shape.count and done.runtime_s > 0:
            logs[index] = log_runtime(done)
    return logs


def _best_number(name: str, runs: Sequence[_Run]) -> str | None:
    """The number of this type that is to be believed, if any is."""
    having = [each for each in runs if name in each.shape.members]
    tasks = (
        each.run.plan.tasks[index]
        for each in having
        for index in each.shape.members[name].tolist()
        if index < len(each.run.plan.tasks)
    )
    names = list(
        islice(dict.fromkeys(number for task in tasks for number, _ in task.numbers), NAMES_MAX)
    )
    plain = [_within(each, name, each.shape.flow) for each in having]
    best, least = None, math.inf
    for number in names:
        beside = [
            _within(each, name, each.shape.flow + np.log1p(numbers_of(each.run.plan, name, number)))
            for each in having
        ]
        error = _error_if_believed(plain, beside, len(names))
        if error is not None and error < least:
            best, least = number, error
    return best


_Pairs = tuple[Floats, Floats]


def _within(each: _Run, name: str, sizes: Floats) -> _Pairs:
    """How the tasks of a type differ from their run's mean: in size, and in time."""
    at = each.shape.members.get(name, np.array([], dtype=np.intp))
    at = at[np.isfinite(each.logs[at]) & np.isfinite(sizes[at])]
    if len(at) < 2:
        return np.zeros(0), np.zeros(0)
    return sizes[at] - sizes[at].mean(), each.logs[at] - each.logs[at].mean()


def _error_if_believed(
    plain: Sequence[_Pairs], beside: Sequence[_Pairs], tried: int
) -> float | None:
    """The squared error of runs left out with a number; None if they are not much better for it."""
    both = [
        (one, other)
        for one, other in zip(plain, beside, strict=True)
        if len(one[0]) == len(other[0]) > 1
    ]
    without = _errors_left_out([one for one, _ in both])
    with_it = _errors_left_out([other for _, other in both])
    if len(both) < 2 or float(with_it.sum()) > LEFT_MAX * float(without.sum()):
        return None
    free = sum(len(one[0]) - 1 for one, _ in both)
    gain = free * math.log(float(without.sum()) / max(float(with_it.sum()), 1e-12))
    better = int((with_it < without).sum())
    is_believed = gain > GAIN_MIN + 2 * math.log(tried) and 2 * better > len(both)
    return float(with_it.sum()) if is_believed else None


def _errors_left_out(pairs: Sequence[_Pairs]) -> Floats:
    """The squared errors of each run, if time grows with size as it did in the others."""
    squares = np.array([float(size @ size) for size, _ in pairs])
    products = np.array([float(size @ time) for size, time in pairs])
    grows = [
        slope(squares.sum() - own, products.sum() - other)
        for own, other in zip(squares, products, strict=True)
    ]
    return np.array(
        [
            float(((time - each * size) ** 2).sum())
            for (size, time), each in zip(pairs, grows, strict=True)
        ]
    )


def _handed_on(found: Amounts, runs: Sequence[_Run]) -> Amounts:
    """Those after such tasks have more to do too, unless that explains them worse."""
    chosen = dict(found)
    for name, amount in found.items():
        alone = {**chosen, name: Amount(amount.number, handed_on=False)}
        if _error_of_all(runs, alone) < _error_of_all(runs, chosen):
            chosen = alone
    return chosen


def _error_of_all(runs: Sequence[_Run], amounts: Amounts) -> float:
    """How badly runs left out are explained, over all types, each by its own scatter."""
    shapes = [compile_plan(each.run.plan, amounts=amounts) for each in runs]
    total = 0.0
    for name in {name for shape in shapes for name in shape.members}:
        pairs = [_within(each, name, shape.flow) for each, shape in zip(runs, shapes, strict=True)]
        free = sum(max(len(size) - 1, 0) for size, _ in pairs)
        if free:
            total += free * math.log(max(float(_errors_left_out(pairs).sum()), 1e-12))
    return total
