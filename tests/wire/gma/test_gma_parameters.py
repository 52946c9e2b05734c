"""What the parameters of a request mean: how often, and which events."""

from __future__ import annotations

import pytest

from tocsin.errors import BadMessage, TocsinError
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.event.value import Quantity, Scalar
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Element, Parameters
from tocsin.wire.gma.names import EventName, event_name, name_of, read_name
from tocsin.wire.gma.parameters import period_of, wanted
from tocsin.wire.gma.read import read
from wire.gma.paper_messages import GRID_FORUM, UPTIME


def period(text: str, units: str | None = None) -> float | None:
    """What a request says, read from the wire."""
    reported = "" if units is None else f' units="{units}"'
    request = read(
        f'<QueryRequest xmlns="{GRID_FORUM}/Protocol" requestID="1"><UptimeCPULoad '
        f'xmlns="{GRID_FORUM}/EventParameters"><Period{reported}>{text}</Period></UptimeCPULoad>'
        "</QueryRequest>".encode()
    )
    assert isinstance(request, m.QueryRequest)
    return period_of(request.parameters)


@pytest.mark.parametrize(
    ("text", "units", "seconds"),
    [
        ("10", "min", 600),
        ("600", "sec", 600),
        ("10", None, 10),
        ("0.01", None, 0.01),
        (" 2.5 ", "s", 2.5),
        ("250", "ms", 0.25),
        ("250", "milliseconds", 0.25),
        ("2", "Hours", 7_200),
        ("2", "hr", 7_200),
        ("1", "DAY", 86_400),
        ("366", "d", 366 * 86_400),
        ("1e3", "seconds", 1_000),
        ("1e9", "nanoseconds", 1),
    ],
)
def test_a_period_is_so_many_seconds_whatever_its_units(
    text: str, units: str | None, seconds: float
) -> None:
    assert period(text, units) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        *(("0", None), ("-1", None), ("-0.0", "sec"), ("1", "ns"), ("9", "ms"), ("0.009", "s")),
        *(
            ("nan", None),
            ("inf", None),
            ("soon", None),
            ("", None),
            ("true", None),
            ("1e999", None),
        ),
        *(
            ("10", "parsec"),
            ("10", ""),
            ("10", "bytes"),
            ("10", "Hz"),
            ("10", "%"),
            ("10", "x" * 999),
        ),
        *(("367", "days"), ("9999999999999999999", None), ("1e300", "h"), ("<a>1</a>", None)),
        ("x" * 9_999, None),
    ],
)
def test_a_period_that_nobody_can_keep_is_refused_with_what_would_do(
    text: str, units: str | None
) -> None:
    with pytest.raises(BadMessage) as caught:
        period(text, units)

    assert "Period" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_without_a_period_none_is_asked_for() -> None:
    assert period_of(Parameters(UPTIME, (Element("HostName", "foo.gov"),))) is None


def test_two_periods_are_refused() -> None:
    with pytest.raises(BadMessage):
        period_of(Parameters(UPTIME, (Element("Period", 1), Element("Period", 2))))


def _event(**attributes: Scalar | Quantity) -> Event:
    return Event("1", "gma://foo.gov", UPTIME.type, attributes=dict(attributes))


@pytest.mark.parametrize(
    ("parameters", "filter", "passes"),
    [
        ((), None, True),
        ((), "", True),
        ((Element("Period", 10, "min"),), None, True),
        ((Element("HostName", "foo.gov"),), None, True),
        ((Element("HostName", "bar.gov"),), None, False),
        ((Element("Load5", 6.5),), None, True),
        ((Element("Wait", 120, "s"),), None, True),
        ((Element("Wait", 2, "ms"),), None, False),
        ((Element("Up", True),), None, True),
        ((Element("Up", False),), None, False),
        ((Element("None", 1),), None, False),
        ((), "Load5 >= 5.0", True),
        ((), "Load5 >= 7", False),
        ((), "Load5 >= 5.0 and HostName = 'foo.gov'", True),
        ((Element("HostName", "foo.gov"),), "Load5 < 5", False),
    ],
)
def test_events_are_wanted_whose_elements_are_as_the_parameters_and_the_filter_say(
    parameters: tuple[Element, ...], filter: str | None, passes: bool
) -> None:
    event = _event(HostName="foo.gov", Load5=6.5, Up=True, Wait=Quantity(2, "min"))

    assert matches(wanted(Parameters(UPTIME, parameters), filter), event) is passes


def test_events_of_another_name_are_not_wanted() -> None:
    other = Parameters(EventName("UptimeCPULoad", "urn:else"))

    assert not matches(wanted(other, None), _event())


@pytest.mark.parametrize("filter", ["Load5 >=", "((", "x" * 100_000])
def test_a_filter_that_cannot_be_read_is_refused(filter: str) -> None:
    with pytest.raises(TocsinError):
        wanted(Parameters(UPTIME), filter)


def test_a_parameter_of_elements_is_refused() -> None:
    with pytest.raises(BadMessage):
        wanted(Parameters(UPTIME, (Element("a", (Element("b", 1),)),)), None)


# Names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("UptimeCPULoad", UPTIME),
        ("UptimeCPULoadEvent", UPTIME),
        ("{urn:lab}Temperature", EventName("Temperature", "urn:lab")),
        (f"{{{GRID_FORUM}/Protocol}}UptimeCPULoad", UPTIME),
        (f"{GRID_FORUM}/Events/UptimeCPULoad", UPTIME),
        ("urn:lab/Temperature", EventName("Temperature", "urn:lab")),
        ("com.example.order", EventName("com.example.order", "urn:tocsin:type")),
        ("{}Plain", EventName("Plain", "")),
    ],
)
def test_a_name_is_read_as_people_write_it(text: str, name: EventName) -> None:
    assert read_name(text) == name
    assert read_name(str(name)) == name


@pytest.mark.parametrize(
    "event_type",
    [
        *("com.example.order", "urn:lab/T", "two words", "urn:\xe4/T", "", "Error", "Return"),
        *(f"{GRID_FORUM}/Events/UptimeCPULoad", f"{GRID_FORUM}/Events/UptimeCPULoadEvent"),
        *(f"{GRID_FORUM}/Protocol/Error", f"{GRID_FORUM}/Protocol/T", "urn:tocsin:gma:1/Filter"),
        *(f"{GRID_FORUM}/EventParameters/T", "http://example.org/", "urn:tocsin:type/x"),
    ],
)
def test_every_type_has_a_name_that_says_it_again(event_type: str) -> None:
    name = name_of(event_type)

    assert name.type == event_type
    assert event_name(name.namespace, name.local) == name, "it is read as it was written"
    assert read_name(str(name)) == name


def test_a_type_of_any_length_has_a_name_that_can_be_sent() -> None:
    assert len(name_of("x y" * 9_999).local) <= 256
    assert len(name_of(f"urn:{'x' * 9_999}/T").local) <= 256
