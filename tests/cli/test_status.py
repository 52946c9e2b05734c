"""`tocsin status` and `tocsin topics ls` against real brokers."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from served import Served, served

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def tocsin(in_process):
    def call(broker: Served | str, *arguments: str) -> tuple[int, str, str]:
        url = broker if isinstance(broker, str) else broker.url
        return in_process(*arguments, "--broker", url)

    return call


def test_status_is_one_screen_of_words(broker, tocsin, topic) -> None:
    broker.publish({"topic": topic})

    code, out, _ = tocsin(broker, "status")

    assert code == 0
    assert out.splitlines()[0].endswith(tuple("0123456789"))
    assert ": ready, up 00:" in out
    assert f"data           {broker.directory}" in out
    assert f"http {broker.address}" in out
    for name in ("events", "rate", "subscriptions", "boxes", "streams", "largest lag", "disk"):
        assert f"\n{name} " in out
    assert len(out.splitlines()) <= 24


def test_an_empty_log_has_no_numbers(tocsin) -> None:
    with served() as empty:
        _, out, _ = tocsin(empty, "status")

    assert "events         0 in the log\n" in out
    assert "0 open, 1 connection\n" in out


def test_status_in_json_has_what_the_screen_has(broker, tocsin, topic) -> None:
    last = broker.publish({"topic": topic}, {"topic": topic})["last"]

    code, out, _ = tocsin(broker, "status", "--json")

    status = json.loads(out)
    assert code == 0
    assert status["ready"] is True
    assert status["log"]["last"] >= last
    assert status["log"]["events_per_s"] > 0
    assert status["listeners"]["http"] == broker.address
    assert status["disk"]["free"] > 0
    assert status["subscriptions"].keys() == {"active", "paused", "pending"}


def test_a_box_that_lags_is_named(broker, tocsin, topic) -> None:
    box = broker.call("POST", "/boxes", {"filters": [{"topic": topic}]})[1]["id"]
    broker.publish(*({"topic": topic} for _ in range(3)))

    status = json.loads(tocsin(broker, "status", "--json")[1])
    broker.call("DELETE", f"/boxes/{box}")

    assert status["boxes"] >= 1
    assert status["behind"]["slowest"] == box
    assert status["behind"]["most"] >= 3


def test_no_broker_is_exit_code_three(tocsin) -> None:
    code, _, err = tocsin(NOBODY, "status")

    assert code == 3
    assert "[T601]" in err


def test_a_broker_that_is_not_ready_is_exit_code_one_and_says_why(broker, tocsin) -> None:
    status = {**broker.call("GET", "/status")[1], "ready": False, "reasons": ["the disk is full"]}

    class Sick(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(status).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Sick) as server:
        threading.Thread(target=server.handle_request).start()
        code, out, err = tocsin(f"http://127.0.0.1:{server.server_port}", "status")

    assert code == 1
    assert "NOT READY" in out
    assert "warning: the disk is full" in err


def test_watching_shows_it_again(broker, tocsin) -> None:
    code, out, _ = tocsin(broker, "status", "--watch", "0.1", "-n", "3", "--json")

    assert code == 0
    uptimes = [json.loads(line)["uptime_s"] for line in out.splitlines()]
    assert len(uptimes) == 3
    assert uptimes == sorted(uptimes)


def test_topics_are_listed_with_counts_rates_and_times(broker, tocsin, topic) -> None:
    broker.publish({"topic": f"{topic}/a"}, {"topic": f"{topic}/b"}, {"topic": f"{topic}/b"})

    code, out, _ = tocsin(broker, "topics", "ls", f"{topic}/", "--sort", "events", "--json")

    page = json.loads(out)
    assert code == 0
    assert [(each["topic"], each["events"]) for each in page["topics"]] == [
        (f"{topic}/b", 2),
        (f"{topic}/a", 1),
    ]
    assert all(each["events_per_s"] > 0 for each in page["topics"])
    assert page["more"] is False
    assert page["counted_from"] == 1


@pytest.mark.parametrize("pattern", ["/*", "/**", "/"])
def test_topics_are_chosen_by_pattern_or_prefix(broker, tocsin, topic, pattern) -> None:
    broker.publish({"topic": f"{topic}/a"}, {"topic": f"{topic}x/a"})

    _, out, _ = tocsin(broker, "topics", "ls", topic + pattern)

    assert f"{topic}/a " in out
    assert f"{topic}x/a" not in out


def test_a_list_that_is_cut_says_so(broker, tocsin, topic) -> None:
    broker.publish({"topic": f"{topic}/a"}, {"topic": f"{topic}/b"})

    _, out, err = tocsin(broker, "topics", "ls", f"{topic}/**", "--limit", "1")

    assert len(out.splitlines()) == 2
    assert "There are more than 1 topic" in err


def test_a_foreign_wildcard_is_answered_with_ours(broker, tocsin) -> None:
    code, _, err = tocsin(broker, "topics", "ls", "lead/#")

    assert code == 1
    assert "Write lead/** (" in err


def test_topics_are_there_again_after_a_restart(tocsin) -> None:
    with served() as broker:
        broker.publish({"topic": "old/a"}, {"topic": "old/a"}, {"topic": "old/b"})
        broker.stop()
        broker.start()
        broker.publish({"topic": "old/a"})

        page = json.loads(tocsin(broker, "topics", "ls", "--json")[1])

    assert [(each["topic"], each["events"]) for each in page["topics"]] == [
        ("old/a", 3),
        ("old/b", 1),
    ]
    assert page["counted_from"] == 1
