"""FrameCount: how much of a message has come that is not yet whole, without keeping any of it."""

from __future__ import annotations

from tocsin.wire.framing import HEAD, HEAD_BYTES


class FrameCount:
    """Follows a stream of frames. A length that is out of bounds is for the reader to refuse."""

    __slots__ = ("_head", "missing", "waiting")

    def __init__(self) -> None:
        self.waiting = 0  # bytes of the message that is not yet whole, its length included
        self._head = b""  # of a length that is not yet whole
        self.missing = 0  # bytes of a message whose length is known

    def receive(self, data: bytes) -> None:
        start, end = 0, len(data)
        while start < end:
            if self.missing:
                taken = min(self.missing, end - start)
                self.missing -= taken
                self.waiting += taken
            else:
                taken = min(HEAD_BYTES - len(self._head), end - start)
                self._head += data[start : start + taken]
                self.waiting += taken
                if len(self._head) == HEAD_BYTES:
                    (self.missing,) = HEAD.unpack(self._head)
                    self._head = b""
            start += taken
            if not self.missing and not self._head:
                self.waiting = 0
