"""ONVIF's event service and device service, as its published schema has them."""

from __future__ import annotations

import pytest

from onvif_requests import create_request, pull_request
from schemas import CAPTURES, validator
from tocsin.wire.msgbox.content import BoxMessage
from tocsin.wire.onvif import device, events
from tocsin.wire.pullpoint.notifications import notification_messages
from tocsin.wire.soap.envelope import Envelope, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import ONVIF_EVENTS, TOPICS13, WSA2005, WSN13, XSI
from tocsin.wire.wsn.deliver import subscription_reference
from tocsin.wire.wsn.messages import NEVER, Expression, Subscribe
from tocsin.wire.wstopics.write import EMPTY_TOPIC_SET

NOW = 10**18
BASE = "http://127.0.0.1:8400"


def asked(content: bytes) -> Subscribe:
    body = b'<tev:CreatePullPointSubscription xmlns:tev="%b" xmlns:wsnt="%b">%b</tev:%b>' % (
        ONVIF_EVENTS.encode(),
        WSN13.encode(),
        content,
        b"CreatePullPointSubscription",
    )
    return events.read_create(in_envelope(body))


def envelope_of(name: str, content: bytes) -> Envelope:
    return in_envelope(
        b'<tev:%b xmlns:tev="%b">%b</tev:%b>'
        % (name.encode(), ONVIF_EVENTS.encode(), content, name.encode())
    )


def in_envelope(body: bytes) -> Envelope:
    return read_envelope(write_envelope("1.2", body=body))


ANSWERS = {
    "created": events.created(
        subscription_reference("wsn13", WSA2005, f"{BASE}/soap/subscriptions", "1"),
        WSA2005,
        NOW,
        NOW + 1,
    ),
    "pulled": events.pulled(notification_messages(BoxMessage(b"<x/>")), NOW, NOW + 1),
    "empty": events.pulled([], NOW, NOW + 1),
    "synchronized": events.done(events.SYNCHRONIZE),
    "capabilities": events.service_capabilities(10),
    "properties": events.event_properties(EMPTY_TOPIC_SET),
    "services": device.services(BASE, pull_points_max=10, with_capabilities=False),
    "able services": device.services(BASE, pull_points_max=10, with_capabilities=True),
    "device capabilities": device.capabilities(BASE),
    "device service": device.service_capabilities(),
    "information": device.information("1.0"),
    "time": device.date_and_time(NOW),
    "hostname": device.hostname("tocsin"),
    "scopes": device.scopes(),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_is_what_the_published_schema_says(name: str) -> None:
    validator("onvif")(write_envelope("1.2", body=ANSWERS[name]))


def test_what_a_real_client_asks_is_understood() -> None:
    def sent(name: str) -> Envelope:
        capture = (CAPTURES / f"onvifzeepasync430_{name}.http").read_bytes()
        return read_envelope(capture[capture.index(b"<?xml") :])

    create = sent("02_CreatePullPointSubscription")

    assert events.read_create(create).termination == "PT600S"
    pull = events.read_pull(sent("03_PullMessages"))
    assert pull == events.PullMessages(5 * 10**9, 100)
    assert not device.wants_capabilities(sent("01_GetServices"))


def test_a_subscription_without_a_word_wants_everything_and_leaves_the_end_to_us() -> None:
    whole = asked(b"")

    assert (whole.topics, whole.contents, whole.termination) == ((), (), None)


def test_filters_and_ends_are_read_as_those_of_ws_notification() -> None:
    dialect = f"{TOPICS13}/TopicExpression/Concrete"
    found = asked(
        b"<tev:Filter>"
        b'<wsnt:TopicExpression Dialect="%b" xmlns:p="urn:p">p:a/b</wsnt:TopicExpression>'
        b'<wsnt:MessageContent Dialect="x">true()</wsnt:MessageContent><other/></tev:Filter>'
        b'<tev:InitialTerminationTime xmlns:xsi="%b" xsi:nil="true"/>'
        % (dialect.encode(), XSI.encode())
    )

    assert found.topics == (Expression("p:a/b", dialect, (("p", "urn:p"),)),)
    assert found.contents == (Expression("true()", "x"),)
    assert found.unknown_filters == (("", "other"),)
    assert found.termination is NEVER
    assert found.filter_xml.startswith(b"<tev:Filter")


def test_ours_asks_as_it_reads() -> None:
    found = events.read_create(in_envelope(create_request(topic="a/b", termination="PT1M")))
    pull = events.PullMessages(1_500_000_000, 7)

    assert [topic.text for topic in found.topics] == ["a/b"]
    assert found.termination == "PT1M"
    assert events.read_pull(in_envelope(pull_request(pull))) == pull


def test_what_is_no_duration_or_no_number_is_refused_and_what_lacks_has_a_default() -> None:
    for content in (
        b"<tev:Timeout>soon</tev:Timeout>",
        b"<tev:Timeout>-PT1S</tev:Timeout>",
        b"<tev:MessageLimit>many</tev:MessageLimit>",
        b"<tev:MessageLimit>99999999999</tev:MessageLimit>",
    ):
        with pytest.raises(SoapFault) as refused:
            events.read_pull(envelope_of(events.PULL, content))
        assert refused.value.subcode == (events.ERRORS, "InvalidArgVal")

    assert events.read_pull(envelope_of(events.PULL, b"")) == events.PullMessages(
        0, events.MESSAGES_DEFAULT
    )


def test_how_many_pull_points_there_may_be_is_told() -> None:
    assert b'MaxPullPoints="10"' in ANSWERS["capabilities"]
    assert b'MaxPullPoints="10"' in ANSWERS["able services"]
