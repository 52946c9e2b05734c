"""Consumers at gma addresses that have something to say themselves."""

from __future__ import annotations

import asyncio

import pytest
from gma_consumers import TAKEN, Consumer, at, event, push
from world import World

from tocsin.broker.delivery.outcome import Failed
from tocsin.drivers.push import gma_offers
from tocsin.wire.framing import framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import PROTOCOL, EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write


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
    monkeypatch.setattr(gma_offers, "ASK_AGAIN_S", 0.3)
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
                assert "broker's own address" in (happening.detail or "")
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
        "the consumer does not read the answers to its requests", reachable=True
    )
