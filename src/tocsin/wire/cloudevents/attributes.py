"""The context attributes: what each may hold, and the event made of them.

Every refusal names the attribute, shows its value and says what would be taken.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isfinite

from tocsin.errors import BadEvent, TooLarge
from tocsin.event.event import Event, context, is_json
from tocsin.event.instant import is_date
from tocsin.event.topic import valid_topic
from tocsin.event.value import Quantity, Scalar
from tocsin.wire.cloudevents import typed
from tocsin.wire.cloudevents.json_checks import check_json
from tocsin.wire.cloudevents.limits import (
    ATTRIBUTE_NAME_CHARS_MAX,
    INT64_MAX,
    MEDIA_TYPE_CHARS_MAX,
    Limits,
)

_CACHED_NAMES_MAX = 4_096
_CACHED_TYPES_MAX = 256
_CACHED_MINUTES_MAX = 256
_SHOWN_MAX = 60

# CloudEvents 1.0, type system: no control characters, no noncharacters, no lone surrogates.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
    + "]"
)
_NAME = re.compile(f"[a-z0-9]{{1,{ATTRIBUTE_NAME_CHARS_MAX}}}")
_SPACE = re.compile(r"\s")
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:\s*;(?:[ -~]*[!-~])?)?")
_MINUTE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]")
_WITHIN_MINUTE = re.compile(
    r":(?:[0-5][0-9]|60)(?:\.[0-9]{1,64})?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_MINUTE_CHARS = len("2024-05-01T12:00")
_WHOLE_SECONDS = frozenset(f":{second:02}Z" for second in range(61))


def refused(name: str, value: object, problem: str, remedy: str) -> BadEvent:
    """The error for one attribute, its value cut to a line."""
    text = value if isinstance(value, str) else str(value)
    shown = repr(text[:_SHOWN_MAX]) + ("..." if len(text) > _SHOWN_MAX else "")
    return BadEvent(f"attribute {name}: {shown} {problem}", remedy=remedy)


def event_of(given: dict[str, Scalar], data: bytes | None, limits: Limits) -> Event:
    """The event with these attributes, all of them checked. Takes `given` apart."""
    if len(given) > limits.attributes_max:
        raise BadEvent(
            f"the event has {len(given)} attributes",
            remedy=f"Send at most {limits.attributes_max}; put the rest into the data.",
        )
    for name, value in given.items():
        check_name(name)
        check_value(name, value, limits)
    if given.pop("specversion", None) != "1.0":
        raise BadEvent("attribute specversion is not '1.0'", remedy='Send "specversion": "1.0".')
    event_id = _required(given, "id")
    source = _required(given, "source")
    kind = _required(given, "type")
    check_reference("source", source)
    if (time := _optional(given, "time")) is not None:
        check_time(time)
    if (media_type := _optional(given, "datacontenttype")) is not None:
        check_media_type(media_type)
    if (schema := _optional(given, "dataschema")) is not None:
        check_reference("dataschema", schema)
    subject = _optional(given, "subject")
    topic = _optional(given, "topic")
    written = given.pop(typed.MEMBER, None)
    attributes, data = ({}, data) if written is None else typed.read(written, data)
    return Event(
        id=event_id,
        source=source,
        type=kind,
        topic="" if topic is None else valid_topic(topic),
        time=time,
        subject=subject,
        datacontenttype=media_type,
        dataschema=schema,
        extensions=given,
        attributes=attributes,
        data=data,
    )


def check_event(event: Event, limits: Limits) -> None:
    """Hold an event from another protocol to what is asked of every event: some consumer gets it
    in headers, and the log must be able to keep it."""
    if event.data is not None:
        if len(event.data) > limits.event_bytes_max:
            raise too_long(len(event.data), limits)
        if is_json(event.datacontenttype):
            check_json(event.data)
    if event.extensions:
        _check_with_extensions(event, limits)
    else:
        _check_context(event, limits)
    for name, value in event.attributes.items():
        check_value(name, value.value if isinstance(value, Quantity) else value, limits)


def check_sent(event: Event, limits: Limits) -> None:
    """The same for an event whose type, topic and subject our protocols made: of those nothing is
    asked again."""
    if event.data is not None and len(event.data) > limits.event_bytes_max:
        raise too_long(len(event.data), limits)
    check_value("id", event.id, limits)
    _check_source(event.source, limits)
    if event.time is not None:
        check_time(event.time)


@lru_cache(maxsize=_CACHED_NAMES_MAX)
def _check_source(source: str, limits: Limits) -> None:
    check_value("source", source, limits)
    check_reference("source", source)


def _check_context(event: Event, limits: Limits) -> None:
    """What `event_of` asks of the context attributes, without making the event again."""
    for name, text in (("id", event.id), ("source", event.source), ("type", event.type)):
        if not text:
            raise refused(
                name, text, "is not a string", f"Send {name} as a string that is not empty."
            )
        check_value(name, text, limits)
    check_reference("source", event.source)
    if event.topic:
        check_value("topic", event.topic, limits)
        valid_topic(event.topic)
    if event.subject is not None:
        check_value("subject", event.subject, limits)
    if event.time is not None:
        check_time(event.time)
    if event.datacontenttype is not None:
        check_value("datacontenttype", event.datacontenttype, limits)
        check_media_type(event.datacontenttype)
    if event.dataschema is not None:
        check_value("dataschema", event.dataschema, limits)
        check_reference("dataschema", event.dataschema)


def _check_with_extensions(event: Event, limits: Limits) -> None:
    given: dict[str, Scalar] = {
        name: value for name, value in context(event).items() if isinstance(value, str)
    }
    if reserved := given.keys() & event.extensions.keys():
        raise BadEvent(
            f"{min(reserved)} is given twice", remedy="Give an extension a name of its own."
        )
    event_of({**event.extensions, **given, "specversion": "1.0"}, None, limits)


def too_long(size: int, limits: Limits) -> TooLarge:
    return TooLarge(
        f"the event has {size} bytes",
        remedy=f"Send at most {limits.event_bytes_max}, or raise the limit on events.",
    )


def _required(given: dict[str, Scalar], name: str) -> str:
    value = given.pop(name, None)
    if value is None:
        raise BadEvent(
            f"attribute {name} is missing",
            remedy="Every event needs id, source, type and specversion.",
        )
    if not isinstance(value, str) or not value:
        raise refused(name, value, "is not a string", f"Send {name} as a string that is not empty.")
    return value


def _optional(given: dict[str, Scalar], name: str) -> str | None:
    value = given.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise refused(name, value, "is not a string", f"Send {name} as a string, or leave it out.")
    return value


@lru_cache(maxsize=_CACHED_NAMES_MAX)
def check_name(name: str) -> None:
    """Refuse a name that some protocol binding could not carry."""
    if not _NAME.fullmatch(name) or name == "data":
        raise BadEvent(
            f"{name[:_SHOWN_MAX]!r} cannot be the name of an attribute",
            remedy=f"Use a to z and 0 to 9, at most {ATTRIBUTE_NAME_CHARS_MAX} of them, "
            "and not the name data.",
        )


def check_value(name: str, value: Scalar, limits: Limits) -> None:
    """Refuse text that CloudEvents forbids, text that is too long, and numbers out of range."""
    if isinstance(value, str):
        if len(value) > limits.attribute_text_max and name != typed.MEMBER:
            raise refused(
                name,
                value,
                f"has {len(value)} characters",
                f"Send at most {limits.attribute_text_max}; longer text belongs in the data.",
            )
        if not value.isprintable() and (found := _FORBIDDEN.search(value)):
            raise refused(
                name,
                value,
                f"has the character U+{ord(found[0]):04X}",
                "Leave out control characters, noncharacters and lone surrogates.",
            )
    elif isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise refused(name, value, "does not fit into 64 bits", "Send it as a string.")
    elif isinstance(value, float) and not isfinite(value):
        raise refused(name, value, "is not a finite number", "Leave the attribute out.")


def check_reference(name: str, text: str) -> None:
    """Refuse what cannot be a URI reference. Spaces are what people send."""
    if " " in text or (not text.isprintable() and _SPACE.search(text)):
        raise refused(
            name, text, "has a space in it", f"Send {name} as a URI reference, spaces as %20."
        )
    if not text:
        raise refused(name, text, "is empty", f"Send {name} as a URI reference, or leave it out.")


def check_time(text: str) -> None:
    """Refuse what is not an RFC 3339 timestamp. A leap second is one."""
    if not is_time(text):
        raise refused(
            "time", text, "is not an RFC 3339 time", "Send it as in 2024-05-01T12:00:00Z or +02:00."
        )


def is_time(text: str) -> bool:
    """True for an RFC 3339 timestamp. Events come in bursts, so that their minute is known."""
    rest = text[_MINUTE_CHARS:]
    if rest not in _WHOLE_SECONDS and _WITHIN_MINUTE.fullmatch(rest) is None:
        return False
    return _is_minute(text[:_MINUTE_CHARS])


@lru_cache(maxsize=_CACHED_MINUTES_MAX)
def _is_minute(text: str) -> bool:
    if _MINUTE.fullmatch(text) is None:
        return False
    return is_date(int(text[:4]), int(text[5:7]), int(text[8:10]))


@lru_cache(maxsize=_CACHED_TYPES_MAX)
def check_media_type(text: str) -> None:
    """Refuse what could not stand in a Content-Type header."""
    if len(text) > MEDIA_TYPE_CHARS_MAX or not _MEDIA_TYPE.fullmatch(text):
        raise refused(
            "datacontenttype", text, "is not a media type", "Send one such as application/json."
        )
