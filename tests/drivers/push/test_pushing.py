"""What a sink gets, and what becomes of its answer."""

from __future__ import annotations

import json
import time

import pytest
from standardwebhooks import Webhook
from world import EVENT, NOW_S, World

from tocsin import __version__
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.effects import Push
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Config, Kind, Subscription
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events

OK = b"HTTP/1.1 204 No Content\r\n\r\n"
CLOSING = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def received(world: World) -> list[Event]:
    request = world.requests[-1]
    return read_events(request.headers["content-type"], request.headers, request.body, Limits())


def test_an_event_arrives_in_binary_mode_unless_asked_otherwise(world: World) -> None:
    address = world.answering(OK)

    outcome = world.push(f"{address}?key=a%20b#part")

    assert outcome == Answered(204)
    [request] = world.requests
    assert (request.method, request.target) == ("POST", "/hook?key=a%20b")
    assert request.headers["host"] == address.split("/")[2]
    assert request.headers["user-agent"] == f"tocsin/{__version__}"
    assert request.headers["tocsin-subscription"] == "sub1"
    assert request.headers["tocsin-sequence"] == "7"
    assert request.body == EVENT.data
    assert received(world) == [EVENT]


def test_an_event_without_data_has_an_empty_body(world: World) -> None:
    world.push(world.answering(OK), Event("1", "/s", "t"))

    assert world.requests[0].headers["content-length"] == "0"
    assert world.requests[0].headers["ce-id"] == "1"


def test_a_structured_push_reads_back_equal(world: World) -> None:
    world.push(world.answering(OK), config=Config(mode="structured"))

    assert world.requests[0].headers["content-type"] == "application/cloudevents+json"
    assert received(world) == [EVENT]


def test_a_batch_reads_back_equal_and_in_order(world: World) -> None:
    events = [Event(str(number), "/s", "t", data=b"[1]") for number in range(3)]

    world.push(world.answering(OK), *events, config=Config(batch=10))

    assert world.requests[0].headers["content-type"] == "application/cloudevents-batch+json"
    assert world.requests[0].headers["tocsin-sequence"] == "7-9"
    assert received(world) == events


def test_a_subscriber_of_batches_gets_an_array_even_of_one(world: World) -> None:
    world.push(world.answering(OK), config=Config(batch=10, mode="structured"))

    assert len(json.loads(world.requests[0].body)) == 1


@pytest.mark.parametrize("config", [Config(), Config(mode="structured"), Config(batch=5)])
def test_a_signed_push_is_one_that_standard_webhooks_verifies(world: World, config: Config) -> None:
    signed = Config(secret=SECRET, mode=config.mode, batch=config.batch)
    world.restart(clock=time.time)  # the verifier compares with the real clock

    world.push(world.answering(OK), config=signed)

    request = world.requests[0]
    assert Webhook(SECRET).verify(request.body, request.headers) == json.loads(request.body)


def test_every_attempt_has_the_same_message_id(world: World) -> None:
    address = world.answering(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", OK)

    for _ in range(2):
        world.push(address, config=Config(secret=SECRET))

    assert [request.headers["webhook-id"] for request in world.requests] == ["msg_sub1_7"] * 2
    assert world.requests[0].headers["webhook-timestamp"] == str(int(NOW_S))


def test_a_secret_that_cannot_be_used_sends_nothing(world: World) -> None:
    outcome = world.push(world.answering(OK), config=Config(secret="whsec_short"))

    assert isinstance(outcome, Failed)
    assert "secret" in outcome.reason
    assert world.requests == []


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 5_000_000])
def test_a_body_of_any_size_arrives_whole(world: World, size: int) -> None:
    data = bytes(index % 251 for index in range(size))

    world.push(world.answering(OK), Event("1", "/s", "t", datacontenttype="a/b", data=data))

    assert world.requests[0].body == data


def test_one_connection_carries_many_requests(world: World) -> None:
    address = world.answering(OK)

    outcomes = [world.push(address) for _ in range(5)]

    assert outcomes == [Answered(204)] * 5
    assert world.connections == 1


@pytest.mark.parametrize("answer", [OK, CLOSING])
def test_the_next_push_may_be_sent_while_the_last_is_reported(world: World, answer: bytes) -> None:
    address = world.answering(answer)
    subscription = Subscription(id="sub1", kind=Kind.PUSH, sink=address)
    outcomes: list[Outcome] = []

    def send() -> None:
        stored = Stored(len(outcomes), 0, EVENT)
        world.pusher.send(Push(1, address, subscription, [stored], 5.0), done)

    def done(lane: int, outcome: Outcome) -> None:
        outcomes.append(outcome)
        if len(outcomes) < 50:
            send()

    send()
    while len(outcomes) < 50:
        world.wait(0.01)

    assert [int(request.headers["tocsin-sequence"]) for request in world.requests] == [*range(50)]
    assert world.connections == (1 if answer == OK else 50)


def test_each_lane_has_its_own_connection(world: World) -> None:
    address = world.answering(OK)

    for lane in (1, 2, 1, 2):
        world.push(address, lane=lane)

    assert world.connections == 2


def test_a_lane_given_to_another_sink_goes_there(world: World) -> None:
    first, second = world.answering(OK), world.answering(OK)

    world.push(first)
    world.push(second)

    assert [request.headers["host"] in first for request in world.requests] == [True, False]
    assert world.pusher.open == 1


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", Answered(200)),
        (b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", Answered(202)),
        (b"HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", Answered(410)),
        (
            b"HTTP/1.1 429 Slow down\r\nretry-after: 120\r\ncontent-length: 4\r\n\r\nwait",
            Answered(429, 120.0, "wait"),
        ),
        (
            b"HTTP/1.1 503 No\r\nRetry-After: Tue, 14 Nov 2023 22:14:20 GMT\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n2\r\nno\r\n3\r\n, n\r\n0\r\n\r\n",
            Answered(503, 60.0, "no, n"),
        ),
        (
            b"HTTP/1.1 503 No\r\nretry-after: Tue, 14 Nov 2000 22:14:20 GMT\r\n"
            b"content-length: 0\r\n\r\n",
            Answered(503, 0.0),
        ),
        (b"HTTP/1.1 503 No\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n", Answered(503)),
        (b"HTTP/1.1 503 No\r\nretry-after: -5\r\ncontent-length: 0\r\n\r\n", Answered(503)),
        (b"HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n", Answered(302)),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", Answered(204)),
        (
            b"HTTP/1.1 103 Hints\r\nretry-after: 9\r\n\r\n"
            b"HTTP/1.1 429 No\r\nretry-after: 8\r\ncontent-length: 0\r\n\r\n",
            Answered(429, 8.0),
        ),
    ],
)
def test_what_the_sink_answers_is_what_is_reported(
    world: World, answer: bytes, outcome: Answered
) -> None:
    address = world.answering(answer, OK)

    assert world.push(address) == outcome

    assert world.push(address) == Answered(204)
    assert world.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nand more",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\nand more",
    ],
)
def test_a_connection_that_cannot_go_on_is_not_used_again(world: World, answer: bytes) -> None:
    address = world.answering(answer)

    outcomes = [world.push(address) for _ in range(2)]

    assert outcomes == [Answered(200)] * 2
    assert world.connections == 2


def test_the_excerpt_of_an_answer_is_short_and_harmless(world: World) -> None:
    body = b"\x1b[31mno\xff\x00\n" + b"x" * 2_000
    answer = b"HTTP/1.1 500 Oops\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    outcome = world.push(world.answering(answer))

    assert isinstance(outcome, Answered)
    assert outcome.excerpt.startswith("\ufffd[31mno\ufffd\ufffd\nxxx")
    assert len(outcome.excerpt) == 512


@pytest.mark.parametrize("address", ["ftp://x/", "http://u:p@127.0.0.1/", "http://127.0.0.1:22/"])
def test_an_address_that_is_no_sink_fails_and_harms_nobody(world: World, address: str) -> None:
    outcome = world.push(address)

    assert isinstance(outcome, Failed)
    assert not outcome.reachable
