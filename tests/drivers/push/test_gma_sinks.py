"""Consumers at gma addresses: events under the consumer's own ids, in order, and no silent loss."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from conftest import World, here, trusting
from tocsin.broker.effects import Push
from tocsin.delivery.outcome import Answered, Failed, Outcome, Verdict, judge
from tocsin.delivery.trust import is_gma_address, parse_sink
from tocsin.drivers.push import gma_connection
from tocsin.errors import BadSubscription
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Config, Kind, Subscription
from tocsin.wire.framing import FrameCutter, framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import PROTOCOL, EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

TAKEN = Answered(202)


class Consumer:
    """A small consumer: what it got, and what it does when something comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._cutter = FrameCutter(1 << 24)
        self._frames: list[bytes] = []
        self.conversation = c.Conversation(frozenset({c.CONSUMER}))

    async def next(self) -> c.Happening:
        while not self._frames:
            data = await self._reader.read(1 << 16)
            if not data:
                raise asyncio.IncompleteReadError(b"", None)
            self._frames += self._cutter.cut(data)
        return self.conversation.receive(read(self._frames.pop(0)))

    def say(self, message: m.Message) -> None:
        self._writer.write(framed(write(message)))

    def accept(self, asked: c.Happening, *, acknowledge: bool = True) -> c.Subscription:
        assert isinstance(asked, c.SubscribeAsked)
        options = asked.request.options
        assert options is not None
        agreed = m.Options(acknowledge=options.acknowledge) if acknowledge else None
        reply, subscription = self.conversation.accept(asked.request, agreed=agreed)
        self.say(reply)
        return subscription


class Archive:
    """Keeps what comes, as the test says."""

    def __init__(self, *, acknowledge: bool = True) -> None:
        self.acknowledge = acknowledge
        self.offers: list[m.SubscribeRequest] = []
        self.got: list[m.EventMessage] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        while True:
            happening = await consumer.next()
            if isinstance(happening, c.SubscribeAsked):
                self.offers.append(happening.request)
                consumer.accept(happening, acknowledge=self.acknowledge)
            elif isinstance(happening, c.EventArrived):
                self.got.append(happening.message)
                if happening.message.request_id is not None:
                    consumer.say(m.EventReply(happening.message.request_id))

    @property
    def values(self) -> list[object]:
        return [message.event["n"] for message in self.got if message.event is not None]


def at(world: World, script: Callable[..., Awaitable[None]]) -> str:
    return world.sink(script).replace("http://", "gma://").removesuffix("/hook")


def event(n: int, kind: str = "urn:lab/Reading") -> Event:
    return Event(
        id=f"e-{n}", source="/lab", type=kind, time="2026-11-16T00:00:00Z",
        datacontenttype="application/json", data=b'{"n": %d}' % n,
    )  # fmt: skip


def push(
    world: World,
    address: str,
    *events: Event,
    seq: int = 1,
    subscription: str = "sub1",
    timeout_s: float = 5.0,
) -> Outcome:
    stored = [Stored(seq + i, 0, each) for i, each in enumerate(events)]
    pushed = Subscription(id=subscription, kind=Kind.PUSH, sink=address, config=Config(batch=100))
    finished: asyncio.Future[Outcome] = world.loop.create_future()
    world.pusher.send(
        Push(1, address, pushed, stored, timeout_s), lambda _, outcome: finished.set_result(outcome)
    )
    assert not finished.done(), "answered before send returned"
    return world.loop.run_until_complete(finished)


@pytest.mark.parametrize("acknowledge", [True, False])
def test_events_go_in_order_under_the_id_that_the_consumer_gave(
    world: World, acknowledge: bool
) -> None:
    archive = Archive(acknowledge=acknowledge)
    address = at(world, archive)

    outcomes = [push(world, address, event(n), seq=n) for n in range(1, 11)]
    world.wait(0.05)

    assert outcomes == [TAKEN] * 10
    assert archive.values == list(range(1, 11))
    assert world.connections == 1
    (offer,) = archive.offers
    assert offer.parameters == m.Parameters(EventName("Reading", "urn:lab"))
    assert offer.options == m.Options(role="producer", acknowledge="sub1")
    numbers = [f"e{n}" for n in range(1, 11)] if acknowledge else [None] * 10
    assert [message.request_id for message in archive.got] == numbers


def test_the_element_arrives_as_it_was_published(world: World) -> None:
    raw = bytearray()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        subscription = consumer.accept(await consumer.next(), acknowledge=False)
        assert subscription.own_id == "1"
        while data := await reader.read(1 << 16):
            raw.extend(data)

    load = (
        b'<UptimeCPULoad xmlns="http://www.gridforum.org/Performance/Events">'
        b"<Load1>1.5</Load1><TimeStamp>2000-11-09T21:51:45Z</TimeStamp></UptimeCPULoad>"
    )
    whole = Event(
        id="e", source="gma://foo.gov", type=EventName("UptimeCPULoad").type,
        datacontenttype="application/xml", data=load,
    )  # fmt: skip

    assert push(world, at(world, script), whole) == TAKEN
    world.wait(0.05)

    message = b'<Event xmlns="%b" subscriptionID="1">%b</Event>' % (PROTOCOL.encode(), load)
    assert bytes(raw) == framed(message)


def test_each_name_and_each_subscription_is_offered_once(world: World) -> None:
    archive = Archive()
    address = at(world, archive)
    mixed = [event(1), event(2, "urn:lab/Alarm"), event(3), event(4, "urn:lab/Alarm")]

    assert push(world, address, *mixed) == TAKEN
    assert push(world, address, *mixed, seq=5) == TAKEN
    assert push(world, address, event(9), seq=9, subscription="sub2") == TAKEN

    assert archive.values == [1, 2, 3, 4, 1, 2, 3, 4, 9]
    offered = [(offer.options, offer.parameters.name.local) for offer in archive.offers]
    assert [(options and options.acknowledge, name) for options, name in offered] == [
        ("sub1", "Reading"),
        ("sub1", "Alarm"),
        ("sub2", "Reading"),
    ]


def test_a_refused_offer_fails_with_the_words_of_the_consumer_and_keeps_the_connection(
    world: World,
) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        while True:
            asked = await consumer.next()
            assert isinstance(asked, c.SubscribeAsked)
            consumer.say(consumer.conversation.refuse(asked.request, "no\troom"))

    address = at(world, script)

    outcomes = [push(world, address, event(n), seq=n) for n in (1, 2)]

    refused = Failed("the consumer refused {urn:lab}Reading: no\ufffdroom", reachable=True)
    assert outcomes == [refused, refused]
    assert judge(refused) is Verdict.RETRY
    assert world.connections == 1


def test_an_event_that_is_refused_fails_with_the_words_of_the_consumer(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        consumer.accept(await consumer.next())
        while True:
            arrived = await consumer.next()
            assert isinstance(arrived, c.EventArrived)
            number = arrived.message.request_id or ""
            bad = number == "e2"
            consumer.say(
                m.EventReply(number, m.FAILURE, "disk full") if bad else m.EventReply(number)
            )

    address = at(world, script)

    together = push(world, address, event(1), event(2), event(3))
    alone = [push(world, address, event(n), seq=n) for n in (1, 2, 3)]

    refused = Failed("the consumer refused the event: disk full", reachable=True)
    assert together == refused
    assert alone == [TAKEN, refused, TAKEN]
    assert world.connections == 1


def test_without_its_acknowledgement_an_event_is_not_delivered(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        consumer.accept(await consumer.next())
        await consumer.next()
        await asyncio.sleep(60)

    outcome = push(world, at(world, script), event(1), timeout_s=0.5)

    reason = "the consumer did not acknowledge the event in time"
    assert outcome == Failed(reason, reachable=True)
    assert world.pusher.open == 0


def test_an_offer_that_nobody_answers_is_given_up_at_the_deadline(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    outcome = push(world, at(world, script), event(1), timeout_s=0.5)

    assert isinstance(outcome, Failed)
    assert "did not answer the offer of {urn:lab}Reading" in outcome.reason


def test_a_consumer_that_takes_nothing_is_given_up_at_the_deadline(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        consumer.accept(await consumer.next(), acknowledge=False)
        await asyncio.sleep(60)

    large = Event(
        id="e", source="/lab", type="t", datacontenttype="text/plain", data=b"x" * (32 << 20)
    )

    outcome = push(world, at(world, script), large, timeout_s=2.0)

    assert outcome == Failed("the consumer did not take the event in time", reachable=True)


def test_nobody_there_is_waited_for_and_not_counted_against_the_event(world: World) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"gma://127.0.0.1:{probe.getsockname()[1]}"

    assert judge(push(world, address, event(1))) is Verdict.WAIT


@pytest.mark.parametrize("acknowledge", [True, False])
def test_a_connection_that_ended_between_events_is_made_again_and_offered_again(
    world: World, acknowledge: bool
) -> None:
    got: list[str | None] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        consumer.accept(await consumer.next(), acknowledge=acknowledge)
        arrived = await consumer.next()
        assert isinstance(arrived, c.EventArrived)
        got.append(arrived.message.request_id)
        if acknowledge:
            consumer.say(m.EventReply(arrived.message.request_id or ""))

    address = at(world, script)

    for number in (1, 2, 3):
        assert push(world, address, event(number), seq=number) == TAKEN
        world.wait(0.05)

    assert got == (["e1", "e2", "e3"] if acknowledge else [None] * 3)
    assert world.connections == 3


def test_who_hangs_up_on_an_event_did_not_take_it_and_gets_the_same_number_again(
    world: World,
) -> None:
    numbers: list[str | None] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        consumer.accept(await consumer.next())
        arrived = await consumer.next()
        assert isinstance(arrived, c.EventArrived)
        numbers.append(arrived.message.request_id)
        if len(numbers) > 1:
            consumer.say(m.EventReply(numbers[-1] or ""))

    address = at(world, script)

    first, second = (push(world, address, event(7), seq=7) for _ in range(2))

    assert first == Failed("the consumer hung up within an event", reachable=True)
    assert second == TAKEN
    assert numbers == ["e7", "e7"]


GARBAGE = {
    "no length": b"\0\0\0\0",
    "too long": b"\x7f\xff\xff\xff",
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no XML": framed(b"hello"),
    "no message": framed(b"<hello/>"),
    "a reply to nothing": framed(write(m.UnsubscribeReply("77"))),
    "an event": framed(write(m.EventMessage("1", error="Failed"))),
    "no UTF-8": framed(b"\xff\xfe\xff"),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_ends_the_connection_and_the_attempt(world: World, garbage: bytes) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(garbage)
        await reader.read(-1)

    outcome = push(world, at(world, script), event(1))

    assert isinstance(outcome, Failed)
    assert "cannot be understood" in outcome.reason
    assert judge(outcome) is Verdict.RETRY
    assert world.pusher.open == 0


def test_garbage_between_two_events_is_noted(world: World) -> None:
    writers: list[asyncio.StreamWriter] = []
    archive = Archive()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await archive(reader, writer)

    address = at(world, script)
    push(world, address, event(1))
    writers[0].write(b"\0\0\0\0")
    world.wait(0.05)

    assert world.notes == [("warning", "the connection to a consumer was closed")]
    assert push(world, address, event(2), seq=2) == TAKEN
    assert archive.values == [1, 2]


# The consumer has something to say


class Leaving:
    """Accepts, takes one event, and unsubscribes."""

    def __init__(self) -> None:
        self.offers = 0
        self.replies: list[m.Reply] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        while True:
            happening = await consumer.next()
            if isinstance(happening, c.SubscribeAsked):
                self.offers += 1
                consumer.accept(happening)
            elif isinstance(happening, c.EventArrived):
                consumer.say(m.EventReply(happening.message.request_id or ""))
                if happening.message.request_id == "e1":
                    consumer.say(consumer.conversation.unsubscribe(happening.subscription))
            elif isinstance(happening, c.Answered):
                self.replies.append(happening.reply)


def test_who_unsubscribes_is_left_alone_for_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gma_connection, "ASK_AGAIN_S", 0.3)
    leaving = Leaving()
    address = at(world, leaving)

    first = push(world, address, event(1))
    world.wait(0.05)
    meanwhile = push(world, address, event(2), seq=2)
    other_name = push(world, address, event(3, "urn:lab/Alarm"), seq=3)
    offers_until_then = leaving.offers
    world.wait(0.3)
    later = push(world, address, event(2), seq=2)

    assert first == other_name == later == TAKEN
    assert leaving.replies == [m.UnsubscribeReply("1")]
    reason = "the consumer ended the subscription to {urn:lab}Reading"
    assert meanwhile == Failed(reason, reachable=True)
    assert (offers_until_then, leaving.offers) == (2, 3)
    assert world.connections == 1


def test_an_event_that_passes_the_consumers_goodbye_is_not_delivered(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        subscription = consumer.accept(await consumer.next())
        await consumer.next()
        consumer.say(consumer.conversation.unsubscribe(subscription))
        while True:
            await consumer.next()

    outcome = push(world, at(world, script), event(1))

    assert isinstance(outcome, Failed)
    assert "ended the subscription" in outcome.reason


def test_who_asks_us_something_is_told_where_to_ask(world: World) -> None:
    replies: list[m.Message] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        asked = await consumer.next()
        load = m.Parameters(EventName("UptimeCPULoad"))
        for request in (
            consumer.conversation.query(load),
            consumer.conversation.event_names(),
            consumer.conversation.subscribe(load)[0],
        ):
            consumer.say(request)
            happening = await consumer.next()
            if isinstance(happening, c.Answered):
                replies.append(happening.reply)
            else:
                assert isinstance(happening, c.Refused)
                assert "broker's own door" in (happening.detail or "")
        writer.write(framed(b'<QueryRequest xmlns="%b" requestID="9"/>' % PROTOCOL.encode()))
        replies.append(read((await reader.read(1 << 16))[4:]))
        consumer.accept(asked)
        arrived = await consumer.next()
        assert isinstance(arrived, c.EventArrived)
        consumer.say(m.EventReply(arrived.message.request_id or ""))
        await reader.read()

    assert push(world, at(world, script), event(1)) == TAKEN
    assert [type(reply) for reply in replies] == [m.QueryReply, m.EventNamesReply, m.QueryReply]
    for reply in replies:
        assert isinstance(reply, m.Reply)
        assert reply.returned == m.FAILURE


def test_who_asks_and_does_not_listen_is_hung_up_on(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        number = 0
        while True:
            number += 1
            writer.write(framed(write(m.EventNamesRequest(f"{number:0200}"))))
            await writer.drain()

    outcome = push(world, at(world, script), event(1), timeout_s=20.0)

    assert outcome == Failed(
        "the consumer asks, and does not read what is answered", reachable=True
    )


def test_the_longest_unused_name_makes_room(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gma_connection, "NAMES_MAX", 2)
    archive = Archive()
    address = at(world, archive)

    for seq, name in enumerate("ABACB", start=1):
        assert push(world, address, event(seq, f"urn:lab/{name}"), seq=seq) == TAKEN

    assert archive.values == [1, 2, 3, 4, 5]
    offered = [offer.parameters.name.local for offer in archive.offers]
    assert offered == ["A", "B", "C", "B"]


def test_a_thousand_events_of_many_names_go_out_together(world: World) -> None:
    archive = Archive()
    events = [event(n, f"urn:lab/Kind{n // 5}") for n in range(1_000)]

    assert push(world, at(world, archive), *events) == TAKEN
    assert archive.values == list(range(1_000))
    assert len(archive.offers) == 200


def test_the_guard_judges_where_a_gma_address_leads(world: World) -> None:
    outcome = push(world, "gma://169.254.169.254:8401", event(1))

    assert isinstance(outcome, Failed)
    assert "cloud metadata" in outcome.reason


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl command")
def test_a_gmas_sink_is_spoken_to_by_tls_and_must_be_who_it_says(
    world: World, certificates: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "sink.pem", certificates / "sink.key")
    archives = [Archive(acknowledge=True), Archive(acknowledge=False)]
    ports = [world.sink(each, ssl=context).split(":")[2].split("/")[0] for each in archives]
    world.restart(resolve=here, tls=trusting(certificates))

    for port in ports:
        address = f"gmas://sink.example:{port}"
        assert [push(world, address, event(n), seq=n) for n in (1, 2)] == [TAKEN] * 2
    stranger = push(world, f"gmas://other.example:{ports[0]}", event(3), seq=3)
    world.wait(0.05)

    assert [archive.values for archive in archives] == [[1, 2]] * 2
    assert isinstance(stranger, Failed)
    assert stranger.reason.startswith("no trust in the sink's TLS")


@pytest.mark.parametrize(
    ("address", "host", "port", "tls"),
    [
        ("gma://127.0.0.1:9", "127.0.0.1", 9, False),
        ("GMA://Node7.Example/", "node7.example", 8401, False),
        ("gmas://[::1]", "::1", 8401, True),
    ],
)
def test_a_gma_address_is_a_host_and_a_port(address: str, host: str, port: int, tls: bool) -> None:
    sink = parse_sink(address, gma=True)

    assert (sink.host, sink.port, sink.tls, sink.gma) == (host, port, tls, True)
    assert is_gma_address(address)
    with pytest.raises(BadSubscription, match="no http or https address"):
        parse_sink(address)  # where only CloudEvents or SOAP can go


def test_an_address_with_a_path_is_no_gma_address() -> None:
    with pytest.raises(BadSubscription, match="has a path"):
        parse_sink("gma://127.0.0.1:9/archive", gma=True)
