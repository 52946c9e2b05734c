"""From messages about sequences to XML that declares its own namespaces."""

from __future__ import annotations

from tocsin.event.instant import xs_duration
from tocsin.wire.soap.addressing import EndpointReference, epr_content
from tocsin.wire.soap.element import element
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import SOAP_NAMESPACES, WSRM11
from tocsin.wire.wsrm.messages import (
    Acknowledgement,
    AckRequested,
    CloseSequence,
    Content,
    CreateSequence,
    CreateSequenceResponse,
    Sequence,
    TerminateSequence,
)


def write_content(content: Content, wsa: str) -> bytes:
    """The body's element, its references in the given WS-Addressing."""
    if isinstance(content, CreateSequence):
        inside = _create(content, wsa)
    elif isinstance(content, CreateSequenceResponse):
        inside = _created(content, wsa)
    else:
        inside = _identifier(content.identifier)
        if isinstance(content, CloseSequence | TerminateSequence):
            inside += _last(content.rm, content.last)
    return element("r", content.rm, type(content).__name__, inside)


def _create(content: CreateSequence, wsa: str) -> bytes:
    inside = _reference("AcksTo", content.acks_to, wsa) + _expires(content.lease_ns)
    offer = content.offer
    if offer is not None:
        endpoint = offer.endpoint or content.acks_to
        inside += b"<r:Offer>%b%b%b</r:Offer>" % (
            _identifier(offer.identifier),
            _reference("Endpoint", endpoint, wsa) if content.rm == WSRM11 else b"",
            _expires(offer.lease_ns),
        )
    return inside


def _created(content: CreateSequenceResponse, wsa: str) -> bytes:
    inside = _identifier(content.identifier) + _expires(content.lease_ns)
    if content.behavior is not None and content.rm == WSRM11:
        inside += b"<r:IncompleteSequenceBehavior>%b</r:IncompleteSequenceBehavior>" % escaped(
            content.behavior
        )
    if content.accepted is not None:
        inside += b"<r:Accept>%b</r:Accept>" % _reference("AcksTo", content.accepted, wsa)
    return inside


def write_sequence(sequence: Sequence, soap: str) -> bytes:
    """The header block, which must be understood."""
    inside = _identifier(sequence.identifier)
    inside += b"<r:MessageNumber>%d</r:MessageNumber>" % sequence.number
    if sequence.last and sequence.rm != WSRM11:
        inside += b"<r:LastMessage/>"
    must = b' xmlns:s="%b" s:mustUnderstand="1"' % SOAP_NAMESPACES[soap].encode()
    return element("r", sequence.rm, "Sequence", inside, must)


def write_ack_requested(asked: AckRequested) -> bytes:
    return element("r", asked.rm, "AckRequested", _identifier(asked.identifier))


def write_acknowledgement(acknowledgement: Acknowledgement) -> bytes:
    """The header block. 1.0 cannot say that nothing arrived but by naming what it misses."""
    inside = _identifier(acknowledgement.identifier)
    newer = acknowledgement.rm == WSRM11
    if acknowledgement.nacks:
        inside += b"".join(b"<r:Nack>%d</r:Nack>" % number for number in acknowledgement.nacks)
    elif acknowledgement.ranges:
        inside += b"".join(
            b'<r:AcknowledgementRange Lower="%d" Upper="%d"/>' % pair
            for pair in acknowledgement.ranges
        )
    else:
        inside += b"<r:None/>" if newer else b"<r:Nack>1</r:Nack>"
    if acknowledgement.final and newer and not acknowledgement.nacks:
        inside += b"<r:Final/>"
    return element("r", acknowledgement.rm, "SequenceAcknowledgement", inside)


def _identifier(identifier: str) -> bytes:
    return b"<r:Identifier>%b</r:Identifier>" % escaped(identifier)


def _expires(lease_ns: int | None) -> bytes:
    if lease_ns is None:
        return b""
    return b"<r:Expires>%b</r:Expires>" % xs_duration(lease_ns).encode()


def _last(rm: str, last: int | None) -> bytes:
    if last is None or rm != WSRM11:
        return b""
    return b"<r:LastMsgNumber>%d</r:LastMsgNumber>" % last


def _reference(name: str, reference: EndpointReference, wsa: str) -> bytes:
    return b"<r:%b>%b</r:%b>" % (name.encode(), epr_content(reference, wsa), name.encode())
