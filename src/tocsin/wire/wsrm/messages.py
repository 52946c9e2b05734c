"""The messages between the two ends of a sequence. `rm` is the namespace of their version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import WSRM10, WSRM11
from tocsin.wire.wsrm.ranges import NO_NUMBERS, Ranges

VERSIONS: Final = (WSRM10, WSRM11)
# The highest number a message may have: all of unsignedLong in 1.0, half of it in 1.1.
NUMBER_MAX: Final = {WSRM10: 2**64 - 1, WSRM11: 2**63 - 1}


@dataclass(frozen=True, slots=True)
class Offer:
    """A sequence for the other direction, offered with the request for one."""

    identifier: str
    endpoint: EndpointReference | None = None  # 1.1: where its messages go
    lease_ns: int | None = None


@dataclass(frozen=True, slots=True)
class CreateSequence:
    rm: str
    acks_to: EndpointReference
    lease_ns: int | None = None  # None asks for one without end
    offer: Offer | None = None


@dataclass(frozen=True, slots=True)
class CreateSequenceResponse:
    rm: str
    identifier: str
    lease_ns: int | None = None
    behavior: str | None = None  # 1.1: what becomes of a sequence that ends with gaps
    accepted: EndpointReference | None = None  # of the offer: where its acknowledgements go


@dataclass(frozen=True, slots=True)
class CloseSequence:
    rm: str
    identifier: str
    last: int | None = None


@dataclass(frozen=True, slots=True)
class CloseSequenceResponse:
    rm: str
    identifier: str


@dataclass(frozen=True, slots=True)
class TerminateSequence:
    rm: str
    identifier: str
    last: int | None = None  # 1.1


@dataclass(frozen=True, slots=True)
class TerminateSequenceResponse:
    rm: str
    identifier: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """The header block that gives a message its place."""

    rm: str
    identifier: str
    number: int
    last: bool = False  # 1.0


@dataclass(frozen=True, slots=True)
class AckRequested:
    """The header block that asks for an acknowledgement."""

    rm: str
    identifier: str


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The header block SequenceAcknowledgement: what arrived so far, or what is missing."""

    rm: str
    identifier: str
    ranges: Ranges = NO_NUMBERS
    nacks: tuple[int, ...] = ()
    final: bool = False  # 1.1: the sequence is closed, and this will not change


@dataclass(frozen=True, slots=True)
class Blocks:
    """The header blocks of one message that concern sequences."""

    sequence: Sequence | None = None
    asked: tuple[AckRequested, ...] = ()
    acknowledgements: tuple[Acknowledgement, ...] = ()
    fault: str | None = None  # the code in a SequenceFault, as SOAP 1.1 reports it


Content = (
    CreateSequence
    | CreateSequenceResponse
    | CloseSequence
    | CloseSequenceResponse
    | TerminateSequence
    | TerminateSequenceResponse
)


def action(rm: str, name: str) -> str:
    """The action of the version's message of that name."""
    return f"{rm}/{name}"
