"""A consumer of performance events in any mood: what counts it has, and all comes through."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from world import World

from tocsin.broker.delivery.outcome import Outcome, Verdict, judge
from tocsin.broker.effects import Push
from tocsin.drivers.push import gma_offers
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Config, Kind, Subscription
from tocsin.wire.framing import FrameSplitter, framed
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

EVENTS = 40
ATTEMPTS_MAX = 200  # of one batch; each fails by chance, and independently
TIMEOUT_S = 0.2


class Moody:
    """Does the right thing or any other, as chance has it. What it got, it remembers."""

    def __init__(self, random: Random, *, in_order: bool) -> None:
        self._random = random
        self._in_order = in_order  # nothing is taken behind what was refused
        self.got: list[int] = []
        self.acknowledged: set[int] = set()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation, splitter = c.Conversation(frozenset({c.CONSUMER})), FrameSplitter(1 << 20)
        while data := await reader.read(1 << 16):
            for frame in splitter.split(data):
                happening = conversation.receive(read(frame))
                if isinstance(happening, c.SubscribeAsked):
                    answers = self._offered(conversation, happening.request)
                elif isinstance(happening, c.EventArrived):
                    answers = self._arrived(conversation, happening)
                else:
                    answers = []
                if answers is None:
                    return
                for answer in answers:
                    writer.write(framed(write(answer)))
                if self._in_order and any(map(_refuses, answers)):
                    return

    def _offered(
        self, conversation: c.Conversation, request: m.SubscribeRequest
    ) -> list[m.Message] | None:
        mood = self._random.random()
        if mood < 0.1:
            return None
        if mood < 0.2:
            return [conversation.refuse(request, "not in the mood")]
        if mood < 0.22:
            return []  # and the offer is never answered
        if mood < 0.3:
            return [m.UnsubscribeReply("999")]
        assert request.options is not None
        agreed = m.Options(acknowledge=request.options.acknowledge)
        reply, subscription = conversation.accept(request, agreed=agreed)
        if mood < 0.4:
            return [reply, conversation.unsubscribe(subscription)]
        if mood < 0.5:
            return [conversation.query(m.Parameters(EventName("Load"))), reply]
        return [reply]

    def _arrived(
        self, conversation: c.Conversation, arrived: c.EventArrived
    ) -> list[m.Message] | None:
        event, number = arrived.message.event, arrived.message.request_id
        assert event is not None
        assert number is not None
        value = event["n"]
        assert type(value) is int
        assert number == f"e{value}"
        self.got.append(value)
        mood = self._random.random()
        if mood < 0.05:
            return None
        if mood < 0.07:
            return []
        if mood < 0.12:
            return [m.EventReply(number, m.FAILURE, "not in the mood")]
        if mood < 0.17:
            return [conversation.unsubscribe(arrived.subscription)]
        self.acknowledged.add(value)
        return [m.EventReply(number)]


def _refuses(answer: m.Message) -> bool:
    return isinstance(answer, m.EventReply) and answer.returned == m.FAILURE


async def pushed(world: World, address: str, events: list[Stored]) -> Outcome:
    subscription = Subscription(id="sub1", kind=Kind.PUSH, sink=address, config=Config())
    outcomes: asyncio.Queue[Outcome] = asyncio.Queue()
    push = Push(1, address, subscription, events, TIMEOUT_S)
    world.pusher.send(push, lambda _, outcome: outcomes.put_nowait(outcome))
    outcome = await asyncio.wait_for(outcomes.get(), 10 * TIMEOUT_S)
    assert outcomes.empty(), "told twice"
    return outcome


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("batch_max", "in_order"), [(1, False), (4, False), (4, True)])
def test_whatever_mood_the_consumer_is_in_all_comes_through(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int, batch_max: int, in_order: bool
) -> None:
    monkeypatch.setattr(gma_offers, "ASK_AGAIN_S", 0.0)
    random = Random(seed)
    moody = Moody(random, in_order=in_order)
    address = world.sink(moody).replace("http://", "gma://").removesuffix("/hook")
    log = [
        Stored(
            n, 0,
            Event(id=f"{n}", source="/s", type=f"urn:lab/Kind{n % 3}", time="2026-11-16T00:00:00Z",
                  datacontenttype="application/json", data=b'{"n": %d}' % n),
        )
        for n in range(1, EVENTS + 1)
    ]  # fmt: skip

    async def deliver_all() -> None:
        done = 0
        while done < EVENTS:
            batch = log[done : done + random.randint(1, batch_max)]
            for _ in range(ATTEMPTS_MAX):
                verdict = judge(await pushed(world, address, batch))
                if verdict is Verdict.DELIVERED:
                    break
                assert verdict is Verdict.RETRY
            else:
                raise AssertionError(f"never delivered, with the seed {seed}")
            assert moody.acknowledged >= {stored.seq for stored in batch}
            done += len(batch)

    world.loop.run_until_complete(deliver_all())

    first_seen = list(dict.fromkeys(moody.got))
    if batch_max > 1 and not in_order:
        first_seen.sort()  # what was behind a refused one in its batch had arrived already
    assert first_seen == list(range(1, EVENTS + 1)), f"seed {seed}"
