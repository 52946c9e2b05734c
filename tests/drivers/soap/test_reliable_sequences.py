"""Sequences of WS-ReliableMessaging: how they begin, end, and are acknowledged."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from reliable_publisher import BOTH, KIND, PATIENCE_S, WSA, Publisher, published

from schemas import validator
from served import Served
from tocsin.wire.soap.addressing import EndpointReference, anonymous
from tocsin.wire.soap.envelope import read_envelope
from tocsin.wire.soap.names import WSA2005, WSRM10, WSRM11
from tocsin.wire.wsrm.messages import (
    AckRequested,
    CloseSequence,
    CloseSequenceResponse,
    CreateSequence,
    CreateSequenceResponse,
    Offer,
    Sequence,
    TerminateSequence,
    TerminateSequenceResponse,
    action,
)
from tocsin.wire.wsrm.read import fault_name, read_blocks
from tocsin.wire.wsrm.write import write_ack_requested, write_content, write_sequence


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_a_sequence_that_nobody_knows_is_a_fault(broker: Served, rm: str, soap: str) -> None:
    publisher = Publisher(broker, rm, soap)
    publisher.identifier = "urn:uuid:nobody"

    assert publisher.send(1) == "UnknownSequence"
    assert publisher.ask(TerminateSequence(rm, "urn:uuid:nobody")) == "UnknownSequence"
    asked = write_ack_requested(AckRequested(rm, "urn:uuid:nobody"))
    _, answer = publisher.post(action(rm, "AckRequested"), asked)
    assert answer is not None
    assert fault_name(answer) == "UnknownSequence"
    for text in publisher.answers:
        validator(KIND[rm], foreign=True)(text)


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_terminated_sequence_is_a_fault(broker: Served, soap: str) -> None:
    publisher = Publisher(broker, WSRM11, soap).begin()
    gone = publisher.identifier

    ended = publisher.ask(TerminateSequence(WSRM11, gone))

    assert ended == TerminateSequenceResponse(WSRM11, gone)
    [final] = read_blocks(read_envelope(publisher.answers[-1])).acknowledgements
    assert final == publisher.acked(final=True)
    assert publisher.send(1) == "SequenceTerminated"
    assert publisher.ask(TerminateSequence(WSRM11, gone)) == "SequenceTerminated"
    for text in publisher.answers:
        validator("wsrm11", foreign=True)(text)


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_closing_stores_what_was_acknowledged_in_spite_of_gaps(empty: Served, soap: str) -> None:
    publisher = Publisher(empty, WSRM11, soap).begin()
    publisher.send(1)
    publisher.send(3)

    closed = publisher.ask(CloseSequence(WSRM11, publisher.identifier, 4))

    assert closed == CloseSequenceResponse(WSRM11, publisher.identifier)
    [final] = read_blocks(read_envelope(publisher.answers[-1])).acknowledgements
    assert final == publisher.acked((1, 1), (3, 3), final=True)
    assert published(empty) == [1, 3]
    assert publisher.send(2) == "SequenceClosed"
    [with_fault] = read_blocks(read_envelope(publisher.answers[-1])).acknowledgements
    assert with_fault == final
    assert publisher.send(3) == final
    assert published(empty) == [1, 3]


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_the_last_message_of_the_older_version_ends_the_numbers(empty: Served, soap: str) -> None:
    publisher = Publisher(empty, WSRM10, soap).begin()
    publisher.send(1)
    place = write_sequence(Sequence(WSRM10, publisher.identifier, 2, last=True), soap)

    _, answer = publisher.post(action(WSRM10, "LastMessage"), place)

    assert answer is not None
    assert read_blocks(answer).acknowledgements == (publisher.acked((1, 2)),)
    assert publisher.send(3) == "LastMessageNumberExceeded"
    assert publisher.ask(TerminateSequence(WSRM10, publisher.identifier)) is None
    assert publisher.send(2) == "SequenceTerminated"
    assert published(empty) == [1]


def test_a_last_message_outside_a_sequence_is_a_fault(broker: Served) -> None:
    _, answer = Publisher(broker, WSRM10).post(action(WSRM10, "LastMessage"))

    assert answer is not None
    assert fault_name(answer) == "WSRMRequired"


def test_numbers_do_not_roll_over(broker: Served) -> None:
    assert Publisher(broker).begin().send(2**63) == "MessageNumberRollover"


def test_a_question_alone_is_answered(broker: Served) -> None:
    for rm, soap in BOTH:
        publisher = Publisher(broker, rm, soap).begin()
        publisher.send(1)
        asked = write_ack_requested(AckRequested(rm, publisher.identifier))

        status, answer = publisher.post(action(rm, "AckRequested"), asked)

        assert status == 200
        assert answer is not None
        assert read_blocks(answer).acknowledgements == (publisher.acked((1, 1)),)


def test_who_wants_no_reply_gets_the_acknowledgement_on_the_back_channel(broker: Served) -> None:
    publisher = Publisher(broker).begin()

    answer = publisher.send(1, message_id="urn:m", reply_to=f"{WSA2005}/none")

    assert answer == publisher.acked((1, 1))


def test_a_refused_message_is_acknowledged_with_the_fault_and_the_next_one_goes_on(
    empty: Served,
) -> None:
    publisher = Publisher(empty).begin()
    place = write_sequence(Sequence(WSRM11, publisher.identifier, 1), "1.2")

    status, answer = publisher.post("urn:reading", place, b"<two/><elements/>")

    assert status == 400
    assert answer is not None
    assert read_blocks(answer).acknowledgements == (publisher.acked((1, 1)),)
    assert publisher.send(2) == publisher.acked((1, 2))
    assert published(empty) == [2]


def test_an_expired_sequence_is_over(broker: Served) -> None:
    publisher = Publisher(broker).begin(lease_ns=200_000_000)
    publisher.send(1)
    time.sleep(0.25)

    assert publisher.send(2) == "SequenceTerminated"


def test_an_offer_is_answered_without_taking_it(broker: Served) -> None:
    for rm, soap in BOTH:
        publisher = Publisher(broker, rm, soap)
        back = EndpointReference(anonymous(WSA[rm]), WSA[rm])

        made = publisher.ask(CreateSequence(rm, back, offer=Offer("urn:uuid:offer", back)))

        assert isinstance(made, CreateSequenceResponse)
        assert made.accepted is None


@pytest.mark.parametrize("address", [f"{WSA2005}/none", "http://192.0.2.1/acks", "gopher://x/"])
def test_acknowledgements_go_only_where_we_may_write(broker: Served, address: str) -> None:
    for soap in ("1.1", "1.2"):
        publisher = Publisher(broker, WSRM11, soap)
        asked = CreateSequence(WSRM11, EndpointReference(address, WSA2005))

        assert publisher.ask(asked) == "CreateSequenceRefused"


def test_a_message_about_a_sequence_is_in_none_whatever_its_header_says(broker: Served) -> None:
    publisher = Publisher(broker).begin()
    place = write_sequence(Sequence(WSRM11, publisher.identifier, 1), "1.2")
    ending = write_content(TerminateSequence(WSRM11, publisher.identifier), WSA2005)

    status, _ = publisher.post(action(WSRM11, "TerminateSequence"), place, ending)

    assert status == 200
    assert publisher.send(1) == "SequenceTerminated"


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_acknowledgements_go_where_acks_to_points(broker: Served, rm: str, soap: str) -> None:
    came: list[bytes] = []

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        there = f"http://127.0.0.1:{server.server_address[1]}/acks"
        publisher = Publisher(broker, rm, soap, acks_to=there).begin()
        assert publisher.send(1) is None
        assert publisher.send(2) is None
        end = time.monotonic() + PATIENCE_S
        wanted = (publisher.acked((1, 2)),)
        while time.monotonic() < end:
            if came and read_blocks(read_envelope(came[-1])).acknowledgements == wanted:
                break
            time.sleep(0.02)
    finally:
        server.shutdown()
        server.server_close()

    assert read_blocks(read_envelope(came[-1])).acknowledgements == wanted
    validator(KIND[rm], foreign=True)(came[-1])
    assert there.encode() in came[-1]
