"""Header blocks and bodies of messages about sequences, read."""

from __future__ import annotations

from typing import Final

from lxml import etree

from tocsin.event.instant import xs_duration_ns
from tocsin.wire.soap.addressing import read_epr
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import SOAP_NAMESPACES
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.wsrm.faults import PeerVersions, invalid_acknowledgement, refused
from tocsin.wire.wsrm.messages import (
    VERSIONS,
    Acknowledgement,
    AckRequested,
    Blocks,
    CloseSequence,
    CloseSequenceResponse,
    Content,
    CreateSequence,
    CreateSequenceResponse,
    Offer,
    Sequence,
    TerminateSequence,
    TerminateSequenceResponse,
)
from tocsin.wire.wsrm.ranges import union

Element = etree._Element

IDENTIFIER_CHARS_MAX: Final = 1_024
NUMBER_DIGITS_MAX: Final = 20  # of the highest unsignedLong
RANGES_MAX: Final = 1_000  # in one acknowledgement

NOTHING: Final = Blocks()


def read_blocks(envelope: Envelope) -> Blocks:
    """The header blocks about sequences; a SoapFault for one that cannot be understood."""
    if envelope.header is None:
        return NOTHING
    found = [block for block in envelope.header if split(block.tag)[0] in VERSIONS]
    if not found:
        return NOTHING
    sequence: Sequence | None = None
    asked: list[AckRequested] = []
    acknowledgements: list[Acknowledgement] = []
    fault: str | None = None
    for block in found:
        name = split(block.tag)[1]
        if name == "Sequence":
            if sequence is not None:
                raise SoapFault("Sender", "the message has two Sequence headers; one is allowed")
            sequence = _sequence(block)
        elif name == "AckRequested":
            asked.append(AckRequested(split(block.tag)[0], _identifier(block)))
        elif name == "SequenceAcknowledgement":
            acknowledgements.append(_acknowledgement(envelope, block))
        elif name == "SequenceFault":
            fault = text_of(_child(block, "FaultCode")).rpartition(":")[2]
    return Blocks(sequence, tuple(asked), tuple(acknowledgements), fault)


def _sequence(block: Element) -> Sequence:
    number = _number(_child(block, "MessageNumber"))
    if number < 1:
        raise SoapFault("Sender", "the MessageNumber of a Sequence must be at least 1")
    last = _child(block, "LastMessage") is not None
    return Sequence(split(block.tag)[0], _identifier(block), number, last)


def _acknowledgement(envelope: Envelope, block: Element) -> Acknowledgement:
    rm = split(block.tag)[0]
    pairs: list[tuple[int, int]] = []
    nacks: list[int] = []
    final = False
    try:
        for child in elements(block)[: RANGES_MAX + 2]:
            name = split(child.tag)[1]
            if name == "AcknowledgementRange":
                pairs.append((_natural(child.get("Lower")), _natural(child.get("Upper"))))
            elif name == "Nack":
                nacks.append(_natural(child.text))
            elif name == "Final":
                final = True
        if any(lower > upper for lower, upper in pairs) or (pairs and nacks):
            raise ValueError
    except ValueError:
        speaker = PeerVersions(rm, envelope.soap)
        raise invalid_acknowledgement(speaker, cut_out(envelope, [block])[0]) from None
    return Acknowledgement(rm, _identifier(block), union(pairs, ()), tuple(nacks), final)


def read_content(envelope: Envelope) -> Content:
    """The message that the body holds; a SoapFault if it lacks what it needs."""
    element = envelope.message
    rm, name = split(element.tag)
    if name == "CreateSequence":
        return _create(envelope, element, rm)
    if name == "CreateSequenceResponse":
        return _created(envelope, element, rm)
    identifier = _identifier(element)
    if name in ("CloseSequence", "TerminateSequence"):
        written = _child(element, "LastMsgNumber")
        last = None if written is None else _number(written)
        kind = CloseSequence if name == "CloseSequence" else TerminateSequence
        return kind(rm, identifier, last)
    if name == "CloseSequenceResponse":
        return CloseSequenceResponse(rm, identifier)
    if name == "TerminateSequenceResponse":
        return TerminateSequenceResponse(rm, identifier)
    raise SoapFault("Sender", f"{name[:80]!r} is not a message of WS-ReliableMessaging")


def _create(envelope: Envelope, element: Element, rm: str) -> CreateSequence:
    speaker = PeerVersions(rm, envelope.soap)
    acks_to = _child(element, "AcksTo")
    if acks_to is None:
        raise refused(speaker, "CreateSequence has no AcksTo")
    offered = _child(element, "Offer")
    offer = None
    if offered is not None:
        endpoint = _child(offered, "Endpoint")
        offer = Offer(
            _identifier(offered),
            None if endpoint is None else read_epr(envelope, endpoint),
            _lease(speaker, offered),
        )
    return CreateSequence(rm, read_epr(envelope, acks_to), _lease(speaker, element), offer)


def _created(envelope: Envelope, element: Element, rm: str) -> CreateSequenceResponse:
    accept = _child(element, "Accept")
    acks_to = None if accept is None else _child(accept, "AcksTo")
    return CreateSequenceResponse(
        rm,
        _identifier(element),
        _lease(PeerVersions(rm, envelope.soap), element),
        text_of(_child(element, "IncompleteSequenceBehavior")) or None,
        None if acks_to is None else read_epr(envelope, acks_to),
    )


def fault_name(envelope: Envelope) -> str | None:
    """What a fault of WS-ReliableMessaging is called; None if the message is no such fault."""
    namespace = SOAP_NAMESPACES[envelope.soap]
    content = envelope.content
    if content is None or content.tag != f"{{{namespace}}}Fault":
        return None
    blocks = read_blocks(envelope)
    if blocks.fault is not None:
        return blocks.fault
    code = content.find("faultcode" if envelope.soap == "1.1" else _subcode(namespace))
    if code is None:
        return None
    prefix, _, name = text_of(code).rpartition(":")
    return name if code.nsmap.get(prefix or None) in VERSIONS else None


def _subcode(namespace: str) -> str:
    return "/".join(f"{{{namespace}}}{name}" for name in ("Code", "Subcode", "Value"))


def _child(element: Element, name: str) -> Element | None:
    """The child of that name in the element's own namespace."""
    return element.find(f"{{{split(element.tag)[0]}}}{name}")


def _identifier(element: Element) -> str:
    # An Offer stands inside a message; its children are in the same namespace.
    text = text_of(_child(element, "Identifier"))
    name = split(element.tag)[1]
    if not text:
        raise SoapFault("Sender", f"{name[:80]} has no Identifier")
    if len(text) > IDENTIFIER_CHARS_MAX:
        raise SoapFault("Sender", f"the Identifier of {name[:80]} is too long")
    return text


def _number(element: Element | None) -> int:
    try:
        return _natural(None if element is None else element.text)
    except ValueError:
        raise SoapFault("Sender", "a message number is missing or is not a number") from None


def _natural(text: str | None) -> int:
    digits = (text or "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > NUMBER_DIGITS_MAX:
        raise ValueError
    return int(digits)


def _lease(speaker: PeerVersions, element: Element) -> int | None:
    """How long the sequence shall be there; None if for ever, which is also written PT0S."""
    written = _child(element, "Expires")
    if written is None:
        return None
    lease_ns = xs_duration_ns(text_of(written))
    if lease_ns is None or lease_ns < 0:
        raise refused(speaker, "Expires of a sequence must be a duration of 0 or more")
    return lease_ns or None
