"""EnvelopeConnection: one SOAP.TCP connection to a consumer, one message under way.

A SOAP fault that comes back until a message counts as delivered refuses it; one that comes later is
noted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from tocsin.drivers.push.connection import Owner
from tocsin.drivers.push.unacknowledged import UnacknowledgedConnection, printable
from tocsin.errors import BadFrame, TocsinError
from tocsin.wire.dime import Decoder, DimeLimits, read_envelope_message
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.envelope import Envelope, read_envelope, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import SOAP_NAMESPACES

BACK: Final = DimeLimits(message_bytes_max=64 << 10, records_max=64)


class EnvelopeConnection(UnacknowledgedConnection):
    """Messages in turn."""

    __slots__ = ("_decoder", "_message", "_on_late_fault")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, owner: Owner, on_late_fault: Callable[[str], None]
    ) -> None:
        super().__init__(loop, owner)
        self._on_late_fault = on_late_fault
        self._decoder = Decoder(BACK)
        self._message = b""

    def send(self, head: bytes, rest: bytes) -> None:
        """Write a message. Only when the one before is done."""
        assert not self.busy
        assert not self.closed
        self.busy = True
        self._message = head + rest
        self._transport.write(self._message)
        if not self._transport.get_write_buffer_size():
            self._drained()

    def give_up_waiting(self) -> None:
        """The time is over."""
        self._fail("the sink did not take the message in time")

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        # No marks between full and empty: `resume_writing` then means that all is written.
        self._transport.set_write_buffer_limits(high=0)

    def resume_writing(self) -> None:
        if self.busy and self._timer is None:
            self._drained()

    def data_received(self, data: bytes) -> None:
        self._decoder.receive(data)
        try:
            while not self.closed and (message := self._decoder.next_message()) is not None:
                _, envelope = read_envelope_message(message)
                self._answered(envelope)
        except BadFrame as error:
            self._fail(f"the sink's answer is not SOAP on TCP: {error.problem}")

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed:
            # Most likely it closed between two messages, and did not see this one.
            reason = "the sink closed the connection in the middle of a message"
            self._lost(reason, stale=self._sent > 0)
        # Each may have us: that would be a cycle.
        del self._transport, self._owner, self._on_late_fault

    # Delivered or not

    def _is_written(self) -> bool:
        return self._timer is not None

    def _done(self) -> None:
        super()._done()
        self._message = b""

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


def _fault_reason(envelope: Envelope) -> str | None:
    """The reason that a fault gives in words; None if the envelope holds no fault."""
    namespace = SOAP_NAMESPACES[envelope.soap]
    fault = envelope.body.find(f"{{{namespace}}}Fault")
    if fault is None:
        return None
    words = fault.find("faultstring")
    if words is None:
        words = fault.find(f"{{{namespace}}}Reason/{{{namespace}}}Text")
    return printable(text_of(words))
