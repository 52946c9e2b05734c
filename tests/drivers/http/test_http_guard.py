"""A web page of another site can neither publish to a broker nor listen to it."""

from __future__ import annotations

import pytest
from raw_http import Answer, Raw, get, once, post, structured

from served import Served, served

FOREIGN = {
    "another site": "Origin: https://evil.example\r\n",
    "no site at all": "Origin: null\r\n",
    "another port of this machine": "Origin: http://localhost:3000\r\n",
    "a form of another site": "Sec-Fetch-Site: cross-site\r\n",
    "a page of a sibling site": "Sec-Fetch-Site: same-site\r\n",
}


def publish(address: str, headers: str) -> Answer:
    return once(address, post(structured("guarded"), extra=headers))


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_page_may_not_publish(broker: Served, headers: str) -> None:
    answer = publish(broker.address, headers)

    assert (answer.status, answer.json["code"]) == (403, "T211")


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_page_may_not_subscribe(broker: Served, headers: str) -> None:
    request = (
        f"POST /boxes HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n{headers}\r\n{{}}"
    ).encode()

    assert once(broker.address, request).status == 403


def test_a_foreign_page_may_not_open_a_socket(broker: Served) -> None:
    request = (
        b"GET /events/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://evil.example\r\n\r\n"
    )

    assert once(broker.address, request).status == 403


@pytest.mark.parametrize(
    "headers",
    ["Origin: http://localhost\r\n", "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n"],
)
def test_a_page_of_the_broker_itself_may_publish(broker: Served, headers: str) -> None:
    assert publish(broker.address, headers).status == 202


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8400", "localhost.evil.example"])
def test_on_loopback_only_our_own_names_are_answered_to(broker: Served, host: str) -> None:
    request = f"GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()

    answer = once(broker.address, request)

    assert (answer.status, answer.json["code"]) == (403, "T211")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8400", "127.0.0.1:1", "[::1]:8400", "10.1.2.3", "a.localhost"]
)
def test_localhost_and_addresses_are_names_of_ours(broker: Served, host: str) -> None:
    request = f"GET /livez HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()

    assert once(broker.address, request).status == 200


def test_a_further_name_can_be_set() -> None:
    with served(env={"TOCSIN_HTTP__NAMES": "broker.lab"}) as running:
        request = b"GET /livez HTTP/1.1\r\nHost: broker.lab:8400\r\n\r\n"

        assert once(running.address, request).status == 200


def test_there_is_no_cross_origin_sharing(broker: Served) -> None:
    request = (
        b"OPTIONS /events HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n"
        b"Access-Control-Request-Method: POST\r\n\r\n"
    )

    answer = once(broker.address, request)

    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


SIMPLE = {  # what a page can have a browser send without asking: no header that needs consent
    "/events": b'{"specversion":"1.0","id":"1","source":"/x","type":"t"}',
    "/blackboard/messages": b'{"pairs": {"Event": "x"}}',
    "/boxes": b"{}",
    "/subscriptions": b'{"sink": "http://127.0.0.1:9/"}',
    "/soap": b"<Envelope/>",
    "/gma": b"<x/>",
    "/ingest/nextflow": b"{}",
    "/api/v1/lineage": b"{}",
    "/directory": b"{}",
    "/estimates": b"{}",
}


@pytest.mark.parametrize("path", SIMPLE)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_simple_post_of_a_foreign_page_is_refused_everywhere(
    broker: Served, path: str, kind: str
) -> None:
    body = SIMPLE[path]
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:8400\r\nContent-Type: {kind}\r\n"
        f"Origin: https://evil.example\r\nSec-Fetch-Site: cross-site\r\n"
        f"Sec-Fetch-Mode: no-cors\r\nContent-Length: {len(body)}\r\n\r\n"
    )

    answer = once(broker.address, head.encode() + body)

    assert (answer.status, answer.json["code"]) == (403, "T211")


def test_an_origin_is_not_ours_because_both_it_and_the_host_are_nothing(broker: Served) -> None:
    request = b"POST /boxes HTTP/1.0\r\nOrigin: null\r\nContent-Length: 2\r\n\r\n{}"

    assert once(broker.address, request).status == 403


@pytest.mark.parametrize("path", ["/boxes/x/messages", "/events/stream", "/events", "/metrics"])
def test_a_picture_on_a_foreign_page_takes_nothing_from_us(broker: Served, path: str) -> None:
    headers = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"

    assert once(broker.address, get(path, headers)).status == 403


def test_a_link_on_a_foreign_page_may_be_followed(broker: Served) -> None:
    headers = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"

    assert once(broker.address, get("/", headers)).status == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(structured("sniffed")),
        post(structured("snuffed")),  # by a head that is known by then
        post(b"no event"),
        post(b"<a/>").replace(b"/events", b"/soap"),
        get("/"),
        get("/livez"),
        get("/nowhere"),
        get("/events"),
        get("/metrics"),
        get("/soap?wsdl"),
        b"GET / HTTP/1.1\r\n\r\n",
        b"no HTTP\r\n\r\n",
        get("/events/stream?filter=%"),
    ],
)
def test_every_answer_forbids_to_guess_what_it_is(broker: Served, request_bytes: bytes) -> None:
    answer = once(broker.address, request_bytes)

    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/events/stream", "/blackboard/stream?concepts=Event"])
def test_streams_forbid_it_too(broker: Served, path: str) -> None:
    with Raw(broker.address) as raw:
        raw.send(get(path))
        head = b""
        while b"\r\n\r\n" not in head:
            head += raw.file.read1(4096)

    assert head.startswith(b"HTTP/1.1 200")
    assert b"x-content-type-options: nosniff\r\n" in head


def test_http_where_another_protocol_is_spoken_is_hung_up_on(broker: Served) -> None:
    body = b'{"event": "stampede.xwf.start"}\n'
    for address in (broker.frames, broker.soap_tcp):
        with Raw(address) as raw:
            raw.send(post(body, "text/plain", "Origin: https://evil.example\r\n"))

            assert raw.rest() == b""
