"""Frames: messages with their length in front, cut from a stream of bytes (paper 002, section 4.1).

The length is four bytes in network order. A frame is judged by its length, before any of what
follows is kept; where the stream was cut on its way makes no difference.
"""

from __future__ import annotations

import struct

from tocsin.errors import BadFrame

HEAD = struct.Struct(">I")
HEAD_BYTES = HEAD.size

_HTTP_BEGINS = (b"GET ", b"POST", b"PUT ", b"HEAD", b"HTTP")  # requests, and any answer


def framed(message: bytes) -> bytes:
    """The message with its length in front."""
    return HEAD.pack(len(message)) + message


class FrameSplitter:
    """Takes a stream as it comes, and gives out the messages in it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self.refusal: BadFrame | None = None  # what came after the messages that were given out

    @property
    def waiting(self) -> int:
        """How many bytes of a message have come that is not yet whole."""
        return len(self._buffer)

    def split(self, data: bytes) -> list[bytes]:
        """The messages that are whole now; BadFrame if the next cannot be one.

        If both, the messages come first: then `refusal` is set, and the next call raises it.
        """
        if self.refusal is not None:
            raise self.refusal
        buffer = self._buffer
        source: bytes | bytearray = data
        if buffer:
            buffer += data
            source = buffer
        found: list[bytes] = []
        start, end = 0, len(source)
        while end - start >= HEAD_BYTES:
            (size,) = HEAD.unpack_from(source, start)
            if not 0 < size <= self._bytes_max:
                self.refusal = self._refused(size, bytes(source[start : start + HEAD_BYTES]))
                start = end  # where the next message begins is not known any more
                break
            begin = start + HEAD_BYTES
            if end - begin < size:
                break
            found.append(bytes(source[begin : begin + size]))
            start = begin + size
        if source is buffer:
            del buffer[:start]
        elif start < end:
            buffer += data[start:]
        if self.refusal is not None and not found:
            raise self.refusal
        return found

    def _refused(self, size: int, head: bytes) -> BadFrame:
        if not size:
            return BadFrame("a frame of length 0 came", remedy="Send a message in every frame.")
        if head in _HTTP_BEGINS or head[:3] == b"\x16\x03\x01":
            protocol = "TLS" if head[0] == 0x16 else "HTTP"
            return BadFrame(
                f"{protocol} came on a port for length-prefixed frames",
                remedy="Send it to the port for that protocol.",
            )
        return BadFrame(
            f"a frame of {size} bytes was announced",
            remedy=f"Send at most {self._bytes_max}, the length as four bytes in network order.",
        )
