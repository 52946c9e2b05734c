"""What subscriptions of WS-BaseNotification want, and until when: read, judged, asked of events."""

from __future__ import annotations

import pytest

from schemas import ROOT, capture_body
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.mediation import Notification, to_event
from tocsin.wire.soap.names import (
    ONVIF_ITEM_FILTER,
    ONVIF_SCHEMA,
    TOPICS13,
    WSA2005,
    WSN10,
    WSN13,
    WSRM10,
    WSRM11,
    WSRMP10,
    WSRMP11,
    XPATH10,
)
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wsn.expiry import LEASE_DEFAULT_S, ends_at
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.filters import filters_of, one_topic
from tocsin.wire.wsn.messages import NEVER, Expression, Subscribe
from tocsin.wire.wsn.operations import Operation
from tocsin.wire.wsn.read import read

NOW_NS = 1_790_000_000_000_000_000
PRODUCER = f'<n:P xmlns:n="{WSN13}"><n:FixedTopicSet>false</n:FixedTopicSet></n:P>'.encode()
CONSUMER = EndpointReference("http://c/", WSA2005)
CONCRETE = f"{TOPICS13}/TopicExpression/Concrete"
FULL = f"{TOPICS13}/TopicExpression/Full"
T = (("t", "urn:t"),)


def published(topic: str, payload: bytes = b"<a/>") -> Event:
    name = TopicName(topic, T) if topic else None
    return to_event(Notification(payload, ("", "a"), name), fallback_id="1")


def wants(asked: Subscribe, event: Event, spec: str = "wsn13") -> bool:
    filters = filters_of(asked, Faults(spec, NOW_NS), lambda: PRODUCER)
    return matches(read_filters(filters), event)


def reported(asked: Subscribe, spec: str = "wsn13") -> str:
    """The name of the fault that a subscription gets."""
    with pytest.raises(SoapFault) as refused:
        filters_of(asked, Faults(spec, NOW_NS), lambda: PRODUCER)
    return _name(refused.value)


def _name(fault: SoapFault) -> str:
    return fault.detail.decode().partition("<n:")[2].partition(" ")[0]


def asking(
    *topics: Expression, content: str = "", properties: str = "", dialect: str = XPATH10
) -> Subscribe:
    return Subscribe(
        CONSUMER,
        topics=topics,
        contents=(Expression(content, dialect),) if content else (),
        properties=(Expression(properties, dialect, (("n", WSN13),)),) if properties else (),
    )


def test_no_filter_is_everything() -> None:
    assert wants(asking(), published("t:a/b"))
    assert wants(asking(), published(""))


def test_several_topic_expressions_must_all_hold() -> None:
    both = asking(Expression("t:a//.", FULL, T), Expression("t:*/b", FULL, T))

    assert wants(both, published("t:a/b"))
    assert not wants(both, published("t:a/c"))
    assert not wants(both, published("t:x/b"))


def test_topic_and_content_must_both_hold() -> None:
    asked = asking(Expression("t:a", CONCRETE, T), content="/o/n > 5")

    assert wants(asked, published("t:a", b"<o><n>7</n></o>"))
    assert not wants(asked, published("t:a", b"<o><n>3</n></o>"))
    assert not wants(asked, published("t:b", b"<o><n>7</n></o>"))


def test_onvifs_content_filter_knows_its_prefix_undeclared() -> None:
    asked = asking(
        content='boolean(//tt:SimpleItem[@Name="Rule" and @Value="r1"])', dialect=ONVIF_ITEM_FILTER
    )
    item = f'<m:Message xmlns:m="{ONVIF_SCHEMA}"><m:SimpleItem Name="Rule" Value="%s"/></m:Message>'

    assert wants(asked, published("t:a", (item % "r1").encode()))
    assert not wants(asked, published("t:a", (item % "r2").encode()))


def test_a_condition_on_the_producer_is_asked_once_of_the_broker() -> None:
    holds = asking(properties="//n:FixedTopicSet = 'false'")
    fails = asking(properties="//n:FixedTopicSet = 'true'")

    assert wants(holds, published("t:a"))
    assert not wants(fails, published("t:a"))


def test_the_original_compares_names_and_knows_one_wildcard() -> None:
    simple = "http://www.ibm.com/xmlns/stdwip/web-services/WS-Topics/TopicExpression/simple"
    everything = Subscribe(CONSUMER, topics=(Expression("w:>", simple, (("w", "urn:w"),)),))
    one = Subscribe(CONSUMER, topics=(Expression("w:a/b", simple, (("w", "urn:w"),)),))

    assert wants(everything, published(""), "wsn10")
    assert wants(everything, published("t:a"), "wsn10")
    assert wants(one, published("t:a/b"), "wsn10")
    assert not wants(one, published("t:a"), "wsn10")


@pytest.mark.parametrize(
    ("asked", "now", "older"),
    [
        (
            asking(Expression("t:a", "urn:no-such", T)),
            "TopicExpressionDialectUnknownFault",
            "TopicPathDialectUnknownFault",
        ),
        (
            asking(Expression("t:a//b", CONCRETE, T)),
            "InvalidTopicExpressionFault",
            "InvalidTopicExpressionFault",
        ),
        (
            asking(Expression("t:a[1]", FULL, T)),
            "InvalidTopicExpressionFault",
            "InvalidTopicExpressionFault",
        ),
        (
            asking(Expression("t:[", XPATH10, T)),
            "InvalidTopicExpressionFault",
            "InvalidTopicExpressionFault",
        ),
        (
            asking(content="//a["),
            "InvalidMessageContentExpressionFault",
            "SubscribeCreationFailedFault",
        ),
        (
            asking(content="//undeclared:a"),
            "InvalidMessageContentExpressionFault",
            "SubscribeCreationFailedFault",
        ),
        (
            asking(content="a", dialect="urn:sql"),
            "InvalidMessageContentExpressionFault",
            "SubscribeCreationFailedFault",
        ),
        (
            asking(properties="//["),
            "InvalidProducerPropertiesExpressionFault",
            "SubscribeCreationFailedFault",
        ),
        (
            Subscribe(CONSUMER, unknown_filters=(("urn:x", "Odd"),)),
            "InvalidFilterFault",
            "SubscribeCreationFailedFault",
        ),
    ],
)
def test_an_expression_that_is_none_is_told_by_name(asked: Subscribe, now: str, older: str) -> None:
    assert reported(asked) == now
    assert reported(asked, "wsn12") == older


def test_a_topic_expression_without_a_dialect_is_taken_for_what_it_looks_like() -> None:
    assert wants(asking(Expression("t:a/*", "", T)), published("t:a/b"))
    assert wants(asking(Expression("t:a/b", "", T)), published("t:a/b"))


def test_the_capture_with_filters_wants_what_it_names() -> None:
    path = ROOT / "tests" / "captures" / "ws" / "zeep43_wsn13_filter_01_Subscribe.http"
    envelope = read_envelope(capture_body(path))
    assert envelope.content is not None
    asked = read(envelope)
    assert isinstance(asked, Subscribe)
    assert asked.raw
    right = TopicName("d:jobs/status", (("d", "urn:demo:topics"),))
    payload = b"<state>done</state>"

    event = to_event(Notification(payload, ("", "state"), right), fallback_id="1")

    assert wants(asked, event)
    assert not wants(asked, published("t:jobs/status", payload))


# Policies


def policy(inside: str, namespace: str = WSN13, name: str = "Subscribe") -> Subscribe:
    body = (
        f'<n:{name} xmlns:n="{namespace}"><n:ConsumerReference><a:Address xmlns:a="{WSA2005}">'
        f"http://c/</a:Address></n:ConsumerReference><n:SubscriptionPolicy>{inside}"
        f"</n:SubscriptionPolicy></n:{name}>"
    )
    envelope = read_envelope(write_envelope("1.1", body=body.encode()))
    assert envelope.content is not None
    asked = read(envelope)
    assert isinstance(asked, Subscribe)
    return asked


@pytest.mark.parametrize(
    ("assertions", "reliable"), [(WSRMP10, WSRM10), (WSRMP11, WSRM11), ("urn:other", "")]
)
def test_an_assertion_of_reliable_messaging_is_understood(assertions: str, reliable: str) -> None:
    wsp = "http://www.w3.org/ns/ws-policy"
    assertion = f'<r:RMAssertion xmlns:r="{assertions}"/>'
    plain = policy(assertion)
    wrapped = policy(f'<p:Policy xmlns:p="{wsp}"><p:All>{assertion}</p:All></p:Policy>')

    assert plain.reliable == wrapped.reliable == reliable
    unknown = () if reliable else ((assertions, "RMAssertion"),)
    assert plain.unknown_policies == wrapped.unknown_policies == unknown


def test_the_originals_policies_are_never_refused() -> None:
    odd = policy("<odd/>", WSN10, "SubscribeRequest")
    reliable = policy('<x xmlns="urn:WSRM"/>', WSN10, "SubscribeRequest")

    assert (odd.unknown_policies, odd.reliable) == ((), "")
    assert reliable.reliable == WSRM10


# The end


@pytest.mark.parametrize("operation", [Operation.SUBSCRIBE, Operation.RENEW])
@pytest.mark.parametrize(
    "termination", ["", "soon", "-PT1S", "PT0S", "2001-01-01T00:00:00Z", "P999999999Y"]
)
def test_an_end_that_cannot_be_is_refused(termination: str, operation: Operation) -> None:
    with pytest.raises(SoapFault) as refused:
        ends_at(termination, Faults("wsn13", NOW_NS), operation)

    assert _name(refused.value).startswith("Unacceptable")


def test_ends_are_durations_moments_never_or_ours_to_choose() -> None:
    faults = Faults("wsn13", NOW_NS)

    def end(termination: str | None) -> int | None:
        return ends_at(termination, faults, Operation.SUBSCRIBE)

    assert end("PT1H") == NOW_NS + 3600 * 10**9
    assert end("2026-09-21T15:13:20+00:00") == NOW_NS + 3600 * 10**9
    assert end(None) == NOW_NS + LEASE_DEFAULT_S * 10**9
    assert ends_at(NEVER, faults, Operation.SUBSCRIBE) is None


def test_only_the_original_counts_milliseconds() -> None:
    day = "86400000"

    assert ends_at(day, Faults("wsn10", NOW_NS), Operation.SUBSCRIBE) == NOW_NS + 86_400 * 10**9
    with pytest.raises(SoapFault):
        ends_at(day, Faults("wsn13", NOW_NS), Operation.SUBSCRIBE)


# The current message


def test_a_current_message_is_asked_for_by_one_topic() -> None:
    pattern, namespace = one_topic(Expression("t:a/b", CONCRETE, T), Faults("wsn13", NOW_NS))

    assert (str(pattern), namespace) == ("a/b", "urn:t")


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        (Expression("t:a/*", FULL, T), "MultipleTopicsSpecifiedFault"),
        (Expression("t:a//.", FULL, T), "MultipleTopicsSpecifiedFault"),
        (Expression("t:a|t:b", FULL, T), "MultipleTopicsSpecifiedFault"),
        (Expression("t:a/*", CONCRETE, T), "InvalidTopicExpressionFault"),
        (Expression("", CONCRETE), "InvalidTopicExpressionFault"),
        (Expression("//t:a", XPATH10, T), "TopicExpressionDialectUnknownFault"),
        (Expression("t:a", "urn:no-such", T), "TopicExpressionDialectUnknownFault"),
    ],
)
def test_what_names_no_topic_or_several_is_refused(topic: Expression, name: str) -> None:
    with pytest.raises(SoapFault) as refused:
        one_topic(topic, Faults("wsn13", NOW_NS))

    assert _name(refused.value) == name
