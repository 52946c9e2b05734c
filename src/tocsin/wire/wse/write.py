"""WS-Eventing messages as the content of a body, and the actions that name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tocsin.event.subscription import SoapTerms
from tocsin.wire.soap.addressing import EndpointReference, attribute, epr_content
from tocsin.wire.soap.element import element
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import (
    NAMESPACE_OF,
    TOCSIN,
    USUAL_WSA,
    WSA2005,
    WSE11,
    WSEN,
    WSMAN,
    WSN10,
    WSRM11,
    WSRMP10,
    WSRMP11,
)
from tocsin.wire.wse.messages import (
    EVENTS_ACTION,
    WRAPPED_ACTION,
    Events,
    Filter,
    GetStatus,
    GetStatusResponse,
    Message,
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
    status_uri,
)
from tocsin.wire.wsn.messages import Expression


def action(message: Message) -> str:
    """The wsa:Action of a message."""
    match message:
        case Notify():
            return WRAPPED_ACTION
        case Events():
            return EVENTS_ACTION
        case Pull() | PullResponse() | Release():
            return f"{WSEN}/{type(message).__name__}"
        case _:
            return f"{NAMESPACE_OF[message.spec]}/{type(message).__name__}"


RELEASE_RESPONSE_ACTION: Final = f"{WSEN}/ReleaseResponse"


def write(message: Message, wsa: str = "") -> bytes:
    """The body's content. References in it are written in the given WS-Addressing."""
    return _WRITERS[type(message)](message, wsa)


def identifier(terms: SoapTerms, subscription_id: str) -> bytes:
    """The reference that names a subscription of ours, and comes back in a header.

    A device's client (DPWS: SOAP 1.2 with WS-Addressing 2005/08) marks what it echoes with an
    attribute, which the schema of WS-Eventing forbids on an Identifier: its own check would stop
    it from sending one, so it is given an element of ours.
    """
    if (terms.soap, terms.wsa) == ("1.2", WSA2005):
        return element("wse", TOCSIN, "SubscriptionId", escaped(subscription_id))
    return element("wse", NAMESPACE_OF[terms.spec], "Identifier", escaped(subscription_id))


def _eventing(spec: str, name: str, content: bytes = b"", attributes: bytes = b"") -> bytes:
    return element("wse", NAMESPACE_OF[spec], name, content, attributes)


def _management(name: str, content: bytes = b"", attributes: bytes = b"") -> bytes:
    return element("wsman", WSMAN, name, content, attributes)


def _enumeration(name: str, content: bytes = b"") -> bytes:
    return element("wsen", WSEN, name, content)


def _reference(spec: str, name: str, reference: EndpointReference | None, wsa: str) -> bytes:
    if reference is None:
        return b""
    return _eventing(spec, name, epr_content(reference, wsa or USUAL_WSA[spec]))


def _subscribe(message: Subscribe, wsa: str) -> bytes:
    spec = message.spec
    delivery = _reference(spec, "NotifyTo", message.notify_to, wsa)
    if message.heartbeats is not None:
        delivery += _management("Heartbeats", escaped(message.heartbeats))
    if message.batch is not None:
        delivery += _management("MaxElements", b"%d" % message.batch)
    mode = attribute("Mode", message.mode) if message.mode else b""
    content = _reference(spec, "EndTo", message.end_to, wsa)
    content += _eventing(spec, "Delivery", delivery, mode)
    if message.format:
        content += _eventing(spec, "Format", attributes=attribute("Name", message.format))
    content += _asked_expiry(spec, message.expires, best_effort=message.best_effort)
    if message.filter is not None:
        content += _filter(spec, message.filter)
    if message.bookmark is not None:
        content += _management("Bookmark", escaped(message.bookmark))
    if message.send_bookmarks:
        content += _management("SendBookmarks")
    if message.reliable:
        policy = WSRMP11 if message.reliable == WSRM11 else WSRMP10
        content += element("wsrmp", policy, "RMAssertion")
    return _eventing(spec, "Subscribe", content)


def _asked_expiry(spec: str, expires: str | None, *, best_effort: bool) -> bytes:
    if expires is None:
        return b""
    mark = attribute("BestEffort", "true") if best_effort else b""
    return _eventing(spec, "Expires", escaped(expires), mark)


def _filter(spec: str, wanted: Filter) -> bytes:
    inner = b""
    if wanted.topic is not None:
        inner += _expression(WSN10, "TopicExpression", wanted.topic)
    if wanted.content is not None:
        inner += _expression(WSN10, "MessageContent", wanted.content)
    return _expression(NAMESPACE_OF[spec], "Filter", wanted.expression, inner)


def _expression(namespace: str, name: str, expression: Expression, inner: bytes = b"") -> bytes:
    bindings = dict(expression.namespaces)
    prefix = "wse"
    while prefix in bindings:  # what the expression calls so is something else
        prefix += "0"
    attributes = b"".join(attribute(f"xmlns:{own}", uri) for own, uri in bindings.items())
    if expression.dialect:
        attributes += attribute("Dialect", expression.dialect)
    return element(prefix, namespace, name, escaped(expression.text) + inner, attributes)


def _subscribe_response(message: SubscribeResponse, wsa: str) -> bytes:
    spec = message.spec
    content = _reference(spec, "SubscriptionManager", message.manager, wsa)
    content += _granted(spec, message.expires)
    if message.context is not None:
        content += _enumeration("EnumerationContext", escaped(message.context))
    return _eventing(spec, "SubscribeResponse", content)


def _granted(spec: str, expires: str | None) -> bytes:
    if expires is None:
        return b""
    return _eventing(spec, "GrantedExpires" if spec == "wse11" else "Expires", escaped(expires))


def _renew(message: Renew, wsa: str) -> bytes:
    expires = _asked_expiry(message.spec, message.expires, best_effort=message.best_effort)
    return _eventing(message.spec, "Renew", expires)


def _end(message: SubscriptionEnd, wsa: str) -> bytes:
    spec = message.spec
    content = b""
    if spec != "wse11":
        content = _reference(spec, "SubscriptionManager", message.manager, wsa)
    content += _eventing(spec, "Status", escaped(status_uri(spec, message.status)))
    if message.reason:
        language = attribute("xml:lang", "en")
        content += _eventing(spec, "Reason", escaped(message.reason), language)
    return _eventing(spec, "SubscriptionEnd", content)


def _notify(message: Notify, wsa: str) -> bytes:
    named = attribute("actionURI", message.action) if message.action else b""
    return element("wse", WSE11, "Notify", message.payload, named)


def bookmark(seq: int) -> bytes:
    """The header block that says how far a delivery goes: the number of its last event."""
    return _management("Bookmark", b"%d" % seq)


def _events(message: Events, wsa: str) -> bytes:
    content = b"".join(
        _management("Event", each.payload, attribute("Action", each.action or ""))
        for each in message.events
    )
    return _management("Events", content)


def _pull(message: Pull, wsa: str) -> bytes:
    content = _enumeration("EnumerationContext", escaped(message.context))
    if message.time_max is not None:
        content += _enumeration("MaxTime", escaped(message.time_max))
    if message.elements_max is not None:
        content += _enumeration("MaxElements", b"%d" % message.elements_max)
    if message.characters_max is not None:
        content += _enumeration("MaxCharacters", b"%d" % message.characters_max)
    return _enumeration("Pull", content)


def _pull_response(message: PullResponse, wsa: str) -> bytes:
    content = b""
    if message.context is not None:
        content += _enumeration("EnumerationContext", escaped(message.context))
    if message.items:
        content += _enumeration("Items", b"".join(message.items))
    if message.ended:
        content += _enumeration("EndOfSequence")
    return _enumeration("PullResponse", content)


def _release(message: Release, wsa: str) -> bytes:
    return _enumeration("Release", _enumeration("EnumerationContext", escaped(message.context)))


def _gone(message: UnsubscribeResponse, wsa: str) -> bytes:
    return _eventing(message.spec, "UnsubscribeResponse") if message.spec == "wse11" else b""


_WRITERS: Final[Mapping[type, Callable[[Any, str], bytes]]] = {
    Subscribe: _subscribe,
    SubscribeResponse: _subscribe_response,
    Renew: _renew,
    RenewResponse: lambda m, _: _eventing(m.spec, "RenewResponse", _granted(m.spec, m.expires)),
    GetStatus: lambda m, _: _eventing(m.spec, "GetStatus"),
    GetStatusResponse: lambda m, _: _eventing(
        m.spec, "GetStatusResponse", _granted(m.spec, m.expires)
    ),
    Unsubscribe: lambda m, _: _eventing(m.spec, "Unsubscribe"),
    UnsubscribeResponse: _gone,
    SubscriptionEnd: _end,
    Notify: _notify,
    Events: _events,
    Pull: _pull,
    PullResponse: _pull_response,
    Release: _release,
}
