"""Addresses, Periods and values as programs write them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client.gma.address import PeerAddress, read_address
from tocsin.client.gma.encoded_event import (
    EncodedEvent,
    elements_of,
    encode_events,
    event_of,
    parameters_of,
    period_s_of,
    stamp_of,
    values_of,
)
from tocsin.errors import BadEvent, BadMessage, BadSetting
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import Quantity
from tocsin.wire.gma.messages import Element
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.write import event_element

NOW = "2026-01-02T03:04:05.000006Z"
LOAD = EventName("UptimeCPULoad")


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("node7:8402", PeerAddress("node7", 8402)),
        ("gma://node7.gov:8402", PeerAddress("node7.gov", 8402)),
        ("gmas://10.0.0.7:1/", PeerAddress("10.0.0.7", 1, tls=True)),
        ("[::1]:65535", PeerAddress("::1", 65535)),
    ],
)
def test_an_address_is_read_as_people_write_it(text: str, address: PeerAddress) -> None:
    assert read_address(text) == address
    assert read_address(str(address)) == address
    assert read_address(address.authority) == address._replace(tls=False)


@pytest.mark.parametrize(
    "text", ["", "node7", ":8402", "node7:0", "node7:65536", "node7:x", "http://node7:80", "::1:80",
             "a b:80", "node7:-1", "gma://node7:80/path", "x" * 400 + ":80"],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(BadSetting, match="host:port"):
        read_address(text)


def test_an_address_for_everybody_is_reported_by_the_name_of_the_host() -> None:
    assert str(read_address("0.0.0.0:0", listening=True).seen_as("node7")) == "gma://node7:0"
    assert str(read_address("10.0.0.1:5").seen_as("node7")) == "gma://10.0.0.1:5"


@pytest.mark.parametrize(
    ("period", "seconds"),
    [(10, 10), (0.5, 0.5), ("10s", 10), ("5min", 300), ("5 min", 300), ("200 ms", 0.2),
     ("2h", 7200), ("7", 7), ("1.5 sec", 1.5), ("500ms", 0.5), ("10m", 600), ("1h30m", 5400),
     ("1 hour", 3600), ("1 day", 86_400), ("PT1M", 60)],
)  # fmt: skip
def test_a_period_is_seconds_or_a_number_with_its_unit(period: float | str, seconds: float) -> None:
    assert period_s_of(period) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "period", [0, -1, 1e-9, "1ns", "ten", "5 bytes", "", 1e9, "400 day", "1 0s", "nan"]
)
def test_what_is_no_period_is_refused_with_what_to_write(period: float | str) -> None:
    with pytest.raises(BadSetting) as caught:
        period_s_of(period)

    assert "10m" in caught.value.remedy or "0.01 seconds" in caught.value.remedy
    assert "<" not in str(caught.value)


def test_a_period_is_sent_in_the_unit_of_the_paper() -> None:
    asked = parameters_of(LOAD, "10min", {"Core": 3})

    assert asked.elements == (Element("Period", 600, "sec"), Element("Core", 3))


def test_an_event_says_when_and_where_it_was_made() -> None:
    event = event_of(LOAD, {"Load5": Quantity(1.6, "1", "+/-0.1")}, host="foo.gov", now=NOW)

    assert event_element(event) == (
        '<UptimeCPULoad xmlns="http://www.gridforum.org/Performance/Events">'
        '<Load5 units="1" accuracy="+/-0.1">1.6</Load5><HostName>foo.gov</HostName>'
        f"<TimeStamp>{NOW}</TimeStamp></UptimeCPULoad>"
    )


def test_an_event_that_says_it_itself_is_believed() -> None:
    given_time = "2000-11-09T21:51:45Z"
    event = event_of(LOAD, {"HostName": "bar", "TimeStamp": given_time}, host="foo.gov", now=NOW)

    assert (event.time, event["HostName"]) == (given_time, "bar")
    assert [each.name for each in event.elements] == ["HostName"]


def test_a_moment_of_another_zone_is_reported_in_utc() -> None:
    assert stamp_of(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), NOW) == "2026-01-02T03:04:05.000000Z"
    with pytest.raises(BadEvent, match="time stamp"):
        stamp_of("yesterday", NOW)


def test_numbers_of_numpy_are_numbers() -> None:
    made = elements_of({"a": numpy.float64(1.5), "b": numpy.int32(7), "c": numpy.bool_(True)})

    assert [(each.value, type(each.value)) for each in made] == [
        (1.5, float), (7, int), (True, bool),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, b"x", object()])
def test_a_value_that_cannot_be_sent_is_named(value: object) -> None:
    with pytest.raises(BadEvent, match="Load1 is a"):
        elements_of({"Load1": value})  # type: ignore[dict-item]


def test_parameters_that_hold_elements_are_refused() -> None:
    with pytest.raises(BadMessage, match="holds elements"):
        values_of((Element("Disk", (Element("Name", "sda"),)),))


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
TEXTS = st.none() | st.text(max_size=8)
QUANTITIES = st.builds(Quantity, SCALARS, TEXTS, TEXTS)
NAMES = st.from_regex(r"[A-Z][A-Za-z0-9]{0,8}", fullmatch=True)


@given(st.dictionaries(NAMES, SCALARS | QUANTITIES, max_size=8))
def test_values_come_back_from_elements_as_they_were(values: dict) -> None:
    def bare(value: object) -> object:
        plain = isinstance(value, Quantity) and value.unit is None and value.accuracy is None
        return value.value if plain else value  # type: ignore[union-attr]

    assert values_of(elements_of(values)) == {name: bare(each) for name, each in values.items()}


def test_what_a_call_made_may_be_one_event_or_several_or_none() -> None:
    whole = event_of(LOAD, {"Load1": 3}, host="", now=NOW)

    def loads(result: object) -> list[object]:
        found = encode_events(LOAD, result, host="h", now=NOW)  # type: ignore[arg-type]
        return [made.event["Load1"] for made in found]

    assert loads({"Load1": 1}) == [1]
    assert loads(whole) == [3]
    assert loads([{"Load1": 1}, whole]) == [1, 3]
    assert loads([]) == []


@pytest.mark.parametrize(
    "result",
    [None, 7, "text", [None], event_of(EventName("Other"), {}, host="", now=NOW),
     [{}] * 1_001, {"Load1": "x" * (1 << 20)}, {"Load1": float("nan")}],
)  # fmt: skip
def test_what_is_no_event_is_an_error_that_says_so(result: object) -> None:
    with pytest.raises(BadEvent):
        encode_events(LOAD, result, host="h", now=NOW)  # type: ignore[arg-type]


def test_filters_see_the_elements_with_their_units() -> None:
    made = EncodedEvent(
        event_of(LOAD, {"Load5": 5.0, "Free": Quantity(2, "GiB")}, host="h", now=NOW)
    )

    assert made.passes(parse_filter("Load5 >= 5.0 and Free > 1 GB"))
    assert not made.passes(parse_filter("Load5 > 5.0"))
    assert made.passes(None)
