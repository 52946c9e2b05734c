"""EnvelopeLine: the way to a consumer at a soap.tcp address."""

from __future__ import annotations

from tocsin.drivers.push.envelope_connection import EnvelopeConnection
from tocsin.drivers.push.line import Done, Line
from tocsin.wire.dime import envelope_message


class EnvelopeLine(Line):
    """Sends envelopes in DIME messages, each answered by one call of its `done`."""

    __slots__ = ()

    def ask_envelope(self, envelope: bytes, soap: str, done: Done, deadline_s: float) -> None:
        """Send an envelope of SOAP "1.1" or "1.2". Only when the one before is done."""
        self.ask((envelope_message(soap, envelope), b""), done, deadline_s)

    def _new_connection(self) -> EnvelopeConnection:
        return EnvelopeConnection(self._exchange.loop, self, self._late_fault)

    def _late_fault(self, reason: str) -> None:
        self._exchange.note(
            "warning",
            "a consumer answered with a SOAP fault after it had accepted the message",
            sink=self.address,
            reason=reason,
        )
