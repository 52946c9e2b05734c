"""Who was granted some rights sees and does what those allow, and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from inspect import signature
from pathlib import Path

import pytest
import uvloop
from frames_walk import post
from http_walk import fetch
from refusing import Refusing, refusing
from soap_walk import answer_to

from tocsin.access.decision import Action, Decide, allow_all, deny_all, not_allowed
from tocsin.access.session import BROKER, Session, anonymous, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.read_port import ReadPort
from tocsin.drivers import http
from tocsin.errors import NoSuchSubscription, NotAllowed
from tocsin.event.event import Event
from tocsin.event.subscription import Change, Kind
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


NARROW, WIDE = [{"exact": {"type": "a"}}], [{"exact": {"type": "b"}}]
OTHER_SINK = "http://127.0.0.1:9/other"


def recording(asked: list[tuple[Action, str]], *rights: tuple[Action, str]) -> Decide:
    """These rights, and what was asked for whoever is not the broker."""
    allowed = granted(*rights)

    def decide(session: Session, action: Action, resource: str) -> None:
        if session.principal != BROKER:
            asked.append((action, resource))
        allowed(session, action, resource)

    return decide


async def made(broker: Refusing, path: str) -> str:
    """The id of a subscription or a box with a narrow filter."""
    body: dict[str, object] = {"filters": NARROW}
    if path == "/subscriptions":
        body["sink"] = SINK
    with broker.allowing():
        status, text = await fetch(broker.http.port, "POST", path, body)
    assert status == 201, text
    return text.partition('"id":"')[2].partition('"')[0]


@pytest.mark.parametrize(
    ("path", "kind", "change", "wanted"),
    [
        ("/subscriptions", "subscription", {"filters": WIDE}, "type = 'b'"),
        ("/boxes", "box", {"filters": WIDE}, "type = 'b'"),
        # Who turns the events to another sink subscribes that one to them.
        ("/subscriptions", "subscription", {"sink": OTHER_SINK}, "type = 'a'"),
        ("/subscriptions", "subscription", {"sink": OTHER_SINK, "filters": WIDE}, "type = 'b'"),
    ],
)
@pytest.mark.parametrize("may_have_it", [False, True])
def test_a_change_of_filter_or_sink_is_decided_as_to_subscribe_is(
    path: str,
    kind: str,
    change: dict[str, object],
    wanted: str,
    may_have_it: bool,
    tmp_path: Path,
) -> None:
    async def script(broker: Refusing) -> None:
        own_id = await made(broker, path)
        rights = [(Action.READ, f"{kind}/{own_id}"), (Action.SUBSCRIBE, f"{kind}/{own_id}")]
        if may_have_it:
            rights.append((Action.SUBSCRIBE, f"filter/text {wanted}"))
        broker.decisions.append(granted(*rights))
        was = broker.app.port.view(internal("test"), own_id).subscription

        status, text = await fetch(broker.http.port, "PATCH", f"{path}/{own_id}", change)

        is_now = broker.app.port.view(internal("test"), own_id).subscription
        assert status == (200 if may_have_it else 403), text
        assert (is_now == was) == (not may_have_it)

    run(tmp_path, script, deny_all)


@pytest.mark.parametrize(("path", "kind"), [("/subscriptions", "subscription"), ("/boxes", "box")])
def test_what_stays_within_the_filter_needs_no_right_to_it(
    path: str, kind: str, tmp_path: Path
) -> None:
    async def script(broker: Refusing) -> None:
        own_id = await made(broker, path)
        rights = [(Action.READ, f"{kind}/{own_id}"), (Action.SUBSCRIBE, f"{kind}/{own_id}")]
        asked: list[tuple[Action, str]] = []
        broker.decisions.append(recording(asked, *rights))
        change = {"config": {"backlog": 7}}

        status, text = await fetch(broker.http.port, "PATCH", f"{path}/{own_id}", change)
        assert status == 200, text
        status, text = await fetch(broker.http.port, "DELETE", f"{path}/{own_id}")
        assert status == 204, text

        assert {resource for _, resource in asked} == {f"{kind}/{own_id}"}

    run(tmp_path, script, deny_all)


def test_what_is_named_as_another_kind_than_it_is_is_not_found(tmp_path: Path) -> None:
    """So a right to a subscription is none to a box, nor to the place of a neighbour."""

    async def script(broker: Refusing) -> None:
        port = broker.app.port
        box = await made(broker, "/boxes")

        with pytest.raises(NoSuchSubscription):
            await port.unsubscribe(internal("test"), box)
        with pytest.raises(NoSuchSubscription):
            await port.change(internal("test"), box, Change(expires_ns=None))
        await port.unsubscribe(internal("test"), box, Kind.BOX)

    run(tmp_path, script, deny_all)


IN_NO_SESSION = {
    "release": "by the token of whoever took it",
    "give_back": "by the token of whoever took it",
    "confirm": "by the token that the sink was sent",
    "stream_ready": "by the number of whoever opened it",
    "close_stream": "by the number of whoever opened it",
    "peer_connected": "of a listener, before anybody has said who they are",
    "report_corrupt": "of a reader, whose read was in a session",
    "head": "a figure that places in the log are counted from",
    "first": "a figure that places in the log are counted from",
    "lower_bound_ns": "the time of day",
    "is_clock_in_doubt": "no more than whether leases end",
    "clock_complaint": "what the log of messages says of the clock",
}


def test_whatever_a_client_can_ask_of_the_port_is_in_a_session() -> None:
    """Whoever adds something that is not has to say here why."""
    every = {**vars(ReadPort), **vars(BrokerPort)}
    public = {name: each for name, each in every.items() if not name.startswith("_")}
    without = {
        name
        for name, each in public.items()
        if isinstance(each, property) or "session" not in signature(each).parameters
    }

    assert without == IN_NO_SESSION.keys()


def test_what_only_the_broker_does_is_given_to_nobody_whatever_their_rights(
    tmp_path: Path,
) -> None:
    async def script(broker: Refusing) -> None:
        with pytest.raises(NotAllowed):
            broker.app.port.own(anonymous("http"))
        assert broker.app.port.own(internal("test")).kept("link/")

    run(tmp_path, script, allow_all)


def test_nothing_below_the_http_driver_acts_as_the_broker() -> None:
    actors = {
        path.name
        for path in Path(http.__file__).parent.rglob("*.py")
        if "internal(" in path.read_text() or "BROKER" in path.read_text()
    }

    assert actors == set()
