"""Performance events and the broker's events: the mediation rules.

A performance event comes in as an XML payload, kept as it was sent, with its elements as typed
attributes beside it. What goes out is that payload again; any other event goes out under its own
name with an element for each of its values, and the time. Whatever goes out, `read` can read.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from math import isfinite
from typing import Any

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadEvent, BadTopic, TocsinError
from tocsin.event.event import Event, Value, is_json
from tocsin.event.instant import rfc3339
from tocsin.event.stored import Stored
from tocsin.event.topic import valid_topic
from tocsin.event.value import Quantity, Scalar
from tocsin.event.xml_form import FORBIDDEN, is_xml, payload_element
from tocsin.event.xml_name import escaped_name, name_uri
from tocsin.wire.cloudevents import percent, typed
from tocsin.wire.cloudevents.attributes import check_value
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.gma.messages import (
    UNITS_CHARS_MAX,
    Element,
    EventMessage,
    Parameters,
    PerformanceEvent,
)
from tocsin.wire.gma.names import (
    EVENTS,
    HOST_NAME,
    NAME_CHARS_MAX,
    TIME_STAMP,
    EventName,
    is_canonical,
    is_own,
    name_of,
)
from tocsin.wire.gma.plain import ELEMENTS_MAX, name_of_plain
from tocsin.wire.gma.read import read
from tocsin.wire.gma.stamp import read_stamp
from tocsin.wire.gma.values import INT64_MAX
from tocsin.wire.gma.write import event_element, event_message
from tocsin.wire.soap.envelope import split

XML_TYPE = "application/xml"
# Not in the namespace of our extensions: in a message, those are no events.
PRODUCER_ERROR = EventName("ProducerError", "urn:tocsin:gma:events:1")
TOPIC = "gma"  # performance events are filed under gma/NAME/HOST

# Beside the payload, which has all of them: some consumers get these in a header, and servers take
# lines of 8 KiB and little more than that in all.
ATTRIBUTES_MAX = 64
ATTRIBUTES_HEADER_BYTES_MAX = 4_096
HOST_CHARS_MAX = 253

_ENCODED_BYTES_MAX = 3  # of one character in a header
_MARKS_CHARS_MAX = 48  # around one value with its unit and accuracy
_NESTING_MAX = 16
_HOST = re.compile(rf"[\w.:-]{{1,{HOST_CHARS_MAX}}}")
_ROOT_NAME = re.compile(rb"<[^\s/>]+")
_LIMITS = Limits()


def to_event(event: PerformanceEvent, content: bytes, *, event_id: str, sender: str) -> Event:
    """The broker's event. `content` is the event's own element, `sender` whoever sent it."""
    attributes = _attributes(event.elements, content)
    host = _host(event)
    return Event(
        id=event_id,
        source=f"gma://{host or sender}",
        type=event.name.type,
        topic=_topic(event.name.local, host),
        time=read_stamp(event.time).time,
        subject=host or None,
        datacontenttype=XML_TYPE,
        attributes=attributes,
        data=content,
    )


def _host(event: PerformanceEvent) -> str:
    for element in event.elements:
        if element.name == HOST_NAME and isinstance(element.value, str):
            host = element.value.strip()
            return host if _HOST.fullmatch(host) else ""
    return ""


def topic_of(parameters: Parameters) -> str:
    """Where events that somebody offers with these parameters will be filed."""
    named = PerformanceEvent(parameters.name, "", parameters.elements)
    return _topic(parameters.name.local, _host(named))


def _topic(local: str, host: str) -> str:
    for path in (f"{TOPIC}/{local}/{host}", f"{TOPIC}/{local}"):
        try:
            return valid_topic(path)
        except BadTopic:
            continue
    return TOPIC


def _attributes(elements: tuple[Element, ...], content: bytes) -> dict[str, Value]:
    """The first value of each name that CloudEvents can hold, as many as there is room for."""
    found: dict[str, Value] = {}
    for name, element in _leaves(elements, ""):
        if name not in found and (value := _attribute(name, element)) is not None:
            found[name] = value
            if len(found) == ATTRIBUTES_MAX:
                break
    if _surely_fits(len(found), content):
        return found
    if len(typed.written(found)) * _ENCODED_BYTES_MAX <= ATTRIBUTES_HEADER_BYTES_MAX:
        return found
    room = ATTRIBUTES_HEADER_BYTES_MAX
    fitting: dict[str, Value] = {}
    for name, value in found.items():
        room -= len(percent.encoded(typed.written({name: value})))
        if room < 0:
            break
        fitting[name] = value
    return fitting


def _surely_fits(count: int, content: bytes) -> bool:
    """What stands in the elements is written again, and around each some marks: most events are so
    short that nobody has to write it to know that it fits."""
    if not content.isascii():
        return False
    longest = len(content) + count * _MARKS_CHARS_MAX
    return longest * _ENCODED_BYTES_MAX <= ATTRIBUTES_HEADER_BYTES_MAX


def _attribute(name: str, element: Element) -> Value | None:
    value = element.value
    if type(value) is float and element.units is None and element.accuracy is None:
        return value  # most are, and need no check
    assert not isinstance(value, tuple), "a leaf holds no elements"
    if isinstance(value, str) and not value.isprintable():
        value = value.strip()  # line breaks around it are how it was laid out
    try:
        check_value(name, value, _LIMITS)
    except BadEvent:
        return None
    if element.units is None and element.accuracy is None:
        return value
    return Quantity(value, element.units, element.accuracy)


def _leaves(elements: tuple[Element, ...], prefix: str) -> Iterator[tuple[str, Element]]:
    for element in elements:
        name = f"{prefix}{element.name}" if prefix else element.name
        if isinstance(element.value, tuple):
            yield from _leaves(element.value, f"{name}.")
        else:
            yield name, element


def producer_error(
    name: EventName, message: EventMessage, now_ns: int
) -> tuple[PerformanceEvent, bytes]:
    """What a producer sent in place of an event of that name, as an event, and its element."""
    texts = {"Error": message.error, "ErrorDetail": message.error_detail}
    elements = (
        Element("EventName", str(name)),
        *(Element(label, text) for label, text in texts.items() if text is not None),
    )
    event = PerformanceEvent(PRODUCER_ERROR, rfc3339(now_ns, 6), elements)
    return event, event_element(event).encode()


def performance_element(stored: Stored) -> bytes:
    """The event as the one element inside an Event message; made once for all its consumers."""
    content = stored.performance
    if content is None:
        content = stored.performance = content_of(stored.event, stored.received_ns)
    return content


def content_of(event: Event, received_ns: int) -> bytes:
    """The event as the one element that a consumer of performance events gets."""
    data = event.data
    if data and is_xml(event.datacontenttype):
        name = name_of_plain(data)
        if name is not None and name.type == event.type:
            return data
        payload = payload_element(data)
        for content in _with_payload(event, payload, received_ns) if payload else ():
            if _is_readable(content, event.type):
                return content
    return event_element(performance_event_of(event, received_ns)).encode()


def _with_payload(event: Event, payload: bytes, received_ns: int) -> Iterator[bytes]:
    """The payload as the event that it is, if that is what the type says; or else inside one."""
    root = safexml.parse(payload)
    has_default = None in root.nsmap
    time = _time(event, received_ns)
    if name_uri(split(root.tag)) == event.type:
        yield _alone(payload, has_default)
        stamp = etree.SubElement(root, f"{{{EVENTS}}}{TIME_STAMP}", nsmap={None: EVENTS})
        stamp.text = time
        yield _alone(etree.tostring(root, encoding="utf-8", with_tail=False), has_default)
    around = PerformanceEvent(name_of(event.type), time, tuple(_given(event)))
    opening, rest = event_element(around).encode().split(b">", 1)
    yield b"%b>%b%b" % (opening, _alone(payload, has_default), rest)


def _alone(element: bytes, has_default: bool) -> bytes:
    """The element as it can stand inside others: their default namespace is not for it."""
    if has_default:
        return element
    name = _ROOT_NAME.match(element)
    assert name is not None, "an element begins with its name"
    return b'%b xmlns=""%b' % (name[0], element[name.end() :])


def _is_readable(content: bytes, event_type: str) -> bool:
    """True if a consumer finds an event of this type in it."""
    try:
        message = read(event_message("1", content))
    except TocsinError:
        return False
    assert isinstance(message, EventMessage)
    return message.event is not None and message.event.name.type == event_type


def performance_event_of(event: Event, received_ns: int) -> PerformanceEvent:
    """The event under its own name, with an element for each value that it has."""
    elements = [each for each in _data(event) if each.name != TIME_STAMP]
    names = {each.name for each in elements}
    room = ELEMENTS_MAX - 1 - sum(map(_size, elements))  # but for the time
    elements += [each for each in _given(event) if each.name not in names][:room]
    return PerformanceEvent(name_of(event.type), _time(event, received_ns), tuple(elements))


def _given(event: Event) -> Iterator[Element]:
    """The values that came beside the payload."""
    for name, value in {**event.attributes, **event.extensions}.items():
        element = _element(name, value)
        if element.name != TIME_STAMP and len(element.name) <= NAME_CHARS_MAX:
            yield element


def name_of_event(event: Event) -> EventName:
    """What the event is called: as its payload is, if that is what its type says."""
    data = event.data
    if data and is_xml(event.datacontenttype):
        name = name_of_plain(data) or _name_of_payload(data)
        if name is not None and name.type == event.type:
            return name
    return name_of(event.type)


def _name_of_payload(data: bytes) -> EventName | None:
    payload = payload_element(data)
    if payload is None:
        return None
    namespace, local = split(safexml.parse(payload).tag)
    is_name = is_canonical(namespace, local) and not is_own(namespace, local)
    return EventName(local, namespace) if is_name else None


def _time(event: Event, received_ns: int) -> str:
    return rfc3339(received_ns, 9) if event.time is None else event.time


def _data(event: Event) -> Iterator[Element]:
    data = event.data
    if data is None:
        return
    if is_json(event.datacontenttype):
        members = _members(data)
        if members is not None:
            yield from members
            return
    if event.datacontenttype is not None:
        yield _element("DataContentType", event.datacontenttype)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if FORBIDDEN.search(text):
        yield Element("DataBase64", b64encode(data).decode())
    else:
        yield Element("Data", text)


def _members(data: bytes) -> list[Element] | None:
    """The members of a JSON object; None if it is none, or cannot be written as elements."""
    try:
        found = json.loads(data)
        if not isinstance(found, dict):
            return None
        found_by_name: dict[str, Element] = {}
        for name, value in found.items():
            for element in _of_json(name, value, 0):
                found_by_name.setdefault(element.name, element)
                if len(found_by_name) >= ELEMENTS_MAX:
                    return None
        return list(found_by_name.values())
    except (ValueError, RecursionError):
        return None


def _of_json(name: str, value: Any, depth: int) -> Iterator[Element]:
    """An event is a set of names and values: what is inside another is named with it."""
    if depth > _NESTING_MAX or len(escaped_name(name)) > NAME_CHARS_MAX:
        raise ValueError("its name is too deep or too long for an element")
    if isinstance(value, list):
        for number, each in enumerate(value, start=1):
            yield from _of_json(f"{name}.{number}", each, depth + 1)
    elif value == {}:
        yield _element(name, "")
    elif isinstance(value, dict) and Quantity.from_mapping(value) is None:
        for key, each in value.items():
            yield from _of_json(f"{name}.{key}", each, depth + 1)
    elif isinstance(value, dict):
        yield _element(name, Quantity(**value))
    elif value is not None:
        yield _element(name, value)


def _size(element: Element) -> int:
    value = element.value
    return 1 + (sum(map(_size, value)) if isinstance(value, tuple) else 0)


def _element(name: str, value: Value) -> Element:
    if isinstance(value, Quantity):
        texts = (_cut(value.unit), _cut(value.accuracy))
        return Element(escaped_name(name), _sendable(value.value), *texts)
    return Element(escaped_name(name), _sendable(value))


def _cut(text: str | None) -> str | None:
    return None if text is None else FORBIDDEN.sub("\ufffd", text[:UNITS_CHARS_MAX])


def _sendable(value: Scalar) -> Scalar:
    if isinstance(value, str):
        return FORBIDDEN.sub("\ufffd", value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if not -INT64_MAX - 1 <= value <= INT64_MAX and isinstance(value, int):
        return str(value)
    return value
