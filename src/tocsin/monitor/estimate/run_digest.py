"""A past run, digested once so that it can be compared many times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tocsin.monitor.estimate.schedule import replay
from tocsin.monitor.estimate.shape import Amount, Floats, Indexes, Shape, compile_plan, features
from tocsin.monitor.estimate.state import RUNTIME_S_MIN, State, log_runtime, seconds
from tocsin.monitor.estimate.types import PastRun

# The places at which a distribution of runtimes is kept.
RANKS: Floats = (np.arange(64) + 0.5) / 64

# Half of a type's tasks ended, and all of them: where two runs can be laid beside each other.
MILESTONES = (0.5, 1.0)

SLOPE_MAX = 1.5  # steeper is chance
SLOPE_PRIOR = 1.0  # squares of input that speak for no slope at all


@dataclass(frozen=True, slots=True)
class TypeRecord:
    """One type of task in one past run; runtimes as natural logarithms.

    `kin_squares` and `kin_products` say how tasks follow the tasks before them: whether the one
    that waited for a long one was long itself, as where both work on the same data.
    """

    count: int
    level: float
    middle: float
    flow: float
    parents: float
    flow_squares: float
    flow_products: float
    variance: float
    deviations: Floats
    kin_squares: float
    kin_products: float


@dataclass(frozen=True, slots=True)
class RunDigest:
    """A past run. `core_s` is its makespan in seconds of work, that is without the stretch.

    `settled_seq` is the event of the log that ended it, `last_received_ns` when its last came.
    `fastest_s` is the shortest time by the clock that a task of each type took.
    """

    shape: Shape
    features: Mapping[str, float]
    makespan_s: float
    work_s: float
    core_s: float
    types: Mapping[str, TypeRecord]
    milestones: Mapping[tuple[str, float], float]
    whole: State
    fastest_s: Mapping[str, float]
    settled_seq: int = 0
    last_received_ns: int | None = None

    def at(self, fraction: float) -> State:
        """The run as it stood when this fraction of its time was over."""
        elapsed_s = fraction * self.makespan_s
        if elapsed_s <= 0:  # what takes no time has not ended before the start
            return replace(self.whole, elapsed_s=0.0, ended=())
        ends, starts = self.whole.ends, self.whole.starts
        ended = np.flatnonzero(ends <= elapsed_s)
        running = np.flatnonzero((starts <= elapsed_s) & (ends > elapsed_s))
        return State(
            elapsed_s,
            ended.tolist(),
            dict(zip(running.tolist(), starts[running].tolist(), strict=True)),
            self.whole.logs,
            starts,
            ends,
        )

    def lasted_s(self, name: str) -> Floats:
        """How long each task of a type took, by the clock."""
        indexes = self.shape.members.get(name, ())
        lasted = self.whole.ends[indexes] - self.whole.starts[indexes]
        return np.asarray(lasted[np.isfinite(lasted)])


def digest(run: PastRun, amounts: Mapping[str, Amount] | None = None) -> RunDigest | None:
    """What a past run teaches; None if it teaches nothing. `amounts` as for `compile_plan`."""
    makespan_s = seconds(run.makespan_s)
    shape = compile_plan(run.plan, amounts=amounts)
    done = {index: task for index, task in run.done.items() if 0 <= index < shape.count}
    if not makespan_s or not done:
        return None
    logs = np.full(shape.count, math.log(RUNTIME_S_MIN))
    for index, task in done.items():
        logs[index] = log_runtime(task)
    makespan_s = max(makespan_s, RUNTIME_S_MIN)
    starts, ends = _times(run, shape, logs, makespan_s)
    whole = State(makespan_s, list(done), {}, logs, starts, ends)
    stretch = whole.stretch or 1.0
    known = np.zeros(shape.count, dtype=bool)
    known[list(done)] = True
    kept = {
        name: members
        for name, indexes in shape.members.items()
        if len(members := indexes[known[indexes]])
    }
    kin, _ = shape.over_parents(_unexplained(shape, logs, kept), known.astype(np.float64))
    types = {name: _record(name, shape, logs, kin, members) for name, members in kept.items()}
    return RunDigest(
        shape=shape,
        features=features(shape),
        makespan_s=makespan_s,
        work_s=float(np.exp(logs[known]).sum()),
        core_s=makespan_s / stretch,
        types=types,
        milestones=_milestones(shape, ends, stretch),
        whole=whole,
        fastest_s={name: float(np.min(ends[at] - starts[at])) for name, at in kept.items()},
        settled_seq=run.settled_seq,
        last_received_ns=run.last_received_ns,
    )


def _times(run: PastRun, shape: Shape, logs: Floats, makespan_s: float) -> tuple[Floats, Floats]:
    """When each task started and ended: as recorded, or else as replayed.

    A task that never ended in a run that did is taken to end with it.
    """
    starts = np.full(shape.count, makespan_s)
    ends = np.full(shape.count, makespan_s)
    for index, task in run.done.items():
        if not 0 <= index < shape.count:
            continue
        start, end = seconds(task.started_s), seconds(task.ended_s)
        if start is None or end is None or end < start:
            return replay(shape, np.exp(logs), makespan_s)
        starts[index], ends[index] = start, end
    return starts, ends


def _unexplained(shape: Shape, logs: Floats, kept: Mapping[str, Indexes]) -> Floats:
    """How much longer than others of its type in this run each task took, its input allowed for."""
    found = np.zeros(shape.count)
    for indexes in kept.values():
        values, beside = logs[indexes], shape.flow[indexes] - shape.flow[indexes].mean()
        level = values.mean()
        grows = slope(float(beside @ beside), float(beside @ (values - level)))
        found[indexes] = values - level - grows * beside
    return found


def _record(name: str, shape: Shape, logs: Floats, kin: Floats, indexes: Indexes) -> TypeRecord:
    values, flow = logs[indexes], shape.flow[indexes]
    level, across = float(values.mean()), float(flow.mean())
    beside = flow - across
    squares, products = float(beside @ beside), float(beside @ (values - level))
    unexplained = values - level - slope(squares, products) * beside
    before = kin[indexes] - kin[indexes].mean()
    return TypeRecord(
        count=len(indexes),
        level=level,
        middle=float(np.median(values)),
        flow=across,
        parents=mean_parents(shape, name),
        flow_squares=squares,
        flow_products=products,
        variance=float(unexplained.var()),
        deviations=np.quantile(unexplained, RANKS),
        kin_squares=float(before @ before),
        kin_products=float(before @ unexplained),
    )


def mean_parents(shape: Shape, name: str) -> float:
    """For how many others a task of this type waits, as a logarithm."""
    indexes = shape.members[name].tolist()
    return math.log1p(sum(len(shape.parents[index]) for index in indexes) / len(indexes))


def slope(squares: float, products: float) -> float:
    """How runtime grows with input inside runs, both in logarithms."""
    return min(max(products / (squares + SLOPE_PRIOR), 0.0), SLOPE_MAX)


def _milestones(shape: Shape, ends: Floats, stretch: float) -> dict[tuple[str, float], float]:
    reached: dict[tuple[str, float], float] = {}
    for name, indexes in shape.members.items():
        in_order = np.sort(ends[indexes]) / stretch
        for share in MILESTONES:
            reached[name, share] = float(in_order[math.ceil(share * len(in_order)) - 1])
    return reached
