"""SoapPushes: which way a SOAP message goes, where a POST and its status are not enough."""

from __future__ import annotations

from tocsin.broker.delivery.address import SOAP_TCP, scheme_of
from tocsin.broker.effects import Push
from tocsin.drivers.push.acked_sender import AckedSender
from tocsin.drivers.push.sender import Done, Send


class SoapPushes:
    """Sends what must be acknowledged by the message itself, or goes into a box of this broker."""

    def __init__(self, acked: AckedSender) -> None:
        self._acked = acked
        self.reliably: Send | None = None
        self.into_boxes: Send | None = None

    def send(self, push: Push, done: Done) -> bool:
        """False if the push is for a consumer to which the transport's answer is enough."""
        terms = push.subscription.soap
        assert terms is not None
        if terms.box and self.into_boxes is not None:
            self.into_boxes(push, done)
        elif terms.reliable and self.reliably is not None and scheme_of(push.sink) != SOAP_TCP:
            self.reliably(push, done)
        elif terms.form == "acked":
            self._acked.send(push, done)
        else:
            return False
        return True

    def close(self) -> None:
        self._acked.close()
