"""Performance events as events of the broker, with names, types, units and times kept, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from mediated import RECEIVED_NS, sent

from tocsin.config import Settings
from tocsin.event.event import Event
from tocsin.event.value import Quantity
from tocsin.event.xml_form import event_from_xml, event_xml, payload_xml
from tocsin.safexml import parse
from tocsin.wire.cloudevents import percent, typed
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.cloudevents.read import read_events
from tocsin.wire.cloudevents.write import binary_headers, structured
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Element, PerformanceEvent
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.normal import (
    ATTRIBUTES_HEADER_BYTES_MAX,
    ATTRIBUTES_MAX,
    XML_TYPE,
    content_of,
    name_of_event,
    to_event,
)
from tocsin.wire.gma.read import read_content
from tocsin.wire.gma.write import event_element, event_message
from wire.gma.drawn import performance_events
from wire.gma.paper_messages import LOAD, LOADS, TIME, UPTIME

LIMITS = Settings().event_limits()
HEADER_LINE_BYTES_MAX = 8_190  # what widespread servers take


def arrived(event: PerformanceEvent) -> Event:
    """The event as the broker has it after it came by the wire."""
    message, content = read_content(event_message("1", event_element(event).encode()))
    assert isinstance(message, m.EventMessage)
    assert message.event is not None
    assert content is not None
    return to_event(message.event, content, event_id="e1", sender="10.0.0.7:40000")


# In


def test_the_paper_s_event_is_filed_under_its_name_and_host() -> None:
    event = arrived(PerformanceEvent(UPTIME, TIME, (*LOADS, Element("HostName", "foo.gov"))))

    assert event.type == "http://www.gridforum.org/Performance/Events/UptimeCPULoad"
    assert event.topic == "gma/UptimeCPULoad/foo.gov"
    assert event.source == "gma://foo.gov"
    assert event.subject == "foo.gov"
    assert event.time == TIME
    assert event.attributes == {"Load1": 1.5, "Load5": 1.6, "Load15": 1.3, "HostName": "foo.gov"}


def test_without_a_host_the_sender_is_the_source() -> None:
    event = arrived(LOAD)

    assert (event.source, event.subject) == ("gma://10.0.0.7:40000", None)
    assert event.topic == "gma/UptimeCPULoad"


@pytest.mark.parametrize(
    "host", ["", " ", "a b", "a/b", "a*", "x" * 254, "x" * 253 + "/ y", "a\nb"]
)
def test_a_host_that_is_none_is_not_believed(host: str) -> None:
    event = arrived(PerformanceEvent(UPTIME, TIME, (Element("HostName", host),)))

    check_event(event, LIMITS)
    assert event.source == "gma://10.0.0.7:40000"


def test_units_accuracy_and_inner_values_are_attributes() -> None:
    event = arrived(
        PerformanceEvent(
            EventName("Disk", "urn:lab"),
            TIME,
            (
                Element("Free", 12, "GB", "+/-1"),
                Element("sda", (Element("Read", 7), Element("Busy", True))),
                Element("Free", 99),
            ),
        )
    )

    assert event.attributes == {"Free": Quantity(12, "GB", "+/-1"), "sda.Read": 7, "sda.Busy": True}


def test_the_layout_of_a_text_is_not_part_of_its_attribute() -> None:
    event = arrived(
        PerformanceEvent(UPTIME, TIME, (Element("Note", "\n  calm\n"), Element("Log", "one\ntwo")))
    )

    check_event(event, LIMITS)
    assert event.attributes == {"Note": "calm"}, "the log's lines are in the payload"


@given(event=performance_events)
def test_every_performance_event_is_an_event_that_every_door_can_take(
    event: PerformanceEvent,
) -> None:
    broker_event = arrived(event)

    check_event(broker_event, LIMITS)
    assert len(broker_event.attributes) <= ATTRIBUTES_MAX


@given(event=performance_events)
def test_what_comes_in_goes_out_as_it_was(event: PerformanceEvent) -> None:
    broker_event = arrived(event)

    assert content_of(broker_event, RECEIVED_NS) == broker_event.data
    assert sent(broker_event) == event
    assert name_of_event(broker_event) == event.name


@pytest.mark.parametrize("text", ["x", "\xe4", "\U0001f321", '"', "%", "\\"])
@pytest.mark.parametrize("count", [1, 40, 900])
def test_attributes_fit_into_a_header_whatever_they_are_made_of(text: str, count: int) -> None:
    elements = tuple(
        Element(f"n{number}", text * 200, text * 20, text * 20) for number in range(count)
    )

    event = arrived(PerformanceEvent(UPTIME, TIME, elements))

    check_event(event, LIMITS)
    assert len(event.attributes) <= ATTRIBUTES_MAX
    written = percent.encoded(typed.written(event.attributes))
    assert len(written) <= ATTRIBUTES_HEADER_BYTES_MAX
    lines = binary_headers(event).split(b"\r\n")
    assert max(map(len, lines)) <= HEADER_LINE_BYTES_MAX


def test_as_many_attributes_are_kept_as_there_is_room_for() -> None:
    few = tuple(Element(f"n{number}", number / 10) for number in range(200))

    kept = arrived(PerformanceEvent(UPTIME, TIME, few)).attributes

    assert len(kept) == ATTRIBUTES_MAX
    assert list(kept)[:2] == ["n0", "n1"]


@given(event=performance_events)
def test_the_other_dialects_bring_the_event_back(event: PerformanceEvent) -> None:
    broker_event = arrived(event)

    [by_json] = read_events("application/cloudevents+json", {}, structured(broker_event), LIMITS)
    assert by_json == broker_event
    headers = binary_headers(broker_event).decode().split("\r\n")[:-1]
    named = dict(line.split(": ", 1) for line in headers)
    [by_headers] = read_events(XML_TYPE, named, broker_event.data or b"", LIMITS)
    assert by_headers == broker_event
    by_xml = event_from_xml(parse(event_xml(broker_event)))
    assert by_xml.attributes == broker_event.attributes
    assert (by_xml.type, by_xml.time, by_xml.topic) == (
        broker_event.type,
        broker_event.time,
        broker_event.topic,
    )
    assert sent(by_xml) == event
    assert payload_xml(broker_event) == broker_event.data, "which is the body of a SOAP message"


def test_an_event_without_a_namespace_keeps_its_name_inside_a_message_that_has_one() -> None:
    bare = f"<Foo><v>1</v><TimeStamp>{TIME}</TimeStamp></Foo>"
    space = "http://www.gridforum.org/Performance/Protocol"
    message, content = read_content(
        f'<p:Event xmlns:p="{space}" subscriptionID="1">{bare}</p:Event>'.encode()
    )
    assert isinstance(message, m.EventMessage)
    assert message.event is not None
    assert content is not None

    event = to_event(message.event, content, event_id="e1", sender="x")

    assert event.data == bare.encode()
    assert sent(event) == message.event
    assert message.event.name == EventName("Foo", "")
