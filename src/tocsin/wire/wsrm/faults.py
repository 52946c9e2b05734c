"""The faults of WS-ReliableMessaging, in both versions and for both versions of SOAP.

SOAP 1.2 names the condition in a subcode. SOAP 1.1 has no room for one: a header block,
SequenceFault, names it beside a general fault; but a refused CreateSequence, which has no sequence
yet, puts its own code where the general one stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.wire.soap.fault import Code, SoapFault, escaped
from tocsin.wire.soap.names import WSRM10, WSRM11

CREATE_REFUSED: Final = "CreateSequenceRefused"
# Conditions that only one of the versions has a name for, and the nearest name of the other.
_INSTEAD: Final = {
    (WSRM10, "SequenceClosed"): "SequenceTerminated",
    (WSRM11, "LastMessageNumberExceeded"): "SequenceClosed",
}
# After these the sequence is of no more use to whoever sends on it.
ENDS_SEQUENCE: Final = frozenset(
    {
        "SequenceTerminated",
        "UnknownSequence",
        "SequenceClosed",
        "MessageNumberRollover",
        "LastMessageNumberExceeded",
    }
)


@dataclass(frozen=True, slots=True)
class PeerVersions:
    """Whom a fault is for: which reliable messaging, which SOAP."""

    rm: str
    soap: str


def refused(to: PeerVersions, reason: str) -> SoapFault:
    """CreateSequenceRefused: there will be no sequence."""
    return SoapFault("Sender", reason, subcode=(to.rm, CREATE_REFUSED), action=_fault_action(to.rm))


def unknown(to: PeerVersions, identifier: str) -> SoapFault:
    reason = f"there is no sequence {identifier[:200]!r} here"
    return _of_sequence(to, "UnknownSequence", reason, _identifier(to.rm, identifier))


def terminated(to: PeerVersions, identifier: str) -> SoapFault:
    reason = "the sequence was terminated or has expired"
    return _of_sequence(to, "SequenceTerminated", reason, _identifier(to.rm, identifier))


def closed(to: PeerVersions, identifier: str) -> SoapFault:
    reason = "the sequence is closed and takes no new messages"
    return _of_sequence(to, "SequenceClosed", reason, _identifier(to.rm, identifier))


def last_exceeded(to: PeerVersions, identifier: str) -> SoapFault:
    reason = "the message has a number past the last one of its sequence"
    return _of_sequence(to, "LastMessageNumberExceeded", reason, _identifier(to.rm, identifier))


def rollover(to: PeerVersions, identifier: str, number_max: int) -> SoapFault:
    reason = f"message numbers end at {number_max}; create a new sequence"
    return _of_sequence(to, "MessageNumberRollover", reason, _identifier(to.rm, identifier))


def invalid_acknowledgement(to: PeerVersions, acknowledgement: bytes) -> SoapFault:
    reason = "the acknowledgement covers messages that were not sent"
    return _of_sequence(to, "InvalidAcknowledgement", reason, acknowledgement)


def required(to: PeerVersions) -> SoapFault:
    reason = "the message needs a Sequence header"
    return _of_sequence(to, "WSRMRequired", reason, b"")


def _identifier(rm: str, identifier: str) -> bytes:
    return b'<r:Identifier xmlns:r="%b">%b</r:Identifier>' % (rm.encode(), escaped(identifier))


def _fault_action(rm: str) -> str:
    return f"{rm}/fault"


def _of_sequence(to: PeerVersions, name: str, reason: str, detail: bytes) -> SoapFault:
    name = _INSTEAD.get((to.rm, name), name)
    code: Code = "Sender"
    if to.soap == "1.2":
        return SoapFault(
            code, reason, subcode=(to.rm, name), detail=detail, action=_fault_action(to.rm)
        )
    inside = detail
    if detail and to.rm == WSRM11:
        inside = b"<r:Detail>%b</r:Detail>" % detail
    header = (
        b'<r:SequenceFault xmlns:r="%b"><r:FaultCode>r:%b</r:FaultCode>%b</r:SequenceFault>'
    ) % (to.rm.encode(), name.encode(), inside)
    return SoapFault(code, reason, action=_fault_action(to.rm), headers=header)
