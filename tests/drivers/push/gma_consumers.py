"""Small consumers at gma addresses, and pushes to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from world import World

from tocsin.broker.delivery.outcome import Answered, Outcome
from tocsin.broker.effects import Push
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Config, Kind, Subscription
from tocsin.wire.framing import FrameSplitter, framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

TAKEN = Answered(202)


class Consumer:
    """A small consumer: what it got, and what it does when something comes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._splitter = FrameSplitter(1 << 24)
        self._frames: list[bytes] = []
        self.conversation = c.Conversation(frozenset({c.CONSUMER}))

    async def next(self) -> c.Received:
        while not self._frames:
            data = await self._reader.read(1 << 16)
            if not data:
                raise asyncio.IncompleteReadError(b"", None)
            self._frames += self._splitter.split(data)
        return self.conversation.receive(read(self._frames.pop(0)))

    def say(self, message: m.Message) -> None:
        self._writer.write(framed(write(message)))

    def accept(self, asked: c.Received, *, acknowledge: bool = True) -> c.Subscription:
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
        self.ended: list[str] = []  # the names of which we said goodbye
        self.hung_up: list[str] = []  # and how, as often as we did

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(Consumer(reader, writer))
        except asyncio.IncompleteReadError:
            self.hung_up.append("in good order")
        except ConnectionError:
            self.hung_up.append("at once")

    async def _serve(self, consumer: Consumer) -> None:
        while True:
            happening = await consumer.next()
            if isinstance(happening, c.SubscribeAsked):
                self.offers.append(happening.request)
                consumer.accept(happening, acknowledge=self.acknowledge)
            elif isinstance(happening, c.EventArrived):
                self.got.append(happening.message)
                if happening.message.request_id is not None:
                    consumer.say(m.EventReply(happening.message.request_id))
            elif isinstance(happening, c.Ended):
                self.ended.append(happening.subscription.parameters.name.local)
                consumer.say(happening.reply)

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
    lane: int = 1,
) -> Outcome:
    finished = pushing(
        world, address, *events,
        seq=seq, subscription=subscription, timeout_s=timeout_s, lane=lane,
    )  # fmt: skip
    assert not finished.done(), "answered before send returned"
    return world.loop.run_until_complete(finished)


def pushing(
    world: World,
    address: str,
    *events: Event,
    seq: int = 1,
    subscription: str = "sub1",
    timeout_s: float = 5.0,
    lane: int = 1,
) -> asyncio.Future[Outcome]:
    stored = [Stored(seq + i, 0, each) for i, each in enumerate(events)]
    pushed = Subscription(id=subscription, kind=Kind.PUSH, sink=address, config=Config(batch=100))
    finished: asyncio.Future[Outcome] = world.loop.create_future()
    world.pusher.send(
        Push(lane, address, pushed, stored, timeout_s),
        lambda _, outcome: finished.set_result(outcome),
    )
    return finished
