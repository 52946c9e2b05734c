"""Moments and durations as people write them, in nanoseconds inside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.api.times import NS_PER_S, duration_ns, moment_ns, rfc3339

MOMENTS = st.datetimes(
    datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC), allow_imaginary=False
)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, OFFSETS)
def test_a_moment_is_the_same_in_every_zone(moment: datetime, zone: timezone) -> None:
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000

    assert moment_ns(moment.astimezone(zone).isoformat()) == expected


@given(st.integers(0, 2**63 - 1))
def test_what_is_shown_is_read_again_to_the_millisecond(moment: int) -> None:
    assert moment_ns(rfc3339(moment)) == moment // 1_000_000 * 1_000_000


def test_a_time_past_the_calendar_is_shown_as_its_end() -> None:
    assert rfc3339(10**22) == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-11-15",
        "2026-11-15T12:00:00",
        "2026-13-01T00:00:00Z",
        "2026-11-15T25:00:00Z",
        "1969-12-31T23:59:59Z",
        "9999-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "2026-11-15T12:00:00+99:99",
        "2026-11-15T12:00:00Z\n",
        "٢٠٢٦-11-15T12:00:00Z",
    ],
)
def test_what_is_no_moment_is_none(text: str) -> None:
    assert moment_ns(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT10M", 600), ("P1W", 604_800), ("P1DT2H3M4S", 93_784), ("PT1.5S", 1.5), ("PT0S", 0)],
)
def test_durations_are_weeks_days_hours_minutes_and_seconds(text: str, seconds: float) -> None:
    assert duration_ns(text) == seconds * NS_PER_S


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "10M", "P1Y", "P1M", "PT-1S", "P1DT", "PT1.S", "pt1s", "PT1S ", "P9" * 99],
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_ns(text) is None


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    for read in (moment_ns, duration_ns):
        value = read(text)
        assert value is None or 0 <= value < 2**63
