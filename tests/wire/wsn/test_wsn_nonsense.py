"""Messages made of the right words in the wrong places are read, or refused with a fault."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tocsin.event.cloudevents_filters import read_filters
from tocsin.wire.soap.addressing import Addressing
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, write_fault
from tocsin.wire.soap.names import LIFETIME12, WSA2005, WSN10, WSN12, WSN13, WSRMP11, XPATH10, XSI
from tocsin.wire.wsn.expiry import ends_at
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.filters import filters_of, one_topic
from tocsin.wire.wsn.messages import GetCurrentMessage, Message, Renew, Subscribe
from tocsin.wire.wsn.operations import REQUESTS, RESPONSES, Operation
from tocsin.wire.wsn.read import read, read_notifications

NOW_NS = 1_790_000_000_000_000_000
PRODUCER = f'<n:P xmlns:n="{WSN13}"><n:FixedTopicSet>false</n:FixedTopicSet></n:P>'.encode()
NAMESPACES = (WSN13, WSN12, WSN10, LIFETIME12, WSA2005, WSRMP11, "urn:odd", "")
WORDS = [
    "ConsumerReference",
    "Address",
    "ReferenceParameters",
    "Filter",
    "TopicExpression",
    "MessageContent",
    "Selector",
    "ProducerProperties",
    "Precondition",
    "UseNotify",
    "InitialTerminationTime",
    "TerminationTime",
    "UseRaw",
    "SubscriptionPolicy",
    "RMAssertion",
    "Topic",
    "NotificationMessage",
    "Message",
    "ProducerReference",
    "odd",
]
TEXTS = ("", " ", "true", "PT1H", "-P1Y", "http://c/", "t:a//b|*", ">", "//a[", "count(//*)", "x:y")
DIALECTS = (None, "", XPATH10, "urn:odd", "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Full")

names = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(WORDS))
roots = st.sampled_from([*REQUESTS, *RESPONSES, (WSN13, "Notify"), (WSN12, "Notify")])


def _element(
    name: tuple[str, str], text: str, dialect: str | None, nil: bool, children: list[etree._Element]
) -> etree._Element:
    namespace, local = name
    made = etree.Element(f"{{{namespace}}}{local}" if namespace else local, nsmap={"x": "urn:x"})
    made.text = text
    if dialect is not None:
        made.set("Dialect", dialect)
    if nil:
        made.set(f"{{{XSI}}}nil", "true")
    made.extend(children)
    return made


def _tree(
    name: st.SearchStrategy[tuple[str, str]], depth: int
) -> st.SearchStrategy[etree._Element]:
    inner = _tree(names, depth - 1) if depth else st.nothing()
    return st.builds(
        _element,
        name,
        st.sampled_from(TEXTS),
        st.sampled_from(DIALECTS),
        st.booleans(),
        st.lists(inner, max_size=4) if depth else st.just([]),
    )


def _with_consumer(root: etree._Element) -> None:
    """A subscription whose consumer is in order, so that the rest of it is looked at."""
    name = etree.QName(root)
    consumer = etree.Element(f"{{{name.namespace}}}ConsumerReference")
    etree.SubElement(consumer, f"{{{WSA2005}}}Address").text = "http://c/"
    root.insert(0, consumer)


def judge(message: Message, spec: str) -> None:
    """All that a broker does with a message before it changes anything."""
    faults = Faults(spec, NOW_NS)
    if isinstance(message, Subscribe):
        read_filters(filters_of(message, faults, lambda: PRODUCER))
        ends_at(message.termination, faults, Operation.SUBSCRIBE)
    elif isinstance(message, Renew):
        ends_at(message.termination, faults, Operation.RENEW)
    elif isinstance(message, GetCurrentMessage):
        one_topic(message.topic, faults)


@settings(max_examples=400)
@given(_tree(roots, 3), st.sampled_from(["wsn13", "wsn12", "wsn10"]))
def test_nonsense_is_read_or_refused_with_a_fault_that_can_be_sent(
    root: etree._Element, spec: str
) -> None:
    _with_consumer(root)
    envelope = read_envelope(write_envelope("1.2", body=etree.tostring(root)))
    assert envelope.content is not None

    try:
        judge(read(envelope), spec)
    except SoapFault as fault:
        for soap in ("1.1", "1.2"):
            read_envelope(write_envelope(soap, body=write_fault(fault, soap)))


@settings(max_examples=200)
@given(_tree(st.just((WSN13, "Notify")), 4))
def test_a_notify_of_nonsense_brings_whole_elements_or_nothing(root: etree._Element) -> None:
    envelope = read_envelope(write_envelope("1.1", body=etree.tostring(root)))

    with contextlib.suppress(SoapFault):
        for found in read_notifications(envelope, Addressing()):
            assert etree.fromstring(found.payload).tag is not None
