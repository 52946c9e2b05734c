"""The blackboard by stream and by socket, with a real broker and a real WebSocket client."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from typing import Any

import pytest
import websockets.sync.client as websockets
from websockets.exceptions import ConnectionClosed

from served import Served, served
from tocsin.services.streams.websocket import PARTS_MAX

NOW = "2026-11-16T07:00:00Z"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_MONITOR__ENABLED": "false"}) as broker:
        yield broker


@contextmanager
def stream(broker: Served, query: str, **headers: str) -> Iterator[http.client.HTTPResponse]:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    connection.request("GET", f"/blackboard/stream{query}", headers=headers)
    yield connection.getresponse()
    connection.close()


def next_message(response: http.client.HTTPResponse) -> dict[str, Any]:
    while True:
        line = response.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            return dict(json.loads(line[6:]))


@contextmanager
def socket(broker: Served) -> Iterator[websockets.ClientConnection]:
    with websockets.connect(f"ws://{broker.address}/blackboard/socket") as connection:
        yield connection


def ask(connection: websockets.ClientConnection, **said: object) -> Any:
    connection.send(json.dumps(said))
    return receive(connection)


def receive(connection: websockets.ClientConnection) -> Any:
    return json.loads(connection.recv(timeout=20))


def post(broker: Served, *messages: dict[str, str]) -> Any:
    status, reported = broker.call("POST", "/blackboard/messages", [{"pairs": m} for m in messages])
    assert status == 202, reported
    return reported


def test_a_stream_has_the_asked_for_pairs_alone_and_can_be_resumed(broker: Served) -> None:
    with stream(broker, "?concepts=ActivityProblem,bb:RunId") as response:
        assert response.status == 200
        post(broker, {"RunId": "r1", "ActivityHeld": NOW, "Host": "h"}, {"Host": "h"})
        first = next_message(response)
        assert first["pairs"] == {"RunId": "r1", "ActivityHeld": NOW}
    post(broker, {"RunId": "r2"})

    with stream(broker, "?concepts=RunId", **{"Last-Event-ID": str(first["seq"])}) as response:
        assert next_message(response)["pairs"] == {"RunId": "r2"}


def test_a_stream_without_a_profile_has_every_pair(broker: Served) -> None:
    with stream(broker, "") as response:
        post(broker, {"Host": "h", "ExitCode": "1"})
        assert next_message(response)["pairs"] == {"Host": "h", "ExitCode": "1"}


@pytest.mark.parametrize("query", ["?concepts=Nope", "?concepts=,", "?concept=RunId", "?after=x"])
def test_a_stream_that_cannot_be_is_refused(broker: Served, query: str) -> None:
    with stream(broker, query) as response:
        reported = json.loads(response.read())

    assert response.status == 400
    assert reported["remedy"]


def test_who_streams_is_in_the_aggregate_for_as_long_as_it_does(broker: Served) -> None:
    def concepts() -> list[str]:
        return list(broker.call("GET", "/blackboard/profile")[1]["concepts"])

    with socket(broker) as connection:
        answer = ask(connection, subscribe=["ExitCode"], ref=1)
        assert (answer["subscribed"], answer["ref"]) == (1, 1)
        assert concepts() == ["ExitCode"]
        assert ask(connection, subscribe=["Host"])["subscribed"] == 1
        assert concepts() == ["Host"]
        assert ask(connection, unsubscribe=True)["subscribed"] == 0
        assert concepts() == []


def test_one_socket_publishes_and_subscribes(broker: Served) -> None:
    with socket(broker) as connection:
        ask(connection, subscribe=["ActivityTerminalEvent"])
        connection.send(json.dumps({"publish": [{"pairs": {"ActivityCached": NOW}}], "ref": "a"}))
        received = [receive(connection), receive(connection)]

    [accepted] = [each for each in received if "accepted" in each]
    [message] = [each for each in received if "pairs" in each]
    assert (accepted["accepted"], accepted["ref"]) == (1, "a")
    assert (message["pairs"], message["seq"]) == ({"ActivityCached": NOW}, accepted["last"])


def test_a_socket_subscribes_from_a_place_in_the_log(broker: Served) -> None:
    place = post(broker, {"Host": "before"})["last"]
    post(broker, {"Host": "after"})

    with socket(broker) as connection:
        ask(connection, subscribe=["Host"], after=place)
        assert receive(connection)["pairs"] == {"Host": "after"}


def test_who_registers_is_told_of_the_profile_when_it_changes(broker: Served) -> None:
    with socket(broker) as publisher, socket(broker) as subscriber:
        assert ask(publisher, register=True)["profile"]["concepts"] == []
        ask(subscriber, subscribe=["ExitCode"])
        assert receive(publisher)["profile"]["concepts"] == ["ExitCode"]
        ask(subscriber, subscribe=["ExitCode"])
        ask(subscriber, subscribe=["Host"])
        assert receive(publisher)["profile"]["concepts"] in ([], ["Host"])


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"publish": 7}', '{"publish": [{"pairs": {"Nope": "x"}}]}',
     '{"subscribe": []}', '{"subscribe": ["Nope"]}', '{"dance": true}', '{"register": "yes"}',
     "[" * 10_000],
)  # fmt: skip
def test_nonsense_is_told_and_the_socket_goes_on(broker: Served, text: str) -> None:
    before = broker.call("GET", "/events?after=0&limit=1000")[1]["next"]
    with socket(broker) as connection:
        connection.send(text)
        reported = receive(connection)
        assert reported["problem"]["remedy"]
        assert ask(connection, subscribe=["RunId"])["subscribed"] == 1
    assert broker.call("GET", "/events?after=0&limit=1000")[1]["next"] == before


def test_answers_come_in_the_order_of_the_questions(broker: Served) -> None:
    with socket(broker) as connection:
        for ref in range(200):
            connection.send(json.dumps({"publish": [{"pairs": {"Host": str(ref)}}], "ref": ref}))
        assert [receive(connection)["ref"] for _ in range(200)] == list(range(200))


def test_who_hangs_up_is_out_of_the_profile_at_once(broker: Served) -> None:
    with socket(broker) as publisher:
        ask(publisher, register=True)
        with stream(broker, "?concepts=LogTail"):
            assert receive(publisher)["profile"]["concepts"] == ["LogTail"]
        assert receive(publisher)["profile"]["concepts"] == []


def test_a_burst_on_one_socket_keeps_nobody_else_waiting(broker: Served) -> None:
    with socket(broker) as connection:
        for ref in range(500):
            connection.send(json.dumps({"subscribe": ["Event"], "ref": ref}))
        assert broker.call("GET", "/livez")[0] == 200
        assert [receive(connection)["ref"] for _ in range(500)] == list(range(500))


def test_a_publisher_that_did_not_read_gets_the_profile_as_it_is_by_then(broker: Served) -> None:
    with socket(broker) as publisher, socket(broker) as subscriber:
        ask(publisher, register=True)
        for _ in range(300):  # more than any buffer on the way holds
            ask(subscriber, subscribe=["Concept"])
            ask(subscriber, unsubscribe=True)
        ask(subscriber, subscribe=["LogFile"])
        reported = [receive(publisher)["profile"]]
        while reported[-1]["concepts"] != ["LogFile"]:
            reported.append(receive(publisher)["profile"])
        assert [each["version"] for each in reported] == sorted(
            {each["version"] for each in reported}
        )


def test_a_message_in_too_many_parts_is_too_big(broker: Served) -> None:
    with socket(broker) as connection:

        def parts() -> Iterator[str]:
            yield from repeat("x", PARTS_MAX + 1)
            receive(connection)  # what came after the broker had closed would drown its reason

        with pytest.raises(ConnectionClosed):
            connection.send(parts())
        assert connection.close_code == 1009
