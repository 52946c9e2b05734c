"""EnvelopeSender: sends SOAP messages to a consumer at a soap.tcp address."""

from __future__ import annotations

from tocsin.broker.delivery.soap_messages import envelope, soap_template
from tocsin.broker.effects import Push
from tocsin.drivers.push.envelope_connection import EnvelopeConnection
from tocsin.drivers.push.http_sender import http_caches
from tocsin.drivers.push.sender import ConnectionSender, Done
from tocsin.wire.dime import envelope_message


class EnvelopeSender(ConnectionSender):
    """Sends envelopes in DIME messages, each answered by one call of its `done`."""

    __slots__ = ()

    def push(self, push: Push, done: Done) -> None:
        if self._context.soap.send(push, done):
            return
        template = soap_template(push.subscription)
        _, whole = envelope(template, push.events, http_caches(self._context).rendered.soap)
        deadline_s = self._context.loop.time() + push.timeout_s
        self.ask_envelope(whole, template.terms.soap, done, deadline_s)

    def ask_envelope(self, envelope: bytes, soap: str, done: Done, deadline_s: float) -> None:
        """Send an envelope of SOAP "1.1" or "1.2". Only when the one before is done."""
        self.ask((envelope_message(soap, envelope), b""), done, deadline_s)

    def _new_connection(self) -> EnvelopeConnection:
        return EnvelopeConnection(self._context.loop, self, self._late_fault)

    def _late_fault(self, reason: str) -> None:
        self._context.note(
            "warning",
            "a consumer answered with a SOAP fault after it had accepted the message",
            sink=self.address,
            reason=reason,
        )
