"""The simple estimates that ours must beat, and may fall back on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tocsin.monitor.estimate.run_digest import RunDigest
from tocsin.monitor.estimate.shape import Shape
from tocsin.monitor.estimate.state import State


def mean_makespan(past: Sequence[RunDigest]) -> float:
    """As long as past runs took on average, whatever happens."""
    return float(np.mean([run.makespan_s for run in past]))


def median_makespan(past: Sequence[RunDigest]) -> float:
    """As long as the past run in the middle took."""
    return float(np.median([run.makespan_s for run in past]))


def median_work(past: Sequence[RunDigest], shape: Shape) -> dict[str, float]:
    """Each type's median runtime in the median past run that had it."""
    found: dict[str, float] = {}
    for name in shape.members:
        middles = [run.types[name].middle for run in past if name in run.types]
        if middles:
            found[name] = float(np.exp(np.median(middles)))
    return found


def fraction_of_tasks(past: Sequence[RunDigest], shape: Shape, state: State) -> float | None:
    """The elapsed time over the fraction of tasks that have ended, as a progress bar has it.

    Before anything has ended: as many seconds a task as past runs took in the median.
    """
    if state.ended:
        return state.elapsed_s * shape.count / len(state.ended)
    if not past:
        return None
    pace = float(np.median([run.makespan_s / run.shape.count for run in past]))
    return pace * shape.count


def fraction_of_work(
    past: Sequence[RunDigest], shape: Shape, state: State, medians: Mapping[str, float]
) -> float | None:
    """The elapsed time over the fraction of median work that has ended.

    Before anything has ended: as much work a second as past runs did in the median.
    """
    work_s = sum(medians.get(name, 0.0) * len(them) for name, them in shape.members.items())
    ended_s = sum(medians.get(shape.types[index], 0.0) for index in state.ended)
    if ended_s > 0:
        return state.elapsed_s * work_s / ended_s
    if not past or work_s <= 0:
        return None
    return work_s * float(np.median([run.makespan_s / run.work_s for run in past]))
