"""UnacknowledgedConnection: a connection to a consumer whose protocol has no acknowledgement.

What was sent counts as delivered once our kernel has taken all of it, the consumer's kernel has
confirmed it or had a moment to refuse it, and the connection is still open.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from abc import abstractmethod
from typing import Any, Final

from tocsin.drivers.push.connection import Owner

TAKEN: Final = 202  # what is reported of a message that the consumer took, as HTTP would
LOOK_S: Final = 0.002  # between looks at whether the consumer's kernel has it
# A kernel may confirm late: RFC 1122 allows half a second, Linux takes 40 ms.
SETTLE_S: Final = 0.05
REASON_CHARS_MAX: Final = 200


class UnacknowledgedConnection(asyncio.Protocol):
    """Sends in turn. A subclass says when all `_is_written`, and calls `_drained` then."""

    __slots__ = (
        "_drained_at_s",
        "_loop",
        "_owner",
        "_sent",
        "_timer",
        "_transport",
        "busy",
        "closed",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: Owner) -> None:
        self._loop = loop
        self._owner = owner
        self._transport: Any = None
        self._drained_at_s = 0.0
        self._timer: asyncio.Handle | None = None
        self._sent = 0  # that were delivered
        self.busy = False
        self.closed = False

    def close(self) -> None:
        """Hang up at once. What was under way is not reported."""
        self.busy = False
        self._end()

    def eof_received(self) -> None:
        # Who takes one message a connection closes it in good order. Had it left before it read
        # the message, its kernel would not confirm, but reset the connection.
        if self.busy and self._is_written() and not unconfirmed_bytes(self._transport):
            self.busy = False
            self._end()
            self._owner.answered(TAKEN, b"", b"")

    @abstractmethod
    def _is_written(self) -> bool:
        """Our kernel has all of what is under way."""

    def _drained(self) -> None:
        """All is written: look whether the consumer's kernel has it."""
        self._drained_at_s = self._loop.time()
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        settled = self._loop.time() - self._drained_at_s >= SETTLE_S
        if not settled and unconfirmed_bytes(self._transport):
            self._timer = self._loop.call_later(LOOK_S, self._look)
        else:
            self._taken()

    def _taken(self) -> None:
        self._done()
        self._sent += 1
        self._owner.answered(TAKEN, b"", b"")

    def _done(self) -> None:
        """Nothing is under way any more."""
        self._stop_timer()
        self.busy = False

    def _lost(self, reason: str, *, stale: bool) -> None:
        self.closed = True
        self._stop_timer()
        self._owner.lost()
        if self.busy:
            self.busy = False
            self._owner.broken(reason, stale=stale)

    def _fail(self, reason: str) -> None:
        was_busy, self.busy = self.busy, False
        self._end()
        if was_busy:
            self._owner.broken(reason, stale=False)

    def _end(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._stop_timer()
        self._transport.abort()
        self._owner.lost()

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


def unconfirmed_bytes(transport: Any) -> int:
    """What the peer's kernel has not confirmed yet; 0 where the system cannot report it."""
    opened = transport.get_extra_info("socket")
    if opened is None:
        return 0
    try:
        answer = fcntl.ioctl(opened.fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:
        return 0
    return int(struct.unpack("i", answer)[0])


def printable(reason: str | None) -> str:
    """What a consumer gave as the reason, for a log."""
    text = (reason or "without a reason")[:REASON_CHARS_MAX]
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
