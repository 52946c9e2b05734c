"""Ranges are the set of the numbers they were made of, whatever the order."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.wsrm.ranges import NO_NUMBERS, Ranges, contains, count, highest, union, with_number

NUMBERS = st.lists(st.integers(1, 60), max_size=40)
PAIRS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 9)).map(lambda p: (p[0], p[0] + p[1])), max_size=9
)


def members(ranges: Ranges) -> set[int]:
    return {number for lower, upper in ranges for number in range(lower, upper + 1)}


@given(numbers=NUMBERS)
def test_numbers_added_in_any_order_are_the_set_of_them(numbers: list[int]) -> None:
    ranges = reduce(with_number, numbers, NO_NUMBERS)

    assert members(ranges) == set(numbers)
    assert count(ranges) == len(set(numbers))
    assert highest(ranges) == max(numbers, default=0)
    assert [n for n in range(80) if contains(ranges, n)] == sorted(set(numbers))


@given(some=PAIRS, others=PAIRS)
def test_a_union_is_in_order_and_nothing_in_it_touches(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    ranges = union(some, others)

    assert members(ranges) == members(tuple(some)) | members(tuple(others))
    assert all(low <= up for low, up in ranges)
    assert all(a[1] + 1 < b[0] for a, b in pairwise(ranges))
