"""Consumers at gma addresses that refuse, hang up, stay silent or talk nonsense: no silent loss."""

from __future__ import annotations

import asyncio
import socket

import pytest
from gma_consumers import TAKEN, Archive, Consumer, at, event, push
from world import World

from tocsin.broker.delivery.outcome import Failed, Verdict, judge
from tocsin.event.event import Event
from tocsin.wire.framing import framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.write import write


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

    assert first == Failed(
        "the consumer closed the connection in the middle of an event", reachable=True
    )
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


def test_garbage_that_comes_together_with_good_answers_ends_the_connection(world: World) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        consumer.accept(await consumer.next())
        arrived = await consumer.next()
        assert isinstance(arrived, c.EventArrived)
        reply = framed(write(m.EventReply(arrived.message.request_id or "")))
        writer.write(reply + b"\0\0\0\0")
        await reader.read(-1)

    outcome = push(world, at(world, script), event(1))
    world.wait(0.05)

    assert outcome == TAKEN, "the answer came first"
    assert world.notes == [("warning", "the connection to a consumer was closed")]
    assert world.pusher.open == 0
