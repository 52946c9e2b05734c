"""Events from lines of input: one event a line, in batches as large as the input is fast."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from tocsin.client.batch_sender import BATCH_EVENTS_MAX
from tocsin.client.event_json import event_json, new_id, now_text
from tocsin.errors import BadEvent

if TYPE_CHECKING:
    from tocsin.client.event_signer import EventSigner

READ_BYTES = 256 * 1024  # also bounds a batch, unless a single line is longer
LINE_BYTES_MAX = 16 * 1024 * 1024


class Line(NamedTuple):
    """A line of input and its number, the first being 1."""

    number: int
    text: bytes


def blocks(source: BinaryIO) -> Iterator[list[Line]]:
    """The lines of `source`, at most a batch at a time and as soon as they are there.

    An empty block means that the input pauses: time to read the last response. While a batch is
    in flight the input accumulates, so a slow pipe is published line by line and a fast one in
    full batches.
    """
    rest, number = b"", 0
    while True:
        if not select.select([source], [], [], 0)[0]:
            yield []
        data = os.read(source.fileno(), READ_BYTES)
        *whole, rest = (rest + data).split(b"\n")
        if not data and rest:
            whole = [rest]
        lines = [Line(number + n, text) for n, text in enumerate(whole, 1) if text.strip()]
        number += len(whole)
        for start in range(0, len(lines), BATCH_EVENTS_MAX):
            yield lines[start : start + BATCH_EVENTS_MAX]
        if not data:
            return
        if len(rest) > LINE_BYTES_MAX:
            raise BadEvent(
                f"line {number + 1} is over {LINE_BYTES_MAX} bytes",
                remedy="Give one event a line.",
            )


def is_cloud_event(members: object) -> bool:
    """True for a JSON object that is an event in itself and not the data of one."""
    return isinstance(members, dict) and (
        "specversion" in members or {"id", "source", "type"} <= members.keys()
    )


def begins_like_json(data: bytes) -> bool:
    """True for data that starts like a JSON object or array, valid or not."""
    return data.lstrip()[:1] in (b"{", b"[")


class LineEvents:
    """Makes events of lines. What all of them have in common is written once."""

    def __init__(self, defaults: dict[str, Any], signer: EventSigner | None = None) -> None:
        self._signer = signer
        self._defaults = {name: value for name, value in defaults.items() if value is not None}
        self._time = self._defaults.pop("time", None)
        self._head = event_json(self._defaults, None)[:-1]

    def event(self, text: bytes) -> bytes:
        """The event in a line: a CloudEvent, with what it lacks filled in, or the data of one. It
        is signed if it shall be."""
        event = self._event(text)
        return event if self._signer is None else self._signer.sign(event)

    def _event(self, text: bytes) -> bytes:
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            if begins_like_json(text):
                raise BadEvent(
                    "it begins with { or [ and is not valid JSON",
                    remedy="Correct the line, or write the text as a JSON string in quotes.",
                ) from None
            self._refuse_without_topic()
            return self._with_data(b"text/plain", _as_json_string(text.rstrip(b"\r")))
        if not is_cloud_event(value):
            self._refuse_without_topic()
            return self._with_data(b"application/json", text.strip())
        whole = value.keys() >= {"specversion", "id", "source", "type"}
        if whole and ("topic" in value or "topic" not in self._defaults):
            return text.strip()
        filled = {"specversion": "1.0", "id": new_id(), **self._defaults, **value}
        return json.dumps(filled, ensure_ascii=False, separators=(",", ":")).encode()

    def _refuse_without_topic(self) -> None:
        """A line of data needs a topic; without one every line must be an event itself."""
        if "topic" not in self._defaults:
            raise BadEvent(
                "it is not an event",
                remedy="Give a CloudEvent in JSON on each line (id, source and type), or name a "
                "topic to publish the lines as data: `tocsin pub TOPIC -`.",
            )

    def _with_data(self, content_type: bytes, data: bytes) -> bytes:
        return b'%b,"id":"%b","time":"%b","datacontenttype":"%b","data":%b}' % (
            self._head,
            new_id().encode(),
            (self._time or now_text()).encode(),
            content_type,
            data,
        )


def _as_json_string(text: bytes) -> bytes:
    try:
        return json.dumps(text.decode()).encode()
    except UnicodeDecodeError:
        raise BadEvent("it is not UTF-8", remedy="Convert the input with iconv.") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
