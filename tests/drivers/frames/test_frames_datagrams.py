"""Performance events by UDP, one message a datagram, against a real broker."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest
from frames_peer import (
    Said,
    content,
    event,
    event_names,
    filtered,
    framed,
    new_name,
    options,
    query,
    subscribe,
    unsubscribe,
)

from served import Served, served

WAIT_S = 10.0


class Datagrams:
    """A peer by UDP."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.broker = host, int(port)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(WAIT_S)

    def send(self, message: str | bytes) -> None:
        data = message.encode() if isinstance(message, str) else message
        self.socket.sendto(data, self.broker)

    def take(self, wait_s: float = WAIT_S) -> Said:
        self.socket.settimeout(wait_s)
        return Said(self.socket.recv(65_536))


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env={"TOCSIN_FRAMES__DATAGRAM_LEASE_S": "6"}) as running:
        yield running


@pytest.fixture
def peer(broker: Served) -> Iterator[Datagrams]:
    made = Datagrams(broker.frames)
    yield made
    made.socket.close()


@pytest.fixture
def other(broker: Served) -> Iterator[Datagrams]:
    made = Datagrams(broker.frames)
    yield made
    made.socket.close()


def test_a_producer_pushes_and_a_consumer_gets_it_all_by_datagrams(
    broker: Served, peer: Datagrams, other: Datagrams
) -> None:
    name = new_name()
    peer.send(subscribe(name, extra=filtered("Load5 >= 5.0")))
    assert peer.take().returned == "Success"
    other.send(subscribe(name, own="7", extra=options(role="producer")))
    given = other.take().subscription
    other.send(event(given, content(name, load5=1.6)))
    other.send(event(given, content(name, load5=7.5)))
    arrived = peer.take()
    assert (arrived.subscription, arrived.value("Load5")) == ("12", "7.5")
    peer.send(query(name))
    assert peer.take().value("Load5") == "7.5"
    peer.send(event_names())
    assert name in {local for local, _ in peer.take().names}


def test_a_length_in_front_is_answered_with_a_length_in_front(peer: Datagrams) -> None:
    peer.send(framed(event_names("5")))
    data = peer.socket.recv(65_536)
    assert data[:4] == len(data[4:]).to_bytes(4, "big")
    assert Said(data[4:]).request == "5"


def test_who_asks_for_the_same_again_gets_the_same_reply(peer: Datagrams) -> None:
    name = new_name()
    peer.send(subscribe(name, request="1"))
    first = peer.take()
    peer.send(subscribe(name, request="2"))
    again = peer.take()
    assert (again.request, again.returned) == ("2", "Success")
    assert again.subscription == first.subscription


def test_the_same_id_for_something_else_is_refused(peer: Datagrams) -> None:
    peer.send(subscribe(new_name(), request="1"))
    assert peer.take().returned == "Success"
    peer.send(subscribe(new_name(), request="2"))
    refused = peer.take()
    assert refused.returned == "Failure"
    assert "in use" in refused.detail


def test_a_subscription_ends_when_its_peer_is_not_heard_of(broker: Served, peer: Datagrams) -> None:
    name = new_name()
    peer.send(subscribe(name))
    assert peer.take().returned == "Success"
    goodbye = peer.take(wait_s=15.0)  # the lease is six seconds here
    assert (goodbye.kind, goodbye.subscription) == ("UnsubscribeRequest", "12")
    peer.send(subscribe(name, request="2"))
    assert peer.take().returned == "Success"


def test_unsubscribing_ends_it(broker: Served, peer: Datagrams) -> None:
    name = new_name()
    peer.send(subscribe(name))
    given = peer.take().subscription
    peer.send(unsubscribe(given))
    assert peer.take().returned == "Success"
    broker.publish({"type": f"http://www.gridforum.org/Performance/Events/{name}"})
    with pytest.raises(TimeoutError):
        peer.take(wait_s=0.3)


def test_rubbish_is_told_in_the_log_and_what_follows_it_is_answered(
    broker: Served, peer: Datagrams
) -> None:
    for rubbish in (b"", b"\0", b"\xff" * 100, b"<Event", b"<a/>", b"\0\0\0\3abc"):
        peer.send(rubbish)
    peer.send(event("999", content("Load")))
    peer.send(event_names("77"))
    assert peer.take().request == "77"
    deadline = time.monotonic() + WAIT_S
    while "not well-formed" not in broker.said() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "not well-formed" in broker.said()


def test_a_reply_that_no_datagram_holds_is_a_failure_that_says_so(
    broker: Served, peer: Datagrams
) -> None:
    name = new_name()
    kind = f"http://www.gridforum.org/Performance/Events/{name}"
    broker.publish({"type": kind, "datacontenttype": "text/plain", "data": "x" * 70_000})
    peer.send(query(name))
    refused = peer.take()
    assert refused.returned == "Failure"
    assert "TCP" in refused.detail


def test_a_host_that_is_not_trusted_gets_no_answer() -> None:
    own = _own_address()
    if own is None:
        pytest.skip("this machine has no address but loopback")
    with served("--open", "--frames", f"{own}:0") as running:
        stranger = Datagrams(running.frames)
        stranger.send(event_names())
        with pytest.raises(TimeoutError):
            stranger.take(wait_s=0.5)
        stranger.socket.close()
        assert "delivery.trusted" in running.said()
    with served("--open", "--trust", own, "--frames", f"{own}:0") as running:
        trusted = Datagrams(running.frames)
        trusted.send(event_names())
        assert trusted.take().kind == "EventNamesReply"
        trusted.socket.close()


def _own_address() -> str | None:
    """An address of this machine that others reach it by; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        found: str = probe.getsockname()[0]
    return None if found.startswith("127.") or found == "0.0.0.0" else found
