"""The blackboard by HTTP: messages, profiles, publishers and subscribers, with a real broker."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from served import Served, served
from waiting import wait_until

NOW = "2026-11-16T07:00:00Z"


class Listener:
    """A real HTTP server that writes down what it is sent, on a port of its own."""

    def __init__(self, port: int = 0) -> None:
        self.bodies: list[Any] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                outer.bodies.append(json.loads(self.rfile.read(length)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message for body in self.bodies for message in body]

    @property
    def pairs(self) -> list[dict[str, str]]:
        return [message["pairs"] for message in self.messages]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_MONITOR__ENABLED": "false"}) as broker:
        yield broker


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


def subscribe(broker: Served, address: str, *concepts: str) -> dict[str, Any]:
    status, reported = broker.call(
        "PUT", "/blackboard/subscribers", {"address": address, "concepts": list(concepts)}
    )
    assert status in (200, 201), reported
    return reported


def post(broker: Served, *messages: dict[str, str], **more: str) -> Any:
    status, reported = broker.call(
        "POST", "/blackboard/messages", [{"pairs": pairs, **more} for pairs in messages]
    )
    assert status == 202, reported
    return reported


def test_only_the_pairs_that_were_asked_for_are_sent(broker: Served, listener: Listener) -> None:
    subscribe(broker, listener.url, "ActivityTerminalEvent", "RunId")

    post(
        broker,
        {"RunId": "r1", "ActivitySucceeded": NOW, "CpuSeconds": "7", "ActivityId": "a"},
        {"WorkflowName": "nobody asked for this"},
        {"RunId": "r1", "ActivityExecuting": NOW},
    )

    wait_until(lambda: len(listener.messages) >= 2)
    assert listener.pairs == [{"RunId": "r1", "ActivitySucceeded": NOW}, {"RunId": "r1"}]


def test_a_concept_stands_for_all_that_it_subsumes(broker: Served, listener: Listener) -> None:
    reported = subscribe(broker, listener.url, "prov:End")

    assert reported["expanded"] == 14
    post(broker, {"WorkflowAborted": NOW}, {"ActivityOutOfMemory": NOW}, {"WorkflowStarted": NOW})
    wait_until(lambda: len(listener.messages) >= 2)
    assert listener.pairs == [{"WorkflowAborted": NOW}, {"ActivityOutOfMemory": NOW}]


def test_subscribing_again_replaces_the_profile(broker: Served, listener: Listener) -> None:
    first = subscribe(broker, listener.url, "RunId")
    second = subscribe(broker, listener.url, "ExitCode")

    assert first["id"] == second["id"]
    post(broker, {"RunId": "r1"}, {"ExitCode": "1"})
    wait_until(lambda: bool(listener.messages))
    assert listener.pairs == [{"ExitCode": "1"}]
    _, reported = broker.call("GET", "/blackboard/subscribers")
    assert [each["concepts"] for each in reported["subscribers"]] == [["ExitCode"]]


def test_who_unsubscribes_gets_nothing_more(broker: Served, listener: Listener) -> None:
    subscribe(broker, listener.url, "RunId")

    status, _ = broker.call("DELETE", f"/blackboard/subscribers?address={listener.url}")
    assert status == 204
    post(broker, {"RunId": "r1"})
    assert broker.call("GET", "/blackboard/subscribers")[1] == {"subscribers": []}
    status, reported = broker.call("DELETE", f"/blackboard/subscribers?address={listener.url}")
    assert (status, reported["code"]) == (404, "T324")
    assert listener.bodies == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/blackboard/messages", {"pairs": {"ActivityClosd": NOW}}),
        (
            "/blackboard/subscribers",
            {"address": "http://127.0.0.1:9/", "concepts": ["ActivtyClosed"]},
        ),
    ],
)
def test_an_unknown_concept_is_refused_with_the_nearest_known(
    broker: Served, path: str, body: object
) -> None:
    method = "PUT" if path.endswith("subscribers") else "POST"
    status, reported = broker.call(method, path, body)

    assert (status, reported["code"]) == (400, "T320")
    assert "ActivityClosed" in reported["remedy"]
    assert broker.call("GET", "/events")[1]["events"] == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b'{"pairs": {}}', b'{"pairs": {"RunId": 7}}', b'{"RunId": "r"}',
     b'{"pairs": {"RunId": "r"}, "time": "noon"}', b"\xff", b"[" * 5000, b'{"pairs": []}'],
)  # fmt: skip
def test_what_is_no_message_is_refused_and_changes_nothing(broker: Served, body: bytes) -> None:
    status, reported = broker.call(
        "POST", "/blackboard/messages", body, {"content-type": "application/json"}
    )

    assert status == 400
    assert reported["remedy"]
    assert broker.call("GET", "/events")[1]["events"] == []


def test_one_wrong_message_refuses_the_whole_list(broker: Served) -> None:
    status, _ = broker.call(
        "POST", "/blackboard/messages", [{"pairs": {"RunId": "r"}}, {"pairs": {"Nope": "x"}}]
    )

    assert status == 400
    assert broker.call("GET", "/events")[1]["events"] == []


def test_a_repeated_message_is_stored_once(broker: Served) -> None:
    first = post(broker, {"RunId": "r1"}, id="m1", source="/engine")
    again = post(broker, {"RunId": "r1"}, id="m1", source="/engine")

    assert (first["accepted"], again.get("duplicates")) == (1, 1)
    assert len(broker.call("GET", "/events")[1]["events"]) == 1


def test_every_other_door_sees_messages_as_events(broker: Served) -> None:
    status, box = broker.call("POST", "/boxes", {"filters": [{"concepts": ["ActivityProblem"]}]})
    assert status == 201
    pairs = {"WorkflowName": "w/1", "RunId": "r 1", "ActivityId": "a", "ActivityFailed": NOW}
    post(broker, pairs, {"RunId": "r1", "ActivitySucceeded": NOW}, time=NOW)

    _, reported = broker.call("GET", f"{box['messages']}?max=10")

    [event] = reported["events"]
    assert event["type"] == "bb.ActivityFailed"
    assert event["topic"] == "blackboard/w_1/r_1"
    assert (event["subject"], event["time"], event["data"]) == ("a", NOW, pairs)


def test_events_of_any_door_reach_who_subscribed_by_concept(
    broker: Served, listener: Listener
) -> None:
    subscribe(broker, listener.url, "MemoryPeak", "RunId")

    broker.publish(
        {"type": "load", "data": {"MemoryPeak": 5, "RunId": "r1", "other": True}},
        {"type": "load", "data": {"other": 1}},
        {
            "type": "x",
            "datacontenttype": "application/xml",
            "data": "<a><MemoryPeak>7</MemoryPeak></a>",
        },
    )

    wait_until(lambda: len(listener.messages) >= 2)
    assert listener.pairs == [{"MemoryPeak": "5", "RunId": "r1"}, {"MemoryPeak": "7"}]


def test_any_push_subscription_may_have_pairs_instead_of_events(
    broker: Served, listener: Listener
) -> None:
    status, reported = broker.call(
        "POST",
        "/subscriptions",
        {
            "sink": listener.url,
            "filters": [{"concepts": ["Cpu"]}, {"filter": "RunId = r1"}],
            "config": {"mode": "blackboard", "batch": 10},
        },
    )

    assert (status, reported["config"]["mode"]) == (201, "blackboard")
    post(broker, {"RunId": "r1", "CpuSeconds": "1"}, {"RunId": "r2", "CpuSeconds": "2"})
    wait_until(lambda: bool(listener.messages))
    assert listener.pairs == [{"CpuSeconds": "1"}]


def test_nobody_asks_so_the_aggregate_is_empty(broker: Served, listener: Listener) -> None:
    _, none = broker.call("GET", "/blackboard/profile")
    subscribe(broker, listener.url, "Cpu")
    _, cpu = broker.call("GET", "/blackboard/profile")

    assert (none["concepts"], none["everything"]) == ([], False)
    assert cpu["concepts"] == ["Cpu", "CpuCores", "CpuPercent", "CpuSeconds"]
    assert cpu["version"] > none["version"]


@pytest.mark.parametrize(
    ("filters", "everything"),
    [
        ([], True),
        ([{"topic": "blackboard/**"}], True),
        ([{"filter": "RunId = r1"}], True),
        ([{"topic": "lead/**"}], False),
        ([{"filter": "temperature > 5"}], False),
        ([{"exact": {"type": "load"}}], False),
        ([{"concepts": ["RunId"]}], False),
    ],
)
def test_who_may_want_whole_messages_otherwise_than_by_concept_gets_them(
    broker: Served, filters: list[object], everything: bool
) -> None:
    broker.call("POST", "/boxes", {"filters": filters})

    assert broker.call("GET", "/blackboard/profile")[1]["everything"] is everything


def test_publishers_hear_of_the_aggregate_when_and_only_when_it_changes(broker: Served) -> None:
    publisher, one, two = Listener(), Listener(), Listener()
    try:
        status, reported = broker.call("POST", "/blackboard/publishers", {"address": publisher.url})
        assert (status, reported["profile"]["concepts"]) == (201, [])
        subscribe(broker, one.url, "RunId", "ExitCode")
        wait_until(lambda: len(publisher.bodies) == 1)
        subscribe(broker, one.url, "RunId", "ExitCode")  # the same again
        subscribe(broker, two.url, "RunId")  # nothing new to anybody
        broker.call("DELETE", f"/blackboard/subscribers?address={two.url}")
        subscribe(broker, two.url, "Host")
        wait_until(lambda: len(publisher.bodies) == 2)
        broker.call("DELETE", f"/blackboard/subscribers?address={one.url}")
        wait_until(lambda: len(publisher.bodies) == 3)

        assert [body["concepts"] for body in publisher.bodies] == [
            ["ExitCode", "RunId"],
            ["ExitCode", "Host", "RunId"],
            ["Host"],
        ]
    finally:
        for each in (publisher, one, two):
            each.close()


def test_a_publisher_that_is_away_is_off_the_list_and_comes_back_by_itself(
    broker: Served, listener: Listener
) -> None:
    publisher = Listener()
    broker.call("POST", "/blackboard/publishers", {"address": publisher.url})
    publisher.close()
    subscribe(broker, listener.url, "RunId")

    def listed() -> bool:
        _, reported = broker.call("GET", "/blackboard/publishers")
        return bool(reported["publishers"][0]["listed"])

    wait_until(lambda: not listed())
    publisher = Listener(publisher.port)
    wait_until(listed)
    assert publisher.bodies[-1]["concepts"] == ["RunId"]
    publisher.close()


def test_a_publisher_is_taken_off_the_list_by_its_address(broker: Served) -> None:
    publisher = Listener()
    broker.call("POST", "/blackboard/publishers", {"address": publisher.url})
    target = f"/blackboard/publishers?address={publisher.url}"

    assert broker.call("DELETE", target)[0] == 204

    _, reported = broker.call("GET", "/blackboard/publishers")
    assert publisher.url not in [each["address"] for each in reported["publishers"]]
    assert broker.call("DELETE", target)[0] == 404
    assert broker.call("DELETE", "/blackboard/publishers")[0] == 400
    publisher.close()


def test_both_lists_are_there_again_after_a_kill(broker: Served, listener: Listener) -> None:
    publisher = Listener()
    broker.call("POST", "/blackboard/publishers", {"address": publisher.url})
    subscribe(broker, listener.url, "ExitCode")
    wait_until(lambda: len(publisher.bodies) == 1)
    post(broker, {"ExitCode": "1"})
    wait_until(lambda: len(listener.messages) == 1)

    broker.kill()
    broker.start()

    assert broker.call("GET", "/blackboard/profile")[1]["concepts"] == ["ExitCode"]
    _, reported = broker.call("GET", "/blackboard/publishers")
    assert [each["address"] for each in reported["publishers"]] == [publisher.url]
    post(broker, {"ExitCode": "2"})
    wait_until(lambda: {"ExitCode": "2"} in listener.pairs)
    wait_until(lambda: len(publisher.bodies) == 2)  # whatever it knew, it knows now
    publisher.close()


def test_a_subscriber_that_is_away_loses_nothing(broker: Served) -> None:
    away = Listener()
    subscribe(broker, away.url, "ExitCode")
    away.close()
    post(broker, *({"ExitCode": str(code)} for code in range(5)))

    back = Listener(away.port)
    wait_until(lambda: len(back.messages) >= 5)

    assert [pairs["ExitCode"] for pairs in back.pairs] == ["0", "1", "2", "3", "4"]
    back.close()


def test_a_subscriber_that_is_away_for_long_is_off_the_list_until_it_is_back() -> None:
    with served(
        env={
            "TOCSIN_MONITOR__ENABLED": "false",
            "TOCSIN_BLACKBOARD__MISSING_AFTER_S": "0.5",
            "TOCSIN_DELIVERY__FIRST_DELAY_S": "0.1",
            "TOCSIN_DELIVERY__DELAY_S_MAX": "0.5",
        }
    ) as broker:
        away = Listener()
        subscribe(broker, away.url, "ExitCode")
        away.close()
        post(broker, {"ExitCode": "1"})
        wait_until(lambda: broker.call("GET", "/blackboard/profile")[1]["concepts"] == [])
        _, reported = broker.call("GET", "/blackboard/subscribers")
        assert reported["subscribers"][0]["listed"] is False

        back = Listener(away.port)
        wait_until(lambda: broker.call("GET", "/blackboard/profile")[1]["concepts"] == ["ExitCode"])
        assert back.pairs == [{"ExitCode": "1"}]
        back.close()


def test_the_profile_can_be_waited_for(broker: Served, listener: Listener) -> None:
    version = broker.call("GET", "/blackboard/profile")[1]["version"]
    reported: list[Any] = []
    waiting = threading.Thread(
        target=lambda: reported.append(
            broker.call("GET", f"/blackboard/profile?after={version}&wait=20")[1]
        )
    )
    waiting.start()
    subscribe(broker, listener.url, "RunId")
    waiting.join(10)

    assert reported[0]["concepts"] == ["RunId"]
