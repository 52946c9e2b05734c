"""Events whose JSON every reader understands in the same way."""

from __future__ import annotations

import msgspec

from tocsin.errors import BadEvent
from tocsin.wire import strict_json
from tocsin.wire.cloudevents.limits import Limits

_read_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode


def check_json(text: bytes, where: str = "") -> None:
    """Refuse names that come twice in an object, and numbers that no double can hold."""
    try:
        strict_json.check(text)
    except strict_json.Ambiguous as error:
        raise BadEvent(
            f"{where}{error}", remedy="Send each name once, and numbers that a double can hold."
        ) from None


def check_batch(body: bytes, limits: Limits) -> None:
    """The same for each event by itself, as all of them have the same names."""
    try:
        elements = _read_elements(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # the reader says what is wrong
    for index, raw in enumerate(elements):
        text = bytes(raw)
        if len(text) <= limits.event_bytes_max:  # else it is refused for that
            check_json(text, f"event {index} of the batch (counted from 0): ")
