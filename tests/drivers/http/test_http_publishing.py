"""`POST /events`: what a publisher sends, and in which order it is answered."""

from __future__ import annotations

import gzip
import json
import socket
import time
import zlib
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_http import Raw, get, once, post, structured

from served import Served

BATCH = "application/cloudevents-batch+json"


def test_an_event_in_each_mode_is_acknowledged_with_its_place_in_the_log(broker: Served) -> None:
    binary = (
        "ce-specversion: 1.0\r\nce-id: b1\r\nce-source: /raw\r\nce-type: t\r\n"
        "ce-topic: lead/ohio\r\nce-load5: 7\r\n"
    )

    one = once(broker.address, post(structured("s1", topic="lead/ohio")))
    two = once(broker.address, post(b'{"x": 1}', "application/json", binary))
    many = once(broker.address, post(b"[%b,%b]" % (structured("m1"), structured("m2")), BATCH))

    assert (one.status, two.status, many.status) == (202, 202, 202)
    assert one.json == {"accepted": 1, "first": 1, "last": 1}
    assert two.json == {"accepted": 1, "first": 2, "last": 2}
    assert many.json == {"accepted": 2, "first": 3, "last": 4}
    status, page = broker.call("GET", "/events?after=1&limit=1")
    assert status == 200
    assert page["sequences"] == [2]
    assert page["events"][0]["topic"] == "lead/ohio"
    assert page["events"][0]["data"] == {"x": 1}


def test_a_repeated_event_is_acknowledged_and_counted_as_such(broker: Served) -> None:
    first = once(broker.address, post(structured("again"))).json
    second = once(broker.address, post(structured("again"))).json

    assert "duplicates" not in first
    assert second["duplicates"] == 1


def test_an_empty_batch_publishes_nothing(broker: Served) -> None:
    answer = once(broker.address, post(b"[]", BATCH))

    assert answer.status == 202
    assert answer.json["accepted"] == 0


def test_pipelined_requests_are_answered_in_their_order(broker: Served) -> None:
    good, bad = post(structured("p")), post(b"{", "application/cloudevents+json")
    with Raw(broker.address) as raw:
        raw.send(good + bad + get("/livez") + good + get("/nowhere") + bad)

        statuses = [raw.answer().status for _ in range(6)]

    assert statuses == [202, 400, 200, 202, 404, 400]


def test_a_request_may_arrive_byte_by_byte(broker: Served) -> None:
    request = post(structured("drip"))
    with Raw(broker.address) as raw:
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for index in range(len(request)):
            raw.send(request[index : index + 1])

        assert raw.answer().status == 202


def test_a_thousand_pipelined_events_are_all_taken(broker: Served) -> None:
    count = 1_000
    with Raw(broker.address) as raw:
        raw.send(b"".join(post(structured(f"flood-{n}")) for n in range(count)))

        places = [raw.answer().json["first"] for _ in range(count)]

    assert places == list(range(places[0], places[0] + count))


def test_a_client_that_hangs_up_its_side_still_gets_its_answer(broker: Served) -> None:
    with Raw(broker.address) as raw:
        raw.send(post(structured("half")))
        raw.hang_up()

        assert raw.answer().status == 202
        assert raw.rest() == b""


def test_a_body_in_chunks_is_put_together(broker: Served) -> None:
    body = structured("chunked")
    chunks = b"".join(b"%x;note=1\r\n%b\r\n" % (len(c), c) for c in (body[:10], body[10:]))
    request = (
        b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/cloudevents+json"
        b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\nTrailer: x\r\n\r\n"
    )

    with Raw(broker.address) as raw:
        assert raw.send(request).answer().status == 202
        assert raw.send(post(structured("after-chunks"))).answer().status == 202


def test_a_client_that_expects_to_be_told_is_told_to_continue(broker: Served) -> None:
    body = structured("expected")
    whole = post(body, extra="Expect: 100-continue\r\n")
    with Raw(broker.address) as raw:
        raw.send(whole[: -len(body)])
        assert raw.file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert raw.file.readline() == b"\r\n"

        assert raw.send(body).answer().status == 202


def test_a_client_that_expects_too_large_a_body_is_told_before_it_sends_it(broker: Served) -> None:
    request = (
        b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n"
        b"Expect: 100-continue\r\n\r\n"
    )

    assert once(broker.address, request).status == 413


@pytest.mark.parametrize(
    ("coding", "packed"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)],
)
def test_a_compressed_body_is_unpacked(
    broker: Served, coding: str, packed: Callable[[bytes], bytes]
) -> None:
    body = packed(structured(f"in-{coding}"))

    answer = once(broker.address, post(body, extra=f"Content-Encoding: {coding}\r\n"))

    assert answer.status == 202


def test_an_unknown_or_broken_compression_is_refused(broker: Served) -> None:
    strange = once(broker.address, post(b"x", extra="Content-Encoding: br\r\n"))
    broken = once(broker.address, post(b"no gzip", extra="Content-Encoding: gzip\r\n"))
    cut = once(
        broker.address, post(gzip.compress(b"x" * 99)[:-4], extra="Content-Encoding: gzip\r\n")
    )

    assert (strange.status, strange.json["code"]) == (415, "T206")
    assert (broken.status, cut.status) == (400, 400)


def test_http_1_0_closes_unless_asked_to_keep_alive(broker: Served) -> None:
    event = structured("old")
    head = b"POST /events HTTP/1.0\r\nContent-Type: application/cloudevents+json\r\n"
    length = b"Content-Length: %d\r\n" % len(event)

    with Raw(broker.address) as raw:
        kept = raw.send(head + length + b"Connection: keep-alive\r\n\r\n" + event).answer()
        closed = raw.send(head + length + b"\r\n" + event).answer()
        assert raw.rest() == b""

    assert (kept.status, kept.headers["connection"]) == (202, "keep-alive")
    assert (closed.status, closed.headers["connection"]) == (202, "close")


def test_an_answer_to_connection_close_is_the_last(broker: Served) -> None:
    with Raw(broker.address) as raw:
        raw.send(post(structured("bye"), extra="Connection: close\r\n") + get("/livez"))

        assert raw.answer().status == 202
        assert raw.rest() == b""


def test_an_absolute_target_is_a_path_too(broker: Served) -> None:
    request = b"GET http://localhost/livez HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"

    assert once(broker.address, request).status == 200


def test_head_has_the_head_of_get_and_no_body(broker: Served) -> None:
    request = b"HEAD /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Raw(broker.address) as raw:
        answer = raw.send(request).answer("HEAD")
        assert raw.send(get("/livez")).answer().status == 200

    assert answer.status == 200
    assert int(answer.headers["content-length"]) > 0
    assert answer.body == b""


def test_an_error_is_a_problem_with_code_and_remedy(broker: Served) -> None:
    answer = once(broker.address, post(b'{"hello": 1}', "application/json"))

    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json
    assert problem["code"] == "T101"
    assert problem["type"] == "/errors/T101"
    assert problem["status"] == 400
    assert "curl" in problem["remedy"]
    assert "8400" not in problem["remedy"]  # this broker listens elsewhere
    explained = once(broker.address, get(problem["type"]))
    assert explained.status == 200
    assert explained.body.startswith(b"T101 BadEvent")


def test_the_date_of_an_answer_is_today(broker: Served) -> None:
    date = once(broker.address, get("/livez")).headers["date"]

    assert abs(parsedate_to_datetime(date).timestamp() - time.time()) < 5


def test_a_request_in_flight_does_not_keep_others_waiting(broker: Served) -> None:
    box = broker.call("POST", "/boxes", {"filters": [{"topic": "nobody/here"}]})[1]["messages"]
    with Raw(broker.address) as waiting:
        waiting.send(get(f"{box}?wait=2"))

        assert once(broker.address, post(structured("meanwhile"))).status == 202
        assert json.loads(waiting.answer().body)["events"] == []


def test_a_path_spelt_unusually_publishes_all_the_same(broker: Served) -> None:
    request = post(structured("spelt")).replace(b"/events", b"/%65vents")
    packed = gzip.compress(structured("spelt, packed"))
    zipped = post(packed, extra="Content-Encoding: gzip\r\n").replace(b"/events", b"/%65vents")
    asked = post(structured("asked")).replace(b"/events", b"/events?sync=1")

    assert once(broker.address, request).json["accepted"] == 1
    assert once(broker.address, zipped).json["accepted"] == 1
    assert once(broker.address, asked).status == 400


def test_an_upgrade_that_is_not_offered_is_answered_as_plain_http(broker: Served) -> None:
    upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
    with Raw(broker.address) as raw:
        first = raw.send(get("/livez", upgrade)).answer()
        second = raw.send(get("/livez")).answer()

    assert (first.status, second.status) == (200, 200)


PIPELINE = [
    post(structured("cut-1")),
    get("/livez"),
    post(b"{"),
    b"HEAD /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Type: application/cloudevents+json\r\n\r\n3\r\n{} \r\n0\r\n\r\n",
    get("/events?limit=1"),
    post(structured("cut-2", data="x" * 40_000)),
    get("/nowhere"),
]
STATUSES = [202, 200, 400, 200, 400, 200, 202, 404]
METHODS = ["POST", "GET", "POST", "HEAD", "POST", "GET", "POST", "GET"]


@settings(max_examples=60)
@given(st.lists(st.integers(0, sum(map(len, PIPELINE))), max_size=12).map(sorted))
def test_where_the_network_cuts_the_requests_makes_no_difference(
    broker: Served, cuts: list[int]
) -> None:
    stream = b"".join(PIPELINE)
    with Raw(broker.address) as raw:
        raw.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start, end in pairwise([0, *cuts, len(stream)]):
            raw.send(stream[start:end])

        statuses = [raw.answer(method).status for method in METHODS]

    assert statuses == STATUSES
