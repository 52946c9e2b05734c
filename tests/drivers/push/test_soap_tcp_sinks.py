"""Consumers at soap.tcp addresses: one connection, one message at a time, and no silent loss."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from world import World

from tocsin.broker.delivery.address import parse_address
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome, Verdict, judge
from tocsin.broker.effects import Push
from tocsin.broker.runtime import HttpAnswer
from tocsin.drivers.push.envelope_sender import EnvelopeSender
from tocsin.drivers.push.http_client import HttpClient
from tocsin.errors import PeerFailed
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, SoapTerms, Subscription
from tocsin.wire.dime import Decoder, envelope_message, read_envelope_message
from tocsin.wire.soap.addressing import read_addressing
from tocsin.wire.soap.envelope import content_type, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, write_fault
from tocsin.wire.soap.names import WSA2005

TAKEN = Answered(202)
Read = Callable[[], Awaitable[bytes]]


def reading(reader: asyncio.StreamReader) -> Read:
    """Envelopes of a connection, one by one."""
    decoder = Decoder()

    async def read() -> bytes:
        while (message := decoder.next_message()) is None:
            data = await reader.read(1 << 16)
            if not data:
                raise asyncio.IncompleteReadError(b"", None)
            decoder.receive(data)
        return read_envelope_message(message)[1]

    return read


def fault(about: str) -> bytes:
    header = b'<a:RelatesTo xmlns:a="%b">%b</a:RelatesTo>' % (WSA2005.encode(), about.encode())
    body = write_fault(SoapFault("Sender", "I do not\nlike it"), "1.2")
    return envelope_message("1.2", write_envelope("1.2", header=header, body=body))


class Sender:
    """A line of its own, watched for deadlines as the pusher's are."""

    def __init__(self, world: World, address: str) -> None:
        self._world = world
        self.line = EnvelopeSender(world.pusher, 1, address, parse_address(address))

    def send(self, envelope: bytes, *, soap: str = "1.1", timeout_s: float = 5.0) -> Outcome:
        loop = self._world.loop
        finished: asyncio.Future[Outcome] = loop.create_future()

        def done(number: int, outcome: Outcome) -> None:
            assert number == 1
            finished.set_result(outcome)

        until_s = loop.time() + timeout_s
        self.line.ask_envelope(envelope, soap, done, until_s)
        assert not finished.done()
        expiry = loop.call_at(until_s, lambda: self.line.is_busy and self.line.expire())
        outcome = loop.run_until_complete(finished)
        expiry.cancel()
        return outcome


def consumer(world: World, script: Callable[..., Awaitable[None]]) -> Sender:
    address = world.sink(script)
    return Sender(world, address.replace("http://", "soap.tcp://"))


@pytest.fixture
def got() -> list[bytes]:
    return []


def test_messages_go_in_order_on_one_connection(world: World, got: list[bytes]) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = reading(reader)
        while True:
            got.append(await read())

    sender = consumer(world, script)

    outcomes = [sender.send(b"<e>%d</e>" % n) for n in range(20)]
    world.wait(0.05)

    assert outcomes == [TAKEN] * 20
    assert got == [b"<e>%d</e>" % n for n in range(20)]
    assert world.connections == 1
    sender.line.close()


def test_the_record_is_what_wse_reads(world: World) -> None:
    raw = bytearray()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            raw.extend(data)

    sender = consumer(world, script)

    sender.send(b"<e/>", soap="1.2")
    world.wait(0.05)

    assert bytes(raw) == envelope_message("1.2", b"<e/>")
    sender.line.close()


def test_a_large_message_counts_when_all_of_it_is_taken(world: World, got: list[bytes]) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        got.append(await reading(reader)())
        await reader.read()

    sender = consumer(world, script)
    large = b"<e>" + b"x" * (8 << 20) + b"</e>"

    assert sender.send(large) == TAKEN
    world.wait(0.1)
    assert got == [large]
    sender.line.close()


def test_a_consumer_that_takes_nothing_is_given_up_at_the_deadline(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    sender = consumer(world, script)

    outcome = sender.send(b"x" * (32 << 20), timeout_s=0.5)

    assert outcome == Failed("the sink did not take the message in time", reachable=True)
    assert not sender.line.is_open


def test_nobody_there_is_waited_for_and_not_counted_against_the_event(world: World) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"soap.tcp://127.0.0.1:{probe.getsockname()[1]}/"

    outcome = Sender(world, address).send(b"<e/>")

    assert judge(outcome) is Verdict.WAIT


def test_a_connection_that_ended_between_messages_is_made_again(
    world: World, got: list[bytes]
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reading(reader)())

    sender = consumer(world, script)

    for number in range(3):
        assert sender.send(b"<e>%d</e>" % number) == TAKEN
        world.wait(0.05)

    assert got == [b"<e>0</e>", b"<e>1</e>", b"<e>2</e>"]
    assert world.connections == 3


def test_a_consumer_that_hangs_up_on_a_message_did_not_take_it(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.transport.abort()

    sender = consumer(world, script)

    outcome = sender.send(b"x" * (32 << 20))

    assert isinstance(outcome, Failed)
    assert judge(outcome) is Verdict.RETRY


def test_a_fault_that_comes_back_refuses_the_message_it_is_about(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(100)  # before all of it is there, so before it can count
        writer.write(fault("urn:uuid:1"))
        await reader.read(-1)

    sender = consumer(world, script)

    outcome = sender.send(b"<e>urn:uuid:1" + b"x" * (32 << 20) + b"</e>")

    assert isinstance(outcome, Failed)
    assert outcome.reachable
    assert "SOAP fault: I do not" in outcome.reason
    assert outcome.reason.isprintable()


def test_a_fault_about_an_earlier_message_is_noted_and_blames_no_other(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = reading(reader)
        await read()
        await read()
        writer.write(fault("urn:uuid:1"))
        await reader.read()

    sender = consumer(world, script)
    outcomes = [sender.send(b"<e>urn:uuid:1</e>"), sender.send(b"<e>urn:uuid:2</e>")]
    world.wait(0.05)

    assert outcomes == [TAKEN, TAKEN]
    assert [level for level, _ in world.notes] == ["warning"]
    sender.line.close()


@pytest.mark.parametrize("answer", [write_envelope("1.1", body=b"<thanks/>"), b"<no", b"<a/>"])
def test_an_answer_that_is_no_fault_changes_nothing(world: World, answer: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = reading(reader)
        while True:
            await read()
            writer.write(envelope_message("1.1", answer))

    sender = consumer(world, script)

    assert [sender.send(b"<e/>") for _ in range(5)] == [TAKEN] * 5
    assert world.connections == 1
    assert world.notes == []
    sender.line.close()


def test_an_http_server_at_a_soap_tcp_address_is_no_consumer_for_long(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read(-1)

    sender = consumer(world, script)

    outcome = sender.send(b"x" * (32 << 20))

    assert isinstance(outcome, Failed)
    assert "not SOAP on TCP" in outcome.reason


def test_the_guard_judges_where_a_soap_tcp_address_leads(world: World) -> None:
    outcome = Sender(world, "soap.tcp://169.254.169.254/").send(b"<e/>")

    assert isinstance(outcome, Failed)
    assert "cloud metadata" in outcome.reason


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_a_letter_may_go_to_a_soap_tcp_address(world: World, got: list[bytes], soap: str) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read(1 << 16))

    url = world.sink(script).replace("http://", "soap.tcp://")
    kind = {"Content-Type": content_type(soap, "urn:end")}

    answer = world.loop.run_until_complete(HttpClient(world.pusher).post(url, b"<over/>", kind))
    world.wait(0.05)

    assert answer == HttpAnswer(202, {}, b"")
    assert got == [envelope_message(soap, b"<over/>")]
    assert world.pusher.open == 0


def test_a_letter_to_nobody_is_told(world: World) -> None:
    with pytest.raises(PeerFailed):
        world.loop.run_until_complete(
            HttpClient(world.pusher).post("soap.tcp://127.0.0.1:1/", b"<over/>", {})
        )


def test_only_what_is_soap_may_go_to_a_soap_tcp_address(world: World) -> None:
    outcome = world.push("soap.tcp://127.0.0.1:9/")

    assert isinstance(outcome, Failed)
    assert "takes no events of the HTTP API" in outcome.reason


@pytest.mark.parametrize("spec", ["wse04", "wsn13"])
@pytest.mark.parametrize("soap", ["1.1", "1.2"])
def test_an_event_reaches_a_consumer_in_its_own_specification(
    world: World, got: list[bytes], spec: str, soap: str
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        read = reading(reader)
        while True:
            got.append(await read())

    address = world.sink(script).replace("http://", "soap.tcp://")
    terms = SoapTerms(spec=spec, soap=soap, wsa=WSA2005)
    subscription = Subscription(id="sub1", kind=Kind.PUSH, sink=address, soap=terms)
    event = Event(
        id="e-1", source="/s", type="t", topic="lab/7",
        datacontenttype="application/xml", data=b"<reading>7</reading>",
    )  # fmt: skip
    finished: asyncio.Future[Outcome] = world.loop.create_future()

    push = Push(1, address, subscription, [Stored(7, 0, event)], 5.0)
    world.pusher.send(push, lambda _, outcome: finished.set_result(outcome))

    assert world.loop.run_until_complete(finished) == TAKEN
    world.wait(0.05)
    (message,) = got
    envelope = read_envelope(message)
    assert envelope.soap == soap
    assert b"<reading>7</reading>" in message
    assert read_addressing(envelope).to == address
