"""A consumer at a gma address is told when nothing more comes, before the connection ends."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest
from gma_consumers import TAKEN, Archive, Consumer, at, event, push, pushing
from world import World, here, trusting

from tocsin.broker.delivery.outcome import Failed
from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.effects import CloseSubscription
from tocsin.drivers.push import gma_connection
from tocsin.drivers.push.pusher import PushOptions
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.read import read

SOON_S = 0.1


def opened(world: World, archive: Archive, *names: str, subscription: str = "sub1") -> str:
    """The address of an archive where these names are open."""
    address = at(world, archive)
    events = [event(n, f"urn:lab/{name}") for n, name in enumerate(names)]
    assert push(world, address, *events, subscription=subscription) == TAKEN
    return address


@pytest.mark.parametrize("acknowledge", [True, False])
def test_leave_is_taken_of_each_name_and_the_connection_is_closed(
    world: World, acknowledge: bool
) -> None:
    archive = Archive(acknowledge=acknowledge)
    opened(world, archive, "Reading", "Alarm")

    world.pusher.close_subscription(CloseSubscription(1, "sub1"))
    world.wait(SOON_S)

    assert archive.ended == ["Reading", "Alarm"]
    assert archive.hung_up == ["in good order"]
    assert (world.pusher.open, world.pusher.closing) == (0, set())


def test_who_still_gets_something_keeps_its_connection(world: World) -> None:
    archive = Archive()
    address = opened(world, archive, "Reading")
    assert push(world, address, event(2), seq=2, subscription="sub2") == TAKEN

    world.pusher.close_subscription(CloseSubscription(1, "sub1"))
    world.wait(SOON_S)

    assert archive.ended == ["Reading"]
    assert push(world, address, event(3), seq=3, subscription="sub2") == TAKEN
    assert (archive.hung_up, world.connections) == ([], 1)


def test_a_subscription_that_comes_back_is_offered_again(world: World) -> None:
    archive = Archive()
    address = opened(world, archive, "Reading")
    world.pusher.close_subscription(CloseSubscription(1, "sub1"))

    assert push(world, address, event(2), seq=2) == TAKEN

    assert len(archive.offers) == 2
    assert archive.values == [0, 2]


def test_the_end_of_one_that_nothing_was_sent_for_is_not_told(world: World) -> None:
    archive = Archive()
    opened(world, archive, "Reading")

    world.pusher.close_subscription(CloseSubscription(1, "sub2"))
    world.pusher.close_subscription(CloseSubscription(2, "sub1"))
    world.wait(SOON_S)

    assert (archive.ended, archive.hung_up) == ([], [])


class Silent:
    """Accepts offers, and answers nothing else for a while."""

    def __init__(self, *, accepts: bool = True) -> None:
        self.accepts = accepts
        self.received: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        try:
            while True:
                happening = await consumer.next()
                self.received.append(type(happening).__name__)
                if isinstance(happening, c.SubscribeAsked):
                    if not self.accepts:
                        await asyncio.sleep(SOON_S)
                    consumer.accept(happening)
        except asyncio.IncompleteReadError:
            self.received.append("end")
        except ConnectionError:
            self.received.append("reset")


@pytest.mark.parametrize("events", [1, 300])  # 300 are more than may be unanswered
def test_events_that_are_not_acknowledged_do_not_delay_the_goodbye(
    world: World, events: int
) -> None:
    silent = Silent()
    under_way = pushing(world, at(world, silent), *map(event, range(events)), timeout_s=60.0)
    world.wait(SOON_S)
    assert not under_way.done()

    world.pusher.close_subscription(CloseSubscription(1, "sub1"))
    assert not under_way.done(), "answered before it returned"
    world.wait(SOON_S)

    assert under_way.result() == Failed("its subscription ended meanwhile", reachable=True)
    assert silent.received[-1] == "Ended"
    assert silent.received.count("EventArrived") == min(events, gma_connection.UNANSWERED_MAX)


def test_an_offer_that_is_accepted_too_late_is_taken_back(world: World) -> None:
    silent = Silent(accepts=False)
    under_way = pushing(world, at(world, silent), event(1), timeout_s=60.0)
    world.wait(SOON_S / 2)

    world.pusher.close_subscription(CloseSubscription(1, "sub1"))
    world.wait(3 * SOON_S)

    assert isinstance(under_way.result(), Failed)
    assert silent.received == ["SubscribeAsked", "Ended"]


def test_who_cannot_be_reached_needs_no_goodbye(world: World) -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.sleep(60)
        return []

    world.restart(resolve=never)
    under_way = pushing(world, "gma://collector.example:8401", event(1), timeout_s=60.0)
    world.wait(SOON_S / 2)

    world.pusher.close_subscription(CloseSubscription(1, "sub1"))
    world.wait(SOON_S / 2)

    assert isinstance(under_way.result(), Failed)
    assert world.pusher.open == 0


def test_who_does_not_answer_a_goodbye_is_hung_up_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gma_connection, "GOODBYE_S", SOON_S)
    silent = Silent()
    pushing(world, at(world, silent), event(1), timeout_s=60.0)
    world.wait(SOON_S)

    world.pusher.close_subscription(CloseSubscription(1, "sub1"))
    world.wait(3 * SOON_S)

    assert silent.received[-1] in ("end", "reset")
    assert world.pusher.closing == set()


def test_both_may_say_goodbye_at_once(world: World) -> None:
    replies: list[m.Message] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        consumer = Consumer(reader, writer)
        subscription = consumer.accept(await consumer.next())
        arrived = await consumer.next()
        assert isinstance(arrived, c.EventArrived)
        consumer.say(m.EventReply(arrived.message.request_id or ""))
        goodbye = await consumer.next()
        assert isinstance(goodbye, c.Ended)
        # As if it had been on its way already.
        consumer.say(m.UnsubscribeRequest("77", subscription.peer_id or ""))
        consumer.say(goodbye.reply)
        replies.append(read((await reader.read())[4:]))

    assert push(world, at(world, script), event(1)) == TAKEN
    world.pusher.close_subscription(CloseSubscription(1, "sub1"))
    world.wait(SOON_S)

    assert replies == [m.UnsubscribeReply("77", m.SUCCESS, "it has ended already")]


def test_a_quiet_connection_ends_with_a_goodbye(world: World) -> None:
    world.options = PushOptions(SinkRules(allow_private=True), idle_s=0.1)
    world.restart()
    archive = Archive()
    opened(world, archive, "Reading")

    world.wait(0.7)

    assert archive.ended == ["Reading"]
    assert archive.hung_up == ["in good order"]


def test_who_makes_room_for_another_sink_says_goodbye(world: World) -> None:
    world.options = PushOptions(SinkRules(allow_private=True), sinks_open_max=1)
    world.restart()
    former, latter = Archive(), Archive()
    opened(world, former, "Reading")

    assert push(world, at(world, latter), event(1), lane=2) == TAKEN
    world.wait(SOON_S)

    assert (former.ended, former.hung_up) == (["Reading"], ["in good order"])
    assert latter.values == [1]


# The broker stops


def test_when_the_broker_stops_all_are_told_and_nothing_new_is_sent(world: World) -> None:
    archives = [Archive(), Archive(acknowledge=False)]
    addresses = [at(world, archive) for archive in archives]
    for lane, address in enumerate(addresses):
        assert push(world, address, event(1), lane=lane) == TAKEN

    async def stop() -> None:
        leaving = asyncio.ensure_future(world.pusher.drain(5.0))
        await asyncio.sleep(0)
        pushing(world, addresses[0], event(2), seq=2, lane=0)
        await leaving
        world.pusher.close()

    began_s = time.monotonic()
    world.loop.run_until_complete(stop())
    world.wait(SOON_S)

    assert time.monotonic() - began_s < 2.0
    for archive in archives:
        assert archive.ended == ["Reading"]
        assert archive.hung_up == ["in good order"]
        assert archive.values == [1]
    assert world.connections == 2


def test_who_does_not_answer_cannot_keep_a_broker_from_stopping(world: World) -> None:
    silent = Silent()
    pushing(world, at(world, silent), event(1), timeout_s=60.0)
    world.wait(SOON_S)

    world.loop.run_until_complete(world.pusher.drain(SOON_S))
    world.pusher.close()
    world.wait(SOON_S)

    assert silent.received[:3] == ["SubscribeAsked", "EventArrived", "Ended"]
    assert silent.received[-1] in ("end", "reset")


def test_goodbye_is_said_by_tls_as_well(world: World, certificates: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "own.pem", certificates / "own.key")
    archive = Archive()
    port = world.sink(archive, ssl=context).split(":")[2].split("/")[0]
    world.restart(resolve=here, tls=trusting(certificates))
    address = f"gmas://sink.example:{port}"
    assert push(world, address, event(1)) == TAKEN

    world.loop.run_until_complete(world.pusher.drain(5.0))

    assert archive.ended == ["Reading"]
    assert archive.hung_up == ["in good order"]
    assert world.pusher.closing == set()
