"""ConsumedEvent: an event as a program that consumes sees it."""

from __future__ import annotations

import json
from binascii import Error as Base64Error
from binascii import a2b_base64
from dataclasses import dataclass, field
from typing import Any

from tocsin.errors import BadEvent

_OWN = frozenset({"id", "source", "type", "topic", "time", "subject", "datacontenttype"})
_NOT_ATTRIBUTES = frozenset({"specversion", "data", "data_base64"})


@dataclass(frozen=True, slots=True)
class ConsumedEvent:
    """`data` is parsed JSON, text, or bytes; `raw` is the whole CloudEvent as it came.

    `seq` is the event's place in the broker's log; 0 where the transport does not say.
    """

    id: str
    source: str
    type: str
    topic: str = ""
    time: str | None = None
    subject: str | None = None
    content_type: str | None = None
    data: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)
    seq: int = 0
    raw: bytes = field(default=b"", repr=False)


def from_structured(raw: bytes, seq: int = 0) -> ConsumedEvent:
    """The event in a structured CloudEvent."""
    try:
        members = json.loads(raw)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        raise BadEvent(
            f"what came is not a CloudEvent: {raw[:80]!r}",
            remedy="Check that the address is that of a Tocsin broker.",
        )
    return from_members(members, raw, seq)


def from_members(members: dict[str, Any], raw: bytes, seq: int = 0) -> ConsumedEvent:
    """The event in a structured CloudEvent that is parsed already."""
    return ConsumedEvent(
        id=str(members.get("id", "")),
        source=str(members.get("source", "")),
        type=str(members.get("type", "")),
        topic=str(members.get("topic", "")),
        time=members.get("time"),
        subject=members.get("subject"),
        content_type=members.get("datacontenttype"),
        data=_data(members),
        attributes={
            name: value
            for name, value in members.items()
            if name not in _OWN and name not in _NOT_ATTRIBUTES
        },
        seq=seq,
        raw=raw,
    )


def _data(members: dict[str, Any]) -> Any:
    encoded = members.get("data_base64")
    if encoded is None:
        return members.get("data")
    try:
        return a2b_base64(encoded, strict_mode=True)
    except (Base64Error, TypeError, ValueError):
        raise BadEvent(
            f"the data of event {members.get('id')!r} is not base64",
            remedy="Tell whoever published it.",
        ) from None


def from_binary(headers: dict[str, str], body: bytes) -> ConsumedEvent:
    """The event in a pushed request: attributes in ce- headers, the payload as the body."""
    from urllib.parse import unquote

    members: dict[str, Any] = {
        name[3:]: unquote(value) for name, value in headers.items() if name.startswith("ce-")
    }
    content_type = headers.get("content-type")
    seq_text = headers.get("tocsin-sequence", "")
    return ConsumedEvent(
        id=members.get("id", ""),
        source=members.get("source", ""),
        type=members.get("type", ""),
        topic=members.get("topic", ""),
        time=members.get("time"),
        subject=members.get("subject"),
        content_type=content_type,
        data=_payload(body, content_type),
        attributes={
            name: value for name, value in members.items() if name not in {*_OWN, "specversion"}
        },
        seq=int(seq_text) if seq_text.isdecimal() else 0,
        raw=body,
    )


def _payload(body: bytes, content_type: str | None) -> Any:
    essence = (content_type or "").partition(";")[0].strip().lower()
    try:
        if essence.endswith(("/json", "+json")):
            return json.loads(body) if body else None
        if essence.startswith("text/"):
            return body.decode()
    except ValueError:
        pass
    return body or None
