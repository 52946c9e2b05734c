"""Events as server-sent events and as WebSocket frames, each made once for all who read along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tocsin.event.stored import Stored
from tocsin.wire.cloudevents.write import structured_of

FRAMES_BYTES_MAX: Final = 8 << 20  # kept for the next reader of the same events

# JSON has line breaks between its tokens only, where a space means the same.
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")

SEQUENCE_ATTRIBUTE: Final = b"tocsinsequence"

_FINAL_TEXT = 0x81
_SHORT_MAX = 125
_MEDIUM_MAX = 0xFFFF


def server_sent_event(stored: Stored) -> bytes:
    """`id:` and `data:`, the data in one line."""
    data = structured_of(stored)
    if b"\n" in data or b"\r" in data:
        data = data.translate(_LINE_BREAKS)
    return b"id: %d\ndata: %b\n\n" % (stored.seq, data)


def socket_frame(stored: Stored) -> bytes:
    """A text message of one frame. The protocol has no place for the event's place in the log, and
    without it nobody could resume, so that it comes as an extension attribute, last: whatever the
    event itself says under that name, a JSON reader takes ours."""
    place = b',"%b":"%d"}' % (SEQUENCE_ATTRIBUTE, stored.seq)
    return text_frame(structured_of(stored)[:-1] + place)


def text_frame(payload: bytes) -> bytes:
    """A whole text message; from a server, so without a mask (RFC 6455, 5.2)."""
    size = len(payload)
    if size <= _SHORT_MAX:
        return bytes((_FINAL_TEXT, size)) + payload
    if size <= _MEDIUM_MAX:
        return bytes((_FINAL_TEXT, 126)) + size.to_bytes(2, "big") + payload
    return bytes((_FINAL_TEXT, 127)) + size.to_bytes(8, "big") + payload


class Frames:
    """Frames by sequence number, as long as they are few."""

    __slots__ = ("_bytes", "_kept", "_make")

    def __init__(self, make: Callable[[Stored], bytes]) -> None:
        self._make = make
        self._kept: dict[int, bytes] = {}
        self._bytes = 0

    def of(self, events: list[Stored]) -> bytes:
        """The frames of the events, one after the other."""
        kept = self._kept
        return b"".join([kept.get(stored.seq) or self._made(stored) for stored in events])

    def _made(self, stored: Stored) -> bytes:
        frame = self._make(stored)
        self._bytes += len(frame)
        if self._bytes > FRAMES_BYTES_MAX:
            self._kept.clear()
            self._bytes = len(frame)
        self._kept[stored.seq] = frame
        return frame
