"""EnvelopeConnection: one SOAP.TCP connection to a consumer, one message under way.

This protocol has no acknowledgement. A message counts as delivered once our kernel has taken all of
it, the consumer's kernel has confirmed it or had a moment to refuse it, and the connection is still
open. A SOAP fault that comes back until then refuses the message; one that comes later is noted.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable
from typing import Any, Final

from tocsin.drivers.push.connection import Owner
from tocsin.errors import BadFrame, TocsinError
from tocsin.wire.dime import Decoder, DimeLimits, read_envelope_message
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.envelope import Envelope, read_envelope, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import SOAP_NAMESPACES

TAKEN: Final = 202  # what is reported of a message that the consumer took, as HTTP would
LOOK_S: Final = 0.002  # between looks at whether the consumer's kernel has it
# A kernel may confirm late: RFC 1122 allows half a second, Linux takes 40 ms.
SETTLE_S: Final = 0.05
BACK: Final = DimeLimits(message_bytes_max=64 << 10, records_max=64)
REASON_CHARS_MAX: Final = 200


class EnvelopeConnection(asyncio.Protocol):
    """Messages in turn."""

    __slots__ = (
        "_decoder",
        "_drained_at_s",
        "_look",
        "_loop",
        "_message",
        "_on_late_fault",
        "_owner",
        "_sent",
        "_transport",
        "busy",
        "closed",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, owner: Owner, on_late_fault: Callable[[str], None]
    ) -> None:
        self._loop = loop
        self._owner = owner
        self._on_late_fault = on_late_fault
        self._transport: Any = None
        self._decoder = Decoder(BACK)
        self._message = b""
        self._sent = 0
        self._drained_at_s = 0.0
        self._look: asyncio.TimerHandle | None = None
        self.busy = False
        self.closed = False

    def send(self, head: bytes, rest: bytes) -> None:
        """Write a message. Only when the one before is done."""
        assert not self.busy
        assert not self.closed
        self.busy = True
        self._message = head + rest
        self._transport.write(self._message)
        if not self._transport.get_write_buffer_size():
            self._drained()

    def close(self) -> None:
        """Close the connection at once. A message that was under way is not reported."""
        self.busy = False
        self._end()

    def give_up_waiting(self) -> None:
        """The time is over."""
        self._fail("the sink did not take the message in time")

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        # No marks between full and empty: `resume_writing` then means that all is written.
        self._transport.set_write_buffer_limits(high=0)

    def resume_writing(self) -> None:
        if self.busy and self._look is None:
            self._drained()

    def data_received(self, data: bytes) -> None:
        self._decoder.receive(data)
        try:
            while not self.closed and (message := self._decoder.next_message()) is not None:
                _, envelope = read_envelope_message(message)
                self._answered(envelope)
        except BadFrame as error:
            self._fail(f"the sink's answer is not SOAP on TCP: {error.problem}")

    def eof_received(self) -> None:
        # Who takes one message a connection closes it in good order. Had it left before it read
        # the message, its kernel would not confirm, but reset the connection.
        if self.busy and self._look is not None and not unconfirmed_bytes(self._transport):
            self.busy = False
            self._end()
            self._owner.answered(TAKEN, b"", b"")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed:
            self._lost()
        del (
            self._transport,
            self._owner,
            self._on_late_fault,
        )  # each may have us: that would be a cycle

    def _lost(self) -> None:
        self.closed = True
        self._stop_looking()
        self._owner.lost()
        if self.busy:
            self.busy = False
            # Most likely it closed between two messages, and did not see this one.
            self._owner.broken(
                "the sink closed the connection in the middle of a message", stale=self._sent > 0
            )

    # Delivered or not

    def _drained(self) -> None:
        self._drained_at_s = self._loop.time()
        self._look = self._loop.call_later(LOOK_S, self._settle)

    def _settle(self) -> None:
        self._look = None
        settled = self._loop.time() - self._drained_at_s >= SETTLE_S
        if not settled and unconfirmed_bytes(self._transport):
            self._look = self._loop.call_later(LOOK_S, self._settle)
            return
        self.busy = False
        self._message = b""
        self._sent += 1
        self._owner.answered(TAKEN, b"", b"")

    def _answered(self, data: bytes) -> None:
        """Something came back; only a fault concerns what was sent."""
        try:
            envelope = read_envelope(data)
            reason = _fault_reason(envelope)
            about = read_addressing(envelope).relates_to
        except (TocsinError, SoapFault):
            return
        if reason is None:
            return
        if self.busy and (about is None or about.encode() in self._message):
            self._fail(f"the sink answered with a SOAP fault: {reason}")
        else:
            self._on_late_fault(reason)

    def _fail(self, reason: str) -> None:
        was_busy, self.busy = self.busy, False
        self._end()
        if was_busy:
            self._owner.broken(reason, stale=False)

    def _end(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._stop_looking()
        self._transport.abort()
        self._owner.lost()

    def _stop_looking(self) -> None:
        look, self._look = self._look, None
        if look is not None:
            look.cancel()


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


def _fault_reason(envelope: Envelope) -> str | None:
    """The reason that a fault gives in words; None if the envelope holds no fault."""
    namespace = SOAP_NAMESPACES[envelope.soap]
    fault = envelope.body.find(f"{{{namespace}}}Fault")
    if fault is None:
        return None
    words = fault.find("faultstring")
    if words is None:
        words = fault.find(f"{{{namespace}}}Reason/{{{namespace}}}Text")
    text = text_of(words) or "without a reason"
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:REASON_CHARS_MAX])
