"""The Grid Forum's time stamp: ISO 8601, and how fine and how right the clock was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadEvent
from tocsin.wire.cloudevents.attributes import is_time
from tocsin.wire.gma.stamp import Stamp, is_plain, read_stamp


@pytest.mark.parametrize(
    ("text", "stamp"),
    [
        ("2000-11-09T21:51:45Z", Stamp("2000-11-09T21:51:45Z")),
        (" 2000-11-09T21:51:45Z\n", Stamp("2000-11-09T21:51:45Z")),
        ("2000-11-09t21:51:45z", Stamp("2000-11-09T21:51:45Z")),
        ("2000-11-09 21:51:45Z", Stamp("2000-11-09T21:51:45Z")),
        ("2000-11-09T21:51:45", Stamp("2000-11-09T21:51:45Z")),
        ("2000-11-09T21:51Z", Stamp("2000-11-09T21:51:00Z")),
        ("20001109T215145Z", Stamp("2000-11-09T21:51:45Z")),
        ("20001109T215145,250+0200", Stamp("2000-11-09T21:51:45.250+02:00")),
        ("2000-11-09T21:51:45-05", Stamp("2000-11-09T21:51:45-05:00")),
        ("2000-11-09T21:51:45.5Zp.001", Stamp("2000-11-09T21:51:45.5Z", 0.001)),
        ("2000-11-09T21:51:45.5Zr1e-3a.5", Stamp("2000-11-09T21:51:45.5Z", 0.001, 0.5)),
        ("2000-11-09T21:51:45Za2", Stamp("2000-11-09T21:51:45Z", None, 2.0)),
        ("2016-12-31T23:59:60Z", Stamp("2016-12-31T23:59:60Z")),
        ("2024-02-29T00:00:00Z", Stamp("2024-02-29T00:00:00Z")),
    ],
)
def test_every_form_of_a_stamp_says_the_same_time(text: str, stamp: Stamp) -> None:
    assert read_stamp(text) == stamp


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2000-11-09", "21:51:45Z", "2000-13-09T21:51:45Z", "2000-00-09T21:51:45Z"),
        *("2000-11-31T21:51:45Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z"),
        *("2000-11-09T24:00:00Z", "2000-11-09T21:60:45Z", "2000-11-09T21:51:61Z"),
        *("0000-11-09T21:51:45Z", "2000-11-09T21:51:45+24:00", "2000-11-09T21:51:45+02:60"),
        *("2000-11-09T21:51:45Zp", "2000-11-09T21:51:45Za-1", "2000-11-09T21:51:45Zpnan"),
        *("2000-11-09T21:51:45.Z", f"2000-11-09T21:51:45.{'1' * 65}Z", "2" * 10_000, "-" * 300),
        *("٢٠٠٠-11-09T21:51:45Z", "2000-11-09T21:51:45Z\0", f"2000-11-09T21:51:45Zp{'9' * 300}"),
    ],
)
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    assert not is_plain(text)
    with pytest.raises(BadEvent, match="2000-11-09T21:51:45Z"):
        read_stamp(text)


moments = st.datetimes(
    datetime(1, 1, 2),
    datetime(9999, 12, 30),
    timezones=st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(
        lambda offset: timezone(timedelta(minutes=offset // timedelta(minutes=1)))
    ),
)


@given(moment=moments)
def test_every_moment_comes_back(moment: datetime) -> None:
    stamp = read_stamp(moment.isoformat())

    assert datetime.fromisoformat(stamp.time) == moment
    assert is_time(stamp.time), "the broker takes it"


@given(moment=moments)
def test_the_usual_form_is_taken_as_it_stands(moment: datetime) -> None:
    text = moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

    assert is_plain(text) or (moment.astimezone(UTC).month, moment.astimezone(UTC).day) == (2, 29)
    assert read_stamp(text) == Stamp(text)


@given(text=st.text("0123456789-:.,TtZz+ pra", max_size=40))
def test_a_stamp_is_a_time_for_every_door_or_refused(text: str) -> None:
    try:
        stamp = read_stamp(text)
    except BadEvent:
        assert not is_plain(text)
        return
    assert is_time(stamp.time)
    assert not is_plain(text) or stamp == Stamp(text)


@given(
    minute=st.sampled_from(["2024-05-01T12:00", "2016-12-31t23:59", "0001-01-01T00:00"]),
    second=st.integers(0, 60),
    part=st.text("0123456789", max_size=64),
    zone=st.sampled_from(["Z", "z", "+00:00", "-23:59"]),
)
def test_every_time_that_the_broker_takes_is_a_stamp(
    minute: str, second: int, part: str, zone: str
) -> None:
    text = f"{minute}:{second:02}{'.' if part else ''}{part}{zone}"

    assert is_time(text)
    assert is_time(read_stamp(text).time)
