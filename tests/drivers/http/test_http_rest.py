"""The REST API: subscriptions, boxes, dead letters, the log, health and metrics."""

from __future__ import annotations

import http.server
import json
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from raw_http import Raw, get, once, post, structured

from served import Served, served
from waiting import wait_until

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@contextmanager
def webhook(status: Callable[[], int]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A sink that answers as told; its address, and the headers of what it got."""
    got: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            got.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(status())
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", got
    finally:
        server.shutdown()
        server.server_close()


# Subscriptions


def test_a_subscription_is_made_shown_changed_and_ended(broker: Served) -> None:
    filters = [{"topic": "lead/**"}, {"filter": "load5 >= 5"}]
    asked = {"sink": "http://127.0.0.1:8999/hook", "filters": filters, "config": {"batch": 10}}

    status, made = broker.call("POST", "/subscriptions", asked)
    assert status == 201
    assert made["sink"] == asked["sink"]
    assert made["filters"] == filters
    assert made["state"] == "active"
    assert made["expires"] is None
    assert made["config"]["batch"] == 10
    path = f"/subscriptions/{made['id']}"
    assert broker.call("GET", path) == (200, made)

    status, changed = broker.call("PATCH", path, {"state": "paused", "expires": "PT10M"})
    assert status == 200
    assert changed["state"] == "paused"
    assert changed["expires"] > changed["created"]
    assert changed["config"]["batch"] == 10
    status, changed = broker.call("PATCH", path, {"config": {"batch": None}, "expires": None})
    assert (changed["config"]["batch"], changed["expires"]) == (1, None)

    assert broker.call("DELETE", path) == (204, None)
    status, gone = broker.call("GET", path)
    assert (status, gone["code"]) == (404, "T302")
    assert broker.call("DELETE", path)[0] == 404
    assert broker.call("PATCH", path, {"state": "active"})[0] == 404


def test_a_secret_is_never_shown_and_survives_other_changes(broker: Served) -> None:
    asked = {"sink": "http://127.0.0.1:8999/hook", "config": {"secret": SECRET}}

    status, made = broker.call("POST", "/subscriptions", asked)
    changed = broker.call("PATCH", f"/subscriptions/{made['id']}", {"config": {"batch": 2}})[1]

    assert status == 201
    assert made["config"]["secret"] is True
    assert changed["config"]["secret"] is True
    assert SECRET not in json.dumps(broker.call("GET", "/subscriptions")[1])


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, "sink"),
        ({"sink": 7}, "sink"),
        ({"sink": "ftp://x/"}, "ftp"),
        ({"sink": "http://x/", "filtres": []}, "filters"),
        ({"sink": "http://x/", "filters": {}}, "filters"),
        ({"sink": "http://x/", "filters": [{"topic": "a//b"}]}, "filters[0]"),
        ({"sink": "http://x/", "config": {"bach": 1}}, "config.bach"),
        ({"sink": "http://x/", "config": {"batch": 0}}, "config.batch"),
        ({"sink": "http://x/", "config": {"batch": True}}, "config.batch"),
        ({"sink": "http://x/", "config": {"mode": "yaml"}}, "config.mode"),
        ({"sink": "http://x/", "config": {"from": -1}}, "config.from"),
        ({"sink": "http://x/", "config": {"from": "yesterday"}}, "config.from"),
        ({"sink": "http://x/", "config": {"secret": "short"}}, "secret"),
        ({"sink": "http://x/", "expires": "2001-01-01T00:00:00Z"}, "expires"),
        ({"sink": "http://x/", "expires": "soon"}, "expires"),
        ({"sink": "http://x/", "protocol": "MQTT"}, "protocol"),
        ([], "object"),
    ],
)
def test_a_subscription_that_cannot_be_names_what_is_wrong(
    broker: Served, asked: object, named: str
) -> None:
    before = broker.call("GET", "/subscriptions")[1]["total"]

    status, problem = broker.call("POST", "/subscriptions", asked)

    assert status == 400
    assert named in problem["detail"] + problem["remedy"]
    assert broker.call("GET", "/subscriptions")[1]["total"] == before


def test_subscriptions_are_listed_in_pages_and_searched() -> None:
    with served() as running:
        for number in range(7):
            sink = f"http://127.0.0.1:8{number}99/number-{number}"
            assert running.call("POST", "/subscriptions", {"sink": sink})[0] == 201

        seen, after = [], ""
        while True:
            page = running.call("GET", f"/subscriptions?limit=3&after={after}")[1]
            seen += [each["sink"][-1] for each in page["subscriptions"]]
            if page["next"] is None:
                break
            after = page["next"]

        assert seen == list("0123456")
        assert page["total"] == 7
        (found,) = running.call("GET", "/subscriptions?q=NUMBER-4")[1]["subscriptions"]
        assert found["sink"].endswith("4")
        assert running.call("GET", "/subscriptions?sort=behind")[0] == 200
        assert running.call("GET", "/subscriptions?sort=size")[0] == 400


def test_a_sink_that_was_not_asked_gets_nothing_until_it_calls_back() -> None:
    with served("--trust", "nobody.example") as running:
        asked = {"sink": "http://sink.invalid/hook"}
        made = running.call("POST", "/subscriptions", asked)[1]
        assert made["state"] == "pending"

        path = f"/subscriptions/{made['id']}/handshake"
        assert running.call("GET", f"{path}?token=guessed")[0] == 400
        assert running.call("POST", "/subscriptions/none/handshake?token=x", {})[0] == 404
        assert running.call("GET", f"/subscriptions/{made['id']}")[1]["state"] == "pending"


# Boxes


def test_what_was_fetched_from_a_box_is_released_by_the_next_call(broker: Served) -> None:
    box = broker.call("POST", "/boxes", {"filters": [{"topic": "boxed/**"}]})[1]
    assert box["messages"] == f"/boxes/{box['id']}/messages"
    for number in range(5):
        once(broker.address, post(structured(f"box-{number}", topic="boxed/a")))
    broker.publish({"topic": "other"})

    first = broker.call("GET", f"{box['messages']}?max=3")[1]
    again = broker.call("GET", f"{box['messages']}?max=3")[1]
    rest = broker.call("GET", f"{box['messages']}?max=3&ack={first['next']}")[1]

    assert [event["id"] for event in first["events"]] == ["box-0", "box-1", "box-2"]
    assert [event["id"] for event in again["events"]] == ["box-0", "box-1", "box-2"]
    assert [event["id"] for event in rest["events"]] == ["box-3", "box-4"]
    assert len(first["sequences"]) == 3
    assert rest["dropped"] == 0
    assert broker.call("GET", f"{box['messages']}?ack=nonsense")[1]["code"] == "T308"
    assert broker.call("DELETE", f"/boxes/{box['id']}") == (204, None)
    assert broker.call("GET", box["messages"])[1]["code"] == "T303"


def test_a_wait_at_a_box_ends_with_the_first_event(broker: Served) -> None:
    box = broker.call("POST", "/boxes", {"filters": [{"topic": "late"}]})[1]
    with Raw(broker.address) as waiting:
        waiting.send(get(f"{box['messages']}?wait=20"))
        time.sleep(0.3)
        began = time.monotonic()
        once(broker.address, post(structured("at-last", topic="late")))

        answer = waiting.answer()

    assert time.monotonic() - began < 5
    assert [event["id"] for event in answer.json["events"]] == ["at-last"]


def test_a_box_can_start_in_the_past(broker: Served) -> None:
    first = broker.publish({"topic": "past"})["first"]
    received = "2020-01-01T00:00:00Z"

    by_number = broker.call("POST", "/boxes", {"config": {"from": first - 1}})[1]
    by_time = broker.call("POST", "/boxes", {"config": {"from": received}})[1]

    assert broker.call("GET", f"{by_number['messages']}?wait=5&max=1")[1]["sequences"] == [first]
    assert broker.call("GET", f"{by_time['messages']}?wait=5&max=1")[1]["sequences"] == [1]


def test_a_box_is_listed_paused_and_no_subscription(broker: Served) -> None:
    box = broker.call("POST", "/boxes", {})[1]

    assert box["id"] in {each["id"] for each in broker.call("GET", "/boxes?limit=1000")[1]["boxes"]}
    assert broker.call("GET", f"/subscriptions/{box['id']}")[0] == 404
    paused = broker.call("PATCH", f"/boxes/{box['id']}", {"state": "paused"})
    assert (paused[0], paused[1]["state"]) == (200, "paused")
    assert broker.call("PATCH", f"/boxes/{box['id']}", {"sink": "http://x/"})[0] == 400


# Dead letters


def test_a_dead_letter_is_listed_redriven_and_gone() -> None:
    answers = [400]
    with served() as running, webhook(lambda: answers[-1]) as (sink, got):
        made = running.call("POST", "/subscriptions", {"sink": sink})[1]
        running.publish({"id": "unwanted", "topic": "t", "data": {"a": 1}})

        def letters() -> list[Any]:
            return running.call("GET", f"/deadletters?subscription={made['id']}")[1]["deadletters"]  # type: ignore[no-any-return]

        (letter,) = wait_until(letters)
        assert letter["event"]["id"] == "unwanted"
        assert letter["subscription"] == made["id"]
        assert letter["attempts"][0]["status"] == 400
        path = f"/deadletters/{letter['id']}"
        assert running.call("GET", path) == (200, letter)
        assert running.call("GET", "/deadletters?subscription=other")[1]["deadletters"] == []

        refused = running.call("POST", f"{path}/redrive")
        assert (refused[0], refused[1]["code"]) == (502, "T305")
        answers.append(204)
        assert running.call("POST", f"{path}/redrive") == (200, {"redriven": letter["id"]})
        assert len(got) == 3
        assert running.call("GET", path)[1]["code"] == "T304"

        answers.append(400)
        running.publish({"id": "unwanted too", "topic": "t"})
        (letter,) = wait_until(letters)
        assert running.call("DELETE", f"/deadletters/{letter['id']}") == (204, None)
        assert letters() == []


# The log


def test_the_log_is_read_in_pages_to_its_end() -> None:
    with served() as running:
        running.publish(*({"id": f"e{n}", "data": {"n": n}} for n in range(25)))

        seen: list[int] = []
        after = 0
        while page := running.call("GET", f"/events?after={after}&limit=10")[1]:
            if not page["events"]:
                break
            seen += page["sequences"]
            after = page["next"]

        assert seen == list(range(1, 26))
        assert (page["next"], page["more"]) == (25, False)
        some = running.call("GET", "/events?filter=n%20%3E=%2020&limit=3")[1]
        assert [event["data"]["n"] for event in some["events"]] == [20, 21, 22]
        assert (some["next"], some["more"]) == (23, True)
        assert running.call("GET", "/events?after=1000000")[1]["events"] == []


# Operation


def test_health_says_what_speaks_against_it(broker: Served) -> None:
    assert broker.call("GET", "/livez") == (200, {"ok": True, "reasons": []})
    assert broker.call("GET", "/readyz") == (200, {"ok": True, "reasons": []})


def test_metrics_count_what_happened() -> None:
    with served() as running:
        running.publish({}, {}, {})
        running.call("POST", "/boxes", {"config": {"from": 0}})

        page = once(running.address, get("/metrics"))
        openmetrics = once(
            running.address, get("/metrics", "Accept: application/openmetrics-text\r\n")
        )

        text = page.body.decode()
        assert page.headers["content-type"].startswith("text/plain")
        assert "tocsin_events_acknowledged_total 3.0" in text
        assert "tocsin_log_head 3.0" in text
        assert 'tocsin_subscriptions{kind="box",state="active"} 1.0' in text
        assert 'tocsin_subscription_behind{subscription="other"} 0.0' in text
        assert openmetrics.body.endswith(b"# EOF\n")


def test_the_page_for_people_shows_how_it_goes_and_trusts_no_text(broker: Served) -> None:
    sink = "http://127.0.0.1:8999/?<script>alert(1)</script>"
    broker.call("POST", "/subscriptions", {"sink": sink, "config": {"from": 0}})
    broker.publish({})

    page = once(broker.address, get("/"))

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert b"<h1>Tocsin " in page.body
    assert b"<script>" not in page.body


def test_a_path_or_method_that_is_not_there_says_what_is(broker: Served) -> None:
    near = once(broker.address, get("/subscription"))
    far = once(broker.address, get("/xyzzy"))
    slash = once(broker.address, get("/events/"))
    method = once(broker.address, b"DELETE /events HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert (near.status, near.json["remedy"]) == (404, "Did you mean /subscriptions?")
    assert (far.status, far.json["code"]) == (404, "T204")
    assert "/events" in slash.json["remedy"]
    assert (method.status, method.headers["allow"]) == (405, "GET, HEAD, POST")


def test_a_damaged_record_is_reported_and_the_rest_is_served() -> None:
    with served() as running:
        running.publish(*({"id": f"e{n}"} for n in range(5)))
        running.stop()
        with closing(sqlite3.connect(running.directory / "log.sqlite")) as log, log:
            assert log.execute("UPDATE events SET crc = crc + 1 WHERE seq = 3").rowcount == 1
        running.start()

        page = running.call("GET", "/events")[1]

        assert page["sequences"] == [1, 2, 4, 5]
        assert page["corrupt"] == [3]
        assert page["next"] == 5


def test_publishes_refused_at_the_door_are_counted() -> None:
    with served() as running:
        for body in (b"{", b"[]", b'{"specversion": "1.0"}'):
            running.call("POST", "/events", body, {"content-type": "application/cloudevents+json"})

        text = once(running.address, get("/metrics")).body.decode()

        assert "tocsin_publishes_unreadable_total 3.0" in text


def test_metrics_name_the_slowest_and_put_the_rest_together() -> None:
    with served() as running:
        running.publish({})
        for _ in range(55):
            box = running.call("POST", "/boxes", {})[1]
            running.call("PATCH", f"/boxes/{box['id']}", {"state": "paused"})
        running.publish({}, {})

        text = once(running.address, get("/metrics")).body.decode()

        behind = re.findall(r'tocsin_subscription_behind\{subscription="(.*?)"\} (.*)', text)
        assert len(behind) == 51
        assert dict(behind)["other"] == "10.0"
        assert {value for name, value in behind if name != "other"} == {"2.0"}
