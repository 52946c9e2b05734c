"""Subscribe read: the consumer, the filters and the policies, of all three versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lxml import etree

from tocsin.wire.soap.addressing import EndpointReference, read_epr
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import (
    NAMESPACE_OF,
    WSN13,
    WSRM10,
    WSRM11,
    WSRMP10,
    WSRMP11,
    XSI,
)
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.wsn.messages import NEVER, Expression, Name, Never, Subscribe

Element = etree._Element

FILTERS_MAX: Final = 64  # expressions in one subscription
FILTER_BYTES_MAX: Final = 64 << 10  # of all of them, kept as they were sent to be shown again

_KINDS: Final = {
    "TopicExpression": "topics",
    "MessageContent": "contents",
    "Selector": "contents",
    "ProducerProperties": "properties",
    "Precondition": "properties",
}
_OLDER: Final = ("TopicExpression", "Precondition", "Selector")
_RELIABLE: Final = {(WSRMP10, "RMAssertion"): WSRM10, (WSRMP11, "RMAssertion"): WSRM11}
# What WS-Policy, in whichever version, wraps assertions in.
_POLICY_GROUPS: Final = frozenset({"Policy", "ExactlyOne", "All"})
_POLICY_NAMESPACES: Final = frozenset(
    {
        "http://schemas.xmlsoap.org/ws/2002/12/policy",
        "http://schemas.xmlsoap.org/ws/2004/09/policy",
        "http://www.w3.org/ns/ws-policy",
    }
)


def read_subscribe(envelope: Envelope, spec: str) -> Subscribe:
    """What a subscriber asks for. Filters and policies that we do not know are named, not judged:
    what is then to be done is the producer's affair."""
    element, own = envelope.message, NAMESPACE_OF[spec]
    children = {split(child.tag): child for child in reversed(elements(element))}
    termination = children.get((own, "InitialTerminationTime"))
    policy = children.get((own, "SubscriptionPolicy"))
    assertions = [] if policy is None else list(_assertions(policy))
    filters, filter_xml = _filters(envelope, element, spec)
    kinds: dict[str, list[Expression]] = {"topics": [], "contents": [], "properties": []}
    unknown: list[Name] = []
    for each in filters:
        namespace, name = split(each.tag)
        if namespace == own and name in _KINDS:
            kinds[_KINDS[name]].append(read_expression(each))
        else:
            unknown.append((namespace, name))
    return Subscribe(
        consumer=_consumer(envelope, children.get((own, "ConsumerReference"))),
        topics=tuple(kinds["topics"]),
        contents=tuple(kinds["contents"]),
        properties=tuple(kinds["properties"]),
        termination=None if termination is None else read_termination(termination),
        raw=_wants_raw(children.get((own, "UseNotify")), assertions),
        reliable=_reliable(policy, assertions, spec),
        unknown_filters=tuple(unknown),
        unknown_policies=_unknown_policies(assertions, spec),
        filter_xml=filter_xml,
    )


def _consumer(envelope: Envelope, element: Element | None) -> EndpointReference:
    if element is None:
        raise SoapFault("Sender", "Subscribe has no ConsumerReference")
    return read_epr(envelope, element)


def _filters(envelope: Envelope, element: Element, spec: str) -> tuple[list[Element], bytes]:
    """The expressions, and what a resource property shows: Filter, or what came in its stead."""
    if spec == "wsn13":
        holder = element.find(f"{{{WSN13}}}Filter")
        found = [] if holder is None else elements(holder)
        shown = [] if holder is None else [holder]
    else:
        own = NAMESPACE_OF[spec]
        found = [child for name in _OLDER for child in element.findall(f"{{{own}}}{name}")]
        shown = found
    if len(found) > FILTERS_MAX:
        raise SoapFault("Sender", f"a subscription may have {FILTERS_MAX} filter expressions")
    filter_xml = b"".join(cut_out(envelope, shown))
    if len(filter_xml) > FILTER_BYTES_MAX:
        raise SoapFault("Sender", f"a subscription may have {FILTER_BYTES_MAX} bytes of filters")
    return found, filter_xml


def read_expression(element: Element) -> Expression:
    """The expression that an element holds. The original qualifies its Dialect attribute."""
    namespace = split(element.tag)[0]
    dialect = element.get("Dialect") or element.get(f"{{{namespace}}}Dialect") or ""
    text = text_of(element) if not len(element) else str(element.xpath("string()")).strip()
    scope = sorted((prefix, uri) for prefix, uri in element.nsmap.items() if prefix)
    used = tuple((prefix, uri) for prefix, uri in scope if f"{prefix}:" in text)
    return Expression(text, dialect.strip(), used)


def read_termination(element: Element) -> str | Never:
    """The end that is asked for, as it is written; nil, unlike empty, is none at all."""
    return NEVER if is_nil(element) else text_of(element)


def is_nil(element: Element) -> bool:
    """True if xsi:nil says that the element has no value, rather than an empty one."""
    return element.get(f"{{{XSI}}}nil", "").strip() in ("true", "1")


def _wants_raw(use_notify: Element | None, assertions: list[Name]) -> bool:
    if use_notify is not None and text_of(use_notify).lower() in ("false", "0"):
        return True
    return (WSN13, "UseRaw") in assertions


def _assertions(policy: Element) -> Iterator[Name]:
    for child in elements(policy):
        namespace, name = split(child.tag)
        if namespace in _POLICY_NAMESPACES and name in _POLICY_GROUPS:
            yield from _assertions(child)
        else:
            yield namespace, name


def _reliable(policy: Element | None, assertions: list[Name], spec: str) -> str:
    for assertion in assertions:
        if assertion in _RELIABLE:
            return _RELIABLE[assertion]
    if spec == "wsn10" and policy is not None and any(map(_is_about_reliability, assertions)):
        return WSRM10
    return ""


def _is_about_reliability(assertion: Name) -> bool:
    """The original takes any policy as a request for reliability; here it must mention it."""
    namespace, name = assertion
    return "/rm" in namespace or "wsrm" in f"{namespace}{name}".lower()


def _unknown_policies(assertions: list[Name], spec: str) -> tuple[Name, ...]:
    if spec == "wsn10":
        return ()  # it has no way to say that a policy is unknown, and never minded any
    known = {(WSN13, "UseRaw"), *_RELIABLE}
    return tuple(assertion for assertion in assertions if assertion not in known)
