"""Messages to bytes, in the plain default-namespace form of the paper's examples."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any
from xml.sax.saxutils import quoteattr

from tocsin.errors import BadMessage
from tocsin.event.xml_form import FORBIDDEN
from tocsin.event.xml_name import is_namespace, is_xml_name
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import (
    EXTENSION,
    NAME_CHARS_MAX,
    NAMESPACE_CHARS_MAX,
    PARAMETERS,
    PROTOCOL,
    XSD,
    XSI,
    EventName,
)
from tocsin.wire.gma.values import needs_type, text_of

_KEPT = 4_096  # heads and tags, each written over and over; all of them are short
_PLAIN = re.compile(r"[ !#-%'-;=?-~]*")  # stands in any text or attribute as it is
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_ATTRIBUTE_ESCAPES = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_STRING = f' xmlns:xsi="{XSI}" xmlns:xsd="{XSD}" xsi:type="xsd:string"'
_QUERY_REPLY_ENDS = b"</QueryReply>"
_EVENT_BEGINS = f'<Event xmlns="{PROTOCOL}" subscriptionID='


def write(message: m.Message) -> bytes:
    """The message; BadMessage if something in it cannot be sent as XML."""
    return _WRITERS[type(message)](message).encode()


def event_element(event: m.PerformanceEvent) -> str:
    """An event as the one element it is, the time stamp last as in the examples."""
    local = event.name.local
    opening = _opening(local, event.name.namespace)
    stamp = f"<TimeStamp>{_text(event.time)}</TimeStamp>"
    return f"{opening}{_elements(event.elements)}{stamp}</{local}>"


def query_reply(request_id: str, content: bytes) -> bytes:
    """The reply to a query, around an event that is written already."""
    reply = write(m.QueryReply(request_id))
    assert reply.endswith(_QUERY_REPLY_ENDS)
    return b"%b%b%b" % (reply[: -len(_QUERY_REPLY_ENDS)], content, _QUERY_REPLY_ENDS)


def event_message(
    subscription_id: str,
    content: bytes,
    context: m.Context | None = None,
    request_id: str | None = None,
) -> bytes:
    """An event message around an event that is written already."""
    head = _event_head(subscription_id)
    if request_id is not None:
        head = b"%b requestID=%b>" % (head[:-1], _attribute(request_id).encode())
    tail = "" if context is None else _context(context)
    return b"%b%b%b</Event>" % (head, content, tail.encode())


@lru_cache(maxsize=_KEPT)
def _event_head(subscription_id: str) -> bytes:
    return f"{_EVENT_BEGINS}{_attribute(subscription_id)}>".encode()


@lru_cache(maxsize=_KEPT)
def _opening(local: str, namespace: str) -> str:
    _check_name(local)
    if len(namespace) > NAMESPACE_CHARS_MAX or not (is_namespace(namespace) or namespace == ""):
        raise _unsendable(f"{namespace[:40]!r} cannot be a namespace")
    return f"<{local} xmlns={_attribute(namespace)}>"


@lru_cache(maxsize=_KEPT)
def _tags(name: str, units: str | None, accuracy: str | None) -> tuple[str, str]:
    _check_name(name)
    if max(len(units or ""), len(accuracy or "")) > m.UNITS_CHARS_MAX:
        raise _unsendable(f"units or accuracy of {name} are too long")
    attributes = "" if units is None else f" units={_attribute(units)}"
    attributes += "" if accuracy is None else f" accuracy={_attribute(accuracy)}"
    return f"<{name}{attributes}>", f"</{name}>"


def _check_name(name: str) -> None:
    if len(name) > NAME_CHARS_MAX or not is_xml_name(name):
        raise _unsendable(f"{name[:40]!r} cannot be the name of an element")


def _element(element: m.Element) -> str:
    value = element.value
    opening, closing = _tags(element.name, element.units, element.accuracy)
    if type(value) is float and isfinite(value):  # as most are
        return f"{opening}{value!r}{closing}"
    if isinstance(value, str):
        if needs_type(value):
            opening = f"{opening[:-1]}{_STRING}>"
        return f"{opening}{_text(value)}{closing}"
    if isinstance(value, tuple):
        return f"{opening}{_elements(value)}{closing}"
    return f"{opening}{text_of(value)}{closing}"


def _elements(elements: tuple[m.Element, ...]) -> str:
    return "".join(map(_element, elements))


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return text
    if FORBIDDEN.search(text):
        raise _unsendable("a text holds a character that XML cannot hold")
    return text.translate(_ESCAPES)


def _attribute(text: str) -> str:
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    if FORBIDDEN.search(text):
        raise _unsendable("an attribute holds a character that XML cannot hold")
    return quoteattr(text, _ATTRIBUTE_ESCAPES)


def _unsendable(problem: str) -> BadMessage:
    return BadMessage(problem, remedy="Use text and short names that XML 1.0 allows.")


def _message(name: str, request_id: str, content: str, options: m.Options | None = None) -> str:
    head = f'<{name} xmlns="{PROTOCOL}" requestID={_attribute(request_id)}{_options(options)}'
    return f"{head}>{content}</{name}>" if content else f"{head}/>"


def _parameters(parameters: m.Parameters) -> str:
    name = parameters.name
    namespace = PARAMETERS if name.is_grid_forum else name.namespace
    opening = _opening(name.local, namespace)
    if not parameters.elements:
        return f"{opening[:-1]}/>"
    return f"{opening}{_elements(parameters.elements)}</{name.local}>"


def _filter(text: str | None) -> str:
    return "" if text is None else f'<Filter xmlns="{EXTENSION}">{_text(text)}</Filter>'


def _options(options: m.Options | None) -> str:
    """As attributes: whoever knows only the paper does not look at those, but at each element."""
    if options is None:
        return ""
    attributes = f' xmlns:t="{EXTENSION}"'
    if options.role is not None:
        attributes += f" t:role={_attribute(options.role)}"
    if options.after is not None:
        attributes += f' t:after="{options.after}"'
    if options.acknowledge is not None:
        attributes += f" t:acknowledge={_attribute(options.acknowledge)}"
    for name in ("context", "filtered"):
        attributes += f' t:{name}="true"' if getattr(options, name) else ""
    return attributes


def _context(context: m.Context) -> str:
    return (
        f'<Context xmlns="{EXTENSION}" seq="{context.seq}" id={_attribute(context.id)}'
        f" source={_attribute(context.source)} topic={_attribute(context.topic)}/>"
    )


def _subscription_id(text: str) -> str:
    return f"<SubscriptionID>{_text(text)}</SubscriptionID>"


def _subscribe_request(message: m.SubscribeRequest) -> str:
    content = (
        _subscription_id(message.subscription_id)
        + _parameters(message.parameters)
        + _filter(message.filter)
    )
    return _message("SubscribeRequest", message.request_id, content, message.options)


def _returned(message: m.Reply) -> str:
    detail = message.detail
    reason = "" if detail is None else f"<ReturnDetail>{_text(detail)}</ReturnDetail>"
    return f"<Return>{_text(message.returned)}</Return>{reason}"


def _subscribe_reply(message: m.SubscribeReply) -> str:
    content = _returned(message)
    if message.subscription_id is not None:
        content += _subscription_id(message.subscription_id)
    return _message("SubscribeReply", message.request_id, content, message.options)


def _unsubscribe_request(message: m.UnsubscribeRequest) -> str:
    return _message(
        "UnsubscribeRequest", message.request_id, _subscription_id(message.subscription_id)
    )


def _unsubscribe_reply(message: m.UnsubscribeReply) -> str:
    return _message("UnsubscribeReply", message.request_id, _returned(message))


def _event(message: m.EventMessage) -> str:
    asks = message.request_id
    head = f"{_EVENT_BEGINS}{_attribute(message.subscription_id)}"
    number = "" if asks is None else f" requestID={_attribute(asks)}"
    content = "" if message.event is None else event_element(message.event)
    if message.error is not None:
        content += f"<Error>{_text(message.error)}</Error>"
    if message.error_detail is not None:
        content += f"<ErrorDetail>{_text(message.error_detail)}</ErrorDetail>"
    if message.context is not None:
        content += _context(message.context)
    return f"{head}{number}>{content}</Event>"


def _event_reply(message: m.EventReply) -> str:
    return _message("EventReply", message.request_id, _returned(message))


def _query_request(message: m.QueryRequest) -> str:
    content = _parameters(message.parameters) + _filter(message.filter)
    return _message("QueryRequest", message.request_id, content)


def _query_reply(message: m.QueryReply) -> str:
    event = "" if message.event is None else event_element(message.event)
    return _message("QueryReply", message.request_id, _returned(message) + event)


def _event_names_request(message: m.EventNamesRequest) -> str:
    return _message("EventNamesRequest", message.request_id, "")


def _event_names_reply(message: m.EventNamesReply) -> str:
    names = "".join(map(_listed, message.names))
    return _message("EventNamesReply", message.request_id, _returned(message) + names)


def _listed(name: EventName) -> str:
    return f"<Event name={_attribute(name.local)} namespace={_attribute(name.namespace)}/>"


_WRITERS: dict[type, Callable[[Any], str]] = {
    m.SubscribeRequest: _subscribe_request,
    m.SubscribeReply: _subscribe_reply,
    m.UnsubscribeRequest: _unsubscribe_request,
    m.UnsubscribeReply: _unsubscribe_reply,
    m.EventMessage: _event,
    m.EventReply: _event_reply,
    m.QueryRequest: _query_request,
    m.QueryReply: _query_reply,
    m.EventNamesRequest: _event_names_request,
    m.EventNamesReply: _event_names_reply,
}
