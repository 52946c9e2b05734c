"""A run without times, replayed: list scheduling of its runtimes, scaled to its makespan."""

from __future__ import annotations

import numpy as np

from tocsin.monitor.estimate.schedule import schedule
from tocsin.monitor.estimate.shape import Floats, Shape


def replay(shape: Shape, runtimes_s: Floats, makespan_s: float) -> tuple[Floats, Floats]:
    """When each task starts and ends if the ready run in the plan's order and all ends in time."""
    timetable = schedule(shape, runtimes_s.tolist())
    length_s = timetable.length_s
    scale = makespan_s / length_s if length_s > 0 else 1.0
    return np.array(timetable.starts) * scale, np.array(timetable.ends) * scale
