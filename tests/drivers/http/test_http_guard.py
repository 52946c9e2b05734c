"""A web page of another site can neither publish to a broker nor listen to it."""

from __future__ import annotations

import pytest
from raw_http import Answer, once, post, structured

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
