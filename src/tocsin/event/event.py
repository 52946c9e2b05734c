"""Event: the one form of an event, between all endpoints and all formats."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import msgspec

from tocsin.event.json_reader import read_json
from tocsin.event.value import Quantity, Scalar

Value = Scalar | Quantity

CONTEXT_NAMES = frozenset(
    {"id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "topic"}
)


class Event(msgspec.Struct, frozen=True, array_like=True, omit_defaults=False):
    """The CloudEvents 1.0 attributes, a topic, typed attributes, and the payload as it came.

    `topic` is a valid topic path or empty. `time` is the RFC 3339 text that was published.
    `extensions` are the CloudEvents extension attributes other than `topic`; `attributes` are typed
    values of protocols other than CloudEvents (units, accuracy). `data` is kept to the byte
    and parsed only when a filter asks for what is in it.

    The order of the fields is the stored form: add new ones at the end, with a default.
    """

    id: str
    source: str
    type: str
    topic: str = ""
    time: str | None = None
    subject: str | None = None
    datacontenttype: str | None = None
    dataschema: str | None = None
    extensions: dict[str, Scalar] = {}
    attributes: dict[str, Value] = {}
    data: bytes | None = None


def is_json(media_type: str | None) -> bool:
    """True if data of this declared type is JSON. CloudEvents: no type at all means JSON."""
    if media_type is None or media_type == "application/json":
        return True
    essence = media_type.partition(";")[0].strip().lower()
    return essence.endswith(("/json", "+json"))


READ_WHOLE_BYTES_MAX = 8 << 10  # of a larger object, only the members that can be compared

_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_member = msgspec.json.Decoder().decode


def context(event: Event) -> dict[str, Value]:
    """The context attributes that are set: what a filter sees without opening the payload."""
    seen: dict[str, Value] = {"id": event.id, "source": event.source, "type": event.type}
    if event.topic:
        seen["topic"] = event.topic
    if event.subject is not None:
        seen["subject"] = event.subject
    if event.time is not None:
        seen["time"] = event.time
    if event.datacontenttype is not None:
        seen["datacontenttype"] = event.datacontenttype
    if event.dataschema is not None:
        seen["dataschema"] = event.dataschema
    return seen


def visible(event: Event) -> Mapping[str, Value]:
    """What content filters see, by name.

    Context attributes win over extensions, extensions over typed attributes, and those over the
    top-level scalar (or value-with-unit) members of a JSON object, or the elements of an XML
    document, sent as data. A protocol that brought typed attributes has read the document already.
    """
    seen = content(event)
    seen.update(context(event))
    return seen


def content(event: Event) -> dict[str, Value]:
    """The same without the context attributes."""
    seen = _members(event)
    if event.attributes:
        seen.update(event.attributes)
    if event.extensions:
        seen.update(event.extensions)
    return seen


def _members(event: Event) -> dict[str, Value]:
    """The values in a payload that a filter can compare; none if it is neither JSON nor XML."""
    data = event.data
    if not data:
        return {}
    if not is_json(event.datacontenttype):
        return {} if event.attributes else _xml_members(data, event.datacontenttype)
    if data.lstrip()[:1] != b"{":
        return {}
    try:
        if len(data) <= READ_WHOLE_BYTES_MAX:
            whole = read_json(data)
            return {
                name: value for name, member in whole.items() if (value := _fit(member)) is not None
            }
        raw = _read_object(data)
        return {
            name: value
            for name, text in raw.items()
            if (value := _comparable(memoryview(text))) is not None
        }
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _xml_members(data: bytes, media_type: str | None) -> dict[str, Value]:
    essence = (media_type or "").partition(";")[0].strip().lower()
    if not essence.endswith(("/xml", "+xml")):
        return {}
    from tocsin.event.xml_members import xml_members  # most programs never meet XML

    return {**xml_members(data)}


def _comparable(text: memoryview) -> Value | None:
    first = bytes(text[:1])
    if first == b"[" or first == b"n":
        return None
    if first in b"-0123456789":
        return _number(bytes(text))
    return _fit(read_json(bytes(text)) if first == b"{" else _read_member(text))


def _number(text: bytes) -> Value | None:
    if b"e" not in text and b"E" not in text:
        return _fit(_read_member(text))
    value = float(text)  # in a time that its length bounds, unlike msgspec
    return value if isfinite(value) else None


def _fit(value: object) -> Value | None:
    if isinstance(value, (str, bool, int, float)):
        return value
    return Quantity.from_mapping(value) if isinstance(value, dict) else None
