"""Event messages in the plain form, which nearly all are in: read by patterns, without a tree.

The pattern fits only what an XML parser would read the same: ASCII, the protocol's namespace and
the event's as defaults, flat elements with at most units and accuracy, no references, comments or
sections. Whatever it does not fit is read by the parser (`read`). A test holds the two equal.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tocsin.wire.gma.messages import Context, Element, EventMessage, PerformanceEvent
from tocsin.wire.gma.names import EXTENSION, PROTOCOL, TIME_STAMP, EventName, is_canonical
from tocsin.wire.gma.stamp import is_plain
from tocsin.wire.gma.values import typed

ELEMENTS_MAX = 1_000  # of one event, inner ones included

_NAME = rb"[A-Za-z_][A-Za-z0-9_.-]*"
_TEXT = rb"[^<>&\x00-\x08\x0b-\x1f\x7f-\xff]*"
_VALUE = rb"[^\"<>&\x00-\x1f\x7f-\xff]*"
_SPACE = rb"[ \t\n]*"
_HEAD = (
    rb'<Event xmlns="%b" subscriptionID="(?P<id>%b)"(?: requestID="(?P<request>%b)")?>%b'
    rb'<(?P<name>%b) xmlns="(?P<namespace>%b)">'
    % (re.escape(PROTOCOL.encode()), _VALUE, _VALUE, _SPACE, _NAME, _VALUE)
)
_FIELD = rb'<(%b)(?: units="(%b)")?(?: accuracy="(%b)")?>(%b)</\1>' % (_NAME, _VALUE, _VALUE, _TEXT)
_CONTEXT = (
    rb'<Context xmlns="%b" seq="(?P<seq>[0-9]{1,18})" id="(?P<event>%b)" source="(?P<source>%b)"'
    rb' topic="(?P<topic>%b)"/>' % (EXTENSION.encode(), _VALUE, _VALUE, _VALUE)
)
_TAIL = rb"</(?P=name)>%b(?:%b)?</Event>%b" % (_SPACE, _CONTEXT, _SPACE)
_WHOLE = re.compile(
    rb'%b(?P<fields>(?:%b<(?P<field>%b)(?: units="%b")?(?: accuracy="%b")?>%b</(?P=field)>)++%b)%b'
    % (_HEAD, _SPACE, _NAME, _VALUE, _VALUE, _TEXT, _SPACE, _TAIL)
)
_RESERVED = "http://www.w3.org/"  # some of these may not be a default namespace
_FIELDS = re.compile(_FIELD.decode())


class Routed(msgspec.Struct, frozen=True):
    """An event message of which only the address was read; the event is kept as it was sent."""

    subscription_id: str
    name: EventName
    content: bytes
    request_id: str | None = None


def route(data: bytes) -> Routed | None:
    """Name and id of a plain event message, known to be well-formed; None if it is not plain."""
    found = _WHOLE.fullmatch(data)
    if found is None:
        return None
    return _routed(data, found)


def _routed(data: bytes, found: re.Match[bytes]) -> Routed | None:
    namespace, local = found["namespace"].decode(), found["name"].decode()
    if not namespace or namespace.startswith(_RESERVED) or not is_canonical(namespace, local):
        return None
    request = found["request"]
    return Routed(
        found["id"].decode(),
        EventName(local, namespace),
        data[found.start("name") - 1 : found.end("fields") + len(local) + 3],
        None if request is None else request.decode(),
    )


def read_plain(data: bytes) -> tuple[EventMessage, bytes] | None:
    """The message, and the event as it was sent; None if it is not plain, or not to be taken."""
    found = _WHOLE.fullmatch(data)
    if found is None or (routed := _routed(data, found)) is None:
        return None
    elements = elements_of(found["fields"].decode())
    if len(elements) > ELEMENTS_MAX:
        return None
    time = _take_time(elements)
    if time is None:
        return None
    event = PerformanceEvent(routed.name, time, tuple(elements))
    message = EventMessage(
        routed.subscription_id, event, request_id=routed.request_id, context=_context(found)
    )
    return message, routed.content


def elements_of(fields: str) -> list[Element]:
    return [
        Element(name, typed(text), units or None, accuracy or None)
        for name, units, accuracy, text in _FIELDS.findall(fields)
    ]


def _take_time(elements: list[Element]) -> str | None:
    """The one time stamp; None if it must be looked at closer."""
    last: Any = None
    for at, element in enumerate(elements):
        if element.name == TIME_STAMP:
            if last is not None:
                return None
            last = at
    if last is None:
        return None
    stamp = elements[last]
    if stamp.units or stamp.accuracy or not isinstance(stamp.value, str):
        return None
    del elements[last]
    return stamp.value if is_plain(stamp.value) else None


def _context(found: re.Match[bytes]) -> Context | None:
    if found["seq"] is None:
        return None
    texts = (found[part].decode() for part in ("event", "source", "topic"))
    return Context(int(found["seq"]), *texts)
