"""Events delivered by WS-BaseNotification, compared with what real brokers deliver."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from schemas import ROOT, capture_body, validator
from tocsin.event.event import Event
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.delivery import consumer_parts, message
from tocsin.wire.soap.envelope import Envelope, read_envelope
from tocsin.wire.soap.mediation import Notification, to_event
from tocsin.wire.soap.names import SOAP11, TOCSIN, WSA2005, WSA200403, WSN10, WSN12
from tocsin.wire.soap.topics import TopicName, read_topic
from tocsin.wire.wsn.deliver import own_reference, pieces
from tocsin.wire.wsn.messages import Notify
from tocsin.wire.wsn.read import read, read_notifications

CAPTURES = ROOT / "tests" / "captures" / "ws"
SPECS = ("wsn13", "wsn12", "wsn10")
WSA = {"wsn13": WSA2005, "wsn12": WSA200403, "wsn10": WSA2005}


def captured(name: str) -> Envelope:
    return read_envelope(capture_body(CAPTURES / name))


def terms(spec: str, *, form: str = "wrapped", soap: str = "1.1") -> SoapTerms:
    manager = "http://broker.example/soap/subscriptions"
    return SoapTerms(spec=spec, soap=soap, wsa=WSA[spec], form=form, manager=manager)


def delivered(*events: Event, to: SoapTerms, address: str = "http://c/") -> bytes:
    own = consumer_parts(to, address, own_reference(to, "id-1"))
    return message(own, pieces(events, to))


def the_original_publish() -> Event:
    """What wsmessenger02_client_08 published, as the broker keeps it."""
    envelope = captured("wsmessenger02_client_08_req.http")
    assert envelope.header is not None
    addressing = read_addressing(envelope)
    notification = Notification(
        payload=b"<c><b><a>via-wse</a></b></c>",
        name=("", "c"),
        topic=read_topic(envelope.header.find(f"{{{WSN10}}}Topic")),
        action=addressing.action,
        message_id=addressing.message_id,
    )
    return to_event(notification, fallback_id="x")


def canonical(element: etree._Element) -> object:
    """An element by what it says: names, attributes, trimmed text, children."""
    children = [canonical(child) for child in element]
    return element.tag, dict(element.attrib), (element.text or "").strip(), children


@pytest.mark.parametrize(
    "name", ["wsmessenger02_delivery_01_Notify.http", "wsmessenger02_delivery_03_Notify.http"]
)
def test_the_original_delivers_the_same_elements(name: str) -> None:
    theirs = captured(name)
    address = read_addressing(theirs).to
    assert address is not None
    assert theirs.header is not None

    ours = read_envelope(delivered(the_original_publish(), to=terms("wsn10"), address=address))

    assert canonical(ours.body) == canonical(theirs.body)
    assert ours.header is not None
    assert sorted(map(str, map(canonical, ours.header))) == sorted(
        map(str, map(canonical, theirs.header))
    )


def test_globus_is_sent_what_its_schema_and_its_clients_expect() -> None:
    event = Event(
        "uuid:1",
        "http://producer.example/x",
        "urn:x/bid",
        topic="demoTopic",
        extensions={
            "topicns": "http://tutorial.globus.org/auction",
            "wstopic": "ns2=http://tutorial.globus.org/auction ns2:demoTopic",
        },
        datacontenttype="application/xml",
        data=b'<bid xmlns="urn:x">7</bid>',
    )

    sent = read_envelope(delivered(event, to=terms("wsn12")))

    assert read_addressing(sent).action == (
        "http://docs.oasis-open.org/wsn/2004/06/wsn-WS-BaseNotification/Notify"
    )
    assert sent.content is not None
    [holder] = sent.content
    topic, producer, inside = holder
    assert (topic.tag, topic.text) == (f"{{{WSN12}}}Topic", "ns2:demoTopic")
    assert topic.get("Dialect") == ("http://docs.oasis-open.org/wsn/2004/06/TopicExpression/Simple")
    assert topic.nsmap["ns2"] == "http://tutorial.globus.org/auction"
    assert producer[0].text == "http://producer.example/x"
    assert inside[0].tag == "{urn:x}bid"


def test_a_delivery_of_1_3_names_its_subscription_by_address_and_by_header() -> None:
    sent = read_envelope(delivered(Event("1", "/s", "t", topic="a/b"), to=terms("wsn13")))

    assert sent.content is not None
    notify = read(sent)
    assert isinstance(notify, Notify)
    reference = notify.messages[0].subscription
    assert reference is not None
    assert reference.address == "http://broker.example/soap/subscriptions/id-1"
    [parameter] = reference.parameters
    assert etree.fromstring(parameter).tag == f"{{{TOCSIN}}}SubscriptionId"


def test_an_event_without_a_topic_has_one_only_where_it_must() -> None:
    event = Event("1", "/s", "t")

    def topic(spec: str) -> str | None:
        body = read_envelope(delivered(event, to=terms(spec))).body
        return body.findtext(".//{*}Topic")

    assert topic("wsn13") is None
    assert topic("wsn12") == topic("wsn10") == "wseTopic"


def test_a_source_that_is_no_address_is_no_producer_reference() -> None:
    for source in ("/soap", "urn:uuid:1", "sensor 7"):
        body = read_envelope(delivered(Event("1", source, "t"), to=terms("wsn13"))).body

        assert body.find(".//{*}ProducerReference") is None


@pytest.mark.parametrize("spec", SPECS)
def test_a_raw_delivery_is_the_payload_itself_with_its_own_action(spec: str) -> None:
    payload = b"<c><b>  raw </b></c>"
    event = Event("1", "/s", "urn:act", datacontenttype="application/xml", data=payload)

    sent = delivered(event, to=terms(spec, form="raw"))

    assert b"<s:Body>" + payload + b"</s:Body>" in sent
    assert read_addressing(read_envelope(sent)).action == "urn:act"
    validator(spec, foreign=True)(sent)


texts = st.text("abcä<&\"' ", max_size=12)
names = st.text("abcxyz", min_size=1, max_size=4)
topics = st.lists(names, min_size=1, max_size=3).map("/".join)
payloads = texts.map(lambda text: b'<q:e xmlns:q="urn:q">' + _escaped(text) + b"</q:e>")


def _escaped(text: str) -> bytes:
    return text.replace("&", "&amp;").replace("<", "&lt;").encode()


@st.composite
def published(draw: st.DrawFn) -> Event:
    topic = draw(topics)
    prefixed = draw(st.booleans())
    name = TopicName(f"n:{topic}", (("n", "urn:topics"),)) if prefixed else TopicName(topic)
    producer = draw(st.none() | names.map(lambda word: f"http://{word}.example/a?b&c"))
    return to_event(
        Notification(payload=draw(payloads), name=("urn:q", "e"), topic=name, producer=producer),
        fallback_id=f"urn:e:{draw(names)}",
    )


@pytest.mark.parametrize("spec", SPECS)
@settings(max_examples=40)
@given(events=st.lists(published(), min_size=1, max_size=3), soap=st.sampled_from(["1.1", "1.2"]))
def test_what_is_delivered_can_be_published_again_and_is_the_same_events(
    spec: str, events: list[Event], soap: str
) -> None:
    sent = delivered(*events, to=terms(spec, soap=soap))

    validator(spec)(sent)
    envelope = read_envelope(sent)
    found = read_notifications(envelope, read_addressing(envelope))
    again = [to_event(each, fallback_id="?") for each in found]
    for was, now in zip(events, again, strict=True):
        assert (now.topic, now.source, now.type, now.data) == (
            was.topic,
            was.source,
            was.type,
            was.data,
        )
        assert now.extensions == was.extensions
    if len(events) == 1:
        assert again[0].id == events[0].id
    else:
        assert len({event.id for event in again}) == len(again)


def test_messages_of_one_notify_have_its_id_and_their_number() -> None:
    body = delivered(Event("urn:a", "/s", "t"), Event("urn:b", "/s", "t"), to=terms("wsn13"))
    envelope = read_envelope(body)

    found = read_notifications(envelope, read_addressing(envelope))

    assert [each.message_id for each in found] == ["urn:a+1#1", "urn:a+1#2"]


def test_globus_messages_with_types_keep_them_and_what_their_prefixes_mean() -> None:
    body = f"""<soapenv:Envelope xmlns:soapenv="{SOAP11}"
        xmlns:xsd="http://www.w3.org/2001/XMLSchema"
        xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>
        <ns1:Notify xmlns:ns1="{WSN12}"><ns1:NotificationMessage xsi:type="ns1:Holder">
        <ns1:Topic Dialect="urn:x/TopicExpression/Simple" xsi:type="ns1:T">demo</ns1:Topic>
        <ns1:Message xsi:type="xsd:anyType"><v xsi:type="xsd:int">7</v></ns1:Message>
        </ns1:NotificationMessage></ns1:Notify></soapenv:Body></soapenv:Envelope>"""
    envelope = read_envelope(body.encode())

    [found] = read_notifications(envelope, read_addressing(envelope))

    alone = etree.fromstring(found.payload)
    assert alone.get("{http://www.w3.org/2001/XMLSchema-instance}type") == "xsd:int"
    assert alone.nsmap["xsd"] == "http://www.w3.org/2001/XMLSchema"
    assert found.topic == TopicName("demo")
