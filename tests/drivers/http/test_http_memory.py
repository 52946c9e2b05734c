"""What is being received is bounded, over all connections and listeners together."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from raw_http import Raw, complaints, get, once, post, structured

from served import Served, served

MB = 1 << 20
BUDGET = 8 * MB
EVENT = "application/cloudevents+json"


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    """A broker with little memory for what is being received."""
    with served(env={"TOCSIN_LIMITS__RECEIVING_BYTES_MAX": str(BUDGET)}) as running:
        yield running
        assert complaints(running) == []


def unfinished(size: int) -> bytes:
    """A request that announces more than it sends."""
    head = "POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n"
    return head.encode() + b"x" * size


def resident_bytes(broker: Served) -> int:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    (line,) = (each for each in status.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1]) << 10


def metric(broker: Served, name: str) -> float:
    page = once(broker.address, get("/metrics")).body.decode()
    (line,) = (each for each in page.splitlines() if each.startswith(f"{name} "))
    return float(line.split()[1])


def until_freed(broker: Served) -> None:
    until = time.monotonic() + 10
    while metric(broker, "tocsin_receiving_bytes") > 0:
        assert time.monotonic() < until, "it still holds what was sent"
        time.sleep(0.05)


def test_many_unfinished_bodies_cost_no_more_than_the_budget(small: Served) -> None:
    before = resident_bytes(small)
    refused = metric(small, "tocsin_receiving_refused_total")
    with ExitStack() as stack:
        peers = [stack.enter_context(Raw(small.address)) for _ in range(30)]
        for peer in peers:
            with suppress(ConnectionError):
                peer.send(unfinished(3 * MB))
        time.sleep(0.2)
        grown = resident_bytes(small) - before
        answers = [_answer_now(peer) for peer in peers]

        assert grown < 40 * MB  # of 90 that were sent
        reported = [each for each in answers if each]
        assert len(reported) >= 20
        assert all(b" 503 " in each and b"retry-after: " in each for each in reported)
        assert metric(small, "tocsin_receiving_refused_total") >= refused + len(reported)
        assert "limits.receiving_bytes_max is reached" in small.said()
        # Whoever sends little is served all the same.
        assert once(small.address, post(structured("little"))).status == 202
    until_freed(small)
    assert once(small.address, post(structured("large", data="x" * 900_000))).status == 202


def _answer_now(peer: Raw) -> bytes:
    """What came, without waiting for it; nothing if the body is still being waited for."""
    peer.socket.settimeout(0.2)
    try:
        return peer.socket.recv(65536)
    except TimeoutError:
        return b""


def test_a_body_in_tiny_chunks_costs_what_it_weighs(small: Served) -> None:
    before = resident_bytes(small)
    with Raw(small.address) as peer:
        peer.send(b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(30):  # 3 MB
            peer.send(b"2\r\nxx\r\n" * 50_000)
        time.sleep(0.2)

        assert resident_bytes(small) - before < 25 * MB  # a list of the pieces took 80
    until_freed(small)


def test_requests_that_wait_behind_a_slow_one_are_counted(small: Served) -> None:
    small.call("POST", "/boxes", {"id": "slow"})
    box = small.call("POST", "/boxes", {})[1]["id"]
    padded = post(b"x" * MB).replace(b"/events", b"/subscriptions")
    with Raw(small.address) as peer:
        peer.send(get(f"/boxes/{box}/messages?wait=3"))
        with suppress(ConnectionError):
            for _ in range(20):
                peer.send(padded)

        assert metric(small, "tocsin_receiving_bytes") < BUDGET + 2 * MB
        assert b" 503 " in peer.rest()
    until_freed(small)


def test_the_budget_is_one_for_all_listeners(small: Served) -> None:
    """Frames and SOAP.TCP fill it, and then HTTP has no more room for large bodies."""
    with ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(_sending(small.frames, b"\x00\x3f\x00\x00" + b"x" * MB))
            head = b"\x0e\x20\x00\x00\x00\x00\x00\x29\x00\x40\x00\x00"
            kind = b"http://schemas.xmlsoap.org/soap/envelope/" + bytes(3)
            stack.enter_context(_sending(small.soap_tcp, head + kind + b"x" * MB))
        until = time.monotonic() + 5
        while metric(small, "tocsin_receiving_bytes") < BUDGET - 2 * MB:
            assert time.monotonic() < until
            time.sleep(0.02)

        with Raw(small.address) as late:
            answer = late.send(post(b"x" * (4 * MB))).answer()

        assert (answer.status, answer.json["code"]) == (503, "T207")
        assert answer.headers["connection"] == "close"
    until_freed(small)


def _sending(address: str, data: bytes) -> socket.socket:
    host, _, port = address.rpartition(":")
    peer = socket.create_connection((host, int(port)), timeout=10)
    peer.sendall(data)
    return peer
