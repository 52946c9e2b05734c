"""Performance events and the broker's events: the mediation rules.

A performance event comes in as an XML payload, kept as it was sent, with its elements as typed
attributes beside it. What goes out is that payload again; any other event goes out under its own
name with an element for each of its values, and the time.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from lxml import etree

from tocsin import safexml
from tocsin.errors import BadTopic, BadXml
from tocsin.event.event import Event, Value, is_json
from tocsin.event.topic import valid_topic
from tocsin.event.value import Quantity, Scalar
from tocsin.event.xml_form import FORBIDDEN, is_xml, payload_element
from tocsin.event.xml_name import escaped_name, name_uri
from tocsin.wire.gma.messages import Element, PerformanceEvent
from tocsin.wire.gma.names import EVENTS, HOST_NAME, TIME_STAMP, EventName, event_name, name_of
from tocsin.wire.gma.plain import ELEMENTS_MAX
from tocsin.wire.gma.stamp import read_stamp
from tocsin.wire.gma.values import INT64_MAX
from tocsin.wire.gma.write import event_element
from tocsin.wire.soap.envelope import split

XML_TYPE = "application/xml"
TOPIC = "gma"  # performance events are filed under gma/NAME/HOST

# Beside the payload, which has all of them: consumers get these in a header.
ATTRIBUTES_MAX = 64
ATTRIBUTES_CHARS_MAX = 4_096
_NESTING_MAX = 16


def to_event(event: PerformanceEvent, content: bytes, *, event_id: str, sender: str) -> Event:
    """The broker's event. `content` is the event's own element, `sender` whoever sent it."""
    attributes = _attributes(event.elements)
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
            return host if host and all(c.isalnum() or c in ".-_:" for c in host[:254]) else ""
    return ""


def _topic(local: str, host: str) -> str:
    for path in (f"{TOPIC}/{local}/{host}", f"{TOPIC}/{local}"):
        try:
            return valid_topic(path)
        except BadTopic:
            continue
    return TOPIC


def _attributes(elements: tuple[Element, ...]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    room = ATTRIBUTES_CHARS_MAX
    for name, element in _leaves(elements, ""):
        value = element.value
        assert not isinstance(value, tuple), "a leaf holds no elements"
        told = element.units is not None or element.accuracy is not None
        room -= len(name) + len(str(value)) + len(element.units or "") + len(element.accuracy or "")
        if room < 0 or len(found) >= ATTRIBUTES_MAX:
            break
        found.setdefault(name, Quantity(value, element.units, element.accuracy) if told else value)
    return found


def _leaves(elements: tuple[Element, ...], prefix: str) -> Iterator[tuple[str, Element]]:
    for element in elements:
        name = f"{prefix}{element.name}"
        if isinstance(element.value, tuple):
            yield from _leaves(element.value, f"{name}.")
        else:
            yield name, element


def content_of(event: Event, received_ns: int) -> bytes:
    """The event as the one element that a consumer of performance events gets."""
    payload = payload_element(event.data) if event.data and is_xml(event.datacontenttype) else None
    if payload is None:
        return event_element(performance_event_of(event, received_ns)).encode()
    root = safexml.parse(payload)
    time = _time(event, received_ns)
    namespace, local = split(root.tag)
    if name_uri((namespace, local)) != event.type:
        return _wrapped(name_of(event.type), payload, time)
    if any(split(child.tag)[1] == TIME_STAMP for child in root):
        return payload
    stamp = etree.SubElement(root, f"{{{EVENTS}}}{TIME_STAMP}", nsmap={None: EVENTS})
    stamp.text = time
    return etree.tostring(root, encoding="utf-8", with_tail=False)


def _wrapped(name: EventName, payload: bytes, time: str) -> bytes:
    opening, closing = event_element(PerformanceEvent(name, time)).encode().split(b">", 1)
    return b"%b>%b%b" % (opening, payload, closing)


def performance_event_of(event: Event, received_ns: int) -> PerformanceEvent:
    """The event under its own name, with an element for each value that it has."""
    elements = list(_data(event))
    given = {element.name for element in elements}
    for name, value in (*event.attributes.items(), *event.extensions.items()):
        if escaped_name(name) not in given:
            elements.append(_element(name, value))
    taken = [each for each in elements if each.name != TIME_STAMP][:ELEMENTS_MAX]
    return PerformanceEvent(name_of(event.type), _time(event, received_ns), tuple(taken))


def name_of_event(event: Event) -> EventName:
    """What the event is called: as its payload is, if that is what its type says."""
    if event.data and event.type and is_xml(event.datacontenttype):
        try:
            payload = payload_element(event.data)
            if payload is not None:
                namespace, local = split(safexml.parse(payload).tag)
                if name_uri((namespace, local)) == event.type:
                    return event_name(namespace, local)
        except BadXml:
            pass
    return name_of(event.type)


def _time(event: Event, received_ns: int) -> str:
    if event.time is not None:
        return event.time
    moment = datetime.fromtimestamp(received_ns / 1e9, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


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
    """The members of a JSON object; None if it is none, or has too many, or too deep ones."""
    try:
        found = json.loads(data)
        if not isinstance(found, dict):
            return None
        elements = [each for name, value in found.items() for each in _of_json(name, value, 0)]
    except (ValueError, RecursionError):
        return None
    return elements if sum(map(_size, elements)) <= ELEMENTS_MAX else None


def _of_json(name: str, value: Any, depth: int) -> Iterator[Element]:
    if depth > _NESTING_MAX:
        raise ValueError("too deep to be told as elements")
    if isinstance(value, list):
        for each in value:
            yield from _of_json(name, each, depth + 1)
    elif isinstance(value, dict):
        quantity = Quantity.from_mapping(value)
        if quantity is not None:
            yield _element(name, quantity)
        else:
            inner = [part for key, each in value.items() for part in _of_json(key, each, depth + 1)]
            yield Element(escaped_name(name), tuple(inner) or "")
    elif value is not None:
        yield _element(name, value)


def _size(element: Element) -> int:
    value = element.value
    return 1 + (sum(map(_size, value)) if isinstance(value, tuple) else 0)


def _element(name: str, value: Value) -> Element:
    if isinstance(value, Quantity):
        units, accuracy = value.unit, value.accuracy
        return Element(
            escaped_name(name),
            _sendable(value.value),
            None if units is None else FORBIDDEN.sub("\ufffd", units),
            None if accuracy is None else FORBIDDEN.sub("\ufffd", accuracy),
        )
    return Element(escaped_name(name), _sendable(value))


def _sendable(value: Scalar) -> Scalar:
    if isinstance(value, str):
        return FORBIDDEN.sub("\ufffd", value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > INT64_MAX:
        return str(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
