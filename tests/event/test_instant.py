"""Times and durations: each text form is read and written in one place."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.event.instant import (
    NS_PER_S,
    duration_s,
    is_date,
    iso8601_ns,
    iso_duration,
    iso_duration_ns,
    rfc3339,
    rfc3339_ns,
    xs_date_time_ns,
    xs_duration,
    xs_duration_ns,
)

S = NS_PER_S
NOW = 1_794_787_200 * S  # 2026-11-16T00:00:00Z
MOMENTS = st.datetimes(
    datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC), allow_imaginary=False
)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, OFFSETS)
def test_a_moment_is_the_same_in_every_zone(moment: datetime, zone: timezone) -> None:
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000

    assert rfc3339_ns(moment.astimezone(zone).isoformat()) == expected


@given(st.integers(0, 2**63 - 1))
def test_what_is_shown_is_read_again_to_the_millisecond(moment: int) -> None:
    assert rfc3339_ns(rfc3339(moment)) == moment // 1_000_000 * 1_000_000


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
    assert rfc3339_ns(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT10M", 600), ("P1W", 604_800), ("P1DT2H3M4S", 93_784), ("PT1.5S", 1.5), ("PT0S", 0)],
)
def test_durations_are_weeks_days_hours_minutes_and_seconds(text: str, seconds: float) -> None:
    assert iso_duration_ns(text) == seconds * NS_PER_S


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "10M", "P1Y", "P1M", "PT-1S", "P1DT", "PT1.S", "pt1s", "PT1S ", "P9" * 99],
)
def test_what_is_no_duration_is_none(text: str) -> None:
    assert iso_duration_ns(text) is None


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    for read in (rfc3339_ns, iso_duration_ns):
        value = read(text)
        assert value is None or 0 <= value < 2**63


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT10M", 600),
        ("PT600.000000S", 600),
        ("P1D", 86_400),
        ("P1DT1H1M1.5S", 90_061.5),
        ("-PT5S", -5),
        ("PT0S", 0),
        ("P1Y", 31_556_952),
    ],
)
def test_an_xs_duration_is_read(text: str, seconds: float) -> None:
    assert xs_duration_ns(text) == int(seconds * S)


@pytest.mark.parametrize("text", ["", "P", "PT", "P1", "1D", "PT1", "P1DT", "PT1S ", "P-1D", "PTS"])
def test_what_is_no_xs_duration_is_none(text: str) -> None:
    assert xs_duration_ns(text) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-16T00:00:00Z", NOW),
        ("2026-11-16T01:00:00+01:00", NOW),
        ("2026-11-15T18:30:00.25-05:30", NOW + S // 4),
        ("2026-11-16T00:00:00", NOW),
    ],
)
def test_an_xs_date_time_is_read_in_its_zone(text: str, moment: int) -> None:
    assert xs_date_time_ns(text) == moment


@pytest.mark.parametrize(
    "text", ["2026-13-01T00:00:00Z", "2026-11-16", "now", "2026-11-16T25:00:00Z", "9" * 400]
)
def test_what_is_no_xs_moment_is_none(text: str) -> None:
    assert xs_date_time_ns(text) is None


@given(st.integers(0, 10**14))
def test_xs_durations_are_read_as_they_are_written(milliseconds: int) -> None:
    assert xs_duration_ns(xs_duration(milliseconds * 1_000_000)) == milliseconds * 1_000_000


@given(st.integers(0, 2**63 // 1_000_000 - 1))
def test_xs_date_times_are_read_as_they_are_written(milliseconds: int) -> None:
    assert xs_date_time_ns(rfc3339(milliseconds * 1_000_000)) == milliseconds * 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-16T00:00:00+99:99",
        "٢٠٢٦-11-16T00:00:00Z",
        "2026-11-16t00:00:00Z",
        "2026-11-16T00:00Z",
    ],
)
def test_an_xs_date_time_has_ascii_digits_and_a_real_offset(text: str) -> None:
    assert xs_date_time_ns(text) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-16T00:00:00Z", NOW),
        ("2026-11-16 01:00+01", NOW),
        ("20261116T00:00", NOW),
        ("2026-W47-1T00:00:00.5", NOW + S // 2),
    ],
)
def test_engines_may_write_any_form_of_iso_8601(text: str, moment: int) -> None:
    assert iso8601_ns(text) == moment


@pytest.mark.parametrize(
    "text", [None, "", "1794787200", "2026-11-16", "1969-12-31T23:59:59Z", "0001-01-01T00:00+01:00"]
)
def test_what_engines_write_without_a_clock_or_before_1970_is_none(text: str | None) -> None:
    assert iso8601_ns(text) is None


def test_a_time_is_written_with_as_many_digits_as_asked() -> None:
    assert rfc3339(NOW + 123_456_789) == "2026-11-16T00:00:00.123Z"
    assert rfc3339(NOW + 123_456_789, digits=6) == "2026-11-16T00:00:00.123456Z"
    assert rfc3339(NOW + 123_456_789, digits=9) == "2026-11-16T00:00:00.123456789Z"
    assert rfc3339(-1) == "1969-12-31T23:59:59.999Z"


@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
def test_a_date_is_one_that_the_calendar_has(year: int, month: int, day: int) -> None:
    exists = year >= 1 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]

    assert is_date(year, month, day) == exists


@given(st.integers(0, 2**63 - 1))
def test_iso_durations_are_written_to_the_nanosecond(length_ns: int) -> None:
    written = iso_duration(length_ns)

    assert xs_duration_ns(written) == length_ns


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("90", 90),
        ("1h30m", 5_400),
        ("5 min", 300),
        ("7 days", 604_800),
        ("pt1h", 3_600),
    ],
)
def test_people_write_durations_in_many_ways(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "P", "1h30", "-5s", "P1Y", "999999999999d"])
def test_what_people_write_that_is_no_duration_is_none(text: str) -> None:
    assert duration_s(text) is None
