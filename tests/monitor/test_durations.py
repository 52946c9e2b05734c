"""Durations in sentences: never more digits than a person would say."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.monitor.durations import duration_text


@pytest.mark.parametrize(
    ("duration_s", "said"),
    [
        (-3.0, "under 0.1 s"),
        (0.001006, "under 0.1 s"),
        (0.1756, "0.2 s"),
        (1.44, "1.4 s"),
        (9.96, "10 s"),
        (12.4, "12 s"),
        (59.6, "1 min"),
        (200.0, "3 min 20 s"),
        (3_599.7, "1 h"),
        (7_500.0, "2 h 5 min"),
        (86_399.0, "1 d"),
        (273_600.0, "3 d 4 h"),
        (float("nan"), "unknown time"),
    ],
)
def test_a_duration_is_said_in_its_two_largest_units(duration_s: float, said: str) -> None:
    assert duration_text(duration_s) == said


@given(st.floats(0, 1e9))
def test_no_duration_has_more_than_one_place_after_the_point(duration_s: float) -> None:
    assert re.fullmatch(
        r"(under )?\d[\d,]*(\.\d)? (s|min|h|d)( \d+ (s|min|h))?", duration_text(duration_s)
    )
