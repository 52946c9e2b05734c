"""What the properties of a producer, a subscription and a registration are, in both versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from tocsin import safexml
from tocsin.event.instant import rfc3339
from tocsin.event.subscription import Subscription
from tocsin.wire.soap.addressing import EndpointReference, epr_content
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import elements, split
from tocsin.wire.soap.names import (
    BR12,
    BR13,
    LIFETIME12,
    NAMESPACE_OF,
    ONVIF_CONCRETE_SET,
    TOPICS13,
    WSA_NAMESPACES,
    WSN12,
    WSN13,
    XPATH10,
    XSI,
)
from tocsin.wire.soap.topics import dialect_uri
from tocsin.wire.wsn.messages import Expression, Name
from tocsin.wire.wsn.write import write_expression
from tocsin.wire.wsn_brokered.registration import Registration
from tocsin.wire.wsrp.document import Properties, Property
from tocsin.wire.wstopics.tree import TopicTree
from tocsin.wire.wstopics.write import expressions, topic_set

_DIALECTS12_START: Final = dialect_uri("wsn12", is_root=True).removesuffix("Simple")
DIALECTS12: Final = tuple(_DIALECTS12_START + name for name in ("Simple", "Concrete", "Full"))
_FULL13: Final = dialect_uri("wsn13", is_root=True).removesuffix("Simple") + "Full"


DIALECTS: Final = (
    *(f"{TOPICS13}/TopicExpression/{name}" for name in ("Simple", "Concrete", "Full")),
    XPATH10,
    ONVIF_CONCRETE_SET,
)


def _own(namespace: str, name: str, inside: bytes) -> Property:
    return Property((namespace, name), element("n", namespace, name, inside))


def _expression(namespace: str, name: str, expression: Expression) -> Property:
    return Property((namespace, name), write_expression(name, expression, namespace))


def _reference(namespace: str, name: str, reference: EndpointReference, wsa: str) -> Property:
    return _own(namespace, name, epr_content(reference, wsa))


def _truth(namespace: str, name: str, *, holds: bool) -> Property:
    return _own(namespace, name, b"true" if holds else b"false")


# The broker


def producer(spec: str, tree: TopicTree) -> Properties:
    """The broker as the producer of all that anybody publishes on it."""
    return _producer13(tree) if spec == "wsn13" else _producer12(tree)


def _producer13(tree: TopicTree) -> Properties:
    return Properties(
        (BR13, "NotificationBrokerRP"),
        (
            *(_expression(WSN13, "TopicExpression", each) for each in expressions(tree, _FULL13)),
            _truth(WSN13, "FixedTopicSet", holds=False),
            *(_own(WSN13, "TopicExpressionDialect", uri.encode()) for uri in DIALECTS),
            Property((TOPICS13, "TopicSet"), topic_set(tree)),
            _truth(BR13, "RequiresRegistration", holds=False),
        ),
        frozenset({(WSN13, "TopicExpression")}),
    )


def _producer12(tree: TopicTree) -> Properties:
    return Properties(
        (WSN12, "NotificationProducerRP"),
        (
            *(_expression(WSN12, "Topic", each) for each in expressions(tree, DIALECTS12[-1])),
            _truth(WSN12, "FixedTopicSet", holds=False),
            *(_own(WSN12, "TopicExpressionDialects", uri.encode()) for uri in DIALECTS12),
            _truth(BR12, "RequiresRegistration", holds=False),
        ),
        frozenset({(WSN12, "Topic")}),
    )


# Subscriptions


def subscription(spec: str, shown: Subscription, address: str, wsa: str, now_ns: int) -> Properties:
    """One subscription, whichever specification made it. `address` is where it is managed: that of
    what waits to be pulled, too."""
    consumer = EndpointReference(shown.sink or address, wsa, parameters=_references(shown))
    if spec == "wsn13":
        return Properties(
            (WSN13, "SubscriptionManagerRP"),
            (
                _reference(WSN13, "ConsumerReference", consumer, wsa),
                *_filters(shown, spec),
                *_policy(shown, WSN13),
                _own(WSN13, "CreationTime", rfc3339(shown.created_ns).encode()),
            ),
            frozenset({(WSN13, "Filter"), (WSN13, "SubscriptionPolicy")}),
        )
    is_raw = shown.soap is not None and shown.soap.form == "raw"
    return Properties(
        (WSN12, "SubscriptionManagerRP"),
        (
            *_lifetime(shown.expires_ns, now_ns),
            _reference(WSN12, "ConsumerReference", consumer, wsa),
            *_filters(shown, spec, "TopicExpression"),
            _truth(WSN12, "UseNotify", holds=not is_raw),
            *_filters(shown, spec, "Precondition", "Selector"),
            _own(WSN12, "CreationTime", rfc3339(shown.created_ns).encode()),
        ),
        frozenset(
            (WSN12, name)
            for name in ("TopicExpression", "Precondition", "Selector", "SubscriptionPolicy")
        ),
    )


def _references(shown: Subscription) -> tuple[bytes, ...]:
    """What the consumer asked to be echoed, without the mark that says so in messages to it."""
    blocks = "" if shown.soap is None else shown.soap.references
    if not blocks:
        return ()
    found: list[bytes] = []
    for block in elements(safexml.parse(f"<r>{blocks}</r>".encode(), what="the references")):
        for wsa in WSA_NAMESPACES:
            block.attrib.pop(f"{{{wsa}}}IsReferenceParameter", None)
        found.append(etree.tostring(block, with_tail=False))
    return tuple(found)


def _filters(shown: Subscription, spec: str, *wanted: str) -> Iterator[Property]:
    """The filter as it was asked for, if it was asked for in this version."""
    terms = shown.soap
    if terms is None or terms.spec != spec or not terms.filter_xml:
        return
    for each in elements(safexml.parse(f"<f>{terms.filter_xml}</f>".encode(), what="the filter")):
        name: Name = split(each.tag)
        if name[0] == NAMESPACE_OF[spec] and (not wanted or name[1] in wanted):
            yield Property(name, etree.tostring(each, with_tail=False))


def _policy(shown: Subscription, namespace: str) -> Iterator[Property]:
    if shown.soap is not None and shown.soap.form == "raw":
        yield _own(namespace, "SubscriptionPolicy", b"<n:UseRaw/>")


def _lifetime(expires_ns: int | None, now_ns: int) -> Iterator[Property]:
    yield _own(LIFETIME12, "CurrentTime", rfc3339(now_ns).encode())
    if expires_ns is not None:
        yield _own(LIFETIME12, "TerminationTime", rfc3339(expires_ns).encode())
        return
    never = b'<n:TerminationTime xmlns:n="%b" xmlns:xsi="%b" xsi:nil="true"/>'
    yield Property((LIFETIME12, "TerminationTime"), never % (LIFETIME12.encode(), XSI.encode()))


# Registrations


def registration(spec: str, shown: Registration, wsa: str, now_ns: int) -> Properties:
    """One publisher's registration."""
    own = BR13 if spec == "wsn13" else BR12
    publisher = shown.publisher
    return Properties(
        (own, "PublisherRegistrationRP"),
        (
            *([] if spec == "wsn13" else _lifetime(shown.expires_ns, now_ns)),
            *([] if publisher is None else [_reference(own, "PublisherReference", publisher, wsa)]),
            *(_expression(own, "Topic", each) for each in shown.topics),
            _truth(own, "Demand", holds=shown.demand),
            _own(own, "CreationTime", rfc3339(shown.created_ns).encode()),
        ),
        frozenset({(own, "PublisherReference"), (own, "Topic")}),
    )
