"""A conversation of a producer and a consumer of performance events with the broker, in which each
message is allowed, by any way that there is."""

from __future__ import annotations

import asyncio
from typing import Protocol

from frames_walk import ANSWER_S, EVENT, OFFER, PARAMETERS, open_udp, own_id, post
from refusing import Refusing

from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write


class Peer(Protocol):
    """A producer or a consumer, by any way."""

    async def send(self, message: m.Message) -> None: ...

    async def answer(self) -> bytes | None: ...

    def close(self) -> None: ...


async def converse(consumer: Peer, producer: Peer) -> None:
    """Each message has the answer that the protocol has for it, and an event comes through."""
    subscribe = m.SubscribeRequest("1", "mine", PARAMETERS, options=m.Options(role=CONSUMER))
    assert _succeeds(subscribe, await _asked(consumer, subscribe))
    known_as = own_id(await _asked(producer, OFFER))
    for request in (
        m.EventMessage(known_as, EVENT, request_id="2"),
        m.QueryRequest("3", PARAMETERS),
        m.EventNamesRequest("4"),
        m.UnsubscribeRequest("5", known_as),
    ):
        assert _succeeds(request, await _asked(producer, request)), request
    event = await consumer.answer()
    assert event is not None
    assert read(event) == m.EventMessage("mine", EVENT)
    for peer in (consumer, producer):
        peer.close()


async def _asked(peer: Peer, request: m.Message) -> bytes | None:
    await peer.send(request)
    return await peer.answer()


def _succeeds(request: m.Message, answer: bytes | None) -> bool:
    assert answer is not None
    reply = read(answer)
    return type(reply) is m.REPLY_TO[type(request)] and getattr(reply, "returned", "") == m.SUCCESS


class Datagrams:
    """A Peer that sends datagrams."""

    def __init__(self, transport: asyncio.DatagramTransport, answers: asyncio.Queue[bytes]) -> None:
        self._transport = transport
        self._answers = answers

    @classmethod
    async def connect(cls, broker: Refusing) -> Datagrams:
        transport, peer = await open_udp(broker)
        return cls(transport, peer.answers)

    async def send(self, message: m.Message) -> None:
        self._transport.sendto(write(message))

    async def answer(self) -> bytes | None:
        return await asyncio.wait_for(self._answers.get(), ANSWER_S)

    def close(self) -> None:
        self._transport.close()


class Posts:
    """A Peer that posts each message."""

    def __init__(self, broker: Refusing) -> None:
        self._broker = broker
        self._answer = b""

    async def send(self, message: m.Message) -> None:
        status, self._answer = await post(self._broker, "/gma", write(message))
        assert status == 200, self._answer

    async def answer(self) -> bytes | None:
        return self._answer

    def close(self) -> None: ...
