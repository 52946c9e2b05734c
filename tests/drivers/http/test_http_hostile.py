"""Inputs that nobody in this project wrote, at every place that reads: told off, never served."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_http import Raw, get, once, post, structured

from served import Served

HOSTILE = Path(__file__).parents[3] / "../shared/data/hostile"
JSON_FILES = sorted((HOSTILE / "jsontestsuite").glob("*/*.json"))
needs_inputs = pytest.mark.skipif(not JSON_FILES, reason="the shared hostile inputs are not here")


def request(method: str, target: str, body: bytes) -> bytes:
    return (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body


@needs_inputs
def test_json_that_is_none_is_refused_wherever_json_is_read(broker: Served) -> None:
    with Raw(broker.address) as raw:
        for file in JSON_FILES:
            body = file.read_bytes()
            answers = [
                raw.send(post(body)).answer(),
                raw.send(post(b"[%b]" % body, "application/cloudevents-batch+json")).answer(),
                raw.send(post(_with_data(body))).answer(),
                raw.send(request("POST", "/subscriptions", body)).answer(),
                raw.send(request("POST", "/boxes", b'{"filters": [%b]}' % body)).answer(),
            ]

            assert all(answer.status in (201, 202, 400) for answer in answers), file.name
            assert answers[0].status == 400, file.name
            assert answers[3].status == 400, file.name
            if file.name.startswith("n_"):
                assert answers[2].status == 400, file.name
            if file.name.startswith("y_"):  # well-formed, if not always understood alike
                expected = 400 if "duplicated_key" in file.name else 202
                assert answers[2].status == expected, file.name


def _with_data(body: bytes) -> bytes:
    # Each its own event: without an id of its own it would count as a repetition of the last.
    event_id = os.urandom(8).hex().encode()
    return b'{"specversion":"1.0","id":"%b","source":"/s","type":"t","data":%b}' % (event_id, body)


@needs_inputs
def test_naughty_strings_are_read_as_text_or_refused(broker: Served) -> None:
    strings = json.loads((HOSTILE / "blns/blns.json").read_text())
    with Raw(broker.address) as raw:
        for text in strings:
            in_url = quote(text, safe="")
            answers = [
                raw.send(get(f"/events?filter={in_url}")).answer(),
                raw.send(get(f"/subscriptions?q={in_url}")).answer(),
                raw.send(get(f"/subscriptions/{in_url or 'x'}")).answer(),
                raw.send(get(f"/deadletters?subscription={in_url}")).answer(),
                raw.send(post(structured(os.urandom(8).hex(), topic=text))).answer(),
                raw.send(request("POST", "/boxes", _filtering(text))).answer(),
            ]

            assert all(answer.status in (200, 201, 202, 400, 404) for answer in answers), text


def _filtering(text: str) -> bytes:
    filters = [{"exact": {"subject": text}}, {"filter": text}, {"topic": text}]
    return json.dumps({"filters": filters}).encode()


@pytest.mark.parametrize(
    "number", ["-1", "1e3", "0x10", " 1", "1.5", "9" * 19, "9" * 400, "NaN", "١", "1_000", "true"]
)
@pytest.mark.parametrize(
    "target",
    ["/events?after=", "/events?limit=", "/boxes/BOX/messages?max=", "/subscriptions?limit="],
)
def test_a_number_that_is_none_or_absurd_is_refused(
    broker: Served, target: str, number: str
) -> None:
    answer = once(broker.address, get(target + quote(number)))

    assert answer.status == 400
    assert answer.json["code"] == "T201"


@pytest.mark.parametrize("wait", ["-1", "1e9", "61", "inf", "nan", "9" * 400])
def test_a_wait_that_is_none_or_absurd_is_refused(broker: Served, wait: str) -> None:
    box = broker.call("POST", "/boxes", {})[1]

    answer = once(broker.address, get(f"{box['messages']}?wait={wait}"))

    assert answer.status == 400


@pytest.mark.parametrize(
    "query", ["%", "%ff", "a=1&" * 100, "limit=1&limit=2", "limit", "filter=%00", "\x7f"]
)
def test_a_query_that_cannot_be_read_is_refused(broker: Served, query: str) -> None:
    answer = once(broker.address, get(f"/events?{query}"))

    assert answer.status in (200, 400)
    if answer.status == 200:
        assert query in ("limit",)  # given and empty counts as not given


@settings(max_examples=150)
@given(st.binary(max_size=300))
def test_any_bytes_leave_the_broker_standing(broker: Served, data: bytes) -> None:
    with Raw(broker.address) as raw:
        raw.send(data)
        raw.hang_up()
        said = raw.rest()

    assert said == b"" or said.startswith(b"HTTP/1.1 ")


HEADS = st.lists(
    st.sampled_from(
        [
            b"Host: localhost\r\n",
            b"Content-Length: 5\r\n",
            b"Content-Length: 0\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: close\r\n",
            b"Connection: Upgrade\r\n",
            b"Upgrade: websocket\r\n",
            b"Upgrade: h2c\r\n",
            b"Expect: 100-continue\r\n",
            b"Content-Encoding: gzip\r\n",
            b"Content-Type: application/cloudevents+json\r\n",
            b"Origin: http://localhost\r\n",
        ]
    ),
    max_size=6,
).map(b"".join)
LINES = st.sampled_from(
    [
        b"POST /events HTTP/1.1\r\n",
        b"GET /events HTTP/1.1\r\n",
        b"GET /events/socket HTTP/1.1\r\n",
        b"HEAD / HTTP/1.0\r\n",
        b"PATCH /boxes/x HTTP/1.1\r\n",
        b"OPTIONS * HTTP/1.1\r\n",
    ]
)
BODIES = st.sampled_from([b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"\r\n", structured("fuzz")])


@settings(max_examples=150)
@given(st.lists(st.tuples(LINES, HEADS, BODIES), max_size=4), st.data())
def test_any_mixture_of_requests_leaves_the_broker_standing(
    broker: Served, requests: list[tuple[bytes, bytes, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(line + head + b"\r\n" + body for line, head, body in requests)
    cut = data.draw(st.integers(0, len(stream)))
    with Raw(broker.address) as raw:
        with suppress(ConnectionError):
            raw.send(stream[:cut])
            raw.send(stream[cut:])
        raw.hang_up()
        said = raw.rest()

    assert said == b"" or said.startswith(b"HTTP/1.1 ")
    assert b" 500 " not in said.partition(b"\r\n")[0]
