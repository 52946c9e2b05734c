"""Regions: what a request covers, which advertisements it overlaps, which values it admits."""

from __future__ import annotations

from math import inf, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadDiscovery
from tocsin.event.value import Quantity, Scalar
from tocsin.overlay.region import (
    Bound,
    Region,
    RegionKey,
    RegionTable,
    admits,
    covers,
    day_rows,
    overlaps,
)
from tocsin.overlay.region_index import RegionIndex
from tocsin.overlay.region_text import parse_region
from tocsin.overlay.time_of_day import read_time_of_day

LINUX = "[system,=,Linux],[memory,<=,2],[disk,<=,320]"


def test_the_example_of_the_paper_overlaps_and_admits() -> None:
    request = parse_region("[system,=,Linux],[disk,>,120]")

    assert overlaps(request, parse_region(LINUX))
    assert admits(request, {"system": "Linux", "memory": 1, "disk": 200})
    assert not admits(request, {"system": "Linux", "memory": 1, "disk": 120})
    assert not overlaps(parse_region("[system,=,Linux],[cores,>,1]"), parse_region(LINUX))


def test_both_ways_to_write_a_request_are_the_same_region() -> None:
    assert parse_region("system = Linux and disk > 120") == parse_region(
        "[system,=,Linux],[disk,>,120]"
    )


def test_a_strict_bound_ends_at_the_next_double() -> None:
    # PADRES says that a<5.5 is within a<=5, and loses 5.3.
    assert not covers(parse_region("[a,<=,5]"), parse_region("[a,<,5.5]"))
    assert covers(parse_region("[a,<,5]"), parse_region(f"[a,<=,{nextafter(5, -inf)!r}]"))
    assert not covers(parse_region("[a,<,5]"), parse_region("[a,<=,5]"))


def test_several_conditions_on_an_attribute_intersect() -> None:
    assert parse_region("a > 1 and a <= 5 and a <= 7") == Region(
        {("a", "n"): (nextafter(1.0, inf), 5.0)}
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a > 5 and a < 3", "no value fulfils a > 5 and a < 3"),
        ("a > 5 and a <= 5", "no value fulfils"),
        ("s = Linux and s = Windows", "no value fulfils s = Linux and s = Windows"),
        ("disk > Linux", "compares a text by order"),
        ("disk = Linux and disk > 5", "disk is compared as a number and as a text"),
        ("disk > 5 and disk > '8 a.m.'", "disk is compared as a number and as a time of day"),
    ],
)
def test_a_contradiction_is_an_empty_region_that_says_why(text: str, reason: str) -> None:
    found = parse_region(text)

    assert found.is_empty
    assert reason in found.empty_because
    assert covers(parse_region("b = 1"), found)
    assert not overlaps(found, parse_region("[disk,<=,9],[a,<=,9],[s,=,Linux]"))


@pytest.mark.parametrize(
    "text", ["a != 5", "a = 1 or b = 2", "not a = 1", "topic lead/**", "a prefix x", "a exists"]
)
def test_what_is_no_conjunction_of_ranges_is_refused(text: str) -> None:
    with pytest.raises(BadDiscovery):
        parse_region(text)


def test_quantities_are_compared_in_base_units_and_not_with_bare_numbers() -> None:
    request = parse_region("memory >= 2 GB")

    assert admits(request, {"memory": Quantity(2048, "MiB")})
    assert not admits(request, {"memory": 5})


@pytest.mark.parametrize(
    ("text", "utc_s"),
    [
        ("8 a.m.", 8 * 3600),
        ("12 a.m.", 0),
        ("12:30 pm", 12 * 3600 + 1800),
        ("15:30", 15 * 3600 + 1800),
        ("3 p.m. Europe/Berlin", 13 * 3600),
        ("08:00+02:00", 6 * 3600),
        ("01:00 +0200", 23 * 3600),
        ("23:59:59.5Z", 86_399.5),
    ],
)
def test_a_time_of_day_is_seconds_of_the_day_in_utc(text: str, utc_s: float) -> None:
    time = read_time_of_day(text, {"Europe/Berlin": 7200}.get)

    assert time is not None
    assert time.utc_s == utc_s


@pytest.mark.parametrize("text", ["8", "25:00", "13 p.m.", "0 a.m.", "3 p.m. Mars/Base", "8 a.m.x"])
def test_what_is_no_time_of_day_is_not_read_as_one(text: str) -> None:
    assert read_time_of_day(text, {"Europe/Berlin": 7200}.get) is None


def offers(advertisement: str, request: str) -> bool:
    return any(
        overlaps(parse_region(request), row) for row in day_rows(parse_region(advertisement))
    )


@pytest.mark.parametrize(
    "text",
    [
        "[available,>,8 a.m. Europe/Nowhere]",
        "available < '17:30 Europe/Nowhere'",
    ],
)
def test_a_time_in_a_zone_that_is_not_known_is_refused_and_the_zone_is_named(text: str) -> None:
    with pytest.raises(BadDiscovery, match="knows no time zone 'Europe/Nowhere'"):
        parse_region(text, lambda name: None)


@pytest.mark.parametrize(
    "text",
    [
        "[available,>,25:00]",
        "[available,>=,8 a.m.],[available,<,13 p.m.]",
        "available < '24:00'",
        "available > '7:5'",
        "available <= '0am'",
        "available < '12:60:00 UTC'",
    ],
)
def test_what_looks_like_a_time_and_is_none_is_refused_and_says_how_one_is_written(
    text: str,
) -> None:
    with pytest.raises(BadDiscovery, match="looks like a time of day, but") as refused:
        parse_region(text)

    assert "8 a.m., 3:30 p.m., 15:30" in refused.value.remedy


@pytest.mark.parametrize("text", ["17:30 Europe/Nowhere", "25:00", "13 p.m.", "2 amperes"])
def test_a_text_that_looks_like_a_time_elsewhere_is_a_text(text: str) -> None:
    region = parse_region(f"label = '{text}'", lambda name: None)

    assert region.bounds == {("label", "s"): text}


@pytest.mark.parametrize("text", ["2 amperes", "a:1", "10 parts"])
def test_other_texts_have_no_order(text: str) -> None:
    assert "texts have only =" in parse_region(f"label > '{text}'").empty_because


def test_the_example_of_temporal_availability() -> None:
    assert offers("[available,>,8 a.m.]", "[available,>,7 a.m.],[available,<,3 p.m.]")
    assert not offers("[available,>,4 p.m.]", "[available,>,7 a.m.],[available,<,3 p.m.]")
    assert not offers("[available,>,8 a.m.]", "[available,<=,8 a.m.]")


HOURS = st.integers(0, 23)
OFFSETS = st.integers(-12, 12)


def written(hour: int, offset: int) -> str:
    return f"{hour:02}:00{'-' if offset < 0 else '+'}{abs(offset):02}:00"


def hours_between(begin: int, end: int, offset: int) -> set[int]:
    """The half hours of the UTC day strictly between two full hours, at their half."""
    length = (end - begin) % 24 or 24
    return {(begin - offset + n) % 24 for n in range(length)}


@given(HOURS, HOURS, OFFSETS, HOURS, HOURS, OFFSETS)
def test_windows_in_any_zone_meet_exactly_if_they_share_a_time_of_day(
    begin: int, end: int, offset: int, other_begin: int, other_end: int, other_offset: int
) -> None:
    advertisement = f"[available,>,{written(begin, offset)}],[available,<,{written(end, offset)}]"
    request = (
        f"[available,>,{written(other_begin, other_offset)}],"
        f"[available,<,{written(other_end, other_offset)}]"
    )

    shared = hours_between(begin, end, offset) & hours_between(other_begin, other_end, other_offset)

    assert offers(advertisement, request) == bool(shared)


@given(HOURS, HOURS, OFFSETS, HOURS)
def test_a_published_time_is_admitted_exactly_if_it_is_in_the_window(
    begin: int, end: int, offset: int, hour: int
) -> None:
    request = parse_region(
        f"[available,>,{written(begin, offset)}],[available,<,{written(end, offset)}]"
    )

    inside = hour in hours_between(begin, end, offset)

    assert admits(request, {"available": f"{hour:02}:30"}) == inside


@given(st.lists(st.tuples(HOURS, HOURS, OFFSETS), max_size=5), HOURS)
def test_an_index_admits_times_as_a_table_does(
    windows: list[tuple[int, int, int]], hour: int
) -> None:
    table: RegionTable[int] = RegionTable()
    index: RegionIndex[int] = RegionIndex(use_numba=False)
    for number, (begin, end, offset) in enumerate(windows):
        request = parse_region(
            f"[available,>,{written(begin, offset)}],[available,<,{written(end, offset)}]"
        )
        table.add(number, request)
        index.add(number, request)
    values = {"available": f"{hour:02}:30"}

    assert index.admitting(values) == table.admitting(values)


NUMBERS = st.one_of(st.integers(-3, 3), st.floats(-3, 3, allow_nan=False))
ATTRIBUTES = st.sampled_from("abc")


@st.composite
def regions(draw: st.DrawFn) -> Region:
    bounds: dict[RegionKey, Bound] = {}
    for name in draw(st.sets(ATTRIBUTES)):
        if draw(st.booleans()):
            ends = sorted((float(draw(NUMBERS)), float(draw(NUMBERS))))
            bounds[name, "n"] = (
                draw(st.sampled_from([-inf, ends[0]])),
                draw(st.sampled_from([inf, ends[1]])),
            )
        else:
            bounds[name, "s"] = draw(st.sampled_from(["x", "y"]))
    return Region(bounds)


VALUES = st.dictionaries(ATTRIBUTES, st.one_of(NUMBERS, st.sampled_from(["x", "y"])))


@given(regions(), regions(), regions())
def test_covering_is_reflexive_and_transitive(one: Region, two: Region, three: Region) -> None:
    assert covers(one, one)
    if covers(one, two) and covers(two, three):
        assert covers(one, three)


@given(regions(), regions(), VALUES)
def test_what_a_covered_region_admits_its_cover_admits(
    wide: Region, narrow: Region, values: dict[str, Scalar]
) -> None:
    if covers(wide, narrow) and admits(narrow, values):
        assert admits(wide, values)


@given(regions(), regions(), regions())
def test_a_cover_overlaps_every_advertisement_that_the_covered_one_does(
    wide: Region, narrow: Region, advertisement: Region
) -> None:
    if covers(wide, narrow) and overlaps(narrow, advertisement):
        assert overlaps(wide, advertisement)


@given(st.lists(regions(), max_size=6), regions(), VALUES)
def test_a_table_answers_by_the_definitions(
    kept: list[Region], asked: Region, values: dict[str, Scalar]
) -> None:
    table: RegionTable[int] = RegionTable()
    for number, region in enumerate(kept):
        table.add(number, region, group=f"hop{number % 2}")
    table.remove(1)
    left = {number: region for number, region in enumerate(kept) if number != 1}

    covering = [number for number, region in left.items() if covers(region, asked)]
    meeting = [number for number, region in left.items() if overlaps(asked, region)]

    assert len(table) == len(left)
    assert list(table.covering(asked)) == covering
    assert table.overlapping(asked) == meeting
    assert table.groups_overlapping(asked) == {f"hop{number % 2}" for number in meeting}
    assert table.requests_overlapping(asked) == [n for n, r in left.items() if overlaps(r, asked)]
    assert table.admitting(values) == [n for n, r in left.items() if admits(r, values)]
