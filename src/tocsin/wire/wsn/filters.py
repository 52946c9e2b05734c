"""What a subscription of WS-BaseNotification wants, as the filters that everybody here has.

Every expression of a Filter must hold (WS-BaseNotification 1.3, section 4.2). Topics and content
are asked of each event; a query over the producer's properties is asked of the broker, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tocsin.errors import BadFilter, BadTopicPattern, TocsinError
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.event.topic import TopicPattern
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import ONVIF_ITEM_FILTER, ONVIF_SCHEMA, XPATH10
from tocsin.wire.soap.topics import Filters, dialect_kind, topic_filters, topic_name
from tocsin.wire.wsn.faults import Faults
from tocsin.wire.wsn.messages import Expression, Subscribe

NOTHING: Final[Filters] = [{"not": {"filter": "id exists"}}]
"""No event has no id: what is wanted where a condition on the producer does not hold."""

_XPATHS: Final = frozenset({"", XPATH10, ONVIF_ITEM_FILTER})
_WILDCARDS: Final = ("*", "|", "//")


def filters_of(asked: Subscribe, faults: Faults, producer: Callable[[], bytes]) -> Filters:
    """The filters; a SoapFault that names the first expression that is none.

    `producer` makes the document of the broker's properties, if a filter is about them.
    """
    if asked.unknown_filters:
        raise faults.unknown_filters(asked.unknown_filters)
    found: Filters = []
    for topic in asked.topics:
        found += _topic(topic, faults)
    for content in asked.contents:
        found += _query(content, faults, "InvalidMessageContentExpressionFault")
    for condition in asked.properties:
        query = _query(condition, faults, "InvalidProducerPropertiesExpressionFault")
        if not _holds(query, producer()):
            return NOTHING
    try:
        read_filters(found)
    except BadFilter as error:  # each may pass, and all of them together be too much
        raise faults.fault("SubscribeCreationFailedFault", str(error), error=error) from None
    return found


def _topic(topic: Expression, faults: Faults) -> Filters:
    kind = topic_kind(topic, faults)
    # The original compares names, and knows one wildcard.
    names_only = faults.spec == "wsn10"
    try:
        found = topic_filters(topic.text, dict(topic.namespaces), kind, names_only=names_only)
        read_filters(found)
    except TocsinError as error:
        raise _refused(faults, "InvalidTopicExpressionFault", error) from None
    return found


def topic_kind(topic: Expression, faults: Faults) -> str:
    """How a topic expression is to be read; some clients leave the dialect out."""
    if not topic.dialect:
        return "full" if any(sign in topic.text for sign in _WILDCARDS) else "concrete"
    kind = dialect_kind(topic.dialect)
    if kind is None:
        raise faults.fault(
            "TopicExpressionDialectUnknownFault",
            f"the topic dialect {topic.dialect[:200]!r} is not supported",
        )
    # The original calls everything simple, slashes and all.
    return "concrete" if kind == "simple" and faults.spec == "wsn10" else kind


def _query(query: Expression, faults: Faults, name: str) -> Filters:
    if query.dialect not in _XPATHS:
        raise faults.fault(name, f"the dialect {query.dialect[:200]!r} is not supported")
    namespaces = dict(query.namespaces)
    if query.dialect == ONVIF_ITEM_FILTER:
        namespaces.setdefault("tt", ONVIF_SCHEMA)  # its examples use the prefix undeclared
    found: Filters = [
        {"xpath": {"expression": query.text, "namespaces": namespaces, "on": "payload"}}
    ]
    try:
        read_filters(found)
    except TocsinError as error:
        raise _refused(faults, name, error) from None
    return found


def _holds(query: Filters, document: bytes) -> bool:
    """Whether a query is true of a document: asked as of an event that brings it."""
    event = Event("p", "/p", "p", datacontenttype="application/xml", data=document)
    return matches(read_filters(query), event)


def one_topic(topic: Expression, faults: Faults) -> tuple[TopicPattern, str]:
    """The single topic that an expression names, and the namespace of its root if that counts."""
    kind = topic_kind(topic, faults)
    if kind == "xpath":
        raise faults.fault(
            "TopicExpressionDialectUnknownFault",
            "GetCurrentMessage takes a topic path, not XPath",
        )
    name = topic_name(topic.text, dict(topic.namespaces))
    try:
        patterns = TopicPattern.parse_alternatives(name.path, kind)
    except BadTopicPattern as error:
        raise _refused(faults, "InvalidTopicExpressionFault", error) from None
    if len(patterns) > 1 or "*" in str(patterns[0]):
        raise faults.fault(
            "MultipleTopicsSpecifiedFault", f"{topic.text[:80]!r} may match several topics"
        )
    return patterns[0], "" if faults.spec == "wsn10" else name.namespace


def _refused(faults: Faults, name: str, error: TocsinError) -> SoapFault:
    return faults.fault(name, f"{error.problem}. {error.remedy}", error=error)
