"""The same link over HTTP and over WebSockets, against a real broker."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

import pytest

from served import Served, served
from tocsin.client.blackboard import Delivered, HttpLink, Link, Message, Subscription, WebSocketLink
from tocsin.client.blackboard.open_link import open_link
from tocsin.errors import BadSetting, BrokerRefused, CannotReachBroker

AT = "2026-11-16T06:40:00.000Z"
PATIENCE_S = 30.0

Opened = Callable[[str], Link]


@pytest.fixture(params=[HttpLink, WebSocketLink])
def opened(request: pytest.FixtureRequest) -> Opened:
    link: Opened = request.param
    return link


@pytest.fixture
def run() -> str:
    return f"run-{os.urandom(6).hex()}"


def taken(subscription: Subscription, count: int, run: str) -> list[Delivered]:
    """The next messages of one run; others use the same broker."""
    came: list[Delivered] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(came) < count and time.monotonic() < deadline:
        came += [each for each in subscription.take(0.5) if each.message.pairs.get("RunId") == run]
    return came


def until_asked_for(link: Link, concept: str) -> None:
    profile = link.profile()
    deadline = time.monotonic() + PATIENCE_S
    while concept not in profile.concepts and time.monotonic() < deadline:
        profile = link.profile(after=profile.version, wait_s=5)
    assert concept in profile.concepts


def test_what_one_publishes_the_other_gets_thinned_to_its_profile(
    broker: Served, opened: Opened, run: str
) -> None:
    link = opened(broker.url)
    with link.subscribe(["ActivityHeld", "RunId"]) as held:
        reported = Message(
            {"RunId": run, "ActivityHeld": AT, "Host": "n7"}, id=f"{run}/1", source="/t"
        )

        assert link.publish([reported]) == 1
        assert link.publish([reported]) == 0
        [came] = taken(held, 1, run)
    link.close()

    assert came.message.pairs == {"RunId": run, "ActivityHeld": AT}
    assert (came.message.id, came.message.source) == (reported.id, reported.source)
    assert came.seq > 0


def test_a_subscriber_can_go_on_after_a_place_in_the_log(
    broker: Served, opened: Opened, run: str
) -> None:
    link = opened(broker.url)
    link.publish([Message({"RunId": run, "WorkflowIdle": AT}, id=f"{run}/{n}") for n in range(3)])
    with link.subscribe(["WorkflowIdle", "RunId"], after=0) as everything:
        first = taken(everything, 3, run)[0]

    with link.subscribe(["WorkflowIdle", "RunId"], after=first.seq) as rest:
        ids = [each.message.id for each in taken(rest, 2, run)]
    link.close()

    assert ids == [f"{run}/1", f"{run}/2"]


def test_the_aggregate_profile_follows_those_who_come_and_go(
    broker: Served, opened: Opened
) -> None:
    link = opened(broker.url)
    before = link.profile()
    subscription = link.subscribe(["CarbonEmitted"])
    assert "CarbonEmitted" in HttpLink(broker.url).profile().concepts
    until_asked_for(link, "CarbonEmitted")
    subscription.close()
    link.close()
    asking = HttpLink(broker.url)
    profile = asking.profile()
    deadline = time.monotonic() + PATIENCE_S
    while "CarbonEmitted" in profile.concepts and time.monotonic() < deadline:
        time.sleep(0.02)
        profile = asking.profile()
    asking.close()

    assert "CarbonEmitted" not in before.concepts
    assert "CarbonEmitted" not in profile.concepts


def test_what_a_broker_will_not_have_is_said_with_the_nearest_concept(
    broker: Served, opened: Opened
) -> None:
    link = opened(broker.url)

    with pytest.raises(BrokerRefused, match=r"T320.*ActivityHeld"):
        link.publish([Message({"ActivityHelt": AT})])
    with pytest.raises(BrokerRefused, match="T320"):
        link.subscribe(["ActivityHelt"])
    link.close()


def test_a_link_to_where_nobody_is_says_so(opened: Opened) -> None:
    link = opened("http://127.0.0.1:9")

    with pytest.raises(CannotReachBroker):
        link.publish([Message({"RunId": "r"})])
    with pytest.raises(CannotReachBroker):
        link.profile()
    with pytest.raises(CannotReachBroker):
        link.subscribe(["RunId"])


def test_a_broker_that_takes_a_subscription_without_a_word_is_given_up(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("blackboard.remote.START_S_MAX", "transport.websocket.HANDSHAKE_S_MAX"):
        monkeypatch.setattr(f"tocsin.client.{module}", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        link = opened(f"http://127.0.0.1:{silent.getsockname()[1]}")

        with pytest.raises(CannotReachBroker, match="does not answer"):
            link.subscribe(["RunId"])


def test_a_subscription_misses_nothing_of_a_broker_that_went_and_came_back(opened: Opened) -> None:
    with served() as broker:
        link = opened(broker.url)
        # Nothing is in the log yet, and nothing was taken: there is no last message to go on after.
        with link.subscribe(["RunId"]) as runs:
            broker.stop()
            broker.start()
            HttpLink(broker.url).publish([Message({"RunId": "r1"}, id="1")])

            [came] = taken(runs, 1, "r1")
        link.close()

    assert came.message.id == "1"


def test_the_scheme_of_an_address_chooses_the_link() -> None:
    assert isinstance(open_link("http://node:8400"), HttpLink)
    assert isinstance(open_link("node:8400"), HttpLink)
    assert isinstance(open_link("wss://node:8400"), WebSocketLink)
    assert open_link("ws://node:8400").name == "http://node:8400"
    with pytest.raises(BadSetting):
        open_link("gopher://node")
