"""Messages of real programs, read as their senders mean them."""

from __future__ import annotations

from pathlib import Path

from lxml import etree

from schemas import capture_body
from tocsin.event.event import Event
from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import Versions, read_addressing
from tocsin.wire.soap.delivery import consumer_parts, message
from tocsin.wire.soap.envelope import read_envelope
from tocsin.wire.soap.names import WSA2005, WSA200408, WSN10, XPATH10
from tocsin.wire.wse.deliver import pieces
from tocsin.wire.wse.filters import to_filters
from tocsin.wire.wse.messages import (
    PUSH_WITH_ACK,
    GetStatus,
    Message,
    Renew,
    Subscribe,
    SubscribeResponse,
    SubscriptionEnd,
    Unsubscribe,
)
from tocsin.wire.wse.read import read

CAPTURES = Path(__file__).parent.parent.parent / "captures" / "ws"
ANYWHERE = Versions("1.1", WSA2005)


def captured(name: str) -> Message | None:
    return read(read_envelope(capture_body(CAPTURES / name)))


def subscribed(name: str) -> Subscribe:
    message = captured(name)
    assert isinstance(message, Subscribe)
    return message


def test_a_medical_device_client_subscribes_to_actions() -> None:
    asked = subscribed("sdc11073_300_01_Subscribe.http")

    assert asked.notify_to is not None
    assert asked.notify_to.address == "http://127.0.0.1:9999/notify/subscr1"
    assert asked.notify_to.wsa == WSA2005
    assert asked.end_to is not None
    assert asked.end_to.address == "http://127.0.0.1:9999/end/subscr1_e"
    assert asked.expires == "PT10M"
    assert to_filters(asked.filter, "wse04", ANYWHERE) == [
        {
            "any": [
                {"exact": {"type": "http://a/b/Action1"}},
                {"prefix": {"type": "http://a/b/Action1/"}},
                {"exact": {"type": "http://a/b/Action2"}},
                {"prefix": {"type": "http://a/b/Action2/"}},
            ]
        }
    ]


def test_a_medical_device_client_manages_its_subscription() -> None:
    assert captured("sdc11073_300_02_Renew.http") == Renew("wse04", "PT20M")
    assert captured("sdc11073_300_03_GetStatus.http") == GetStatus("wse04")
    assert captured("sdc11073_300_04_Unsubscribe.http") == Unsubscribe("wse04")


def test_a_medical_device_answers_and_ends_a_subscription() -> None:
    answer = captured("sdc11073_300_provider_SubscribeResponse.xml")
    end = captured("sdc11073_300_provider_delivery_02_SubscriptionEnd.http")

    assert isinstance(answer, SubscribeResponse)
    assert answer.expires == "PT15S"
    assert isinstance(end, SubscriptionEnd)
    assert end.status == "SourceShuttingDown"
    assert end.reason == "Event source going off line."


def test_the_management_client_filters_by_an_element_of_its_own() -> None:
    asked = subscribed("wsmancli_280_01_Subscribe.http")

    assert asked.notify_to is not None
    assert asked.notify_to.wsa == WSA200408
    assert asked.expires == "PT600.000000S"
    assert asked.filter is not None
    assert (asked.filter.expression.text, asked.filter.expression.dialect) == ("//x", XPATH10)


def test_the_management_client_wants_acknowledged_pushes_and_heartbeats() -> None:
    asked = subscribed("wsmancli_280_02_Subscribe.http")

    assert asked.mode == PUSH_WITH_ACK
    assert asked.heartbeats == "PT30.000000S"


def test_the_original_subscribes_by_topic_by_xpath_and_by_both() -> None:
    by_topic, by_xpath, by_both = (
        subscribed(f"wsmessenger02_client_0{number}_req.http") for number in (1, 2, 3)
    )
    topic = {"topic": "demoTopic"}
    content = {
        "xpath": {
            "expression": "/c/b/a",
            "namespaces": {},
            "on": "envelope",
            "soap": "1.1",
            "wsa": WSA2005,
        }
    }

    assert by_topic.expires == "259200000"
    assert to_filters(by_topic.filter, "wse04", ANYWHERE) == [topic]
    assert to_filters(by_xpath.filter, "wse04", ANYWHERE) == [content]
    assert to_filters(by_both.filter, "wse04", ANYWHERE) == [topic, content]


def test_the_original_answers_with_an_empty_address() -> None:
    answer = captured("wsmessenger02_client_01_resp.http")

    assert isinstance(answer, SubscribeResponse)
    assert answer.manager.address == ""
    assert answer.manager.parameters[0].endswith(b">Tsub1@1794767640625</wse:Identifier>")


def test_we_deliver_element_by_element_what_the_original_delivers() -> None:
    theirs = read_envelope(capture_body(CAPTURES / "wsmessenger02_delivery_02_c.http"))
    event = Event(
        id="urn:uuid:1F48615307CCEED9211794767640894",
        source="/soap",
        type="http://org.apache.airavata/WseNotification",
        topic="demoTopic",
        datacontenttype="application/xml",
        extensions={
            "topicns": "http://widgets.com",
            "wstopic": "widget=http://widgets.com widget:demoTopic",
        },
        data=b"<c><b><a>via-wse</a></b></c>",
    )
    terms = SoapTerms(spec="wse04", soap="1.1", wsa=WSA2005, form="raw")
    address = "http://127.0.0.1:18090/wseconsumer"

    ours = read_envelope(message(consumer_parts(terms, address), pieces([event], terms)))

    assert read_addressing(ours) == read_addressing(theirs)
    assert canonical(ours.content) == canonical(theirs.content)
    assert ours.header is not None
    assert theirs.header is not None
    assert sorted(map(canonical, ours.header)) == sorted(map(canonical, theirs.header))
    topic = ours.header.find(f"{{{WSN10}}}Topic")
    assert topic is not None
    assert topic.nsmap["widget"] == "http://widgets.com"


def canonical(element: etree._Element | None) -> tuple[object, ...]:
    """The element as a reader sees it, whatever its prefixes are."""
    assert element is not None
    inside = tuple(map(canonical, element))
    return element.tag, sorted(element.attrib.items()), (element.text or "").strip(), inside
