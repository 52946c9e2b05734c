"""The index of regions answers as the table does; covering is what its points say."""

from __future__ import annotations

from math import inf, nextafter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.event.event import Value
from tocsin.overlay import overlap_index
from tocsin.overlay.region import Bound, Region, RegionTable, admits, covers, overlaps
from tocsin.overlay.region_index import FEW_MAX, LATE_MAX, RegionIndex

NAMES = ("a", "b", "c", "d")
TEXTS = ("Linux", "Solaris", "7")
GROUPS = ("", "north", "south")

numbers = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-4, 4, width=16),
    st.sampled_from([0.1, 0.3, 5.3, 5.5, 1e300]),
)


@st.composite
def intervals(draw: st.DrawFn) -> tuple[float, float]:
    """A closed interval, an end of which may be strict, missing, or the other end."""
    low, high = sorted((draw(numbers), draw(numbers)))
    if draw(st.booleans()) and low < high:
        low = nextafter(low, inf)
    if draw(st.booleans()) and low < high:
        high = nextafter(high, -inf)
    kind = draw(st.integers(0, 4))
    if kind == 0:
        high = inf
    if kind <= 1:
        return (-inf, high)
    return (low, inf if kind == 2 else low if kind == 3 else high)


@st.composite
def regions(draw: st.DrawFn) -> Region:
    bounds: dict[tuple[str, str], Bound] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4)):
        if draw(st.integers(0, 3)):
            bounds[name, "n"] = draw(intervals())
        else:
            bounds[name, "s"] = draw(st.sampled_from(TEXTS))
    return Region(bounds, "contradiction" if draw(st.integers(0, 15)) == 0 else "")


points = st.dictionaries(st.sampled_from(NAMES), st.one_of(numbers, st.sampled_from(TEXTS)))

changes = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 30), regions(), st.sampled_from(GROUPS)),
        st.integers(0, 30),
    ),
    max_size=40,
)


def apply(
    change: tuple[int, Region, str] | int, table: RegionTable[int], index: RegionIndex[int]
) -> None:
    for each in (table, index):
        if isinstance(change, int):
            each.remove(change)
        else:
            each.add(*change)


def assert_same_answers(
    table: RegionTable[int], index: RegionIndex[int], asked: Region, values: dict[str, Value]
) -> None:
    assert len(index) == len(table)
    assert list(index.covering(asked)) == list(table.covering(asked))
    assert index.overlapping(asked) == table.overlapping(asked)
    assert index.groups_overlapping(asked) == table.groups_overlapping(asked)
    assert index.requests_overlapping(asked) == table.requests_overlapping(asked)
    assert index.admitting(values) == table.admitting(values)


@given(changes, st.lists(st.tuples(regions(), points), min_size=1, max_size=5), st.booleans())
@settings(deadline=None)
def test_the_index_equals_the_table_after_any_adds_and_removes(
    changed: list[tuple[int, Region, str] | int],
    asked: list[tuple[Region, dict[str, Value]]],
    asked_before: bool,
) -> None:
    table, index = RegionTable[int](), RegionIndex[int]()
    if asked_before:  # the indexes are there from the start, and are kept in step
        assert_same_answers(table, index, *asked[0])

    for change in changed:
        apply(change, table, index)

    for region, values in asked:
        assert_same_answers(table, index, region, values)


def drawn_region(random: Random, names: int) -> Region:
    bounds: dict[tuple[str, str], Bound] = {}
    for number in random.sample(range(names), random.randint(1, min(names, 5))):
        low = random.choice([-inf, random.uniform(0, 100), float(random.randint(0, 100))])
        high = random.choice([inf, low + random.uniform(0, 50), low]) if low > -inf else 30.0
        bounds[f"n{number}", "n"] = (low, high)
    if random.random() < 0.4:
        bounds["system", "s"] = random.choice(TEXTS)
    return Region(bounds)


@pytest.mark.parametrize("names", [3, 40])
@pytest.mark.parametrize("use_numba", [False, None])
def test_the_index_equals_the_table_when_there_are_many(names: int, use_numba: bool | None) -> None:
    random = Random(names)
    table, index = RegionTable[int](), RegionIndex[int](use_numba=use_numba)
    for step in range(1_500):
        key = random.randrange(900)
        if random.random() < 0.25:
            apply(key, table, index)
        else:
            apply((key, drawn_region(random, names), random.choice(GROUPS)), table, index)
        if step % 25 == 0:
            asked = drawn_region(random, names)
            values: dict[str, Value] = {
                f"n{number}": random.choice([random.uniform(0, 100), float(random.randint(0, 100))])
                for number in range(names)
            }
            assert_same_answers(table, index, asked, {**values, "system": "Linux"})


@pytest.mark.parametrize("asked_every", [1, 10, 100])
def test_covers_are_the_same_before_and_after_they_are_in_the_index(asked_every: int) -> None:
    random = Random(asked_every)
    table, index = RegionTable[int](), RegionIndex[int]()
    found = set[int]()
    for step in range(1_000):
        key = random.randrange(2 * FEW_MAX if step < 500 else LATE_MAX)
        if random.random() < 0.3:
            apply(key, table, index)
        else:
            apply((key, drawn_region(random, 2), ""), table, index)
        if step % asked_every == 0:
            asked = drawn_region(random, 2)
            assert list(index.covering(asked)) == list(table.covering(asked))
            found |= set(table.covering(asked))
    for key in range(2 * FEW_MAX):
        apply(key, table, index)
    assert list(index.covering(Region({}))) == []
    assert len(found) > 10


def test_a_region_of_very_many_attributes_is_found_like_any_other() -> None:
    table, index = RegionTable[int](), RegionIndex[int]()
    wide = Region({(f"n{number}", "n"): (float(number), inf) for number in range(1_000)})
    for key, region in enumerate([wide, Region({("n3", "n"): (-inf, 7.0)}), wide]):
        apply((key, region, ""), table, index)
    apply(2, table, index)

    asked = Region({("n3", "n"): (5.0, 5.0), ("n999", "n"): (-inf, 999.0)})

    assert index.overlapping(asked) == table.overlapping(asked) == [0]
    assert index.overlapping(Region({("n3", "n"): (7.0, 7.0)})) == [0, 1]


def test_a_wide_region_stays_found_when_its_attribute_is_ordered_again() -> None:
    table, index = RegionTable[int](), RegionIndex[int]()
    wide = Region({(f"n{number}", "n"): (0.0, float(number)) for number in range(50)})
    apply((0, wide, ""), table, index)
    for key in range(1, 2 * overlap_index.RECENT_MIN):
        apply((key, Region({("n7", "n"): (float(key), inf)}), ""), table, index)

    asked = Region({("n7", "n"): (-inf, 3.0)})

    assert index.overlapping(asked) == table.overlapping(asked) == [0, 1, 2, 3]


def test_a_region_in_the_place_of_one_that_left_is_found_once() -> None:
    table, index = RegionTable[int](), RegionIndex[int]()
    region = Region({("a", "n"): (0.0, inf)})
    asked = Region({("a", "n"): (1.0, 2.0)})
    for key in range(2 * overlap_index.RECENT_MIN):
        apply((key, region, ""), table, index)
    assert index.overlapping(asked) == table.overlapping(asked)

    apply(7, table, index)
    apply((7, region, ""), table, index)

    assert index.overlapping(asked) == table.overlapping(asked)


def test_a_strict_bound_is_not_the_next_whole_number() -> None:
    below = Region({("a", "n"): (-inf, nextafter(5.5, -inf))})
    at_most = Region({("a", "n"): (-inf, 5.0)})

    assert covers(below, at_most)
    assert not covers(at_most, below)
    assert admits(below, {"a": 5.3})


@given(regions())
def test_a_region_covers_itself(region: Region) -> None:
    assert covers(region, region)


@given(regions(), regions(), regions())
def test_covering_is_transitive(one: Region, two: Region, three: Region) -> None:
    if covers(one, two) and covers(two, three):
        assert covers(one, three)


@given(regions(), regions(), points)
@settings(max_examples=300)
def test_covering_agrees_with_the_points_inside(
    wide: Region, narrow: Region, values: dict[str, Value]
) -> None:
    if covers(wide, narrow) and admits(narrow, values):
        assert admits(wide, values)


@given(regions(), regions())
@settings(max_examples=300)
def test_what_is_not_covered_has_a_point_outside(wide: Region, narrow: Region) -> None:
    # A text that is also a number is in both kinds of region: covering is safe there, not exact.
    if covers(wide, narrow) or wide.is_empty or "7" in narrow.bounds.values():
        return
    corners: dict[str, Value] = {}
    for (name, kind), bound in narrow.bounds.items():
        if isinstance(bound, str):
            corners[name] = bound
            continue
        low, high = (max(bound[0], -1e308), min(bound[1], 1e308))
        outer = wide.bounds.get((name, kind), (-inf, inf))
        corners[name] = low if isinstance(outer, str) or low < outer[0] else high

    assert admits(narrow, corners)
    assert not admits(wide, corners)


@given(regions(), regions(), points)
def test_a_resource_that_a_request_admits_is_met_by_its_advertisement(
    request: Region, advertisement: Region, values: dict[str, Value]
) -> None:
    if admits(advertisement, values) and admits(request, values):
        named = {name for name, _ in advertisement.bounds}
        if {name for name, _ in request.bounds} <= named:
            assert overlaps(request, advertisement)
