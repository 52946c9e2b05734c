"""Consumers of WS-ReliableMessaging: each event once and in order, whatever goes wrong."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from random import Random

import pytest

from schemas import validator
from served import Served, served
from tocsin.wire.soap.addressing import read_addressing, write_headers
from tocsin.wire.soap.envelope import (
    Envelope,
    content_type,
    http_headers,
    read_envelope,
    write_envelope,
)
from tocsin.wire.soap.fault import SoapFault, http_status, write_fault
from tocsin.wire.soap.names import (
    WSA2005,
    WSA200408,
    WSN13,
    WSN13_ACTIONS,
    WSRM10,
    WSRM11,
    WSRMP10,
    WSRMP11,
)
from tocsin.wire.wsrm import destination, faults
from tocsin.wire.wsrm.destination import Decision, Inbound
from tocsin.wire.wsrm.messages import (
    Acknowledgement,
    CreateSequence,
    CreateSequenceResponse,
    Sequence,
    TerminateSequence,
)
from tocsin.wire.wsrm.read import read_blocks, read_content
from tocsin.wire.wsrm.write import write_acknowledgement, write_content

BOTH = list(product((WSRM10, WSRM11), ("1.1", "1.2")))
KIND = {WSRM10: "wsrm10", WSRM11: "wsrm11"}
WSA = {WSRM10: WSA200408, WSRM11: WSA2005}
POLICY = {WSRM10: WSRMP10, WSRM11: WSRMP11}
PATIENCE_S = 20.0
QUICK = {"TOCSIN_DELIVERY__FIRST_DELAY_S": "0.02"}

TAKES, FORGETS_TO_ACKNOWLEDGE, HANGS_UP, FORGETS_THE_SEQUENCE, REFUSES = range(5)


@dataclass
class Consumer:
    """The receiving end, with the state machine that the broker has, and mishaps."""

    rm: str = WSRM11
    mishaps: list[int] = field(default_factory=list)  # of the next deliveries, in turn
    taken: list[str] = field(default_factory=list)
    places: list[Sequence] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    created: list[CreateSequence] = field(default_factory=list)
    terminated: list[TerminateSequence] = field(default_factory=list)
    sequences: dict[str, Inbound] = field(default_factory=dict)
    address: str = ""

    def answer(self, data: bytes) -> tuple[int, bytes] | None:
        self.messages.append(data)
        envelope = read_envelope(data)
        place = read_blocks(envelope).sequence
        if place is not None:
            return self._deliver(envelope, place)
        assert envelope.content is not None
        content = read_content(envelope)
        if isinstance(content, CreateSequence):
            self.created.append(content)
            return self._create(envelope)
        assert isinstance(content, TerminateSequence)
        self.terminated.append(content)
        return 202, b""

    def _create(self, envelope: Envelope) -> tuple[int, bytes]:
        identifier = f"urn:consumer:{len(self.created)}"
        self.sequences[identifier] = Inbound(
            identifier=identifier, rm=self.rm, soap=envelope.soap, expires_ns=0, used_ns=0
        )
        addressing = read_addressing(envelope)
        header = write_headers(
            addressing.wsa,
            action=f"{self.rm}/CreateSequenceResponse",
            relates_to=addressing.message_id,
        )
        body = write_content(CreateSequenceResponse(self.rm, identifier), addressing.wsa)
        return 200, write_envelope(envelope.soap, header=header, body=body)

    def _deliver(self, envelope: Envelope, place: Sequence) -> tuple[int, bytes] | None:
        mishap = self.mishaps.pop(0) if self.mishaps else TAKES
        self.places.append(place)
        if mishap == REFUSES:
            return 503, b""
        if mishap == FORGETS_THE_SEQUENCE:
            self.sequences.clear()
        known = self.sequences.get(place.identifier)
        if known is None:
            fault = faults.unknown(faults.PeerVersions(self.rm, envelope.soap), place.identifier)
            return _refusal(fault, envelope.soap)
        if destination.arrive(known, place, envelope.soap) is Decision.PROCESS:
            known = destination.received(known, place, 0)
            self.sequences[place.identifier] = destination.processed(known, place.number)
            self.taken.append("".join(envelope.body.itertext()).strip())
        if mishap == HANGS_UP:
            return None
        if mishap == FORGETS_TO_ACKNOWLEDGE:
            return 202, b""
        state = destination.acknowledgement(self.sequences[place.identifier])
        return 200, write_envelope(envelope.soap, header=write_acknowledgement(state))


def _refusal(fault: SoapFault, soap: str) -> tuple[int, bytes]:
    message = write_envelope(soap, header=fault.headers, body=write_fault(fault, soap))
    return http_status(fault, soap), message


@contextlib.contextmanager
def listening(consumer: Consumer) -> Iterator[Consumer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = consumer.answer(self.rfile.read(int(self.headers["content-length"])))
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer[0])
            self.send_header("content-length", str(len(answer[1])))
            self.send_header("content-type", content_type("1.1"))
            self.end_headers()
            self.wfile.write(answer[1])

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    consumer.address = f"http://127.0.0.1:{server.server_address[1]}/consumer"
    try:
        yield consumer
    finally:
        server.shutdown()
        server.server_close()


def subscribe(broker: Served, consumer: Consumer, soap: str) -> str:
    """Subscribe by WS-Notification with the policy that asks for reliable messaging."""
    wsa = WSA[consumer.rm]
    body = f"""<n:Subscribe xmlns:n="{WSN13}"><n:ConsumerReference>
        <a:Address xmlns:a="{wsa}">{consumer.address}</a:Address></n:ConsumerReference>
        <n:SubscriptionPolicy><n:UseRaw/><p:RMAssertion xmlns:p="{POLICY[consumer.rm]}"/>
        </n:SubscriptionPolicy></n:Subscribe>""".encode()
    saying = f"{WSN13_ACTIONS}/NotificationProducer/SubscribeRequest"
    header = write_headers(wsa, action=saying, message_id="urn:uuid:subscribe")
    message = write_envelope(soap, header=header, body=body)
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
    connection.request("POST", "/soap", message, dict(http_headers(soap, saying)))
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    assert answer.status == 200, text
    _, page = broker.call("GET", "/subscriptions")
    [subscription] = page["subscriptions"]
    return str(subscription["id"])


def publish(broker: Served, *numbers: int) -> None:
    kind = {"topic": "t", "datacontenttype": "application/xml"}
    broker.publish(*({**kind, "data": f"<n>{number}</n>"} for number in numbers))


def wait_for(consumer: Consumer, numbers: range) -> None:
    wanted = [str(number) for number in numbers]
    end = time.monotonic() + PATIENCE_S
    while consumer.taken != wanted and time.monotonic() < end:
        time.sleep(0.02)
    assert consumer.taken == wanted


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_each_event_is_taken_once_and_in_order_whatever_goes_wrong(rm: str, soap: str) -> None:
    random = Random(3)
    mishaps = random.choices([TAKES, FORGETS_TO_ACKNOWLEDGE, HANGS_UP, REFUSES], k=14)
    with served(env=QUICK) as broker, listening(Consumer(rm, mishaps)) as consumer:
        subscribe(broker, consumer, soap)
        publish(broker, *range(1, 21))

        wait_for(consumer, range(1, 21))

        assert len(consumer.created) == 1
        assert consumer.created[0].acks_to.is_anonymous
        numbers = [place.number for place in consumer.places]
        assert sorted(set(numbers)) == list(range(1, 21))
        assert numbers == sorted(numbers), "one at a time, each until it is acknowledged"
        assert len(numbers) > 20, "some were sent again"
        for message in consumer.messages:
            validator(KIND[rm], foreign=True)(message)
        assert b'mustUnderstand="1"' in consumer.messages[-1]
        assert read_blocks(read_envelope(consumer.messages[-1])).asked


@pytest.mark.parametrize(("rm", "soap"), BOTH)
def test_a_consumer_that_forgot_the_sequence_gets_a_new_one(rm: str, soap: str) -> None:
    mishaps = [TAKES, TAKES, FORGETS_THE_SEQUENCE]
    with served(env=QUICK) as broker, listening(Consumer(rm, mishaps)) as consumer:
        subscribe(broker, consumer, soap)
        publish(broker, 1, 2, 3, 4)

        wait_for(consumer, range(1, 5))

        assert [(p.identifier[-1], p.number) for p in consumer.places] == [
            ("1", 1),
            ("1", 2),
            ("1", 3),
            ("2", 1),
            ("2", 2),
        ]


def test_after_a_power_cut_what_may_have_been_sent_keeps_its_number() -> None:
    slow = {"TOCSIN_DELIVERY__FIRST_DELAY_S": "30"}
    consumer = Consumer(WSRM11, [TAKES, TAKES, HANGS_UP])
    with served(env=slow) as broker, listening(consumer):
        subscribe(broker, consumer, "1.2")
        publish(broker, 1, 2, 3, 4)
        wait_for(consumer, range(1, 4))  # the third is taken, and the broker does not know it

        broker.kill()
        broker.start()

        wait_for(consumer, range(1, 5))
        assert [place.number for place in consumer.places] == [1, 2, 3, 3, 4]
        assert len(consumer.created) == 1


def test_power_cuts_at_any_moment_repeat_nothing_and_lose_nothing() -> None:
    random = Random(13)
    with served(env=QUICK) as broker, listening(Consumer()) as consumer:
        subscribe(broker, consumer, "1.1")
        for start in range(1, 41, 10):
            publish(broker, *range(start, start + 10))
            time.sleep(random.random() * 0.08)
            broker.kill()
            broker.start()

        wait_for(consumer, range(1, 41))


def test_a_consumer_is_told_when_its_subscription_is_over() -> None:
    with served(env=QUICK) as broker, listening(Consumer()) as consumer:
        identity = subscribe(broker, consumer, "1.2")
        publish(broker, 1, 2)
        wait_for(consumer, range(1, 3))

        status, _ = broker.call("DELETE", f"/subscriptions/{identity}")

        assert status in (200, 204)
        end = time.monotonic() + PATIENCE_S
        while not consumer.terminated and time.monotonic() < end:
            time.sleep(0.05)
        assert consumer.terminated == [TerminateSequence(WSRM11, "urn:consumer:1", 2)]


def test_a_consumer_that_begins_no_sequence_gets_nothing_and_the_reason_is_shown() -> None:
    class Plain(Consumer):
        def answer(self, data: bytes) -> tuple[int, bytes] | None:
            self.messages.append(data)
            return 200, write_envelope("1.1")

    with served(env=QUICK) as broker, listening(Plain()) as consumer:
        identity = subscribe(broker, consumer, "1.1")
        publish(broker, 1)
        end = time.monotonic() + PATIENCE_S
        view = ""
        while "did not start a sequence" not in view and time.monotonic() < end:
            _, shown = broker.call("GET", f"/subscriptions/{identity}")
            view = str(shown)
            time.sleep(0.05)

        assert "did not start a sequence" in view
        assert not any(b"<n>1</n>" in message for message in consumer.messages)


def test_the_consumer_acknowledging_what_was_never_sent_is_not_believed() -> None:
    class Boaster(Consumer):
        def _deliver(self, envelope: Envelope, place: Sequence) -> tuple[int, bytes] | None:
            answer = super()._deliver(envelope, place)
            if len(self.places) > 2:
                return answer
            boast = Acknowledgement(self.rm, place.identifier, ((1, 99),))
            return 200, write_envelope(envelope.soap, header=write_acknowledgement(boast))

    with served(env=QUICK) as broker, listening(Boaster()) as consumer:
        subscribe(broker, consumer, "1.1")
        publish(broker, 1, 2)

        wait_for(consumer, range(1, 3))

        assert [place.number for place in consumer.places] == [1, 1, 1, 2]
