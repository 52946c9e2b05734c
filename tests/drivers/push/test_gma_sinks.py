"""Consumers at gma addresses: events under the consumer's own ids, and in order."""

from __future__ import annotations

import asyncio

import pytest
from gma_consumers import TAKEN, Archive, Consumer, at, event, push
from world import World

from tocsin.drivers.push import gma_offers
from tocsin.event.event import Event
from tocsin.wire.framing import framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import PROTOCOL, EventName


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


def test_the_longest_unused_name_makes_room(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gma_offers, "NAMES_MAX", 2)
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
