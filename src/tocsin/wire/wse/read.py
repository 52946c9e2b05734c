"""WS-Eventing messages out of envelopes. Children may come in any order, as they do in practice."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from lxml import etree

from tocsin.wire.soap.addressing import EndpointReference, read_epr
from tocsin.wire.soap.envelope import Envelope, elements, first_element, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import (
    NAMESPACE_OF,
    SPEC_OF,
    WSE04,
    WSE11,
    WSEN,
    WSMAN,
    WSN10,
    WSN13,
    WSRM10,
    WSRM11,
    WSRMP10,
    WSRMP11,
)
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.wse.faults import invalid_message, unknown_context, unusable_reference
from tocsin.wire.wse.messages import (
    Events,
    Filter,
    GetStatus,
    GetStatusResponse,
    Message,
    Namespaces,
    Notify,
    Pull,
    PullResponse,
    Release,
    Renew,
    RenewResponse,
    Subscribe,
    SubscribeResponse,
    SubscriptionEnd,
    Unsubscribe,
    UnsubscribeResponse,
)
from tocsin.wire.wsn.messages import Expression

Element = etree._Element
Reader = Callable[[Envelope], Message]

NUMBER_DIGITS_MAX: Final = 9
_TRUE: Final = ("true", "1")
# An axis has two colons. No longer than a prefix may be: else a long text costs its square.
_PREFIX = re.compile(r"([^\W\d][\w.\-]{0,63}+):(?!:)")
# Policies stand beside the other children of Subscribe, in Delivery, or in a wsp:Policy there.
_RELIABLE: Final = {f"{{{WSRMP10}}}RMAssertion": WSRM10, f"{{{WSRMP11}}}RMAssertion": WSRM11}


def read(envelope: Envelope) -> Message | None:
    """The message in the body, or None if it is none of ours; a SoapFault if it is a bad one."""
    element = envelope.content
    if element is None:
        return None
    reader = READERS.get(split(element.tag))
    return None if reader is None else reader(envelope)


def read_subscribe(envelope: Envelope) -> Subscribe:
    """What a subscriber asks for."""
    element = envelope.message
    spec = _spec(envelope)
    delivery = _child(element, spec, "Delivery")
    if delivery is None:
        raise invalid_message(spec, "Subscribe has no Delivery")
    expires = _child(element, spec, "Expires")
    format = _child(element, spec, "Format")
    return Subscribe(
        spec=spec,
        notify_to=_reference(envelope, _child(delivery, spec, "NotifyTo"), spec),
        end_to=_reference(envelope, _child(element, spec, "EndTo"), spec),
        mode=delivery.get("Mode", "").strip(),
        format="" if format is None else format.get("Name", "").strip(),
        expires=None if expires is None else text_of(expires),
        best_effort=_best_effort(expires),
        filter=_filter(element, spec),
        heartbeats=_wsman_text(delivery, "Heartbeats"),
        batch=_batch(delivery, spec),
        send_bookmarks=element.find(f"{{{WSMAN}}}SendBookmarks") is not None,
        bookmark=_wsman_text(element, "Bookmark"),
        reliable=next((_RELIABLE[str(found.tag)] for found in element.iter(*_RELIABLE)), ""),
    )


def _spec(envelope: Envelope) -> str:
    return SPEC_OF[split(envelope.message.tag)[0]]


def _child(parent: Element, spec: str, name: str) -> Element | None:
    return parent.find(f"{{{NAMESPACE_OF[spec]}}}{name}")


def _text(parent: Element, spec: str, name: str) -> str | None:
    child = _child(parent, spec, name)
    return None if child is None else text_of(child)


def _reference(envelope: Envelope, element: Element | None, spec: str) -> EndpointReference | None:
    if element is None:
        return None
    try:
        return read_epr(envelope, element)
    except SoapFault as fault:
        raise unusable_reference(spec, fault.reason) from None


def _best_effort(expires: Element | None) -> bool:
    return expires is not None and expires.get("BestEffort", "").strip() in _TRUE


def _wsman_text(parent: Element, name: str) -> str | None:
    child = parent.find(f"{{{WSMAN}}}{name}")
    return None if child is None else text_of(child)


def _batch(delivery: Element, spec: str) -> int | None:
    text = _wsman_text(delivery, "MaxElements")
    if text is None:
        return None
    number = _number(text)
    if number is None:
        raise invalid_message(spec, f"MaxElements is {text[:40]!r}, which is not a number above 0")
    return number


def _number(text: str) -> int | None:
    """A number above 0; what has very many digits is as good as the most we would take anyway."""
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        return None
    return int(text) if len(text) <= NUMBER_DIGITS_MAX else 10**NUMBER_DIGITS_MAX


def _filter(element: Element, spec: str) -> Filter | None:
    own, management = _child(element, spec, "Filter"), element.find(f"{{{WSMAN}}}Filter")
    if own is not None and management is not None:
        raise invalid_message(spec, "Subscribe has two filters; only one is allowed")
    found = management if own is None else own
    if found is None:
        return None
    parts: dict[str, Expression] = {}
    for child in elements(found):
        namespace, name = split(child.tag)
        if namespace in (WSN10, WSN13):
            parts[name] = read_expression(child)
    return Filter(
        read_expression(found),
        topic=parts.get("TopicExpression"),
        content=parts.get("MessageContent"),
    )


def read_expression(element: Element) -> Expression:
    """The text of an element and its dialect; the original qualifies that attribute."""
    dialect = next(
        (value for name, value in element.attrib.items() if split(name)[1] == "Dialect"), ""
    )
    # A filter may have its text after a comment, and a mixed one has text around its children.
    text = "".join(element.xpath("text()")).strip()
    return Expression(text, str(dialect).strip(), _used(text, element))


def _used(text: str, element: Element) -> Namespaces:
    """The prefixes in scope that may stand in the text. Unused ones would make equal expressions
    differ, which are evaluated once each."""
    prefixes = set(_PREFIX.findall(text))
    return tuple(sorted((p, uri) for p, uri in element.nsmap.items() if p and p in prefixes))


def read_subscribe_response(envelope: Envelope) -> SubscribeResponse:
    element = envelope.message
    spec = _spec(envelope)
    manager = _reference(envelope, _child(element, spec, "SubscriptionManager"), spec)
    if manager is None:
        raise invalid_message(spec, "SubscribeResponse has no SubscriptionManager")
    context = element.find(f"{{{WSEN}}}EnumerationContext")
    return SubscribeResponse(
        spec,
        manager,
        _granted(envelope) or "",
        None if context is None else text_of(context),
    )


def _granted(envelope: Envelope) -> str | None:
    spec = _spec(envelope)
    return _text(envelope.message, spec, "GrantedExpires" if spec == "wse11" else "Expires")


def read_renew(envelope: Envelope) -> Renew:
    spec = _spec(envelope)
    expires = _child(envelope.message, spec, "Expires")
    return Renew(spec, None if expires is None else text_of(expires), _best_effort(expires))


def read_end(envelope: Envelope) -> SubscriptionEnd:
    """The end of a subscription; a bare word for a status is taken too, as some send it."""
    element = envelope.message
    spec = _spec(envelope)
    manager = element.find(f"{{{WSE04}}}SubscriptionManager")
    status = (_text(element, spec, "Status") or "").rpartition("/")[2]
    if not status:
        raise invalid_message(spec, "SubscriptionEnd has no Status")
    reason = _text(element, spec, "Reason") or ""
    return SubscriptionEnd(spec, status, reason, _reference(envelope, manager, spec))


def read_notify(envelope: Envelope) -> Notify:
    """A wrapped notification."""
    return _wrapped(envelope, envelope.message, "actionURI")


def read_events(envelope: Envelope) -> Events:
    """WS-Management's batch; what has no content (a heartbeat) is left out."""
    return Events(
        tuple(
            _wrapped(envelope, child, "Action")
            for child in elements(envelope.message)
            if split(child.tag) == (WSMAN, "Event") and first_element(child) is not None
        )
    )


def _wrapped(envelope: Envelope, element: Element, attribute: str) -> Notify:
    payload = first_element(element)
    if payload is None:
        name = split(element.tag)[1]
        raise SoapFault("Sender", f"{name} holds no element, so it holds no event")
    [piece] = cut_out(envelope, [payload])
    return Notify(piece, element.get(attribute, "").strip() or None)


def read_pull(envelope: Envelope) -> Pull:
    """What a puller asks for; a limit that is no number is as good as none."""
    element = envelope.message
    numbers = {
        name: _number(_enumeration_text(element, name) or "")
        for name in ("MaxElements", "MaxCharacters")
    }
    return Pull(
        _context(element),
        numbers["MaxElements"],
        numbers["MaxCharacters"],
        _enumeration_text(element, "MaxTime"),
    )


def read_pull_response(envelope: Envelope) -> PullResponse:
    element = envelope.message
    items = element.find(f"{{{WSEN}}}Items")
    found = [] if items is None else elements(items)
    return PullResponse(
        tuple(piece for each in found for piece in cut_out(envelope, [each])),
        _enumeration_text(element, "EnumerationContext"),
        element.find(f"{{{WSEN}}}EndOfSequence") is not None,
    )


def read_release(envelope: Envelope) -> Release:
    return Release(_context(envelope.message))


def _context(element: Element) -> str:
    context = _enumeration_text(element, "EnumerationContext")
    if not context:
        raise unknown_context("the message names no EnumerationContext")
    return context


def _enumeration_text(parent: Element, name: str) -> str | None:
    child = parent.find(f"{{{WSEN}}}{name}")
    return None if child is None else text_of(child)


_BOTH: Final[Mapping[str, Reader]] = {
    "Subscribe": read_subscribe,
    "SubscribeResponse": read_subscribe_response,
    "Renew": read_renew,
    "RenewResponse": lambda envelope: RenewResponse(_spec(envelope), _granted(envelope)),
    "GetStatus": lambda envelope: GetStatus(_spec(envelope)),
    "GetStatusResponse": lambda envelope: GetStatusResponse(_spec(envelope), _granted(envelope)),
    "Unsubscribe": lambda envelope: Unsubscribe(_spec(envelope)),
    "UnsubscribeResponse": lambda envelope: UnsubscribeResponse(_spec(envelope)),
    "SubscriptionEnd": read_end,
}

READERS: Final[Mapping[tuple[str, str], Reader]] = {
    **{(namespace, name): read for namespace in (WSE04, WSE11) for name, read in _BOTH.items()},
    (WSE11, "Notify"): read_notify,
    (WSMAN, "Events"): read_events,
    (WSEN, "Pull"): read_pull,
    (WSEN, "PullResponse"): read_pull_response,
    (WSEN, "Release"): read_release,
}
