"""WebSocket frames (RFC 6455, 5.2): text messages written, and heads read ahead of their payload.

A frame says in its head how long it is, up to 2^63 bytes. The library that reads our sockets hands
payload out as it comes, so a message that is announced too long is found here, before any of it is
kept.
"""

from __future__ import annotations

from typing import Final

_CONTROL: Final = 8  # opcodes from here on are those of control frames
_MASKED: Final = 0x80
_MEDIUM, _LONG = 126, 127
_FINAL_TEXT: Final = 0x81


def text_frame(payload: bytes) -> bytes:
    """A whole text message; from a server, so without a mask."""
    size = len(payload)
    if size < _MEDIUM:
        return bytes((_FINAL_TEXT, size)) + payload
    if size < 1 << 16:
        return bytes((_FINAL_TEXT, _MEDIUM)) + size.to_bytes(2, "big") + payload
    return bytes((_FINAL_TEXT, _LONG)) + size.to_bytes(8, "big") + payload


class FrameHeads:
    """Follows the frames of one client, however the network cut them."""

    __slots__ = ("_bytes_max", "_head", "_message_bytes", "_payload_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._head = bytearray()
        self._payload_bytes = 0  # of the frame that we are in, still to come
        self._message_bytes = 0  # of the frames of one message, as announced

    def announces_too_much(self, data: bytes) -> bool:
        """True if a message that these bytes begin, or go on with, will be over the limit."""
        at, end = 0, len(data)
        while True:
            step = min(self._payload_bytes, end - at)
            self._payload_bytes -= step
            at += step
            while at < end and (lacking := _head_bytes(self._head) - len(self._head)) > 0:
                self._head += data[at : at + lacking]
                at = min(end, at + lacking)
            if len(self._head) < _head_bytes(self._head):
                return False
            if self._is_too_much():
                return True

    def _is_too_much(self) -> bool:
        """The head is whole: its payload comes next."""
        head, opcode = self._head, self._head[0] & 0x0F
        size = head[1] & ~_MASKED
        if size >= _MEDIUM:
            size = int.from_bytes(head[2 : 4 if size == _MEDIUM else 10], "big")
        head.clear()
        self._payload_bytes = size
        if opcode >= _CONTROL:
            return False
        self._message_bytes = size if opcode else self._message_bytes + size
        return self._message_bytes > self._bytes_max


def _head_bytes(head: bytearray) -> int:
    """How long a head is that begins so."""
    if len(head) < 2:
        return 2
    size = head[1] & ~_MASKED
    length_bytes = 8 if size == _LONG else 2 if size == _MEDIUM else 0
    return 2 + length_bytes + (4 if head[1] & _MASKED else 0)
