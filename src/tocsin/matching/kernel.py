"""Kernels: the inner loop of the predicate index, which tests stored rows against one event.

Two functions with one signature. The numpy one always works. The numba one is compiled from plain
Python when it is first wanted, which takes a second the first time on a machine and a fifth of one
afterwards; numba is an optional extra, and nothing here imports it before `numba_kernel` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
SmallInts = NDArray[np.int32]
Floats = NDArray[np.float64]

Kernel = Callable[[Ints, Ints, Ints, SmallInts, Floats, Floats, Ints, Floats, Ints, int], int]
"""(clusters, start, count, at, lo, hi, row, seen, found, found_count) -> new found_count.

Tests every row of the given clusters and writes the numbers of those that hold behind the first
`found_count` places of `found`. `seen` is the event: a double per attribute, NaN where it has none,
so that a missing attribute fails every comparison without a branch.
"""


def numpy_kernel(
    clusters: Ints,
    start: Ints,
    count: Ints,
    at: SmallInts,
    lo: Floats,
    hi: Floats,
    row: Ints,
    seen: Floats,
    found: Ints,
    found_count: int,
) -> int:
    """One gather per column; each column is tested only where those before it held."""
    counts = count[clusters]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return found_count
    slots = np.arange(total) + np.repeat(start[clusters] - ends + counts, counts)
    for column in range(at.shape[1]):
        value = seen[at[slots, column]]
        slots = slots[(lo[slots, column] <= value) & (value <= hi[slots, column])]
        if not len(slots):
            return found_count
    found_end = found_count + len(slots)
    found[found_count:found_end] = row[slots]
    return found_end


def _walk(
    clusters: Any,
    start: Any,
    count: Any,
    at: Any,
    lo: Any,
    hi: Any,
    row: Any,
    seen: Any,
    found: Any,
    found_count: int,
) -> int:
    width = at.shape[1]
    for cluster in clusters:
        first = start[cluster]
        for slot in range(first, first + count[cluster]):
            holds = True
            # Without a branch: a mispredicted one costs more than the comparisons it saves.
            for column in range(width):
                value = seen[at[slot, column]]
                holds &= (lo[slot, column] <= value) & (value <= hi[slot, column])
            found[found_count] = row[slot]
            found_count += holds
    return found_count


@lru_cache(maxsize=1)
def numba_kernel() -> Kernel | None:
    """The compiled kernel, or None where numba is not installed."""
    try:
        import numba
    except ImportError:
        return None
    try:
        compiled: Kernel = numba.njit(cache=True)(_walk)
    except RuntimeError:  # no directory to keep the compiled code in: compile in every process
        compiled = numba.njit(_walk)
    ints, floats = np.zeros(0, np.int64), np.zeros((0, 2))
    small = np.zeros((0, 2), np.int32)
    # The first call compiles; better here than with an event waiting.
    compiled(ints, ints, ints, small, floats, floats, ints, floats[:, 0].copy(), ints, 0)
    return compiled
