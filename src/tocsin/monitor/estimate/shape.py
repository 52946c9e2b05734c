"""A plan made ready for arithmetic: who waits for whom, how many of each type, how much data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.monitor.estimate.types import Plan, Planned

Floats = NDArray[np.float64]
Indexes = NDArray[np.intp]

# A plan beyond these is cut: an estimate must answer in milliseconds whatever its input is.
TASKS_MAX = 200_000
SLOTS_MAX = 10_000_000
BYTES_MAX = 1e18

# Two runs are of one size if they have as many tasks, and as many bytes to two digits.
SIZE_DIGITS = 2


# Fewer of a type's tasks with a number than this share, and the number is not used.
KNOWN_MIN = 0.5


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of a type's tasks that says how much they have to do, as bytes of input do.

    It is `handed_on` if those who wait for them have more to do, too.
    """

    number: str
    handed_on: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """A plan, compiled. `flow` is the logarithm of the external bytes that reach each task, or of
    what stands for them (`Amount`); `external_bytes` are all of these.

    `inputs` are the bytes that each task reads; NaN where they are not known. `edges` are those
    who wait and those they wait for, a place for each pair.
    """

    types: tuple[str, ...]
    versions: Mapping[str, str]
    members: Mapping[str, Indexes]
    parents: Sequence[Sequence[int]]
    children: Sequence[Sequence[int]]
    edges: tuple[Indexes, Indexes]
    flow: Floats
    inputs: Floats
    external_bytes: float
    machines: int
    slots: int

    @property
    def count(self) -> int:
        return len(self.types)

    @property
    def size(self) -> tuple[int, float]:
        """What must be equal for two runs to be of one size."""
        return self.count, float(f"{self.external_bytes:.{SIZE_DIGITS - 1}e}")

    def over_parents(self, values: Floats, known: Floats) -> tuple[Floats, Floats]:
        """For each task the mean of its parents' values that are known, and how many of them are.

        `known` is 1 or less for each task; the second answer is a share, 0 for who has no parents.
        """
        below, above = self.edges
        parents = np.bincount(below, minlength=self.count)
        weights = np.bincount(below, known[above], minlength=self.count)
        sums = np.bincount(below, (values * known)[above], minlength=self.count)
        return sums / np.maximum(weights, 1e-9), weights / np.maximum(parents, 1)


def compile_plan(
    plan: Plan,
    usual: Mapping[str, int] | None = None,
    amounts: Mapping[str, Amount] | None = None,
) -> Shape:
    """The shape of `plan`. Tasks that are announced, or `usual` in an unfinished plan, are added.

    They have no parents, as theirs are unknown. `amounts` are, by type, the numbers
    that count as input.
    """
    tasks = [*plan.tasks[:TASKS_MAX]]
    tasks += _announced(plan, tasks, usual or {})
    parents = _sound_parents(tasks)
    children: list[list[int]] = [[] for _ in tasks]
    for index, above in enumerate(parents):
        for parent in above:
            children[parent].append(index)
    external = [_bytes(task.external_bytes) for task in tasks]
    flow, external_bytes = _flow(external, parents, children, _factors(plan, amounts or {}))
    types = tuple(task.type for task in tasks)
    members: dict[str, list[int]] = {}
    versions: dict[str, str] = {}
    for index, task in enumerate(tasks):
        members.setdefault(task.type, []).append(index)
        versions.setdefault(task.type, task.version or plan.version)
    return Shape(
        types=types,
        versions=versions,
        members={name: np.array(indexes, dtype=np.intp) for name, indexes in members.items()},
        parents=parents,
        children=children,
        edges=_edges(parents),
        flow=_like_their_kind(
            np.log1p(np.array(flow, dtype=np.float64)),
            members,
            min(len(plan.tasks), TASKS_MAX),
        ),
        inputs=np.array([_input(*each) for each in zip(tasks, parents, strict=True)]),
        external_bytes=external_bytes,
        machines=min(max(plan.machines, 1), SLOTS_MAX),
        slots=min(max(plan.machines, 1) * max(plan.cores, 1), SLOTS_MAX),
    )


def _like_their_kind(flow: Floats, members: Mapping[str, Sequence[int]], planned: int) -> Floats:
    """Tasks that are only announced, after those that are `planned`, get as much as their kind."""
    for indexes in members.values():
        known = [index for index in indexes if index < planned]
        if known and len(known) < len(indexes):
            flow[indexes[len(known) :]] = flow[known].mean()
    return flow


def _announced(plan: Plan, tasks: Sequence[Planned], usual: Mapping[str, int]) -> list[Planned]:
    wanted = dict(plan.counts)
    if not plan.whole:
        for name, count in usual.items():
            wanted[name] = max(count, wanted.get(name, 0))
    if not wanted:
        return []
    present: dict[str, int] = {}
    for task in tasks:
        present[task.type] = present.get(task.type, 0) + 1
    added: list[Planned] = []
    for name, count in wanted.items():
        room = TASKS_MAX - len(tasks) - len(added)
        missing = min(count - present.get(name, 0), room)
        added += [Planned(name)] * max(missing, 0)
    return added


def _sound_parents(tasks: Sequence[Planned]) -> list[tuple[int, ...]]:
    """Parents that exist; nobody waits for itself, or twice for one."""
    count = len(tasks)
    return [
        tuple({p: None for p in task.parents if 0 <= p < count and p != index})
        for index, task in enumerate(tasks)
    ]


def _edges(parents: Sequence[Sequence[int]]) -> tuple[Indexes, Indexes]:
    counts = [len(above) for above in parents]
    below = np.repeat(np.arange(len(parents), dtype=np.intp), counts)
    return below, np.array([each for above in parents for each in above], dtype=np.intp)


def _bytes(value: int | None) -> float:
    return float(min(value, BYTES_MAX)) if value is not None and value > 0 else 0.0


def _input(task: Planned, parents: Sequence[int]) -> float:
    """What a task reads in all: as was reported, or all that is external if it waits for nobody."""
    if task.input_bytes is None and (parents or task.external_bytes is None):
        return math.nan
    return _bytes(task.external_bytes if task.input_bytes is None else task.input_bytes)


def numbers_of(plan: Plan, name: str, number: str) -> Floats:
    """A number of the tasks of one type; NaN for all others, and for all if few are known.

    Where it is not known it is taken to be as usual in this run.
    """
    found = np.full(min(len(plan.tasks), TASKS_MAX), math.nan)
    at = [index for index, task in enumerate(plan.tasks[:TASKS_MAX]) if task.type == name]
    values = np.array([dict(plan.tasks[index].numbers).get(number, math.nan) for index in at])
    known = np.isfinite(values)
    if known.any() and known.mean() >= KNOWN_MIN:
        found[at] = np.where(known, values, np.median(values[known]))
    return found


def _factors(plan: Plan, amounts: Mapping[str, Amount]) -> dict[int, tuple[float, bool]]:
    """For each task with an amount: how much that is, and whether it is handed on."""
    found: dict[int, tuple[float, bool]] = {}
    for name, amount in amounts.items():
        values = numbers_of(plan, name, amount.number)
        for index in np.flatnonzero(np.isfinite(values)).tolist():
            found[index] = 1.0 + float(values[index]), amount.handed_on
    return found


def _flow(
    external: Sequence[float],
    parents: Sequence[Sequence[int]],
    children: Sequence[Sequence[int]],
    factors: Mapping[int, tuple[float, bool]],
) -> tuple[list[float], float]:
    """External bytes handed down the DAG, each task's in equal parts to its children; their sum.

    Sizes of intermediate files are unknown before the run; this stands in for them. Tasks on a
    cycle hand nothing on. A task with a factor has so many times as much to do as its input says.
    """
    flow = list(external)
    total = sum(external)
    waits = [len(above) for above in parents]
    order = [index for index, wait in enumerate(waits) if not wait]
    for index in order:
        below, had = children[index], flow[index]
        if index in factors:
            factor, is_handed_on = factors[index]
            flow[index] = max(had, 1.0) * factor
            if is_handed_on:
                total += flow[index] - had
                had = flow[index]
        if not below:
            continue
        share = had / len(below)
        for child in below:
            flow[child] += share
            waits[child] -= 1
            if not waits[child]:
                order.append(child)
    return flow, total


def features(shape: Shape) -> dict[str, float]:
    """What makes runs alike: tasks in all, external bytes, machines, and tasks of each type."""
    known = {
        "tasks": math.log(max(shape.count, 1)),
        "bytes": math.log1p(shape.external_bytes),
        "machines": math.log(shape.machines),
    }
    for name, indexes in shape.members.items():
        known[f"type {name}"] = math.log1p(len(indexes))
    return known
