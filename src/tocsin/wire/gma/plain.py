"""Event messages in the plain form, which nearly all are in: read by patterns, without a tree.

The patterns fit only what an XML parser would read the same: ASCII, the protocol's namespace and
the event's as defaults, flat elements with at most units and accuracy, one usual time stamp, no
references, comments or sections. The paper's own spellings are plain, too: its line breaks, an
event in the protocol's namespace, `UptimeCPULoadEvent`. Whatever the patterns do not fit is read by
the parser (`read`). A test holds the two equal.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from tocsin.event.xml_name import is_namespace
from tocsin.wire.gma.messages import (
    UNITS_CHARS_MAX,
    Context,
    Element,
    EventMessage,
    PerformanceEvent,
)
from tocsin.wire.gma.names import (
    EXTENSION,
    NAME_CHARS_MAX,
    NAMESPACE_CHARS_MAX,
    PROTOCOL,
    EventName,
    event_name,
    is_canonical,
    is_own,
)
from tocsin.wire.gma.stamp import CLOCK, PLAIN_STAMP
from tocsin.wire.gma.values import typed
from tocsin.wire.gma.write import event_element

ELEMENTS_MAX = 1_000  # of one event, inner ones and its time included
ID_CHARS_MAX = 256
PLAIN_BYTES_MAX = 1 << 20  # the parser has limits on texts, of 10 MB; this is well below

_NAMES_KEPT = 4_096

_NAME = f"[A-Za-z_][A-Za-z0-9_.-]{{0,{NAME_CHARS_MAX - 1}}}+"
_ID = rf'[^"<>&\x00-\x20\x7f]{{1,{ID_CHARS_MAX}}}+'
# Without \r: in a text the parser makes \n of it. And without > as that might end "]]>".
_TEXT = r"[^<>&\x00-\x08\x0b-\x1f\x7f]*+"
# Without line breaks and tabs: in an attribute the parser makes blanks of them.
_VALUE = r'[^"<>&\x00-\x1f\x7f]*+'
_TOLD = rf'[^"<>&\x00-\x1f\x7f]{{1,{UNITS_CHARS_MAX}}}+'
_NAMESPACE = rf'[^"<>&\x00-\x20\x7f]{{1,{NAMESPACE_CHARS_MAX}}}+'
# Between elements and between the parts of a tag there is no text, so \r is as good as any blank.
_SPACE = r"[ \t\r\n]*+"
_GAP = r"[ \t\r\n]++"
# Says what holds without it. Another version or encoding may change how the rest is read.
_DECLARATION = rf'<\?xml version="1\.0"(?: encoding="(?:UTF-8|utf-8)")?\?>{_SPACE}'


def _fields(group: str) -> str:
    """The pattern for any number of fields that are not the time stamp.

    The repetition is not possessive, which Python before 3.11.5 matches wrongly around groups. It
    costs nothing: what follows it never begins as a field does, so there is one way to match.
    """
    return (
        rf"(?:{_SPACE}<(?!TimeStamp[ >])(?P<{group}>{_NAME})"
        rf'(?: units="{_TOLD}")?(?: accuracy="{_TOLD}")?>{_TEXT}</(?P={group})>)*'
    )


_CONTENT = (
    rf'<(?P<name>{_NAME})(?:{_GAP}xmlns="(?P<namespace>{_NAMESPACE})")?>'
    rf"(?P<before>{_fields('first')})"
    rf"{_SPACE}<TimeStamp>(?P<time>{PLAIN_STAMP}{CLOCK})</TimeStamp>"
    rf"(?P<after>{_fields('second')}){_SPACE}</(?P=name)>"
)
_CONTEXT = (
    rf'<Context xmlns="{EXTENSION}" seq="(?P<seq>[0-9]{{1,18}})" id="(?P<event>{_VALUE})"'
    rf' source="(?P<source>{_VALUE})" topic="(?P<topic>{_VALUE})"/>'
)
_MESSAGE = re.compile(
    rf'(?:{_DECLARATION})?<Event{_GAP}xmlns="{re.escape(PROTOCOL)}"'
    rf'{_GAP}subscriptionID="(?P<id>{_ID})"(?:{_GAP}requestID="(?P<request>{_ID})")?>'
    rf"{_SPACE}(?P<content>{_CONTENT}){_SPACE}(?:{_CONTEXT})?{_SPACE}</Event>{_SPACE}"
)
_MESSAGE_BEGINS = (b"<Event", b"<?xml ")
_EVENT = re.compile(_CONTENT)

# A field that is known to be one: its name, units, accuracy, and what its text is. Numbers that
# need a closer look are left to `typed`.
_FIELD = re.compile(
    r'<([^ />]++)(?: units="([^"]++)")?(?: accuracy="([^"]++)")?>'
    r"(?:(-?(?:0|[1-9][0-9]{0,30})\.[0-9]{1,40})|(-?(?:0|[1-9][0-9]{0,17}))|([^<]*+))</"
)


class Routed(msgspec.Struct, frozen=True):
    """An event message of which only the address was read; the event is kept as it was sent, but
    for the paper's misspellings."""

    subscription_id: str
    name: EventName
    content: bytes
    request_id: str | None = None


def route(data: bytes) -> Routed | None:
    """Name and id of a plain event message, known to be well-formed; None if it is not plain."""
    found = _message_in(data)
    if found is None:
        return None
    subscription, request, local, namespace = found.group("id", "request", "name", "namespace")
    name = _name(local, namespace or PROTOCOL)
    if name is None:
        return None
    content = _as_sent(data, found, name)
    if content is None:
        content = event_element(_event(found, name)).encode()
    return Routed(subscription, name, content, request)


def read_plain(data: bytes) -> EventMessage | None:
    """The message; None if it is not plain."""
    found = _message_in(data)
    event = None if found is None else _named_event(found)
    return None if found is None or event is None else _message(found, event)


def read_plain_content(data: bytes) -> tuple[EventMessage, bytes] | None:
    """The message, and its event as one element, as in `Routed`; None if it is not plain."""
    found = _message_in(data)
    event = None if found is None else _named_event(found)
    if found is None or event is None:
        return None
    content = _as_sent(data, found, event.name) or event_element(event).encode()
    return _message(found, event), content


def name_of_plain(content: bytes) -> EventName | None:
    """The name of an event in an element that stands by itself; None if it is not plain, or not
    spelled as we would write it."""
    found = _match(_EVENT, content, ELEMENTS_MAX + 1)
    if found is None:
        return None
    local, namespace = found.group("name", "namespace")
    if namespace is None or not is_canonical(namespace, local):
        return None
    return _name(local, namespace)


def _message_in(data: bytes) -> re.Match[str] | None:
    return _match(_MESSAGE, data, ELEMENTS_MAX + 2) if data.startswith(_MESSAGE_BEGINS) else None


def _match(pattern: re.Pattern[str], data: bytes, end_tags_max: int) -> re.Match[str] | None:
    if not data.isascii() or len(data) > PLAIN_BYTES_MAX:
        return None
    if data.count(b"</") > end_tags_max:
        return None
    return pattern.fullmatch(data.decode("ascii"))


def _as_sent(data: bytes, found: re.Match[str], name: EventName) -> bytes | None:
    """The event's own bytes; None if the name has another spelling in them."""
    if found["namespace"] != name.namespace or found["name"] != name.local:
        return None
    return data[found.start("content") : found.end("content")]


def _message(found: re.Match[str], event: PerformanceEvent) -> EventMessage:
    subscription, request, seq = found.group("id", "request", "seq")
    context = None if seq is None else Context(int(seq), *found.group("event", "source", "topic"))
    return EventMessage(subscription, event, None, None, request, context)


def _named_event(found: re.Match[str]) -> PerformanceEvent | None:
    local, namespace = found.group("name", "namespace")
    name = _name(local, namespace or PROTOCOL)
    return None if name is None else _event(found, name)


def _event(found: re.Match[str], name: EventName) -> PerformanceEvent:
    before, time, after = found.group("before", "time", "after")
    elements = [
        Element(
            field,
            float(fraction) if fraction else int(whole) if whole else typed(text),
            units or None,
            accuracy or None,
        )
        for field, units, accuracy, fraction, whole, text in _FIELD.findall(before + after)
    ]
    return PerformanceEvent(name, time, tuple(elements))


@lru_cache(maxsize=_NAMES_KEPT)
def _name(local: str, namespace: str) -> EventName | None:
    """The event's name, if the parser would take the element for one, and its namespace."""
    if is_own(namespace, local) or not is_namespace(namespace):
        return None
    return event_name(namespace, local)
