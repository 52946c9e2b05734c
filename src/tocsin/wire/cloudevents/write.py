"""Events -> bytes: the JSON format, its batches, and the headers of the binary mode.

JSON data is written as it came when it is valid JSON; text and XML become a JSON string; everything
else is base64. What is made for a stored event is kept beside it, so a fan-out renders once.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable
from typing import Final

import msgspec

from tocsin.event.event import Event, is_json
from tocsin.event.stored import Stored
from tocsin.event.value import Scalar
from tocsin.wire.cloudevents import percent, typed
from tocsin.wire.cloudevents.json_checks import is_sound_json
from tocsin.wire.sse import sse_event
from tocsin.wire.websocket import text_frame

STRUCTURED_TYPE = "application/cloudevents+json"
BATCH_TYPE = "application/cloudevents-batch+json"

_encode = msgspec.json.Encoder().encode
_FIT_FOR_HEADER = re.compile(r"[!-~](?:[ -~]*[!-~])?")


def structured(event: Event) -> bytes:
    """The event in the JSON format. Line breaks in it, if any, are those of the payload."""
    members: dict[str, Scalar | msgspec.Raw] = {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
    }
    if event.topic:
        members["topic"] = event.topic
    if event.time is not None:
        members["time"] = event.time
    if event.subject is not None:
        members["subject"] = event.subject
    if event.datacontenttype is not None:
        members["datacontenttype"] = event.datacontenttype
    if event.dataschema is not None:
        members["dataschema"] = event.dataschema
    if event.extensions:
        members.update(event.extensions)
    if event.attributes:
        _put_typed(members, event)
    if event.data is not None:
        _put_data(members, event.data, event.datacontenttype)
    return _encode(members)


def _put_typed(members: dict[str, Scalar | msgspec.Raw], event: Event) -> None:
    text = typed.written(event.attributes)
    if event.data is None and is_json(event.datacontenttype):
        members[typed.MEMBER] = typed.IN_DATA
        members["data"] = msgspec.Raw(text)
    else:
        members[typed.MEMBER] = text


def _put_data(
    members: dict[str, Scalar | msgspec.Raw], data: bytes, media_type: str | None
) -> None:
    if is_json(media_type):
        if is_sound_json(data):
            members["data"] = msgspec.Raw(data)
            return
    elif _is_text(media_type or ""):
        try:
            members["data"] = data.decode()
            return
        except UnicodeDecodeError:
            pass  # in another charset: its bytes are what must be kept
    members["data_base64"] = binascii.b2a_base64(data, newline=False).decode()


def _is_text(media_type: str) -> bool:
    essence = media_type.partition(";")[0].strip().lower()
    return essence.startswith("text/") or essence.endswith(("/xml", "+xml"))


def batch(events: Iterable[Event | Stored]) -> bytes:
    """The events as one JSON array."""
    rendered = (structured_of(e) if isinstance(e, Stored) else structured(e) for e in events)
    return b"[" + b",".join(rendered) + b"]"


def structured_of(stored: Stored) -> bytes:
    """The stored event in the JSON format, made once."""
    if stored.structured is None:
        stored.structured = structured(stored.event)
    return stored.structured


def binary_of(stored: Stored) -> tuple[bytes, bytes]:
    """The header block and the body of the stored event, made once."""
    if stored.binary is None:
        stored.binary = binary_headers(stored.event), stored.event.data or b""
    return stored.binary


def binary_headers(event: Event) -> bytes:
    """The lines `ce-...: ...` and content-type, each with its CRLF. The body is the data."""
    lines = [
        "ce-specversion: 1.0",
        f"ce-id: {percent.encoded(event.id)}",
        f"ce-source: {percent.encoded(event.source)}",
        f"ce-type: {percent.encoded(event.type)}",
    ]
    if event.topic:
        lines.append(f"ce-topic: {percent.encoded(event.topic)}")
    if event.time is not None:
        lines.append(f"ce-time: {percent.encoded(event.time)}")
    if event.subject is not None:
        lines.append(f"ce-subject: {percent.encoded(event.subject)}")
    if event.dataschema is not None:
        lines.append(f"ce-dataschema: {percent.encoded(event.dataschema)}")
    for name, value in event.extensions.items():
        lines.append(f"ce-{percent.encoded(name)}: {percent.encoded(canonical_text(value))}")
    if event.attributes:
        lines.append(f"ce-{typed.MEMBER}: {percent.encoded(typed.written(event.attributes))}")
    media_type = _content_type(event)
    if media_type is not None:
        lines.append(f"content-type: {media_type}")
    lines.append("")
    return "\r\n".join(lines).encode()


def canonical_text(value: Scalar) -> str:
    """The value as CloudEvents writes it where there are only strings."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _content_type(event: Event) -> str | None:
    """What to declare. Data without a declared type counted as JSON, so that is said if it is."""
    declared = event.datacontenttype
    if declared is None:
        if event.data and is_sound_json(event.data):
            return "application/json"
        return None
    # An event that carries an event would be taken for the structured mode.
    if declared.lower().startswith("application/cloudevents"):
        return "application/json" if is_json(declared) else "application/octet-stream"
    return declared if _FIT_FOR_HEADER.fullmatch(declared) else "application/octet-stream"


SEQUENCE_ATTRIBUTE: Final = b"tocsinsequence"


def server_sent_event(stored: Stored) -> bytes:
    """With the sequence number as its id, from which a reader can resume."""
    return sse_event(structured_of(stored), id=stored.seq)


def socket_message(stored: Stored) -> bytes:
    """A text message of one frame. The protocol has no field for the sequence number, and without
    it nobody could resume, so it is added as an extension attribute, last: whatever the event
    itself has under that name, a JSON reader takes ours."""
    place = b',"%b":"%d"}' % (SEQUENCE_ATTRIBUTE, stored.seq)
    return text_frame(structured_of(stored)[:-1] + place)
