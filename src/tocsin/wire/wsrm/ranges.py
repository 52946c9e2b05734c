"""Sets of message numbers as ranges, the way acknowledgements write them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

Ranges = tuple[tuple[int, int], ...]
"""Lowest and highest number of each run: in order, apart from each other by at least one number."""

NO_NUMBERS: Final[Ranges] = ()


def contains(ranges: Ranges, number: int) -> bool:
    """True if the number is in one of the ranges."""
    index = bisect_right(ranges, number, key=_lower)
    return index > 0 and number <= ranges[index - 1][1]


def with_number(ranges: Ranges, number: int) -> Ranges:
    """The ranges, and this number too."""
    return union(ranges, ((number, number),))


def union(some: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> Ranges:
    """Every number of either; they need not be in order, nor apart from each other."""
    merged: list[tuple[int, int]] = []
    for lower, upper in sorted((*some, *others)):
        if merged and lower <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], upper))
        else:
            merged.append((lower, upper))
    return tuple(merged)


def highest(ranges: Ranges) -> int:
    """The highest number; 0 if there is none."""
    return ranges[-1][1] if ranges else 0


def count(ranges: Ranges) -> int:
    """How many numbers there are."""
    return sum(upper - lower + 1 for lower, upper in ranges)


def _lower(pair: tuple[int, int]) -> int:
    return pair[0]
