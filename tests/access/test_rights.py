"""Who was granted some rights sees and does what those allow, and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from frames_walk import post
from http_walk import fetch
from refusing import Refusing, refusing
from soap_walk import answer_to

from tocsin.access.decision import Action, Decide, deny_all, not_allowed
from tocsin.access.session import BROKER, Session, internal
from tocsin.drivers import http
from tocsin.event.event import Event
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.write import write
from tocsin.wire.soap import names

SINK = "http://127.0.0.1:9/hook?token=s3cret"


def run(directory: Path, script: Callable[[Refusing], Awaitable[None]], decide: Decide) -> None:
    async def main() -> None:
        async with refusing(directory, decide) as broker:
            await script(broker)

    uvloop.run(main())


def granted(*rights: tuple[Action, str]) -> Decide:
    """These rights, and no others."""

    def decide(session: Session, action: Action, resource: str) -> None:
        if session.principal != BROKER and (action, resource) not in rights:
            raise not_allowed(session, action, resource)

    return decide


@pytest.mark.parametrize("path", ["/", "/status", "/metrics"])
@pytest.mark.parametrize("reads_subscriptions", [False, True])
def test_only_who_may_read_subscriptions_is_shown_any_with_the_status(
    path: str, reads_subscriptions: bool, tmp_path: Path
) -> None:
    more = [(Action.READ, "subscription/*")] if reads_subscriptions else []

    async def script(broker: Refusing) -> None:
        port = broker.http.port
        with broker.allowing():
            made, text = await fetch(port, "POST", "/subscriptions", {"sink": SINK})
            assert made == 201, text
            own_id = text.partition('"id":"')[2].partition('"')[0]
            await broker.app.port.publish(internal("test"), [Event("2", "/s", "t", topic="a/b")])
            while '"most":0' in (await fetch(port, "GET", "/status"))[1]:
                await asyncio.sleep(0.01)

        status, page = await fetch(port, "GET", path)

        assert status == 200
        assert (own_id in page) == reads_subscriptions
        assert ("s3cret" in page) == (reads_subscriptions and path == "/")
        figures = {"/": "ubscription", "/status": '"most":1', "/metrics": 'kind="push"'}
        assert figures[path] in page

    run(tmp_path, script, granted((Action.READ, "status"), *more))


@pytest.mark.parametrize("reads_types", [False, True])
def test_a_query_that_finds_nothing_names_event_types_only_to_who_may_read_them(
    reads_types: bool, tmp_path: Path
) -> None:
    more = [(Action.READ, "types")] if reads_types else []
    query = write(m.QueryRequest("1", m.Parameters(EventName("Unknown"))))

    async def script(broker: Refusing) -> None:
        await broker.app.port.publish(internal("test"), [Event("2", "/s", "Secret", topic="a")])

        _, answer = await post(broker, "/gma", query)

        assert b"no event Unknown" in answer
        assert (b"Secret" in answer) == reads_types

    run(tmp_path, script, granted((Action.READ, "events"), *more))


def test_who_may_read_a_topic_is_given_its_current_message_and_asked_for_nothing_else(
    tmp_path: Path,
) -> None:
    """Also where it must be looked for in the log: in whose session, the port knows."""
    asked: list[tuple[str, str]] = []
    allowed = granted((Action.READ, "topic/a"))

    async def published(broker: Refusing) -> None:
        await broker.app.port.publish(internal("test"), [Event("2", "/s", "t", topic="a")])

    def decide(session: Session, action: Action, resource: str) -> None:
        asked.append((session.principal.name, resource))
        allowed(session, action, resource)

    async def script(broker: Refusing) -> None:
        asked.clear()

        answer = await answer_to(broker, names.WSN13, "GetCurrentMessage")

        assert b"GetCurrentMessageResponse" in answer, answer
        assert {resource for name, resource in asked if name != "broker"} == {"topic/a"}
        assert len(asked) > 1, "the log was read behind the port's back"

    run(tmp_path, published, deny_all)
    run(tmp_path, script, decide)  # after a restart, so that nothing is in memory


@pytest.mark.parametrize(
    ("right", "model", "expected"),
    [
        (Action.READ, "static", 200),
        (Action.READ, "static continuous", 403),
        (Action.SUBSCRIBE, "static", 403),
        (Action.SUBSCRIBE, "static continuous", 201),
    ],
)
def test_to_find_resources_is_to_read_and_to_watch_them_is_to_subscribe(
    right: Action, model: str, expected: int, tmp_path: Path
) -> None:
    asked = {"request": "system = Linux", "model": model}

    async def script(broker: Refusing) -> None:
        status, _ = await fetch(broker.http.port, "POST", "/discoveries", asked)

        assert status == expected

    run(tmp_path, script, granted((right, "resource/*")))


def test_nothing_below_the_http_driver_acts_as_the_broker() -> None:
    actors = {
        path.name
        for path in Path(http.__file__).parent.rglob("*.py")
        if "internal(" in path.read_text() or "BROKER" in path.read_text()
    }

    assert actors == set()
