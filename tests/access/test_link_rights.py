"""A neighbour is asked for rights as a client is: for each filter, and for resources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from link_walk import NEIGHBOUR, RESULT, Neighbour
from refusing import Refusing, refusing

from tocsin.access.decision import Action, Decide, not_allowed
from tocsin.access.resources import kind_of
from tocsin.access.session import BROKER, Session, internal
from tocsin.event.control_topic import TOPICS
from tocsin.services.link.neighbour import Neighbour as Known
from tocsin.services.link.performer import TABLES
from tocsin.wire.api.control_request import ControlRequest
from tocsin.wire.link import discovery_messages as d
from tocsin.wire.link import messages as m

MAY, MAY_NOT = "text type = 'a'", "text type = 'b'"


def run(directory: Path, script: Callable[[Refusing], Awaitable[None]], decide: Decide) -> None:
    async def main() -> None:
        async with refusing(directory, decide) as broker:
            await script(broker)

    uvloop.run(main())


def granted(*rights: tuple[Action, str]) -> Decide:
    """The link itself, and these rights."""

    def decide(session: Session, action: Action, resource: str) -> None:
        is_link = session.principal == BROKER or kind_of(resource) == "link"
        if not is_link and (action, resource) not in rights:
            raise not_allowed(session, action, resource)

    return decide


async def linked(broker: Refusing, *first: m.Message) -> tuple[Neighbour, Known]:
    """A link by hand; these messages come before its tables are complete."""
    neighbour = await Neighbour.connect(broker)
    neighbour.send(*first)
    await neighbour.shake_hands()
    assert broker.app.links is not None
    neighbours = broker.app.links.service.neighbours
    async with asyncio.timeout(10):
        while (known := neighbours.find(NEIGHBOUR)) is None or known.connection is None:
            await asyncio.sleep(0.001)
    return neighbour, known


async def echoed(neighbour: Neighbour) -> list[object]:
    """What came until a heartbeat was answered: all that was sent before it has been read."""
    neighbour.send(m.Heartbeat(7))
    came: list[object] = []
    while (message := await neighbour.next()) != m.HeartbeatReply(7):
        assert message is not None, came
        came.append(message)
    return came


@pytest.mark.parametrize(
    ("message", "action"), [(m.Subscribe, Action.SUBSCRIBE), (m.Advertise, Action.PUBLISH)]
)
def test_each_filter_of_a_neighbour_is_decided_and_what_is_refused_leaves_nothing(
    message: type[m.Subscribe | m.Advertise], action: Action, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        neighbour, known = await linked(broker)
        assert broker.app.links is not None
        router = broker.app.links.service.router

        neighbour.send(message(NEIGHBOUR, "1", MAY), message(NEIGHBOUR, "2", MAY_NOT))
        neighbour.send(message("behind", "3", MAY), message("behind", "3", MAY_NOT))
        await echoed(neighbour)

        await broker.app.links.service._performer.performed()
        tables = router.tables()
        rows = tables.subscriptions if message is m.Subscribe else tables.advertisements
        assert [row.id for row in rows if row.origin != router.broker] == ["1"]
        saved = b"".join(broker.app.node.broker.kept(TABLES).values())
        assert b"'a'" in saved
        assert b"'b'" not in saved
        if message is m.Subscribe:
            assert list(router.wanted_by(NEIGHBOUR)) == [(NEIGHBOUR, "1")]
        assert known.counts.ignored == 2
        assert known.error is not None
        assert known.error.code == "T215"
        assert known.connection is not None

    run(tmp_path, script, granted((action, f"filter/{MAY}")))


def test_a_resource_of_a_neighbour_is_decided_and_the_link_stays(tmp_path: Path) -> None:
    def advertise(number: str) -> d.Advertise:
        return d.Advertise(
            adv_id=number, broker=NEIGHBOUR, resource_id=number, model="static", rows=((),)
        )

    async def script(broker: Refusing) -> None:
        neighbour, known = await linked(broker)

        neighbour.send(advertise("1"), advertise("2"), d.Unadvertise("2", NEIGHBOUR, "2"))
        neighbour.send(d.Update("2", NEIGHBOUR, "2", RESULT, None))
        await echoed(neighbour)

        assert broker.app.links is not None
        await broker.app.links.service._performer.performed()
        assert broker.app.discovery is not None
        assert broker.app.discovery.tables()["advertisements"] == {
            "rows": 1,
            "by_last_hop": {NEIGHBOUR: 1},
        }
        assert known.counts.ignored == 3

    run(tmp_path, script, granted((Action.MANAGE, "resource/1")))


@pytest.mark.parametrize(
    ("right", "model", "is_answered"),
    [
        (Action.READ, "dynamic", False),
        (Action.READ, "dynamic continuous", True),
        (Action.SUBSCRIBE, "dynamic", True),
        (Action.SUBSCRIBE, "dynamic continuous", False),
    ],
)
def test_a_request_for_resources_that_may_not_be_is_answered_so(
    right: Action, model: str, is_answered: bool, tmp_path: Path
) -> None:
    request = d.Discover(
        request_id="q",
        host=NEIGHBOUR,
        region=(),
        model=model,
        issued_ns=1,
        shared_until_ns=2,
        expires_ns=2**62,
        max_age_ns=1,
        attempt=3,
    )

    async def script(broker: Refusing) -> None:
        neighbour, known = await linked(broker)

        neighbour.send(request)
        answers = [await echoed(neighbour)]
        assert broker.app.links is not None
        await broker.app.links.service._performer.performed()
        answers.append(await echoed(neighbour))

        done = [each for some in answers for each in some if isinstance(each, d.Done)]
        assert known.counts.ignored == is_answered
        assert ["may not" in each.incomplete for each in done] == [is_answered]
        assert [each.attempt for each in done if each.incomplete] == [3] * is_answered

    run(tmp_path, script, granted((right, "resource/*")))


def test_each_control_message_of_a_neighbour_is_decided_and_the_link_stays(tmp_path: Path) -> None:
    def message(number: str, topic: str) -> m.Control:
        return m.Control(number, topic, NEIGHBOUR, "*", 7, 1, "test")

    async def script(broker: Refusing) -> None:
        neighbour, known = await linked(broker)
        assert broker.app.control is not None
        came: list[str] = []
        broker.app.control.serve("tdn", lambda message: came.append(message.id))

        neighbour.send(message("1", TOPICS), message("2", "Entity/e"))
        neighbour.send(m.Serves(NEIGHBOUR, 1, ("a",)), m.Serves("behind", 1, ("b",)))
        await echoed(neighbour)

        assert broker.app.links is not None
        await broker.app.links.service._performer.performed()
        assert came == ["1"]
        assert [each.tdns for each in broker.app.control.core.serving.brokers("a")] == [("a",)]
        assert not [*broker.app.control.core.serving.brokers("b")]
        assert known.counts.ignored == 2
        assert known.error is not None
        assert known.error.code == "T215"

    may = granted((Action.PUBLISH, TOPICS), (Action.MANAGE, f"tdn/{NEIGHBOUR}"))
    run(tmp_path, script, may)


def test_a_neighbour_is_sent_the_control_messages_that_it_may_have(tmp_path: Path) -> None:
    async def script(broker: Refusing) -> None:
        neighbour, _ = await linked(broker)
        assert broker.app.control is not None
        for topic in (TOPICS, "Entity/e"):
            asked = ControlRequest(topic, "test", to="*")
            broker.app.control.send(internal("test"), asked)

        came = [each for each in await echoed(neighbour) if isinstance(each, m.Control)]

        assert [each.topic for each in came] == [TOPICS]
        assert broker.app.control.core.counts.dropped == {"right": 1}

    run(tmp_path, script, granted((Action.SUBSCRIBE, f"filter/topic {TOPICS}")))
