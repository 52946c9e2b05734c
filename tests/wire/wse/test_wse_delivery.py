"""Events as WS-Eventing's consumers get them."""

from __future__ import annotations

import itertools

import pytest

from schemas import validator
from tocsin.event.event import Event
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import anonymous, header_text, read_addressing
from tocsin.wire.soap.delivery import consumer_parts, message
from tocsin.wire.soap.envelope import Envelope, blocks, read_envelope
from tocsin.wire.soap.names import (
    WSA2005,
    WSA200408,
    WSA_NAMESPACES,
    WSE_TOPIC,
    WSMAN,
    WSMAN_URI,
    WSN10,
    WSN13,
)
from tocsin.wire.wse.deliver import heartbeat, pieces
from tocsin.wire.wse.messages import EVENTS_ACTION, WRAPPED_ACTION, Events, Notify
from tocsin.wire.wse.read import read

PAYLOAD = b'<w:storm xmlns:w="urn:w"><w:level>4</w:level></w:storm>'
STORM = Event(
    id="urn:uuid:1",
    source="/s",
    type="http://example.org/Storm",
    topic="weather/storm",
    datacontenttype="application/xml",
    data=PAYLOAD,
)
RAIN = Event(id="2", source="/s", type="rain", datacontenttype="text/plain", data=b"wet")
SINK = "http://c.example/in"
CONSUMERS = list(itertools.product(("wse04", "wse11"), ("1.1", "1.2"), ("", *WSA_NAMESPACES)))


def sent(terms: SoapTerms, *events: Event) -> Envelope:
    return read_envelope(message(consumer_parts(terms, SINK), pieces(events, terms)))


def judge(terms: SoapTerms, *events: Event) -> None:
    whole = message(consumer_parts(terms, SINK), pieces(events, terms))
    validator(terms.spec, foreign=True)(whole)


@pytest.mark.parametrize(("spec", "soap", "wsa"), CONSUMERS)
def test_a_bare_event_keeps_its_bytes_its_action_and_its_id(spec: str, soap: str, wsa: str) -> None:
    terms = SoapTerms(spec=spec, soap=soap, wsa=wsa, form="raw")

    envelope = sent(terms, STORM)

    assert envelope.soap == soap
    assert PAYLOAD in envelope.raw
    headers = read_addressing(envelope)
    assert headers.wsa == wsa
    if wsa:
        assert (headers.action, headers.message_id) == (STORM.type, STORM.id)
        assert headers.to == SINK


@pytest.mark.parametrize(("spec", "namespace"), [("wse04", WSN10), ("wse11", WSN13)])
def test_the_topic_is_told_in_a_header_if_there_is_one(spec: str, namespace: str) -> None:
    terms = SoapTerms(spec=spec, soap="1.2", wsa=WSA2005, form="raw")
    nameless = [
        Event(id="urn:x", source="/s", type="t", topic=topic, data=b"<a/>")
        for topic in ("", WSE_TOPIC)
    ]

    assert header_text(sent(terms, STORM), namespace, "Topic") == "weather/storm"
    for event in nameless:
        assert header_text(sent(terms, event), namespace, "Topic") is None


def test_a_wrapped_event_says_which_action_it_would_have_had() -> None:
    terms = SoapTerms(spec="wse11", soap="1.2", wsa=WSA2005, form="wrapped")

    envelope = sent(terms, STORM)

    assert read(envelope) == Notify(PAYLOAD, STORM.type)
    assert read_addressing(envelope).action == WRAPPED_ACTION
    judge(terms, STORM)


@pytest.mark.parametrize("form", ["acked", "events"])
def test_what_is_to_be_acknowledged_says_so_and_where_to(form: str) -> None:
    terms = SoapTerms(spec="wse04", soap="1.2", wsa=WSA200408, form=form)

    envelope = sent(terms, STORM)

    assert header_text(envelope, WSMAN, "AckRequested") == ""
    reply_to = read_addressing(envelope).reply_to
    assert reply_to is not None
    assert reply_to.address == anonymous(WSA200408)


def test_a_batch_holds_each_event_with_its_action() -> None:
    terms = SoapTerms(spec="wse04", soap="1.2", wsa=WSA200408, form="events")

    envelope = sent(terms, STORM, RAIN)

    assert read_addressing(envelope).action == EVENTS_ACTION
    found = read(envelope)
    assert isinstance(found, Events)
    assert found.events[0] == Notify(PAYLOAD, STORM.type)
    assert found.events[1].action == "rain"
    assert b"cloudevents" in found.events[1].payload
    validator("wsman")(message(consumer_parts(terms, SINK), pieces([STORM, RAIN], terms)))


def test_the_same_batch_has_the_same_id_and_another_has_another() -> None:
    terms = SoapTerms(spec="wse04", soap="1.2", wsa=WSA200408, form="events")

    def message_id(*events: Event) -> str | None:
        return read_addressing(sent(terms, *events)).message_id

    assert message_id(STORM, RAIN) == message_id(STORM, RAIN)
    assert len({message_id(STORM, RAIN), message_id(STORM), message_id(RAIN, STORM)}) == 3


@pytest.mark.parametrize("form", ["raw", "acked", "events"])
def test_a_heartbeat_has_an_action_and_no_event(form: str) -> None:
    terms = SoapTerms(spec="wse04", soap="1.2", wsa=WSA200408, form=form)

    whole = message(consumer_parts(terms, SINK), heartbeat(terms, "urn:uuid:9"))

    envelope = read_envelope(whole)
    assert read_addressing(envelope).action == f"{WSMAN_URI}/Heartbeat"
    assert read(envelope) in (None, Events(()))
    if form == "events":
        validator("wsman")(whole)


@pytest.mark.parametrize("form", ["raw", "acked"])
def test_the_published_schemas_accept_the_envelopes(form: str) -> None:
    for soap in ("1.1", "1.2"):
        judge(SoapTerms(spec="wse04", soap=soap, wsa=WSA2005, form=form), STORM)
        judge(SoapTerms(spec="wse11", soap=soap, wsa=WSA2005, form=form), RAIN)


def test_the_consumers_references_come_first_and_no_subscription_is_named() -> None:
    block = '<k:k xmlns:k="urn:k">1</k:k>'
    terms = SoapTerms(spec="wse04", soap="1.1", wsa=WSA200408, form="raw", references=block)

    names = [found.tag for found in blocks(sent(terms, STORM))]

    assert names[:2] == [f"{{{WSA200408}}}To", "{urn:k}k"]
    assert not any(name.endswith(("Identifier", "SubscriptionId")) for name in names)
