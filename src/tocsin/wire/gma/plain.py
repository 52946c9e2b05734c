"""Event messages in the plain form, which nearly all are in: read by patterns, without a tree.

The patterns fit only what an XML parser would read the same: ASCII, the protocol's namespace and
the event's as defaults, flat elements with at most units and accuracy, one usual time stamp, no
references, comments or sections. Whatever they do not fit is read by the parser (`read`). A test
holds the two equal.
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
    is_canonical,
    is_own,
)
from tocsin.wire.gma.stamp import PLAIN_STAMP
from tocsin.wire.gma.values import typed

ELEMENTS_MAX = 1_000  # of one event, inner ones and its time included
ID_CHARS_MAX = 256
PLAIN_BYTES_MAX = 1 << 20  # the parser has limits on texts, of 10 MB; this is well below

_NAMES_KEPT = 4_096

_NAME = f"[A-Za-z_][A-Za-z0-9_.-]{{0,{NAME_CHARS_MAX - 1}}}+"
_ID = rf'[^"<>&\x00-\x20\x7f]{{1,{ID_CHARS_MAX}}}+'
_TEXT = r"[^<>&\x00-\x08\x0b-\x1f\x7f]*+"
_VALUE = r'[^"<>&\x00-\x1f\x7f]*+'
_TOLD = rf'[^"<>&\x00-\x1f\x7f]{{1,{UNITS_CHARS_MAX}}}+'
_NAMESPACE = rf'[^"<>&\x00-\x20\x7f]{{1,{NAMESPACE_CHARS_MAX}}}+'
_SPACE = r"[ \t\n]*+"


def _fields(group: str) -> str:
    """The pattern for any number of fields that are not the time stamp."""
    return (
        rf"(?:{_SPACE}<(?!TimeStamp[ >])(?P<{group}>{_NAME})"
        rf'(?: units="{_TOLD}")?(?: accuracy="{_TOLD}")?>{_TEXT}</(?P={group})>)*+'
    )


_CONTENT = (
    rf'<(?P<name>{_NAME}) xmlns="(?P<namespace>{_NAMESPACE})">'
    rf"(?P<before>{_fields('first')}){_SPACE}<TimeStamp>(?P<time>{PLAIN_STAMP})</TimeStamp>"
    rf"(?P<after>{_fields('second')}){_SPACE}</(?P=name)>"
)
_CONTEXT = (
    rf'<Context xmlns="{EXTENSION}" seq="(?P<seq>[0-9]{{1,18}})" id="(?P<event>{_VALUE})"'
    rf' source="(?P<source>{_VALUE})" topic="(?P<topic>{_VALUE})"/>'
)
_MESSAGE = re.compile(
    rf'<Event xmlns="{re.escape(PROTOCOL)}" subscriptionID="(?P<id>{_ID})"'
    rf'(?: requestID="(?P<request>{_ID})")?>{_SPACE}(?P<content>{_CONTENT})'
    rf"{_SPACE}(?:{_CONTEXT})?{_SPACE}</Event>{_SPACE}"
)
_EVENT = re.compile(_CONTENT)

# A field that is known to be one: its name, units, accuracy, and what its text is. Numbers that
# need a closer look are left to `typed`.
_FIELD = re.compile(
    r'<([^ />]++)(?: units="([^"]++)")?(?: accuracy="([^"]++)")?>'
    r"(?:(-?(?:0|[1-9][0-9]{0,30})\.[0-9]{1,40})|(-?(?:0|[1-9][0-9]{0,17}))|([^<]*+))</"
)


class Routed(msgspec.Struct, frozen=True):
    """An event message of which only the address was read; the event is kept as it was sent."""

    subscription_id: str
    name: EventName
    content: bytes
    request_id: str | None = None


def route(data: bytes) -> Routed | None:
    """Name and id of a plain event message, known to be well-formed; None if it is not plain."""
    found = _match(_MESSAGE, data, ELEMENTS_MAX + 2)
    if found is None:
        return None
    subscription, request, local, namespace = found.group("id", "request", "name", "namespace")
    name = _name(local, namespace)
    if name is None:
        return None
    return Routed(subscription, name, data[found.start("content") : found.end("content")], request)


def read_plain(data: bytes) -> tuple[EventMessage, bytes] | None:
    """The message, and the event as it was sent; None if it is not plain."""
    found = _match(_MESSAGE, data, ELEMENTS_MAX + 2)
    if found is None:
        return None
    subscription, request, seq = found.group("id", "request", "seq")
    event = _event(found)
    if event is None:
        return None
    context = None if seq is None else Context(int(seq), *found.group("event", "source", "topic"))
    message = EventMessage(subscription, event, None, None, request, context)
    return message, data[found.start("content") : found.end("content")]


def name_of_plain(content: bytes) -> EventName | None:
    """The name of an event in an element that stands by itself; None if it is not plain."""
    found = _match(_EVENT, content, ELEMENTS_MAX + 1)
    return None if found is None else _name(*found.group("name", "namespace"))


def _match(pattern: re.Pattern[str], data: bytes, end_tags_max: int) -> re.Match[str] | None:
    if not data.isascii() or len(data) > PLAIN_BYTES_MAX:
        return None
    if data.count(b"</") > end_tags_max:
        return None
    return pattern.fullmatch(data.decode("ascii"))


def _event(found: re.Match[str]) -> PerformanceEvent | None:
    local, namespace, before, time, after = found.group(
        "name", "namespace", "before", "time", "after"
    )
    name = _name(local, namespace)
    if name is None:
        return None
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
    """The name of an event, if the parser would read it as it stands."""
    is_name = is_canonical(namespace, local) and not is_own(namespace, local)
    return EventName(local, namespace) if is_name and is_namespace(namespace) else None
