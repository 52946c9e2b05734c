"""The event service of ONVIF: subscriptions that are pulled from, both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from lxml import etree

from tocsin.event.instant import rfc3339, xs_duration_ns
from tocsin.wire.soap.addressing import EndpointReference, epr_content
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault, escaped
from tocsin.wire.soap.names import (
    ONVIF_CONCRETE_SET,
    ONVIF_EVENTS,
    ONVIF_ITEM_FILTER,
    TOPICS13,
    WSA2005,
    WSN13,
    XPATH10,
)
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.wsn.messages import NEVER, Expression, Name, Never, Subscribe
from tocsin.wire.wsn.read_subscribe import FILTERS_MAX, is_nil, read_expression

Element = etree._Element

CREATE: Final = "CreatePullPointSubscription"
PULL: Final = "PullMessages"
SEEK: Final = "Seek"
SYNCHRONIZE: Final = "SetSynchronizationPoint"
PROPERTIES: Final = "GetEventProperties"
CAPABILITIES: Final = "GetServiceCapabilities"

ERRORS: Final = "http://www.onvif.org/ver10/error"
MESSAGES_DEFAULT: Final = 100
_AT_PULL_POINT: Final = frozenset({PULL, SEEK, SYNCHRONIZE})
_NUMBER_DIGITS_MAX: Final = 10
_TOPICS_AT: Final = "http://www.onvif.org/onvif/ver10/topics/topicns.xml"
_SCHEMA_AT: Final = "http://www.onvif.org/onvif/ver10/schema/onvif.xsd"
TOPIC_DIALECTS: Final = (
    f"{TOPICS13}/TopicExpression/Concrete",
    ONVIF_CONCRETE_SET,
    f"{TOPICS13}/TopicExpression/Simple",
    f"{TOPICS13}/TopicExpression/Full",
)
CONTENT_DIALECTS: Final = (ONVIF_ITEM_FILTER, XPATH10)


def request_action(operation: str) -> str:
    return f"{ONVIF_EVENTS}/{_port(operation)}/{operation}Request"


def response_action(operation: str) -> str:
    return f"{ONVIF_EVENTS}/{_port(operation)}/{operation}Response"


def _port(operation: str) -> str:
    return "PullPointSubscription" if operation in _AT_PULL_POINT else "EventPortType"


# What clients ask


def read_create(envelope: Envelope) -> Subscribe:
    """A subscription as WS-Notification has it, without a consumer: that is who comes and asks."""
    topics: list[Expression] = []
    contents: list[Expression] = []
    unknown: list[Name] = []
    termination: str | Never | None = None
    filter_xml = b""
    for child in elements(envelope.message):
        name = split(child.tag)[1]
        if name == "InitialTerminationTime":
            termination = NEVER if is_nil(child) else text_of(child)
        elif name == "Filter":
            filter_xml = cut_out(envelope, [child])[0]
            _read_filter(child, topics, contents, unknown)
    return Subscribe(
        consumer=EndpointReference(""),
        topics=tuple(topics),
        contents=tuple(contents),
        termination=termination,
        unknown_filters=tuple(unknown),
        filter_xml=filter_xml,
    )


def _read_filter(
    holder: Element, topics: list[Expression], contents: list[Expression], unknown: list[Name]
) -> None:
    found = elements(holder)
    if len(found) > FILTERS_MAX:
        raise SoapFault("Sender", f"a subscription may have {FILTERS_MAX} filter expressions")
    for each in found:
        namespace, name = split(each.tag)
        if name == "TopicExpression":
            topics.append(read_expression(each))
        elif name == "MessageContent":
            contents.append(read_expression(each))
        else:
            unknown.append((namespace, name))


@dataclass(frozen=True, slots=True)
class PullMessages:
    timeout_ns: int
    limit: int


def read_pull(envelope: Envelope) -> PullMessages:
    """How long to wait for how many messages."""
    timeout_ns, limit = 0, MESSAGES_DEFAULT
    for child in elements(envelope.message):
        name, text = split(child.tag)[1], text_of(child)
        if name == "Timeout":
            asked_ns = xs_duration_ns(text)
            if asked_ns is None or asked_ns < 0:
                raise _invalid("Timeout must be a duration, as in PT10S")
            timeout_ns = asked_ns
        elif name == "MessageLimit":
            digits = text.removeprefix("+")
            if not (digits.isascii() and digits.isdigit() and len(digits) <= _NUMBER_DIGITS_MAX):
                raise _invalid("MessageLimit must be a whole number")
            limit = max(1, int(digits))
    return PullMessages(timeout_ns, limit)


def _invalid(reason: str) -> SoapFault:
    return SoapFault("Sender", reason, subcode=(ERRORS, "InvalidArgVal"))


# What the service answers


def created(reference: EndpointReference, wsa: str, now_ns: int, expires_ns: int) -> bytes:
    return _element(
        f"{CREATE}Response",
        b"<tev:SubscriptionReference>%b</tev:SubscriptionReference>%b"
        % (epr_content(reference, wsa or WSA2005), _times(b"wsnt", now_ns, expires_ns)),
    )


def pulled(messages: Iterable[bytes], now_ns: int, expires_ns: int) -> bytes:
    """`messages` are NotificationMessage elements that stand alone."""
    return _element(f"{PULL}Response", _times(b"tev", now_ns, expires_ns) + b"".join(messages))


def _times(prefix: bytes, now_ns: int, expires_ns: int) -> bytes:
    return b"<%b:CurrentTime>%b</%b:CurrentTime><%b:TerminationTime>%b</%b:TerminationTime>" % (
        prefix,
        rfc3339(now_ns).encode(),
        prefix,
        prefix,
        rfc3339(expires_ns).encode(),
        prefix,
    )


def done(operation: str) -> bytes:
    """An answer without content: it was done."""
    return _element(f"{operation}Response")


def capabilities(pull_points_max: int) -> bytes:
    return (
        b'<tev:Capabilities xmlns:tev="%b" WSSubscriptionPolicySupport="true" '
        b'WSPullPointSupport="true" WSPausableSubscriptionManagerInterfaceSupport="true" '
        b'MaxNotificationProducers="%d" MaxPullPoints="%d" PersistentNotificationStorage="false"/>'
    ) % (ONVIF_EVENTS.encode(), pull_points_max, pull_points_max)


def service_capabilities(pull_points_max: int) -> bytes:
    return _element(f"{CAPABILITIES}Response", capabilities(pull_points_max))


def event_properties(topic_set: bytes) -> bytes:
    """`topic_set` is a TopicSet element that stands alone."""
    return _element(
        f"{PROPERTIES}Response",
        b"".join(
            (
                _texts(b"tev:TopicNamespaceLocation", [_TOPICS_AT]),
                b"<wsnt:FixedTopicSet>false</wsnt:FixedTopicSet>",
                topic_set,
                _texts(b"wsnt:TopicExpressionDialect", TOPIC_DIALECTS),
                _texts(b"tev:MessageContentFilterDialect", CONTENT_DIALECTS),
                _texts(b"tev:MessageContentSchemaLocation", [_SCHEMA_AT]),
            )
        ),
    )


def _texts(tag: bytes, texts: Iterable[str]) -> bytes:
    return b"".join(b"<%b>%b</%b>" % (tag, escaped(text), tag) for text in texts)


def not_supported(operation: str) -> SoapFault:
    """What ONVIF has a device say of an operation that it may leave out."""
    return SoapFault(
        "Receiver",
        f"{operation} is not supported: events that were already delivered are not sent again",
        subcode=(ERRORS, "ActionNotSupported"),
    )


def unknown_operation(operation: str, namespace: str) -> SoapFault:
    """What it has a device say of an operation, or of a whole service, that is not there."""
    return SoapFault(
        "Receiver",
        f"there is no operation {operation!r} of {namespace!r} here",
        subcode=(ERRORS, "ActionNotSupported"),
    )


def _element(name: str, content: bytes = b"") -> bytes:
    return element("tev", ONVIF_EVENTS, name, content, b' xmlns:wsnt="%b"' % WSN13.encode())
