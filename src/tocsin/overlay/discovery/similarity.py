"""How similar a set of requests is (paper 001, section 5.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import sqrt

from tocsin.overlay.region import Region, covers


def similarity(regions: Sequence[Region]) -> float:
    """0 if no request covers another, 1 if all are connected by covering.

    The formula as printed is not a fraction; with the square root over the sum alone it gives the
    0.38 of the paper's example.
    """
    if not regions:
        return 0.0
    return sqrt(sum(size * size for size in block_sizes(regions))) / len(regions)


def block_sizes(regions: Sequence[Region]) -> list[int]:
    """The sizes of the blocks: requests connected by covering, two or more of them."""
    parents = list(range(len(regions)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    for one, other in combinations(range(len(regions)), 2):
        if root(one) != root(other) and (
            covers(regions[one], regions[other]) or covers(regions[other], regions[one])
        ):
            parents[root(other)] = root(one)
    sizes = Counter(map(root, range(len(regions)))).values()
    return sorted(size for size in sizes if size > 1)
