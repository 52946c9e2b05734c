"""Events from lines of input: one event a line, in batches as large as the input is fast."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from tocsin.client.outgoing import event_json, new_id
from tocsin.client.pipeline import BATCH_EVENTS_MAX
from tocsin.errors import BadEvent

READ_BYTES = 256 * 1024  # also bounds a batch, unless a single line is longer
LINE_BYTES_MAX = 16 * 1024 * 1024


class Line(NamedTuple):
    """A line of input and its number, the first being 1."""

    number: int
    text: bytes


def blocks(source: BinaryIO) -> Iterator[list[Line]]:
    """The lines of `source`, at most a batch at a time and as soon as they are there.

    While batches are under way the input piles up, so a slow pipe is published line by line and a
    fast one in full batches.
    """
    rest, number = b"", 0
    while True:
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


def event_of_line(text: bytes, defaults: dict[str, Any]) -> bytes:
    """The event in a line: a CloudEvent, with what it lacks filled in, or data for the topic."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        if text.lstrip()[:1] in (b"{", b"["):
            raise BadEvent(
                "it begins like JSON and is not", remedy="Correct the line, or quote the text."
            ) from None
        named = {**defaults, "id": new_id(), "datacontenttype": "text/plain"}
        return event_json(named, text.rstrip(b"\r"))
    if not is_cloud_event(value):
        named = {**defaults, "id": new_id(), "datacontenttype": "application/json"}
        return event_json(named, text.strip())
    if {"specversion", "id", "source", "type"} <= value.keys() and (
        "topic" in value or not defaults.get("topic")
    ):
        return text.strip()
    filled = {"specversion": "1.0", "id": new_id(), **_set(defaults), **value}
    return json.dumps(filled, ensure_ascii=False, separators=(",", ":")).encode()


def _set(defaults: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in defaults.items() if value is not None}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
