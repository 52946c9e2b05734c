"""Requests that carry WS-Security where everybody may do everything: processed like all others,
counted, and logged.

Nobody signs in there, so there is nobody to verify a password or a signature for. Clients of
cameras send them with every request, and with mustUnderstand: refusing them would shut out people
who may do what they ask for anyway. But nobody shall think that anything was verified.
"""

from __future__ import annotations

from typing import Final

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.services.soap.call import SoapCall
from tocsin.wire.soap.addressing import Addressing, header_text
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.soap.names import WSSE

NOTE_INTERVAL_NS: Final = 60 * 10**9  # some clients send it with every request
_WSSE: Final = WSSE.encode()


class UnverifiedSecurity:
    """Counts them, and notes at most one a minute with the number since the last note."""

    def __init__(self, port: BrokerPort) -> None:
        self._own = port.own(internal("soap"))
        self._runtime = port.runtime
        self._noted_ns: int | None = None
        self._since = 0

    def look(self, envelope: Envelope, addressing: Addressing, call: SoapCall) -> SoapCall:
        """The call as it is."""
        if _WSSE in envelope.raw and header_text(envelope, WSSE, "Security") is not None:
            self._count(call)
        return call

    def _count(self, call: SoapCall) -> None:
        self._own.count_unverified_soap()
        self._since += 1
        now_ns = self._runtime.now_ns()
        if self._noted_ns is not None and now_ns - self._noted_ns < NOTE_INTERVAL_NS:
            return
        self._runtime.note(
            "warning",
            "a SOAP request carried WS-Security; it was taken, and nothing in it was verified",
            peer=call.session.peer,
            path=call.path,
            requests=self._since,
        )
        self._noted_ns, self._since = now_ns, 0
