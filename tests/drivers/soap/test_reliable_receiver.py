"""Publishing by WS-ReliableMessaging to a running broker: both versions, both SOAPs, power cuts."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from random import Random
from typing import Any

import pytest

from schemas import validator
from served import Served, served
from tocsin.wire.soap.addressing import EndpointReference, anonymous, write_headers
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSA200408, WSRM10, WSRM11
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
    action,
)
from tocsin.wire.wsrm.ranges import Ranges, union
from tocsin.wire.wsrm.read import fault_name, read_blocks, read_content
from tocsin.wire.wsrm.write import write_ack_requested, write_content, write_sequence

KIND = {WSRM10: "wsrm10", WSRM11: "wsrm11"}
WSA = {WSRM10: WSA200408, WSRM11: WSA2005}
BOTH = list(product((WSRM10, WSRM11), ("1.1", "1.2")))
PATIENCE_S = 20.0


@dataclass
class Publisher:
    """The sending end, which says exactly what a test wants."""

    broker: Served
    rm: str = WSRM11
    soap: str = "1.2"
    acks_to: str = ""
    identifier: str = ""
    answers: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wsa = WSA[self.rm]

    def post(
        self, saying: str, header: bytes = b"", body: bytes = b"", **addressing: str
    ) -> tuple[int, Envelope | None]:
        header = write_headers(self.wsa, action=saying, **addressing) + header
        message = write_envelope(self.soap, header=header, body=body)
        host, _, port = self.broker.address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
        try:
            connection.request("POST", "/soap", message, dict(http_headers(self.soap, saying)))
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if not text:
            return answer.status, None
        self.answers.append(text)
        return answer.status, read_envelope(text)

    def ask(self, content: Content) -> Any:
        """The answer to a message about sequences, or the name of the fault."""
        saying = action(self.rm, type(content).__name__)
        _, answer = self.post(
            saying, body=write_content(content, self.wsa), message_id="urn:uuid:ask"
        )
        if answer is None:
            return None
        fault = fault_name(answer)
        assert answer.content is not None
        return fault or read_content(answer)

    def begin(self, lease_ns: int | None = None) -> Publisher:
        back = EndpointReference(self.acks_to or anonymous(self.wsa), self.wsa)
        made = self.ask(CreateSequence(self.rm, back, lease_ns))
        assert isinstance(made, CreateSequenceResponse), made
        assert made.lease_ns is not None
        assert lease_ns is None or made.lease_ns <= lease_ns
        self.identifier = made.identifier
        return self

    def send(
        self, number: int, *, last: bool = False, body: bytes | None = None, **addressing: str
    ) -> Acknowledgement | str | None:
        """Publish `number` with this number. Returns the acknowledgement, or the fault's name."""
        place = write_sequence(Sequence(self.rm, self.identifier, number, last), self.soap)
        payload = b"<n>%d</n>" % number if body is None else body
        _, answer = self.post("urn:reading", place, payload, **addressing)
        if answer is None:
            return None
        acknowledgements = read_blocks(answer).acknowledgements
        return fault_name(answer) or (acknowledgements[0] if acknowledgements else None)

    def acked(self, *pairs: tuple[int, int], final: bool = False) -> Acknowledgement:
        return Acknowledgement(self.rm, self.identifier, pairs, final=final)


def published(broker: Served) -> list[int]:
    """The numbers in the log, in its order."""
    found: list[int] = []
    after = 0
    while True:
        _, page = broker.call("GET", f"/events?after={after}")
        if not page["events"]:
            return found
        found += [int(e["data"].removeprefix("<n>").removesuffix("</n>")) for e in page["events"]]
        after = page["next"]


def wait_for(broker: Served, numbers: list[int]) -> None:
    end = time.monotonic() + PATIENCE_S
    while published(broker) != numbers and time.monotonic() < end:
        time.sleep(0.02)
    assert published(broker) == numbers


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as broker:
        yield broker


@pytest.fixture
def empty() -> Iterator[Served]:
    with served() as broker:
        yield broker


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_what_comes_twice_or_too_early_is_stored_once_and_in_order(rm: str, soap: str) -> None:
    with served() as broker:
        publisher = Publisher(broker, rm, soap).begin()

        assert publisher.send(1) == publisher.acked((1, 1))
        assert publisher.send(3) == publisher.acked((1, 1), (3, 3))
        assert publisher.send(5) == publisher.acked((1, 1), (3, 3), (5, 5))
        assert publisher.send(3) == publisher.acked((1, 1), (3, 3), (5, 5))
        assert published(broker) == [1]
        assert publisher.send(2) == publisher.acked((1, 3), (5, 5))
        wait_for(broker, [1, 2, 3])
        assert publisher.send(1) == publisher.acked((1, 3), (5, 5))
        assert publisher.send(4) == publisher.acked((1, 5))
        wait_for(broker, [1, 2, 3, 4, 5])
        assert [publisher.send(n) for n in (5, 1, 4)] == [publisher.acked((1, 5))] * 3

        assert published(broker) == [1, 2, 3, 4, 5]
        for answer in publisher.answers:
            validator(KIND[rm], foreign=True)(answer)


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_what_was_acknowledged_is_known_after_a_power_cut(rm: str, soap: str) -> None:
    with served() as broker:
        publisher = Publisher(broker, rm, soap).begin()
        assert publisher.send(1) == publisher.acked((1, 1))
        assert publisher.send(3) == publisher.acked((1, 1), (3, 3))
        assert publisher.send(4) == publisher.acked((1, 1), (3, 4))

        broker.kill()
        broker.start()

        assert publisher.send(1) == publisher.acked((1, 1), (3, 4))
        assert publisher.send(4) == publisher.acked((1, 1), (3, 4))
        assert published(broker) == [1]
        assert publisher.send(2) == publisher.acked((1, 4))
        broker.kill()
        broker.start()
        wait_for(broker, [1, 2, 3, 4])
        assert [publisher.send(n) for n in (2, 3, 5)] == [
            publisher.acked((1, 4)),
            publisher.acked((1, 4)),
            publisher.acked((1, 5)),
        ]
        wait_for(broker, [1, 2, 3, 4, 5])


def test_every_message_is_stored_once_and_in_order_through_losses_and_power_cuts(
    empty: Served,
) -> None:
    random, messages, kills = Random(7), 150, 0
    publisher = Publisher(empty).begin()
    acknowledged: Ranges = ()
    lock = threading.Lock()

    def send_some(numbers: list[int]) -> None:
        nonlocal acknowledged
        for number in numbers:
            try:
                # Half of them have no MessageID: what they become is known all the same.
                known = {"message_id": f"urn:m:{number}"} if number % 2 else {}
                answer = publisher.send(number, **known)
            except (OSError, http.client.HTTPException):
                return
            with lock:
                if isinstance(answer, Acknowledgement) and random.random() < 0.7:
                    acknowledged = union(acknowledged, answer.ranges)

    for _ in range(100):
        missing = [
            n for n in range(1, messages + 1) if not any(a <= n <= b for a, b in acknowledged)
        ]
        if not missing:
            break
        random.shuffle(missing)
        senders = [threading.Thread(target=send_some, args=(missing[i::3][:9],)) for i in range(3)]
        for sender in senders:
            sender.start()
        if kills < 6:
            kills += 1
            time.sleep(random.random() * 0.03)
            empty.kill()
        for sender in senders:
            sender.join()
        if empty.process.poll() is not None:
            empty.start()

    wait_for(empty, list(range(1, messages + 1)))
    assert publisher.send(1) == publisher.acked((1, messages))


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
