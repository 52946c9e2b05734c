"""Nobody is sent events who has not agreed to it."""

from __future__ import annotations

import pytest
from world import World

from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.effects import Handshake
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


def ask_all(world: World, addresses: list[str]) -> dict[str, Allowed | Refused]:
    """The answers to handshakes that were all begun at once, by the number of the address."""
    answers: dict[str, Allowed | Refused] = {}
    for number, address in enumerate(addresses):
        effect = Handshake(str(number), address, "token")
        world.pusher.handshake(effect, "broker.example", None, answers.__setitem__)
    while len(answers) < len(addresses):
        world.wait(0.01)
    return answers


def test_more_handshakes_than_may_be_under_way_all_end(world: World) -> None:
    address = world.answering(
        b"HTTP/1.1 200 OK\r\nwebhook-allowed-origin: *\r\ncontent-length: 0\r\n\r\n"
    )
    count = HANDSHAKES_MAX * 2 + 3

    answers = ask_all(world, [f"{address}/{number}" for number in range(count)])

    assert set(answers.values()) == {Allowed(None)}
    assert world.connections == count


@pytest.mark.parametrize("consent", [b"", b"webhook-allowed-origin: *\r\n"])
def test_a_hundred_subscriptions_to_one_sink_ask_it_once(world: World, consent: bytes) -> None:
    address = world.answering(b"HTTP/1.1 200 OK\r\n" + consent + b"content-length: 0\r\n\r\n")

    answers = ask_all(world, [address] * 100)

    assert len(world.requests) == 1
    assert all(isinstance(answer, Allowed) == bool(consent) for answer in answers.values())


def test_a_sink_that_was_asked_may_be_asked_again(world: World) -> None:
    address = world.answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    for _ in range(2):
        assert isinstance(world.shake_hands(address), Refused)

    assert len(world.requests) == 2
