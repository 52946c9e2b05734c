"""Two sides that talk to each other, and what they talk about."""

from __future__ import annotations

from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER, PRODUCER, Conversation
from tocsin.wire.gma.names import EventName

LOAD = m.Parameters(EventName("UptimeCPULoad"), (m.Element("Period", 10, "min"),))
EVENT = m.PerformanceEvent(
    EventName("UptimeCPULoad"), "2000-11-09T21:51:45Z", (m.Element("Load1", 1.5),)
)
AS_PRODUCER = m.Options(role=PRODUCER)
AS_CONSUMER = m.Options(role=CONSUMER)


def consumer() -> Conversation:
    return Conversation(frozenset({CONSUMER}))


def producer() -> Conversation:
    ids = iter(range(99, 10_000))
    return Conversation(frozenset({PRODUCER}), lambda: str(next(ids)))


def agreed(
    asking: Conversation, asked: Conversation, options: m.Options | None = None
) -> tuple[c.Subscription, c.Subscription]:
    """A subscription that both have: as the one who asked knows it, and as the other does."""
    request, _ = asking.subscribe(LOAD, options=options)
    happening = asked.receive(request)
    assert isinstance(happening, c.SubscribeAsked)
    reply, theirs = asked.accept(happening.request)
    subscribed = asking.receive(reply)
    assert isinstance(subscribed, c.Subscribed)
    return subscribed.subscription, theirs
