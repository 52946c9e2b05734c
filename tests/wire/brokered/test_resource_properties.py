"""Resource properties of both versions: documents, single properties, queries, faults."""

from __future__ import annotations

import time

import pytest
from lxml import etree

from schemas import validator
from tocsin.event.subscription import Kind, SoapTerms, Subscription
from tocsin.wire.soap.addressing import EndpointReference, reference_headers
from tocsin.wire.soap.envelope import Envelope, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, write_fault
from tocsin.wire.soap.names import (
    BR13,
    LIFETIME12,
    PROPERTIES12,
    PROPERTIES13,
    TOPICS13,
    WSA2005,
    WSA200403,
    WSN12,
    WSN13,
    XPATH10,
)
from tocsin.wire.wsn.messages import Expression
from tocsin.wire.wsn_brokered.registration import Registration
from tocsin.wire.wsrp import resources
from tocsin.wire.wsrp.document import query
from tocsin.wire.wsrp.faults import PropertyFaults
from tocsin.wire.wsrp.operations import RequestedProperty, read_names, read_query, response
from tocsin.wire.wstopics.tree import TopicTree

NOW_NS = 1_800_000_000 * 10**9
FAULTS = PropertyFaults("wsn13", NOW_NS)
TAG = b'<k:tag xmlns:k="urn:k">7</k:tag>'
FILTER = (
    f'<n:Filter xmlns:n="{WSN13}"><n:TopicExpression xmlns:t="urn:t" Dialect="urn:d">t:a'
    f"</n:TopicExpression></n:Filter>"
)


def tree() -> TopicTree:
    found = TopicTree()
    found.add((("urn:t", "weather"), ("", "radar")))
    found.add((("urn:t", "sport"),))
    return found


def subscription(spec: str = "wsn13", **terms: object) -> Subscription:
    reference = EndpointReference("http://c.example/", WSA2005, parameters=(TAG,))
    blocks = reference_headers(reference, WSA2005).decode()
    soap = SoapTerms(spec=spec, wsa=WSA2005, references=blocks, filter_xml=FILTER)
    return Subscription(
        id="s1",
        kind=Kind.PUSH,
        sink="http://c.example/",
        created_ns=NOW_NS,
        soap=soap if not terms else SoapTerms(spec=spec, **terms),  # type: ignore[arg-type]
    )


def asked(inside: str, operation: str = "GetResourceProperty") -> Envelope:
    text = f'<r:{operation} xmlns:r="{PROPERTIES13}" xmlns:n="{WSN13}">{inside}</r:{operation}>'
    return read_envelope(write_envelope("1.2", body=text.encode()))


def test_the_brokers_properties_are_as_its_schema_has_them() -> None:
    document = resources.producer("wsn13", tree()).document()

    validator("wsn13")(document)
    root = etree.fromstring(document)
    assert etree.QName(root) == f"{{{BR13}}}NotificationBrokerRP"
    assert root.findtext(f"{{{WSN13}}}FixedTopicSet") == "false"
    assert root.find(f"{{{TOPICS13}}}TopicSet/{{urn:t}}weather/radar") is not None
    assert root.findtext(f"{{{BR13}}}RequiresRegistration") == "false"
    expressions = root.findall(f"{{{WSN13}}}TopicExpression")
    assert [each.text for each in expressions] == ["tns:weather//.", "tns:sport//."]


def test_a_subscription_shows_its_consumer_and_filter_as_they_were_asked_for() -> None:
    shown = resources.subscription("wsn13", subscription(), "http://b/s1", WSA2005, NOW_NS)

    validator("wsn13")(shown.document())
    [consumer] = shown.of((WSN13, "ConsumerReference")) or []
    element = etree.fromstring(consumer)
    assert element.findtext(f"{{{WSA2005}}}Address") == "http://c.example/"
    [tag] = element.findall(f"{{{WSA2005}}}ReferenceParameters/*")
    assert (tag.tag, tag.text, dict(tag.attrib)) == ("{urn:k}tag", "7", {})
    assert [etree.fromstring(xml).nsmap["n"] for xml in shown.of((WSN13, "Filter")) or []] == [
        WSN13
    ]
    assert shown.of((WSN13, "SubscriptionPolicy")) == []
    assert shown.of((WSN13, "Nonsense")) is None


def test_a_raw_subscription_shows_that_it_is() -> None:
    raw = subscription(form="raw")

    shown = resources.subscription("wsn13", raw, "http://b/s1", WSA2005, NOW_NS)

    validator("wsn13")(shown.document())
    [policy] = shown.of((WSN13, "SubscriptionPolicy")) or []
    assert b"UseRaw" in policy


def test_in_1_2_a_subscription_has_a_lifetime() -> None:
    old = subscription(
        "wsn12",
        filter_xml=f'<n:TopicExpression xmlns:n="{WSN12}" Dialect="urn:d">t:a</n:TopicExpression>',
    )

    shown = resources.subscription("wsn12", old, "http://b/s1", WSA200403, NOW_NS)

    names = [each.name for each in shown.found]
    assert names[:2] == [(LIFETIME12, "CurrentTime"), (LIFETIME12, "TerminationTime")]
    for xml in (each.xml for each in shown.found):
        validator("wsn12")(xml)
    assert names[2:] == [
        (WSN12, name)
        for name in ("ConsumerReference", "TopicExpression", "UseNotify", "CreationTime")
    ]


@pytest.mark.parametrize("publisher", [None, EndpointReference("http://p.example", WSA2005)])
def test_a_registration_shows_what_was_registered(publisher: EndpointReference | None) -> None:
    registration = Registration(
        id="r",
        spec="wsn13",
        soap="1.2",
        wsa=WSA2005,
        address="http://b/r",
        publisher=publisher,
        topics=(Expression("p:a", "urn:d", (("p", "urn:p"),)),),
        demand=True,
        created_ns=NOW_NS,
    )

    shown = resources.registration("wsn13", registration, WSA2005, NOW_NS)

    validator("wsn13")(shown.document())
    assert shown.of((BR13, "Demand")) == [f'<n:Demand xmlns:n="{BR13}">true</n:Demand>'.encode()]
    assert len(shown.of((BR13, "PublisherReference")) or []) == (publisher is not None)


def test_a_name_is_read_in_its_own_scope() -> None:
    assert read_names(asked("n:FixedTopicSet")) == [
        RequestedProperty("n:FixedTopicSet", (WSN13, "FixedTopicSet"))
    ]
    assert read_names(asked("x:FixedTopicSet")) == [RequestedProperty("x:FixedTopicSet", None)]
    several = asked(
        '<r:ResourceProperty>n:A</r:ResourceProperty><r:ResourceProperty xmlns="urn:d"> B '
        "</r:ResourceProperty>",
        "GetMultipleResourceProperties",
    )
    assert [each.name for each in read_names(several)] == [(WSN13, "A"), ("urn:d", "B")]
    with pytest.raises(SoapFault):
        read_names(asked("", "GetMultipleResourceProperties"))


NAMESPACES = (("n", WSN13), ("t", "urn:t"), ("w", TOPICS13))


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("count(//t:weather)", b"1"),
        ("boolean(//t:nothing)", b"false"),
        ("string(//n:FixedTopicSet)", b"false"),
        ("//n:FixedTopicSet/text()", b"false"),
        ("1 div 4", b"0.25"),
        ("//t:nothing", b""),
        ("//t:sport/@w:topic", b"true"),
        ("name(//*[2])", b"n:TopicExpression"),
    ],
)
def test_a_query_finds_what_xpath_finds(expression: str, answer: bytes) -> None:
    document = resources.producer("wsn13", tree()).document()

    assert query(document, Expression(expression, XPATH10, NAMESPACES), FAULTS) == answer


def test_elements_that_a_query_finds_stand_alone() -> None:
    document = resources.producer("wsn13", tree()).document()

    found = query(document, Expression("//n:FixedTopicSet", XPATH10, NAMESPACES), FAULTS)

    assert etree.fromstring(found).tag == f"{{{WSN13}}}FixedTopicSet"


@pytest.mark.parametrize(
    ("expression", "dialect", "name"),
    [
        ("//x", "urn:xquery", "UnknownQueryExpressionDialectFault"),
        ("//[", XPATH10, "InvalidQueryExpressionFault"),
        ("//unbound:x", XPATH10, "InvalidQueryExpressionFault"),
        ("//*[.//*[.//*[.//*[.//*]]]][//*[//*[//*]]]", XPATH10, "QueryEvaluationErrorFault"),
    ],
)
def test_a_query_that_cannot_be_answered_is_a_fault_at_once(
    expression: str, dialect: str, name: str
) -> None:
    large = TopicTree()
    for number in range(3_000):
        large.add((("urn:t", f"a{number}"),))
    document = resources.producer("wsn13", large).document()
    started = time.monotonic()

    with pytest.raises(SoapFault) as raised:
        query(document, Expression(expression, dialect), FAULTS)

    assert time.monotonic() - started < 1
    message = write_envelope("1.2", body=write_fault(raised.value, "1.2"))
    validator("wsn13")(message)
    assert f"{{{PROPERTIES13}}}{name}" in [each.tag for each in etree.fromstring(message).iter()]


@pytest.mark.parametrize(("spec", "namespace"), [("wsn13", PROPERTIES13), ("wsn12", PROPERTIES12)])
def test_an_unknown_property_is_a_fault_of_the_version(spec: str, namespace: str) -> None:
    fault = PropertyFaults(spec, NOW_NS).no_property(RequestedProperty("n:Nonsense", None))

    message = write_envelope("1.1", body=write_fault(fault, "1.1"))

    validator(spec)(message)
    names = [each.tag for each in etree.fromstring(message).iter()]
    assert f"{{{namespace}}}InvalidResourcePropertyQNameFault" in names


@pytest.mark.parametrize("spec", ["wsn13", "wsn12"])
def test_answers_are_of_the_version_that_was_asked(spec: str) -> None:
    properties = resources.producer(spec, tree())

    body = response(spec, "GetResourceProperty", properties.found[0].xml)

    validator(spec)(write_envelope("1.1", body=body))


def test_a_query_without_an_expression_is_refused() -> None:
    with pytest.raises(SoapFault):
        read_query(asked("", "QueryResourceProperties"))
