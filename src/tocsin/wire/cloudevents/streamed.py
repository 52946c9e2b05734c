"""Events as server-sent events and as WebSocket messages."""

from __future__ import annotations

from typing import Final

from tocsin.event.stored import Stored
from tocsin.wire.cloudevents.write import structured_of
from tocsin.wire.websocket import text_frame

# JSON has line breaks between its tokens only, where a space means the same.
_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")

SEQUENCE_ATTRIBUTE: Final = b"tocsinsequence"


def server_sent_event(stored: Stored) -> bytes:
    """`id:` and `data:`, the data in one line."""
    data = structured_of(stored)
    if b"\n" in data or b"\r" in data:
        data = data.translate(_LINE_BREAKS)
    return b"id: %d\ndata: %b\n\n" % (stored.seq, data)


def socket_message(stored: Stored) -> bytes:
    """A text message of one frame. The protocol has no field for the sequence number, and without
    it nobody could resume, so it is added as an extension attribute, last: whatever the event
    itself has under that name, a JSON reader takes ours."""
    place = b',"%b":"%d"}' % (SEQUENCE_ATTRIBUTE, stored.seq)
    return text_frame(structured_of(stored)[:-1] + place)
