"""When there are as many connections as may be: probes are answered, publishers find room, and
nobody takes more than a share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from raw_http import Raw, complaints, get, once, post, structured

from served import Served, served
from tocsin.drivers.listeners.peers import Peers, peer_of

CONNECTIONS = 20
STREAMS = 16


@pytest.fixture(scope="module")
def crowded() -> Iterator[Served]:
    with served(env={"TOCSIN_HTTP__CONNECTIONS_MAX": str(CONNECTIONS)}) as running:
        yield running
        assert complaints(running) == []


@pytest.fixture(autouse=True)
def empty(crowded: Served) -> None:
    """What the test before left behind is gone."""
    until = time.monotonic() + 10
    while " 1.0" not in _line(crowded, "tocsin_connections_open"):
        assert time.monotonic() < until
        time.sleep(0.02)


def _line(broker: Served, name: str) -> str:
    page = once(broker.address, get("/metrics")).body.decode()
    return next((each for each in page.splitlines() if each.startswith(f"{name} ")), "")


def fill(stack: ExitStack, broker: Served) -> None:
    """Take every connection. One of whoever asked before may still be counted for a moment: who
    is let in only to be answered is told that it is the last answer, and comes again."""
    taken = 0
    while taken < CONNECTIONS:
        peer = stack.enter_context(Raw(broker.address))
        taken += "connection" not in peer.send(get("/livez")).answer().headers


def open_streams(stack: ExitStack, broker: Served) -> None:
    for _ in range(STREAMS):
        peer = stack.enter_context(Raw(broker.address))
        assert b" 200 " in peer.send(get("/events/stream")).file.readline()


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_a_probe_is_answered_when_every_connection_is_taken(crowded: Served, path: str) -> None:
    with ExitStack() as stack:
        fill(stack, crowded)

        answer = once(crowded.address, get(path))

        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert once(crowded.address, get("/events")).status == 503


def test_silent_connections_beyond_the_limit_do_not_keep_a_probe_out(crowded: Served) -> None:
    with ExitStack() as stack:
        fill(stack, crowded)
        for _ in range(100):
            stack.enter_context(Raw(crowded.address))

        assert once(crowded.address, get("/livez")).status == 200
    assert "reached its limit of connections" in crowded.said()


def test_silent_connections_make_room_for_a_publisher_at_once(crowded: Served) -> None:
    with ExitStack() as stack:
        for number in range(10):
            for _ in range(CONNECTIONS):
                silent = stack.enter_context(Raw(crowded.address))
                silent.socket.sendall(b"POST /events HT")

            published = once(crowded.address, post(structured(f"beside the silent {number}")))

            assert published.status == 202


def test_a_connection_that_was_used_is_not_closed_for_a_silent_one(crowded: Served) -> None:
    with ExitStack() as stack, Raw(crowded.address) as used:
        assert used.send(get("/livez")).answer().status == 200
        for _ in range(2 * CONNECTIONS):
            stack.enter_context(Raw(crowded.address))

        assert used.send(get("/livez")).answer().status == 200


def test_who_is_turned_away_need_not_send_a_body_first(crowded: Served) -> None:
    with ExitStack() as stack:
        fill(stack, crowded)
        raw = stack.enter_context(Raw(crowded.address))
        raw.send(b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")

        answer = raw.answer()

    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


def test_streams_leave_room_for_publishers(crowded: Served) -> None:
    with ExitStack() as stack:
        open_streams(stack, crowded)

        refused = once(crowded.address, get("/events/stream"))
        published = once(crowded.address, post(structured("in between")))

        assert (refused.status, refused.json["code"]) == (429, "T306")
        assert published.status == 202
        assert _line(crowded, "tocsin_connections_long_lived").endswith(f" {STREAMS}.0")


def test_waits_at_boxes_leave_room_for_publishers_too(crowded: Served) -> None:
    box = crowded.call("POST", "/boxes", {})[1]["id"]
    with ExitStack() as stack:
        for _ in range(STREAMS):
            waiting = stack.enter_context(Raw(crowded.address))
            waiting.send(get(f"/boxes/{box}/messages?wait=20"))
        until = time.monotonic() + 5
        while not _line(crowded, "tocsin_connections_long_lived").endswith(f" {STREAMS}.0"):
            assert time.monotonic() < until
            time.sleep(0.02)

        refused = once(crowded.address, get(f"/boxes/{box}/messages?wait=1"))

        assert (refused.status, refused.json["code"]) == (503, "T207")
        assert once(crowded.address, get(f"/boxes/{box}/messages")).status == 200


def test_connections_that_nobody_uses_make_room(crowded: Served) -> None:
    with ExitStack() as stack:
        fill(stack, crowded)
        until = time.monotonic() + 8
        while once(crowded.address, get("/events")).status == 503:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_one_peer_has_at_most_its_share() -> None:
    peers = Peers(3, 100)

    assert [peers.enter("192.0.2.1") for _ in range(4)] == [True, True, True, False]
    assert peers.enter("192.0.2.2")
    peers.leave("192.0.2.1")
    assert peers.enter("192.0.2.1")


def test_one_peer_has_at_most_half_of_what_there_is() -> None:
    peers = Peers(1_000, 4)

    assert [peers.enter("192.0.2.1") for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("host", "peer"),
    [
        ("127.0.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("", ""),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_peer_is_an_address_or_a_network_and_this_machine_is_none(host: str, peer: str) -> None:
    assert peer_of(host) == peer
