"""Messages about sequences: what is written is valid by the published schemas, and read back."""

from __future__ import annotations

import itertools

import pytest

from schemas import validator
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import Envelope, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, write_fault
from tocsin.wire.soap.names import WSA2005, WSA200408, WSRM10, WSRM11
from tocsin.wire.wsrm import faults
from tocsin.wire.wsrm.messages import (
    Acknowledgement,
    AckRequested,
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
from tocsin.wire.wsrm.read import fault_name, read_blocks, read_content
from tocsin.wire.wsrm.write import (
    write_ack_requested,
    write_acknowledgement,
    write_content,
    write_sequence,
)

KIND = {WSRM10: "wsrm10", WSRM11: "wsrm11"}
WSA = {WSRM10: WSA200408, WSRM11: WSA2005}
MINUTE_NS = 60_000_000_000
SPEAKERS = [
    faults.PeerVersions(rm, soap)
    for rm, soap in itertools.product((WSRM10, WSRM11), ("1.1", "1.2"))
]


def contents(rm: str) -> list[Content]:
    back = EndpointReference("http://peer.example/acks", WSA[rm])
    here = back if rm == WSRM11 else None
    behavior = "NoDiscard" if rm == WSRM11 else None
    found: list[Content] = [
        CreateSequence(rm, back),
        CreateSequence(rm, back, MINUTE_NS, Offer("urn:offer", here, MINUTE_NS)),
        CreateSequenceResponse(rm, "urn:s"),
        CreateSequenceResponse(rm, "urn:s", MINUTE_NS, behavior, back),
        TerminateSequence(rm, "urn:s"),
    ]
    if rm == WSRM11:
        found += [
            TerminateSequence(rm, "urn:s", 7),
            TerminateSequenceResponse(rm, "urn:s"),
            CloseSequence(rm, "urn:s", 7),
            CloseSequence(rm, "urn:s"),
            CloseSequenceResponse(rm, "urn:s"),
        ]
    return found


@pytest.mark.parametrize("rm", [WSRM10, WSRM11])
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_every_body_is_valid_and_read_as_it_was_meant(rm: str, soap: str) -> None:
    for content in contents(rm):
        message = write_envelope(soap, body=write_content(content, WSA[rm]))

        validator(KIND[rm])(message)
        envelope = read_envelope(message)
        assert envelope.content is not None
        assert read_content(envelope) == content


def with_header(soap: str, *blocks: bytes) -> Envelope:
    return read_envelope(write_envelope(soap, header=b"".join(blocks)))


@pytest.mark.parametrize("rm", [WSRM10, WSRM11])
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_every_header_block_is_valid_and_read_as_it_was_meant(rm: str, soap: str) -> None:
    newer = rm == WSRM11
    sequence = Sequence(rm, "urn:s & co", 4, last=not newer)
    asked = AckRequested(rm, "urn:t")
    acknowledgements = (
        Acknowledgement(rm, "urn:a", ((1, 3), (5, 5))),
        Acknowledgement(rm, "urn:b", ((1, 9),), final=newer),
        Acknowledgement(rm, "urn:c", nacks=(2, 4)),
    )
    blocks = [
        write_sequence(sequence, soap),
        write_ack_requested(asked),
        *map(write_acknowledgement, acknowledgements),
    ]

    envelope = with_header(soap, *blocks)
    validator(KIND[rm])(envelope.body.getroottree().getroot())
    found = read_blocks(envelope)

    assert found.sequence == sequence
    assert found.asked == (asked,)
    assert found.acknowledgements == acknowledgements
    assert b'mustUnderstand="1"' in blocks[0]


def test_that_nothing_arrived_is_said_as_each_version_can() -> None:
    newer = write_acknowledgement(Acknowledgement(WSRM11, "urn:s", final=True))
    older = write_acknowledgement(Acknowledgement(WSRM10, "urn:s", final=True))

    for kind, block in (("wsrm11", newer), ("wsrm10", older)):
        validator(kind)(write_envelope("1.2", header=block))
    assert b"<r:None/><r:Final/>" in newer
    assert b"<r:Nack>1</r:Nack>" in older
    [read] = read_blocks(with_header("1.2", newer)).acknowledgements
    assert read == Acknowledgement(WSRM11, "urn:s", final=True)


def every_fault(to: faults.PeerVersions) -> dict[str, SoapFault]:
    block = write_acknowledgement(Acknowledgement(to.rm, "urn:s", ((1, 2),)))
    found = {
        "UnknownSequence": faults.unknown(to, "urn:s"),
        "SequenceTerminated": faults.terminated(to, "urn:s"),
        "MessageNumberRollover": faults.rollover(to, "urn:s", 2**63 - 1),
        "InvalidAcknowledgement": faults.invalid_acknowledgement(to, block),
        "CreateSequenceRefused": faults.refused(to, "no room"),
    }
    if to.rm == WSRM11:
        found["SequenceClosed"] = faults.closed(to, "urn:s")
        found["WSRMRequired"] = faults.required(to)
    else:
        found["LastMessageNumberExceeded"] = faults.last_exceeded(to, "urn:s")
    return found


@pytest.mark.parametrize("to", SPEAKERS)
def test_every_fault_is_valid_and_known_by_its_name(to: faults.PeerVersions) -> None:
    for name, fault in every_fault(to).items():
        message = write_envelope(to.soap, header=fault.headers, body=write_fault(fault, to.soap))

        validator(KIND[to.rm], foreign=True)(message)
        assert fault_name(read_envelope(message)) == name
        assert fault.action == f"{to.rm}/fault"


def test_soap_11_tells_of_a_sequence_in_the_header_and_of_a_refusal_in_the_body() -> None:
    to = faults.PeerVersions(WSRM11, "1.1")

    unknown, refused = faults.unknown(to, "urn:s"), faults.refused(to, "no room")

    assert b"SequenceFault" in unknown.headers
    assert b"s:Client" in write_fault(unknown, "1.1")
    assert refused.headers == b""
    assert b"f:CreateSequenceRefused" in write_fault(refused, "1.1")


def test_a_fault_of_somebody_else_is_none_of_ours() -> None:
    for soap in ("1.1", "1.2"):
        other = SoapFault("Sender", "no", subcode=("urn:other", "UnknownSequence"))
        message = write_envelope(soap, body=write_fault(other, soap))

        assert fault_name(read_envelope(message)) is None


BAD_BLOCKS = [
    b'<r:Sequence xmlns:r="%b"><r:MessageNumber>1</r:MessageNumber></r:Sequence>',
    b'<r:Sequence xmlns:r="%b"><r:Identifier>urn:s</r:Identifier></r:Sequence>',
    b'<r:Sequence xmlns:r="%b"><r:Identifier>u</r:Identifier><r:MessageNumber>0</r:MessageNumber>'
    b"</r:Sequence>",
    b'<r:Sequence xmlns:r="%b"><r:Identifier>u</r:Identifier><r:MessageNumber>-3</r:MessageNumber>'
    b"</r:Sequence>",
    b'<r:AckRequested xmlns:r="%b"/>',
    b'<r:SequenceAcknowledgement xmlns:r="%b"><r:Identifier>u</r:Identifier>'
    b'<r:AcknowledgementRange Lower="3" Upper="2"/></r:SequenceAcknowledgement>',
    b'<r:SequenceAcknowledgement xmlns:r="%b"><r:Identifier>u</r:Identifier>'
    b'<r:AcknowledgementRange Lower="x" Upper="2"/></r:SequenceAcknowledgement>',
]


@pytest.mark.parametrize("block", BAD_BLOCKS)
def test_a_block_that_cannot_be_understood_is_the_senders_fault(block: bytes) -> None:
    for rm in (WSRM10, WSRM11):
        with pytest.raises(SoapFault) as raised:
            read_blocks(with_header("1.1", block % rm.encode()))
        assert raised.value.code == "Sender"


def test_a_message_belongs_to_one_sequence() -> None:
    twice = write_sequence(Sequence(WSRM11, "urn:s", 1), "1.2") * 2

    with pytest.raises(SoapFault, match="two Sequence headers"):
        read_blocks(with_header("1.2", twice))
