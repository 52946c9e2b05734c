"""Where WS-Eventing's extras end: a service that has enough of them says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from soap.wse_source import Answer, Consumer, consumer
from tocsin.access.session import anonymous, internal
from tocsin.config import load
from tocsin.drivers.application import Application
from tocsin.drivers.logger import Logger
from tocsin.drivers.node import Node
from tocsin.drivers.soap_services import soap_context
from tocsin.event.event import Event
from tocsin.services.eventing import heartbeats, subscription_ends
from tocsin.services.eventing.service import EventingService
from tocsin.services.soap.call import SoapCall
from tocsin.services.soap.dispatcher import Dispatcher
from tocsin.store.store import Store
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.envelope import write_envelope
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wse.messages import PULL, Message, Pull, PullResponse, Subscribe, SubscribeResponse
from tocsin.wire.wse.write import write

PATIENCE_S = 20.0
SENDER = anonymous("soap", "127.0.0.1:1")
Ask = Callable[[Message], Awaitable[Answer]]


@pytest.fixture
def sink() -> Iterator[Consumer]:
    with consumer() as listening:
        yield listening


def run(directory: Path, script: Callable[[Node, Ask], Awaitable[None]]) -> None:
    """A node with a dispatcher of WS-Eventing alone, from its start to its end."""

    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
        app = Application(settings, Store.open(directory), Logger())
        node = app.node
        context = soap_context(app)
        dispatcher = Dispatcher(context, [EventingService(context)])

        async def ask(message: Message) -> Answer:
            body = write_envelope("1.2", body=write(message, WSA2005))
            call = SoapCall(body, "application/soap+xml", "", "/soap", "", "http://b", SENDER)
            answer = await dispatcher.answer(call)
            return Answer(answer.status, answer.body)

        try:
            await asyncio.wait_for(script(node, ask), PATIENCE_S)
        finally:
            await app.close()

    uvloop.run(main())


async def subscribed(ask: Ask, message: Subscribe) -> SubscribeResponse:
    made = (await ask(message)).message
    assert isinstance(made, SubscribeResponse)
    return made


async def delete(node: Node, made: SubscribeResponse) -> None:
    name = made.manager.address.rpartition("/")[2]
    await node.port.unsubscribe(internal("test"), name)


def test_only_so_many_subscriptions_have_heartbeats(
    tmp_path: Path, sink: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "HEARTBEATS_MAX", 1)
    monkeypatch.setattr(heartbeats, "LOOK_NS_MAX", 100_000_000)
    wanted = Subscribe("wse04", EndpointReference(sink.url), heartbeats="PT10M")

    async def script(node: Node, ask: Ask) -> None:
        first = await subscribed(ask, wanted)
        assert (await ask(wanted)).subcode == "UnsupportedFeature"
        assert len(node.broker.views()) == 1
        await subscribed(ask, Subscribe("wse04", EndpointReference(sink.url)))
        await delete(node, first)
        await asyncio.sleep(0.3)
        await subscribed(ask, wanted)

    run(tmp_path, script)


def test_only_so_many_ends_are_told(
    tmp_path: Path, sink: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription_ends, "ENDS_MAX", 2)
    reference = EndpointReference(sink.url)

    async def script(node: Node, ask: Ask) -> None:
        made = [await subscribed(ask, Subscribe("wse04", reference, reference)) for _ in range(5)]
        await asyncio.gather(*(delete(node, each) for each in made))
        await asyncio.to_thread(sink.next)
        await asyncio.to_thread(sink.next)
        assert await asyncio.to_thread(sink.is_silent)

    run(tmp_path, script)


def test_pullers_who_keep_to_their_first_context_each_get_every_event(tmp_path: Path) -> None:
    async def pulled(ask: Ask, context: str | None) -> tuple[bytes, ...]:
        answer = (await ask(Pull(context or "", time_max="PT1S"))).message
        assert isinstance(answer, PullResponse)
        return answer.items

    async def script(node: Node, ask: Ask) -> None:
        one, other = [(await subscribed(ask, Subscribe("wse04", mode=PULL))).context for _ in "ab"]
        events = [
            Event(number, "/s", "t", data=f"<e>{number}</e>".encode()) for number in ("1", "2")
        ]
        await node.port.publish(internal("test"), events)

        found = [await pulled(ask, context) for context in (one, other, one, other)]

        assert found == [(b"<e>1</e>",), (b"<e>1</e>",), (b"<e>2</e>",), (b"<e>2</e>",)]

    run(tmp_path, script)
