"""Each message of a link, of a neighbour that has the right ones or only some: it is answered as
the protocol says, or refused by itself while the link stays. Of neighbours without any, and with
certificates that are not valid, `test_certificates_walk.py` walks the same table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from link_walk import (
    EVENT,
    LATER,
    NEIGHBOUR,
    PROOF,
    PROVEN,
    Connect,
    Neighbour,
    forget,
    is_up,
    service_of,
)
from msgspec.structs import replace
from refusing import Refusing
from site_clients import ELSEWHERE, EVERYTHING, Clients, show_good, site_broker

from tocsin.access.session import internal
from tocsin.event.filter import EVERYTHING as EVERY_EVENT
from tocsin.event.subscription import Kind, Subscription
from tocsin.services.link.neighbour import Neighbour as Known
from tocsin.wire.link import discovery_messages as d
from tocsin.wire.link import messages as m
from tocsin.wire.link.codec import LinkMessage

# What a neighbour needs rights for beside the link: what it says of events and resources.
ANSWERED: dict[type, type | None] = {
    m.Advertise: None,
    m.Subscribe: m.Reached,
    m.Events: m.Acknowledge,
    m.Handover: m.HandedOver,
    d.Advertise: None,
    d.Unadvertise: None,
    d.Discover: d.Done,
    d.Update: None,
    m.Control: None,
    m.Serves: None,
}
# How it is answered to who has none to these. The events are acknowledged, or they would come for
# ever, and are not stored.
REFUSED: dict[type, type | None] = {**ANSWERED, m.Advertise: m.Ignored, m.Subscribe: m.Ignored}
# All else is for who may be linked: what it says of the link, or answers, or takes back.
OF_THE_LINK: dict[type, type | None] = {
    m.IssueToken: m.TokenKept,
    m.TokenKept: None,
    m.Ignored: None,
    m.Behind: m.PlacesKept,
    m.PlacesKept: None,
    m.Unadvertise: None,
    m.Unsubscribe: None,
    m.Reached: None,
    m.Forget: None,
    m.Acknowledge: None,
    m.NotStored: None,
    m.Resume: None,
    m.HandedOver: m.HandedOver,  # sent back: it is for who is behind the neighbour
    m.Bye: None,
    d.Results: None,
    d.Done: None,
    d.CoverGone: None,
    d.Cancel: None,
}
ENDS: dict[type, str] = {  # the link, whoever says it
    m.Hello: "T801",  # all that is part of a handshake, and there was one
    m.Welcome: "T801",
    m.Synced: "T801",
    m.Direct: "T801",
    m.Refuse: "",  # by the other side
}


def run(directory: Path, principal: str, script: Callable[[Refusing], Awaitable[None]]) -> None:
    clients = Clients(directory)

    async def main() -> None:
        async with site_broker(clients, directory / "log") as broker:
            show_good(clients, broker, principal)
            box = Subscription(id="", kind=Kind.BOX)  # whose owner wants every event
            await broker.app.port.subscribe(internal("test"), box, EVERY_EVENT, None)
            await script(broker)

    uvloop.run(main())


def test_each_message_is_of_one_kind() -> None:
    kinds = (ANSWERED, OF_THE_LINK, ENDS)
    assert {type(each) for each in LATER} == {each for kind in kinds for each in kind}
    assert sum(map(len, kinds)) == len(LATER)


@pytest.mark.parametrize("connect", [Neighbour.connect, Neighbour.dialled])
def test_of_who_has_every_right_each_message_is_taken(connect: Connect, tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        for message in LATER:
            neighbour, known = await linked(broker, connect)
            head = broker.app.port.head
            answers = await said_to(broker, neighbour, message)

            check_answer(message, answers, ANSWERED)
            assert known.counts.ignored == 0, message
            stored = broker.app.port.head - head
            assert stored == isinstance(message, m.Events | m.Handover), message
            assert rows(broker) == isinstance(message, ENTRIES), message
            await left(broker, neighbour)

    run(tmp_path, EVERYTHING, script)


@pytest.mark.parametrize("connect", [Neighbour.connect, Neighbour.dialled])
def test_of_who_has_rights_to_others_what_is_about_these_is_left_out(
    connect: Connect, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        before = broker.app.port.head
        for message in LATER:
            neighbour, known = await linked(broker, connect)
            answers = await said_to(broker, neighbour, message)

            check_answer(message, answers, REFUSED)
            assert known.counts.ignored == (type(message) in ANSWERED), message
            assert is_said(message, answers) == (type(message) in SAID), message
            assert rows(broker) == 0, message
            await left(broker, neighbour)
        assert broker.app.port.head == before

    run(tmp_path, ELSEWHERE, script)


ENTRIES = (m.Advertise, m.Subscribe, d.Advertise)
# The others have no answer in the protocol.
SAID = (m.Advertise, m.Subscribe, m.Serves, d.Discover)


async def linked(broker: Refusing, connect: Connect) -> tuple[Neighbour, Known]:
    neighbour = await connect(broker)
    await neighbour.shake_hands()
    await is_up(broker)
    while not isinstance(await neighbour.next(), m.PlacesKept):
        pass
    known = service_of(broker).neighbours.find(NEIGHBOUR)
    assert known is not None
    return neighbour, known


async def left(broker: Refusing, neighbour: Neighbour) -> None:
    neighbour.close()
    await forget(broker)


async def said_to(
    broker: Refusing, neighbour: Neighbour, message: LinkMessage
) -> list[LinkMessage]:
    """What it is answered, until all of it was handled, or the link has ended."""
    if isinstance(message, m.Handover):  # it is for this broker, with an event that it has not
        own, other = service_of(broker)._ids.broker, replace(EVENT, number=2)
        message = replace(message, to=own, events=(other,))
    neighbour.send(message)
    expected = {**ANSWERED, **OF_THE_LINK}.get(type(message))
    answers: list[LinkMessage] = []
    for _ in range(2):  # the first shows that it was read, the second that it was performed
        neighbour.send(PROOF)
        while (answer := await neighbour.next()) != PROVEN:
            if answer is None:
                return answers
            answers.append(answer)
        await service_of(broker)._performer.performed()
    if isinstance(message, m.Events | m.Handover):  # which go to the disk
        while expected is not None and not any(isinstance(each, expected) for each in answers):
            answer = await neighbour.next()
            assert answer is not None
            answers.append(answer)
    return answers


def check_answer(
    message: LinkMessage, answers: list[LinkMessage], asked: dict[type, type | None]
) -> None:
    kind = type(message)
    refusals = [each for each in answers if isinstance(each, m.Refuse)]
    assert [each.code for each in refusals] == [code for code in [ENDS.get(kind)] if code], message
    expected = {**asked, **OF_THE_LINK}.get(kind)
    if expected is not None:
        assert any(isinstance(each, expected) for each in answers), (message, answers)


def is_said(message: LinkMessage, answers: list[LinkMessage]) -> bool:
    """True if an answer says that the neighbour may not."""
    return any(
        (isinstance(each, m.Ignored) and each.code == "T215")
        or (isinstance(each, d.Done) and "may not" in each.incomplete)
        for each in answers
    )


def rows(broker: Refusing) -> int:
    """Of the tables, those that came over links: of filters, and of resources."""
    router = service_of(broker).router
    tables = router.tables()
    found = [*tables.subscriptions, *tables.advertisements]
    assert broker.app.discovery is not None
    resources = broker.app.discovery.tables()["advertisements"]
    assert isinstance(resources, dict)
    return sum(row.origin != router.broker for row in found) + int(resources["rows"])
