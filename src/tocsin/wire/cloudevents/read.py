"""Bytes -> events: structured, batched and binary, by the content type."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache

import msgspec

from tocsin.errors import BadEvent, BadMediaType, TocsinError, TooLarge
from tocsin.event.event import Event, is_json
from tocsin.event.value import Scalar
from tocsin.wire.cloudevents import percent, typed
from tocsin.wire.cloudevents.attributes import (
    check_name,
    check_value,
    event_of,
    refused,
    too_long,
)
from tocsin.wire.cloudevents.fast_read import (
    Members,
    read_batch,
    read_one,
    read_usual,
    usual_event,
    usual_events,
)
from tocsin.wire.cloudevents.json_checks import check_batch, check_json, is_too_deep
from tocsin.wire.cloudevents.limits import JSON_DEPTH_MAX, Limits

_CACHED_TYPES_MAX = 256
_HEADER_PREFIX = "ce-"
_EXAMPLE = (
    "curl URL -H 'Content-Type: application/json' -H 'ce-specversion: 1.0' -H 'ce-id: 1' "
    "-H 'ce-source: /me' -H 'ce-type: test' -d '{\"load5\": 1.5}'"
)


class Mode(Enum):
    """How a request carries events."""

    STRUCTURED = auto()
    BATCH = auto()
    BINARY = auto()


_MODES = {
    "application/cloudevents+json": Mode.STRUCTURED,
    "application/cloudevents-batch+json": Mode.BATCH,
}

_KNOWN_NAMES = frozenset(Members.__struct_fields__)
_LONG_WAY_NAMES = frozenset({"data_base64", typed.MEMBER})

_read_known = msgspec.json.Decoder(Members).decode
_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_SCALARS: msgspec.json.Decoder[Scalar | None] = msgspec.json.Decoder(
    bool | int | float | str | None
)
_read_scalar = _SCALARS.decode
_read_text = msgspec.json.Decoder(str).decode


def read_events(
    content_type: str, headers: Mapping[str, str], body: bytes, limits: Limits
) -> list[Event]:
    """Every event of one request, in order; an error if any of them is bad.

    The names of `headers` are lower-case; they are looked at in binary mode only.
    """
    mode = _mode_of(content_type)
    if mode is Mode.BATCH:
        return _batch(body, limits)
    if len(body) > limits.event_bytes_max:
        raise too_long(len(body), limits)
    if mode is Mode.STRUCTURED:
        events = usual_events(read_one, body, limits)
        if events is not None:
            return events
        check_json(body)
        return [_structured(body, limits)]
    return [_binary(content_type, headers, body, limits)]


@lru_cache(maxsize=_CACHED_TYPES_MAX)
def _mode_of(content_type: str) -> Mode:
    essence, _, parameters = content_type.lower().partition(";")
    essence = essence.strip()
    if not essence.startswith("application/cloudevents"):
        return Mode.BINARY
    if essence not in _MODES:
        raise BadMediaType(
            f"content type {essence[:80]!r} is a CloudEvents format that is not supported",
            remedy=f"Send {' or '.join(_MODES)}, or the binary mode.",
        )
    name, _, value = parameters.partition("=")
    if parameters.strip() and (name.strip(), value.strip().strip('"')) != ("charset", "utf-8"):
        raise BadMediaType(
            f"content type has the parameter {parameters.strip()[:80]!r}",
            remedy="Send the events in UTF-8, with charset=utf-8 or without a parameter.",
        )
    return _MODES[essence]


def _structured(body: bytes | msgspec.Raw, limits: Limits) -> Event:
    """One JSON object."""
    try:
        event = usual_event(read_usual(body), limits)
        return _unusual(body, limits) if event is None else event
    except msgspec.ValidationError:
        return _with_extensions(body, limits)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None


def _with_extensions(body: bytes | msgspec.Raw, limits: Limits) -> Event:
    """One JSON object that has more members than CloudEvents names, or wrong ones."""
    try:
        known = _read_known(body)
        extensions = _extensions(_read_members(body))
    except msgspec.ValidationError:
        return _unusual(body, limits)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None
    event = None if _take_the_long_way(extensions, limits) else usual_event(known, limits)
    if event is None:
        return _unusual(body, limits)
    return msgspec.structs.replace(event, extensions=extensions)


def _take_the_long_way(extensions: Mapping[str, Scalar], limits: Limits) -> bool:
    """Check the extensions; true if there is more to do about them than to keep them."""
    for name, value in extensions.items():
        if name in _LONG_WAY_NAMES:
            return True
        check_name(name)
        check_value(name, value, limits)
    return len(extensions) + len(_KNOWN_NAMES) > limits.attributes_max


def _extensions(members: Mapping[str, msgspec.Raw]) -> dict[str, Scalar]:
    return {
        name: value
        for name, raw in members.items()
        if name not in _KNOWN_NAMES and (value := _scalar(name, raw)) is not None
    }


def _unusual(body: bytes | msgspec.Raw, limits: Limits) -> Event:
    """One JSON object, member by member: extensions, base64, and whatever must be refused."""
    try:
        members = _read_members(body)
        data, encoded = members.pop("data", None), members.pop("data_base64", None)
        given = {
            name: value
            for name, raw in members.items()
            if (value := _scalar(name, raw)) is not None
        }
    except msgspec.ValidationError:
        raise BadEvent(
            "the event is not a JSON object",
            remedy='Send one as in {"specversion": "1.0", "id": "1", "source": "/me", '
            '"type": "test"}; several go as an array, as application/cloudevents-batch+json.',
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None
    if encoded is not None and bytes(encoded) != b"null":
        if data is not None:
            raise BadEvent("the event has both data and data_base64", remedy="Send one of them.")
        decoded = _from_base64(encoded)
        if is_json(_media_type(given)):  # then it is shown as JSON
            check_json(decoded)
        return event_of(given, decoded, limits)
    payload = None if data is None else _payload(data, _media_type(given))
    return event_of(given, payload, limits)


def _media_type(given: Mapping[str, Scalar]) -> str | None:
    declared = given.get("datacontenttype")
    return declared if isinstance(declared, str) else None


def _scalar(name: str, raw: msgspec.Raw) -> Scalar | None:
    """The value of an attribute; null counts as absent (JSON format, 2.2)."""
    try:
        return _read_scalar(raw)
    except msgspec.ValidationError:
        raise refused(
            name,
            bytes(raw).decode(errors="replace"),
            "is not a plain value",
            "An attribute is a string, a number, true or false; the rest belongs in the data.",
        ) from None


def _payload(raw: msgspec.Raw, media_type: str | None) -> bytes | None:
    """The data as it was sent: JSON to the byte, a text of another type as UTF-8."""
    data = bytes(raw)
    if not data:
        return None
    if not data.isascii():
        _check_utf8(data)
    if is_too_deep(data):
        raise _malformed(RecursionError())
    if is_json(media_type):
        return data
    if data[:1] == b'"':
        return _text(raw).encode()
    return None if data == b"null" else data


def _text(raw: msgspec.Raw) -> str:
    try:
        return _read_text(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _malformed(error) from None


def _check_utf8(data: bytes) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise _malformed(error) from None


def _from_base64(raw: msgspec.Raw) -> bytes:
    try:
        return binascii.a2b_base64(_text(raw), strict_mode=True)
    except (BadEvent, ValueError):
        raise BadEvent(
            "data_base64 is not base64 text",
            remedy="Encode the payload with the standard alphabet, padded, without line breaks.",
        ) from None


def _batch(body: bytes, limits: Limits) -> list[Event]:
    if len(body) <= limits.event_bytes_max:  # else one of them may be too long, and is looked for
        events = usual_events(read_batch, body, limits)
        if events is not None:
            return events
    check_batch(body, limits)
    try:
        elements = _read_elements(body)
    except msgspec.ValidationError:
        raise BadEvent(
            "the batch is not a JSON array",
            remedy="Send [event, event, ...], or one event as application/cloudevents+json.",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(error) from None
    if len(elements) > limits.batch_events_max:
        raise TooLarge(
            f"the batch has {len(elements)} events",
            remedy=f"Send at most {limits.batch_events_max} in one request.",
        )
    return [_element(index, raw, limits) for index, raw in enumerate(elements)]


def _element(index: int, raw: msgspec.Raw, limits: Limits) -> Event:
    try:
        size = len(memoryview(raw))
        if size > limits.event_bytes_max:
            raise too_long(size, limits)
        return _structured(raw, limits)
    except TocsinError as error:
        raise type(error)(
            f"event {index} of the batch (counted from 0): {error.problem}", remedy=error.remedy
        ) from None


def _binary(content_type: str, headers: Mapping[str, str], body: bytes, limits: Limits) -> Event:
    given: dict[str, Scalar] = {}
    for header, value in headers.items():
        if header.startswith(_HEADER_PREFIX):
            name = header[len(_HEADER_PREFIX) :]
            try:
                given[name] = percent.decoded(value)
            except UnicodeDecodeError:
                raise refused(
                    name, value, "is not UTF-8", "Percent-encode the UTF-8 bytes, as in %C3%A9."
                ) from None
    if not given:
        raise BadEvent(
            "the request has no ce- headers, and its content type is not one of CloudEvents",
            remedy=f"Try, with the same URL: {_EXAMPLE}",
        )
    declared = given.setdefault("datacontenttype", content_type)
    if declared != content_type:
        raise refused(
            "datacontenttype",
            declared,
            "is in a ce- header and differs from Content-Type",
            "Leave the ce-datacontenttype header out.",
        )
    if not content_type:
        del given["datacontenttype"]
    if body and is_json(content_type or None):
        check_json(body)
    return event_of(given, body or None, limits)


def _malformed(error: Exception) -> BadEvent:
    if isinstance(error, RecursionError):
        return BadEvent(
            "the JSON nests too deeply",
            remedy=f"Nest at most {JSON_DEPTH_MAX} arrays and objects.",
        )
    if isinstance(error, UnicodeDecodeError):
        return BadEvent("the JSON is not UTF-8", remedy="Send the text encoded as UTF-8.")
    return BadEvent(
        f"the event cannot be read: {error}",
        remedy="Check the JSON at that byte, for instance with python -m json.tool.",
    )
