"""The frames door behind TLS: the same conversations, and who does not speak it is not answered."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Iterator

import pytest
from frames_peer import (
    Peer,
    complaints,
    content,
    event,
    event_names,
    framed,
    new_name,
    noted,
    options,
    subscribe,
)

from pki import own_files
from served import Served, served


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A throw-away certificate for this machine, and its key."""
    return own_files(tmp_path_factory.mktemp("frames-tls"), "127.0.0.1")


@pytest.fixture(scope="module")
def secure(certificate: tuple[str, str]) -> Iterator[Served]:
    flags = ("--tls-cert", certificate[0], "--tls-key", certificate[1])
    with served(*flags, "--archive", "127.0.0.1:0", "--soap-tcp", "off") as running:
        yield running
        assert complaints(running) == []


@pytest.fixture(scope="module")
def trusting(certificate: tuple[str, str]) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificate[0])


def test_producer_and_consumer_meet_over_tls(secure: Served, trusting: ssl.SSLContext) -> None:
    name = new_name()
    agreed = options(role="producer", acknowledge=f"run-{name}")
    with Peer(secure.frames, trusting) as consumer, Peer(secure.archive, trusting) as producer:
        consumer.open(subscribe(name))
        own = producer.open(subscribe(name, extra=agreed)).subscription
        large = content(name).replace("<Load1>", f"<Note>{'x' * 300_000}</Note><Load1>")
        assert producer.ask(event(own, large, "e1")).returned == "Success"

        assert len(consumer.hears("Event").value("Note") or "") == 300_000


def test_who_speaks_no_tls_is_not_answered_and_the_log_says_why(
    secure: Served, trusting: ssl.SSLContext
) -> None:
    with Peer(secure.frames) as plain:
        plain.send(event_names())
        with contextlib.suppress(ConnectionError):
            assert plain.socket.recv(100)[:1] in (b"", b"\x15")  # nothing, or an alert of TLS
        deadline = time.monotonic() + 5.0
        while plain.name.rpartition(":")[2] not in secure.said() and time.monotonic() < deadline:
            time.sleep(0.02)
        [line] = [
            line
            for line in secure.said().splitlines()
            if "a TLS handshake failed" in line and plain.name in line
        ]
        assert "gmas://" in line

    with Peer(secure.frames, trusting) as peer:
        assert peer.ask(event_names()).returned == "Success"


def test_bad_frames_are_told_over_tls_too(secure: Served, trusting: ssl.SSLContext) -> None:
    with Peer(secure.frames, trusting) as peer:
        peer.raw(framed(event_names()) + b"\xff\xff\xff\xff")

        assert peer.hears("EventNamesReply").returned == "Success"
        assert peer.is_hung_up_on()
        assert noted(secure, "a frame of 4294967295 bytes was announced", peer)


def test_who_leaves_in_the_midst_of_a_message_is_noticed(
    secure: Served, trusting: ssl.SSLContext
) -> None:
    peer = Peer(secure.frames, trusting)
    peer.open(subscribe(new_name()))
    peer.raw(b"\0\0\x01\0<Event")
    peer.socket.close()

    assert noted(secure, "closed the connection in the middle of a message", peer)


def test_a_broker_that_stops_says_goodbye_over_tls(
    certificate: tuple[str, str], trusting: ssl.SSLContext
) -> None:
    flags = ("--tls-cert", certificate[0], "--tls-key", certificate[1], "--soap-tcp", "off")
    with served(*flags) as broker, Peer(broker.frames, trusting) as peer:
        peer.open(subscribe("A", own="mine"))

        assert broker.stop() == 0

        assert peer.hears("UnsubscribeRequest").subscription == "mine"
        assert peer.take() is None
        assert complaints(broker) == []


def test_who_says_nothing_on_the_doorstep_counts_as_a_connection(
    certificate: tuple[str, str], trusting: ssl.SSLContext
) -> None:
    flags = ("--tls-cert", certificate[0], "--tls-key", certificate[1], "--soap-tcp", "off")
    with served(*flags, env={"TOCSIN_FRAMES__CONNECTIONS_MAX": "2"}) as small:
        silent = [Peer(small.frames) for _ in range(2)]
        time.sleep(0.3)
        third = Peer(small.frames)
        assert third.is_hung_up_on()
        assert "as many connections" in small.said()
        for peer in silent:
            peer.socket.close()
        time.sleep(0.3)
        with Peer(small.frames, trusting) as peer:
            assert peer.ask(event_names()).returned == "Success"
