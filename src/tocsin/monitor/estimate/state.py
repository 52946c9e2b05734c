"""Where a run stands: what has ended, what runs, and how fast the clock goes beside its work."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tocsin.monitor.estimate.shape import Floats, Shape
from tocsin.monitor.estimate.types import Done, RunProgress

RUNTIME_S_MIN = 1e-3
SECONDS_MAX = 1e12


@dataclass(frozen=True, slots=True)
class State:
    """A run at one moment. Arrays have a place for every task; only those of `ended` count."""

    elapsed_s: float
    ended: Sequence[int]
    running: Mapping[int, float]
    logs: Floats
    starts: Floats
    ends: Floats

    @property
    def stretch(self) -> float | None:
        """Seconds by the clock for a second of work; None if nothing says so yet.

        It is 1 where a runtime is the time between start and end, and more where that time also
        holds staging, queueing inside the task, or the engine's own work.
        """
        if not len(self.ended):
            return None
        ended = np.asarray(self.ended, dtype=np.intp)
        wall = self.ends[ended] - self.starts[ended]
        known = np.isfinite(wall)
        work_s = float(np.exp(self.logs[ended][known]).sum())
        wall_s = float(wall[known].sum())
        return wall_s / work_s if work_s > 0 and wall_s > 0 else None


def seconds(value: float | None) -> float | None:
    """A time that can be; None for what is no number, or negative."""
    if value is None or not math.isfinite(value) or value < 0:
        return None
    return min(float(value), SECONDS_MAX)


def log_runtime(done: Done) -> float:
    return math.log(max(seconds(done.runtime_s) or 0.0, RUNTIME_S_MIN))


def state_of(moment: RunProgress, shape: Shape) -> State:
    """The state at a moment; indexes beyond the plan are passed over."""
    elapsed_s = seconds(moment.elapsed_s) or 0.0
    logs = np.zeros(shape.count)
    starts = np.full(shape.count, np.nan)
    ends = np.full(shape.count, np.nan)
    ended: list[int] = []
    for index, done in moment.done.items():
        if not 0 <= index < shape.count:
            continue
        ended.append(index)
        logs[index] = log_runtime(done)
        start, end = seconds(done.started_s), seconds(done.ended_s)
        if start is not None and end is not None and start <= end:
            starts[index], ends[index] = start, end
    over = set(ended)
    running: dict[int, float] = {}
    for index, start_s in moment.running.items():
        if 0 <= index < shape.count and index not in over:
            running[index] = min(seconds(start_s) or 0.0, elapsed_s)
    return State(elapsed_s, ended, running, logs, starts, ends)
