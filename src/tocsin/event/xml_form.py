"""An event as one XML element: its own payload if that is XML, else the CloudEvents XML format.

CloudEvents 1.0 XML format, namespace `http://cloudevents.io/xmlformat/V1`: a child for each context
attribute, `data` last. That format has no place for some of what an event may hold: characters that
XML forbids, names that start with a digit, numbers with a fraction, typed attributes. Those travel,
exactly, as JSON in one more child, `exact` in a namespace of ours; a text with a forbidden
character is also shown in its usual place with U+FFFD for the character. Readers that do not know
`exact` lose only that. Data that is XML comes back as the same element, with the declarations of
the prefixes around it added.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import NoReturn

from lxml import etree

from tocsin.errors import BadEvent, BadXml
from tocsin.event.event import CONTEXT_NAMES, Event, Value, is_json
from tocsin.event.topic import valid_topic
from tocsin.event.value import Quantity, Scalar
from tocsin.safexml import after_prolog, parse, to_utf8

CLOUDEVENTS = "http://cloudevents.io/xmlformat/V1"
EXACT = "urn:tocsin:event:1"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
XSD = "http://www.w3.org/2001/XMLSchema"

# One event goes to many consumers in a row, and each asks for its element.
_PAYLOADS_KEPT = 8

_TYPES = {"source": "uriRef", "dataschema": "uri", "time": "timestamp"}
_HEAD = f'<ce:event xmlns:ce="{CLOUDEVENTS}" xmlns:xs="{XSD}" xmlns:xsi="{XSI}" specversion="1.0">'
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile("[a-z_][a-z0-9_]*")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;"})
_REMEDY = f"Send an event of the CloudEvents XML format, namespace {CLOUDEVENTS}."


def payload_xml(event: Event) -> bytes:
    """One XML element with every namespace it needs, in UTF-8, without a declaration."""
    data = event.data
    if data and is_xml(event.datacontenttype) and (element := payload_element(data)) is not None:
        return element
    return event_xml(event)


def is_xml(media_type: str | None) -> bool:
    """True if data of this type may be XML; also if none is given, as then the data shows it."""
    if media_type is None or media_type == "application/xml":
        return True
    essence = media_type.partition(";")[0].strip().lower()
    return essence.endswith(("/xml", "+xml"))


@lru_cache(maxsize=_PAYLOADS_KEPT)
def payload_element(data: bytes) -> bytes | None:
    """The one element of a document to the byte, or None if these bytes are no document."""
    if data.lstrip()[:1] not in (b"<", b"\xef", b"\xff", b"\xfe", b"\x00"):
        return None
    try:
        element = after_prolog(to_utf8(data)).rstrip()
        root = parse(element)
    except BadXml:
        return None
    if element.endswith((b"-->", b"?>")):
        # What follows the element is for nobody; where it starts is not worth finding.
        return etree.tostring(root, encoding="utf-8", with_tail=False)
    return element


def event_xml(event: Event) -> bytes:
    """The event in the CloudEvents XML format."""
    exact: dict[str, dict[str, object]] = {"context": {}, "extensions": {}, "attributes": {}}
    parts = [_HEAD]
    for name, text in _context(event):
        if FORBIDDEN.search(text):
            exact["context"][name] = text
        parts.append(_attribute(name, _TYPES.get(name, "string"), text))
    for name, value in event.extensions.items():
        if _fits(name, value):
            parts.append(_extension(name, value))
        else:
            exact["extensions"][name] = value
    for name, attribute in event.attributes.items():
        exact["attributes"][name] = _plain(attribute)
    exact_values = {kind: values for kind, values in exact.items() if values}
    if exact_values:
        parts.append(f'<exact xmlns="{EXACT}">{escaped(json.dumps(exact_values))}</exact>')
    if event.data is not None:
        parts.append(_data(event.data, event.datacontenttype))
    parts.append("</ce:event>")
    return "".join(parts).encode()


def event_from_xml(element: etree._Element) -> Event:
    """The event that an element of the CloudEvents XML format holds; BadEvent if it holds none."""
    if element.tag != f"{{{CLOUDEVENTS}}}event" or element.get("specversion") != "1.0":
        raise BadEvent("the element is not a CloudEvents 1.0 event", remedy=_REMEDY)
    texts: dict[str, str] = {}
    extensions: dict[str, Scalar] = {}
    exact: Mapping[str, Mapping[str, object]] = {}
    data: bytes | None = None
    for child in element.iterchildren("*"):
        tag = etree.QName(child)
        if child.tag == f"{{{EXACT}}}exact":
            exact = _read_exact(child)
        elif tag.namespace != CLOUDEVENTS:
            continue
        elif tag.localname == "data":
            data = _read_data(child)
        elif tag.localname in CONTEXT_NAMES:
            texts[tag.localname] = _text(child)
        else:
            extensions[tag.localname] = _read_extension(child)
    texts.update(_checked_texts(exact.get("context", {})))
    extensions.update(_checked_scalars(exact.get("extensions", {})))
    for name in ("id", "source", "type"):
        if not texts.get(name):
            raise BadEvent(f"the event has no {name}", remedy="Give it id, source and type.")
    return Event(
        id=texts["id"],
        source=texts["source"],
        type=texts["type"],
        topic=valid_topic(texts["topic"]) if texts.get("topic") else "",
        time=texts.get("time"),
        subject=texts.get("subject"),
        datacontenttype=texts.get("datacontenttype"),
        dataschema=texts.get("dataschema"),
        extensions=extensions,
        attributes=_checked_values(exact.get("attributes", {})),
        data=data,
    )


def _context(event: Event) -> list[tuple[str, str]]:
    every = (
        ("id", event.id),
        ("source", event.source),
        ("type", event.type),
        ("topic", event.topic or None),
        ("time", event.time),
        ("subject", event.subject),
        ("datacontenttype", event.datacontenttype),
        ("dataschema", event.dataschema),
    )
    return [(name, text) for name, text in every if text is not None]


def _fits(name: str, value: Scalar) -> bool:
    """True if the format has a place for it; it knows texts, truths and whole numbers."""
    if isinstance(value, float) or (isinstance(value, str) and FORBIDDEN.search(value)):
        return False
    return bool(_NAME.fullmatch(name)) and name not in CONTEXT_NAMES and name != "data"


def _extension(name: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return _attribute(name, "boolean", "true" if value else "false")
    if isinstance(value, int):
        return _attribute(name, "integer", str(value))
    return _attribute(name, "string", str(value))


def _attribute(name: str, kind: str, text: str) -> str:
    return f'<ce:{name} xsi:type="ce:{kind}">{escaped(text)}</ce:{name}>'


def _plain(value: Value) -> object:
    if isinstance(value, Quantity):
        return {"value": value.value, "unit": value.unit, "accuracy": value.accuracy}
    return value


def _data(data: bytes, media_type: str | None) -> str:
    if media_type is not None and is_xml(media_type) and payload_element(data) == data:
        return f'<ce:data xsi:type="xs:any">{data.decode()}</ce:data>'
    if is_json(media_type) or (media_type or "").startswith("text/"):
        try:
            text = data.decode()
        except UnicodeDecodeError:
            pass
        else:
            if not FORBIDDEN.search(text):
                return f'<ce:data xsi:type="xs:string">{escaped(text)}</ce:data>'
    return f'<ce:data xsi:type="xs:base64Binary">{b64encode(data).decode()}</ce:data>'


def escaped(text: str) -> str:
    """The text as content of an element or attribute; U+FFFD for what XML cannot hold."""
    return FORBIDDEN.sub("\ufffd", text).translate(_ESCAPES)


def _type(element: etree._Element) -> str:
    """The local name of its xsi:type; the drafts of the format differ in the prefix."""
    return (element.get(f"{{{XSI}}}type") or "string").rpartition(":")[2]


def _text(element: etree._Element) -> str:
    if len(element):
        raise BadEvent(f"{etree.QName(element).localname} holds elements", remedy=_REMEDY)
    return element.text or ""


def _read_extension(element: etree._Element) -> Scalar:
    text = _text(element)
    match _type(element):
        case "boolean" if text.strip() in ("true", "false", "1", "0"):
            return text.strip() in ("true", "1")
        case "integer" | "int" if re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", text):
            return int(text)
        case "boolean" | "integer" | "int":
            name = etree.QName(element).localname
            raise BadEvent(f"{name} does not have the type that it declares", remedy=_REMEDY)
    return text


def _read_data(element: etree._Element) -> bytes:
    kind = _type(element)
    if kind == "any":
        children = element.findall("*")
        if len(children) != 1:
            raise BadEvent("data of type any holds one element", remedy=_REMEDY)
        return etree.tostring(children[0], encoding="utf-8", with_tail=False)
    text = _text(element)
    if kind not in ("base64Binary", "binary"):
        return text.encode()
    try:
        return b64decode("".join(text.split()), validate=True)
    except ValueError:
        raise BadEvent("the data is not base64", remedy=_REMEDY) from None


def _read_exact(element: etree._Element) -> Mapping[str, Mapping[str, object]]:
    try:
        exact_values = json.loads(
            _text(element), object_pairs_hook=_members, parse_constant=_refused
        )
    except (ValueError, RecursionError):
        exact_values = None
    if not isinstance(exact_values, dict) or not all(
        isinstance(each, dict) for each in exact_values.values()
    ):
        raise BadEvent("the exact values are not the JSON that we write", remedy=_REMEDY)
    return exact_values


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name comes twice")
    return members


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _checked_texts(exact_values: Mapping[str, object]) -> dict[str, str]:
    return {
        name: value
        for name, value in exact_values.items()
        if name in CONTEXT_NAMES and isinstance(value, str)
    }


def _checked_scalars(exact_values: Mapping[str, object]) -> dict[str, Scalar]:
    return {
        name: value
        for name, value in exact_values.items()
        if isinstance(value, (bool, int, float, str))
    }


def _checked_values(exact_values: Mapping[str, object]) -> dict[str, Value]:
    found: dict[str, Value] = dict(_checked_scalars(exact_values))
    for name, value in exact_values.items():
        if isinstance(value, dict) and (quantity := Quantity.from_mapping(value)) is not None:
            found[name] = quantity
    return found
