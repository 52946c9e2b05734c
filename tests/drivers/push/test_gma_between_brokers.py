"""A whole broker that pushes performance events: to another broker, and to who refuses them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from served import Served, served
from waiting import wait_until

WAIT_S = 20.0
LOAD = re.compile("<load>([0-9]+)</load>")
EVENTS = "http://www.gridforum.org/Performance/Events"


@pytest.fixture(scope="module")
def sender() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def receiver() -> Iterator[Served]:
    with served() as running:
        yield running


def subscribed(broker: Served, sink: str, topic: str, **config: object) -> str:
    asked = {"sink": sink, "filters": [{"topic": topic}], "config": config}
    status, view = broker.call("POST", "/subscriptions", asked)
    assert status == 201, view
    return str(view["id"])


def readings(broker: Served, kind: str) -> list[int]:
    _, page = broker.call("GET", f"/events?limit=1000&filter=type%20=%20'{kind}'")
    return [int(LOAD.findall(json.dumps(event))[0]) for event in page["events"]]


def published(broker: Served, topic: str, kind: str, numbers: range) -> None:
    broker.publish(
        *(
            {
                "type": kind,
                "topic": topic,
                "datacontenttype": "application/json",
                "data": {"load": n},
            }
            for n in numbers
        )
    )


def test_events_pass_from_broker_to_broker_once_and_in_order(
    sender: Served, receiver: Served
) -> None:
    kind = f"{EVENTS}/BetweenBrokers"
    made = subscribed(sender, f"gma://{receiver.frames}", "between/**", batch=10)

    published(sender, "between/a", kind, range(100))

    wait_until(lambda: len(readings(receiver, kind)) >= 100)
    assert readings(receiver, kind) == list(range(100))
    _, view = sender.call("GET", f"/subscriptions/{made}")
    assert (view["protocol"], view["dialect"]) == ("GMA", "Grid Forum performance events")
    assert (view["delivered"], view["failed_attempts"], view["state"]) == (100, 0, "active")


def test_nothing_is_lost_or_stored_twice_when_the_receiver_is_killed_and_comes_back(
    sender: Served,
) -> None:
    kind = f"{EVENTS}/AfterTheFall"
    with served() as receiver:
        subscribed(sender, f"gma://{receiver.frames}", "fall/**", batch=5)
        published(sender, "fall/a", kind, range(50))
        wait_until(lambda: readings(receiver, kind))
        receiver.kill()
        published(sender, "fall/a", kind, range(50, 100))
        receiver.start()

        wait_until(lambda: len(readings(receiver, kind)) >= 100)

        assert readings(receiver, kind) == list(range(100))


def test_nothing_is_lost_or_stored_twice_when_the_sender_is_killed_and_comes_back(
    receiver: Served,
) -> None:
    kind = f"{EVENTS}/SenderFalls"
    with served() as sender:
        subscribed(sender, f"gma://{receiver.frames}", "fall/**")
        published(sender, "fall/a", kind, range(200))
        wait_until(lambda: readings(receiver, kind))
        sender.kill()
        sender.start()

        wait_until(lambda: len(readings(receiver, kind)) >= 200)

        assert readings(receiver, kind) == list(range(200))


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"sink": "gma://collector.example:8401"}, 403, "is not trusted"),
        ({"sink": "gma://8.8.8.8:8401"}, 403, "is not trusted"),
        ({"sink": "gma://169.254.169.254"}, 403, "is not trusted"),
        ({"sink": "gma://127.0.0.1:22"}, 403, "port 22"),
        ({"sink": "gma://127.0.0.1:9/path"}, 400, "has a path"),
        ({"sink": "gma://user@127.0.0.1:9"}, 400, "user name"),
        ({"sink": "gma://127.0.0.1:9", "protocol": "HTTP"}, 400, "the sink uses GMA"),
        ({"sink": "http://127.0.0.1:9", "protocol": "GMA"}, 400, "the sink uses HTTP"),
        ({"sink": "gma://127.0.0.1:9", "config": {"mode": "structured"}}, 400, "not CloudEvents"),
        (
            {"sink": "gma://127.0.0.1:9", "config": {"secret": "whsec_" + "A" * 32}},
            400,
            "not CloudEvents",
        ),
    ],
)
def test_a_gma_sink_that_cannot_be_is_refused_at_once(
    sender: Served, asked: dict[str, object], status: int, said: str
) -> None:
    answered, body = sender.call("POST", "/subscriptions", asked)

    assert answered == status, body
    assert said in json.dumps(body)


def test_a_broker_does_not_send_performance_events_to_itself(sender: Served) -> None:
    port = sender.frames.rpartition(":")[2]

    for host in ("127.0.0.1", "localhost", "127.0.0.2", "[::1]"):
        status, body = sender.call("POST", "/subscriptions", {"sink": f"gma://{host}:{port}"})

        assert status == 403
        assert "this broker itself" in json.dumps(body)


def test_a_trusted_host_may_be_a_gma_sink() -> None:
    with served("--trust", "collector.example") as broker:
        asked = {"sink": "gmas://collector.example", "protocol": "GMA"}
        status, view = broker.call("POST", "/subscriptions", asked)

        assert (status, view["state"], view["protocol"]) == (201, "active", "GMA")
