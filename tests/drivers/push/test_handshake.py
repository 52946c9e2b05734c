"""Nobody is sent events who has not agreed to it."""

from __future__ import annotations

import pytest

from conftest import World
from tocsin.delivery.trust import SinkRules
from tocsin.drivers.push.pusher import HANDSHAKES_MAX, PushOptions
from tocsin.wire.cloudevents.webhook import Allowed, Refused


def test_a_sink_that_agrees_is_allowed_at_its_rate(world: World) -> None:
    address = world.answering(
        b"HTTP/1.1 200 OK\r\nAllow: POST\r\nWebHook-Allowed-Origin: broker.example\r\n"
        b"WebHook-Allowed-Rate: 120\r\nContent-Length: 0\r\n\r\n"
    )

    answer = world.shake_hands(address, callback="http://broker.example/confirm?token=1")

    assert answer == Allowed(120)
    [request] = world.requests
    assert (request.method, request.target) == ("OPTIONS", "/hook")
    assert request.headers["webhook-request-origin"] == "broker.example"
    assert request.headers["webhook-request-callback"] == "http://broker.example/confirm?token=1"
    assert request.body == b""
    assert world.pusher.open == 0


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 405 No\r\nwebhook-allowed-origin: *\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nwebhook-allowed-origin: other\r\ncontent-length: 0\r\n\r\n",
        b"no HTTP at all\r\n\r\n",
    ],
)
def test_anything_but_consent_is_a_refusal(world: World, answer: bytes) -> None:
    assert isinstance(world.shake_hands(world.answering(answer)), Refused)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1099/", "ftp://x/", "http://u@h/"])
def test_a_sink_that_cannot_be_asked_has_not_agreed(world: World, address: str) -> None:
    assert isinstance(world.shake_hands(address), Refused)


def test_a_near_address_is_not_even_asked(world: World) -> None:
    address = world.answering(b"HTTP/1.1 200 OK\r\nwebhook-allowed-origin: *\r\n\r\n")
    world.options = PushOptions(SinkRules())
    world.restart()

    assert isinstance(world.shake_hands(address), Refused)
    assert world.connections == 0


def test_more_handshakes_than_may_be_under_way_all_end(world: World) -> None:
    from tocsin.broker.effects import Handshake

    address = world.answering(
        b"HTTP/1.1 200 OK\r\nwebhook-allowed-origin: *\r\ncontent-length: 0\r\n\r\n"
    )
    answers: dict[str, Allowed | Refused] = {}
    count = HANDSHAKES_MAX * 2 + 3

    for number in range(count):
        effect = Handshake(str(number), address, "token")
        world.pusher.handshake(effect, "broker.example", None, answers.__setitem__)
    while len(answers) < count:
        world.wait(0.01)

    assert set(answers.values()) == {Allowed(None)}
    assert world.connections == count
