"""List scheduling: who runs when, if a free slot goes to whoever is ready, in the plan's order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from tocsin.monitor.estimate.shape import Floats, Shape


@dataclass(frozen=True, slots=True)
class Timetable:
    """When each task starts and ends, in seconds from now; 0 for those that had ended before."""

    starts: Sequence[float]
    ends: Sequence[float]

    @property
    def length_s(self) -> float:
        return max(self.ends, default=0.0)


def schedule(
    shape: Shape,
    seconds: Sequence[float],
    *,
    ended: Collection[int] = (),
    left: Mapping[int, float] | None = None,
    only: Collection[int] | None = None,
) -> Timetable:
    """Simulate the rest of a run on its slots.

    `ended` tasks are over, those in `left` hold a slot for so many seconds more. With `only`,
    nobody else runs. Tasks on a cycle start when nothing else can, in the plan's order.
    """
    count = shape.count
    children = shape.children
    waits = [len(above) for above in shape.parents]
    settled = bytearray(count)
    if only is not None:
        settled = bytearray(b"\x01") * count
        for index in only:
            settled[index] = 0
    for index in ended:
        settled[index] = 1
        for child in children[index]:
            waits[child] -= 1
    starts, ends = [0.0] * count, [0.0] * count
    busy: list[tuple[float, int]] = []
    for index, remaining in (left or {}).items():
        settled[index] = 1
        ends[index] = remaining
        busy.append((remaining, index))
    heapify(busy)
    free = shape.slots - len(busy)
    ready = [index for index in range(count) if not waits[index] and not settled[index]]
    now, stuck = 0.0, 0
    while True:
        while ready and free > 0:
            index = heappop(ready)
            settled[index] = 1
            starts[index] = now
            ends[index] = now + seconds[index]
            heappush(busy, (ends[index], index))
            free -= 1
        if busy:
            now, index = heappop(busy)
            free += 1
            for child in children[index]:
                waits[child] -= 1
                if not waits[child] and not settled[child]:
                    heappush(ready, child)
            continue
        while stuck < count and settled[stuck]:
            stuck += 1
        if stuck == count:
            return Timetable(starts, ends)
        waits[stuck] = -1  # it waits for no one any more
        ready.append(stuck)


def critical_path(shape: Shape, timetable: Timetable, over: Collection[int]) -> tuple[int, ...]:
    """The tasks that decide when the run ends, first to last; those that are `over` left out."""
    if not shape.count:
        return ()
    ends = timetable.ends
    index = max(range(shape.count), key=ends.__getitem__)
    path: list[int] = []
    seen = set(over)
    while index not in seen:
        seen.add(index)
        path.append(index)
        above = [parent for parent in shape.parents[index] if parent not in seen]
        if not above:
            break
        index = max(above, key=ends.__getitem__)
    return tuple(reversed(path))


def replay(shape: Shape, runtimes_s: Floats, makespan_s: float) -> tuple[Floats, Floats]:
    """When each task starts and ends if the ready run in the plan's order and all ends in time."""
    timetable = schedule(shape, runtimes_s.tolist())
    length_s = timetable.length_s
    scale = makespan_s / length_s if length_s > 0 else 1.0
    return np.array(timetable.starts) * scale, np.array(timetable.ends) * scale
