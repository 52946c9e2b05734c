"""The small words of `tocsin wf`: durations, moments, sizes, tables that fit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.cli.durations import seconds
from tocsin.cli.format import at, bar, basis, counted, duration_text, left, measured, percent, size
from tocsin.cli.tables import display_width, field_lines, table_lines, truncate, wrapped
from tocsin.cli.wf.failures import adds_detail, event_text
from tocsin.cli.wf.history import edge_texts, histogram_lines

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (None, "-"),
        (0, "0ms"),
        (-3, "0ms"),
        (0.85, "850ms"),
        (0.9999, "1.0s"),
        (4.23, "4.2s"),
        (59.6, "1m00s"),
        (200, "3m20s"),
        (3599.7, "1h00m"),
        (7500, "2h05m"),
        (86_399, "1d00h"),
        (273_600, "3d04h"),
    ],
)
def test_a_duration_has_its_two_largest_units(duration_s: float | None, text: str) -> None:
    assert duration_text(duration_s) == text


@given(st.floats(0.001, 1e9))
def test_a_duration_can_be_read_back_and_is_hardly_rounded(duration_s: float) -> None:
    assert seconds(duration_text(duration_s)) == pytest.approx(duration_s, rel=0.05, abs=0.0006)


def test_a_moment_is_as_short_as_it_can_be() -> None:
    here = NOW.astimezone()

    assert at(NOW.isoformat(), NOW) == f"{here:%H:%M:%S}"
    assert at("2026-02-01T12:00:00Z", NOW).startswith(("Jan 31", "Feb 01", "Feb 02"))
    assert at("2024-06-15T12:00:00Z", NOW).startswith("2024-06-15 ")
    assert at(None, NOW) == "-"
    assert at("no time", NOW) == "no time"
    assert at("0001-01-01T00:00:00Z", NOW)  # before any zone's beginning


def test_a_size_and_a_measured_value_have_units() -> None:
    assert [size(0), size(999), size(1000), size(999_600), size(3.4e9), size(5e18)] == [
        "0 B",
        "999 B",
        "1 kB",
        "1 MB",
        "3.4 GB",
        "5000 PB",
    ]
    assert measured("MemoryPeak", "2100000000") == "2.1 GB"
    assert measured("CpuSeconds", 61) == "1m01s"
    assert measured("CpuPercent", 12.34) == "12.3%"
    assert measured("IoReadRate", 1500) == "1.5 kB/s"
    assert measured("EnergyUsed", 0.0123) == "0.0123 kWh"
    assert measured("lab:Mirrors", 1234) == "1,234"
    assert measured("CpuSeconds", "unknown") == "unknown"
    assert measured("CpuSeconds", "nan") == "nan"
    assert measured("CpuSeconds", "1e999") == "1e999"


def test_only_what_is_whole_is_called_whole() -> None:
    assert [percent(0.999), percent(1.0), percent(0.0), percent(None)] == ["99%", "100%", "0%", "-"]
    assert [bar(0.99, 4), bar(1.0, 4), bar(7.0, 4), bar(None, 4)] == [
        "███░",
        "████",
        "████",
        "░░░░",
    ]
    counts = {"succeeded": 3, "cached": 1, "failed": 5}
    assert counted({"activities": {**counts, "total": 9}}, named=True) == "4 of 9 activities"
    assert counted({"activities": counts, "state": "running"}) == "4 so far"
    assert counted({"activities": counts, "state": "completed"}, named=True) == "4 activities"
    one = {"activities": {"succeeded": 1, "total": 1, "known": 1}, "state": "completed"}
    assert counted(one, named=True) == "1 of 1 activity"
    lost = {"succeeded": 2, "lost": 5, "known": 7}
    assert counted({"activities": lost, "state": "completed"}) == "2 of 7"


def test_an_estimate_without_past_runs_says_so() -> None:
    assert basis({"past_runs": 0}) == "from this run alone: no past run to learn from"
    assert basis({"past_runs": 1, "past_error": 0.21}) == "from 1 past run, usually off by 21%"
    assert left({"remaining_s": 5.0, "low_s": None}) == "5.0s"
    assert left({"reason": "nothing ended"}) == "-"


words = st.text(max_size=40)


@given(
    rows=st.lists(st.lists(words, min_size=3, max_size=3), max_size=5),
    width=st.integers(30, 120),
)
def test_a_table_is_never_wider_than_the_screen(rows: list[list[str]], width: int) -> None:
    lines = table_lines(("a", "b", "c"), rows, width=width, right=frozenset({1}))

    assert len(lines) == len(rows) + 1
    assert all(display_width(line) <= width for line in lines)
    assert not any(char in line for line in lines for char in "\r\n\x1b\x9b")


def test_soft_columns_are_cut_first() -> None:
    rows = [("0123456789" * 4, "what must be read whole")]

    (_, line) = table_lines(("run", "why"), rows, width=40, soft=frozenset({0}))

    assert line == "01234567890123…  what must be read whole"


@given(text=words, width=st.integers(1, 50))
def test_what_is_cut_fits_and_says_so(text: str, width: int) -> None:
    assert display_width(truncate(text, width)) <= max(width, 1)
    assert truncate(text, width) == text or truncate(text, width).endswith("…")


@given(text=st.text(alphabet="ab \n", max_size=200), width=st.integers(1, 40))
def test_a_paragraph_keeps_its_words(text: str, width: int) -> None:
    lines = wrapped(text, width)

    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= width for line in lines)


def test_a_long_value_goes_on_below_its_beginning() -> None:
    assert field_lines([("why", "one two three four five six"), ("none", None)], width=25) == [
        "why  one two three four",
        "     five six",
    ]


@given(counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=12), width=st.integers(40, 200))
def test_every_count_of_a_histogram_shows_and_fits(counts: list[int], width: int) -> None:
    edges = [float(2**n) for n in range(len(counts) + 1)]

    lines = list(histogram_lines(edges, counts, width))

    assert all(len(line) <= width for line in lines)
    for line, count in zip(lines, counts, strict=True):
        assert (line[-1] in "█▏▎▍▌▋▊▉") == (count > 0)


def test_edges_that_are_close_have_more_digits() -> None:
    assert edge_texts([1.0, 60.0, 3600.0]) == ["1.0s", "1m00s", "1h00m"]
    assert edge_texts([1.001, 1.004, 1.01]) == ["1.001s", "1.004s", "1.010s"]
    assert edge_texts([5.0, 5.0]) == ["5.0s", "5.0s"]


def test_a_trace_is_shown_if_it_adds_detail_than_the_error() -> None:
    assert adds_detail("Traceback ...", None)
    assert not adds_detail(None, "no room")
    assert not adds_detail("In line 20:\n  no  room", "no room")
    assert adds_detail("no room\n" + "at some place\n" * 20, "no room")


def test_an_event_is_reported_by_what_happened_or_by_its_values() -> None:
    def reported(**pairs: str) -> str:
        return event_text({"time": None, "pairs": {"RunId": "r", **pairs}}, NOW).split(maxsplit=1)[
            1
        ]

    assert reported(ActivityFailed="t", ActivityId="a", ErrorMessage="no\nroom") == (
        "ActivityFailed a: no room"
    )
    assert reported(ActivityId="a", CpuSeconds="3") == "cpu seconds 3.0s a"
    assert reported(Weather="wet") == "RunId, Weather"
