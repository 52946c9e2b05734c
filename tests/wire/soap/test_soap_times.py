"""Moments and durations as Web-services peers write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.wire.soap.times import date_time, duration, duration_ns, moment_ns, read_expiry

S = 1_000_000_000
NOW = 1_794_787_200 * S  # 2026-11-16T00:00:00Z


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
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert duration_ns(text) == int(seconds * S)


@pytest.mark.parametrize("text", ["", "P", "PT", "P1", "1D", "PT1", "P1DT", "PT1S ", "P-1D", "PTS"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert duration_ns(text) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-16T00:00:00Z", NOW),
        ("2026-11-16T01:00:00+01:00", NOW),
        ("2026-11-15T18:30:00.25-05:30", NOW + S // 4),
        ("2026-11-16T00:00:00", NOW),
    ],
)
def test_a_moment_is_read_in_its_zone(text: str, moment: int) -> None:
    assert moment_ns(text) == moment


@pytest.mark.parametrize(
    "text", ["2026-13-01T00:00:00Z", "2026-11-16", "now", "2026-11-16T25:00:00Z", "9" * 400]
)
def test_what_is_no_moment_is_none(text: str) -> None:
    assert moment_ns(text) is None


def test_the_originals_clients_count_milliseconds_and_only_theirs_do() -> None:
    asked = read_expiry("259200000", NOW, milliseconds=True)

    assert asked is not None
    assert (asked.expires_ns, asked.kind) == (NOW + 259_200 * S, "milliseconds")
    assert read_expiry("259200000", NOW) is None


def test_an_absurd_length_ends_with_time_itself() -> None:
    asked = read_expiry("P999999999Y", NOW)

    assert asked is not None
    assert asked.expires_ns == 2**63 - 1
    assert date_time(asked.expires_ns) < "2263"


@given(st.integers(0, 10**14))
def test_durations_are_read_as_they_are_written(milliseconds: int) -> None:
    assert duration_ns(duration(milliseconds * 1_000_000)) == milliseconds * 1_000_000


@given(st.integers(0, 2**63 // 1_000_000 - 1))
def test_moments_are_read_as_they_are_written(milliseconds: int) -> None:
    assert moment_ns(date_time(milliseconds * 1_000_000)) == milliseconds * 1_000_000
