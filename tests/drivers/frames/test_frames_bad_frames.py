"""Bytes that are no messages: lengths that cannot be, messages cut short or never sent, other
protocols, noise. The connection ends, the log says why, and the broker is none the worse for it."""

from __future__ import annotations

import random
import socket
import ssl
import time

import pytest
from frames_peer import (
    DEADLINE_S,
    EVENTS,
    Peer,
    answers,
    complaints,
    content,
    event,
    event_names,
    framed,
    new_name,
    noted,
    options,
    producing,
    query,
    resident_bytes,
    stored,
    subscribe,
    unsubscribe,
)

from served import Served

SEED = 20011105
FUZZED = 2_000
MB = 1 << 20


@pytest.mark.parametrize("length", [2**31, 2**32 - 1, 4 * MB + 1])
def test_a_length_that_cannot_be_ends_the_connection_before_anything_is_kept(
    broker: Served, length: int
) -> None:
    with Peer(broker.frames) as peer:
        peer.raw(length.to_bytes(4, "big") + b"<Event")

        assert peer.is_hung_up_on()
        assert f"a frame of {length} bytes was announced" in noted(broker, "announced", peer)
    assert answers(broker)


@pytest.mark.parametrize(
    ("sent", "reported"),
    [
        (b"\0\0\0\0", "a frame of length 0 came"),
        (b"\0\0\0\x03<a>", "the message is not well-formed"),
        (b"\0\0\0\x03abc", "the message is not well-formed"),
        (framed(b"\xff\xfe\xfd not UTF-8"), "not in the encoding it says"),
        (framed(b"<a>\xff</a>"), "Invalid bytes in character encoding"),
        (framed(b"\0" * 100), "the message is not well-formed"),
        (framed("<Hello/>"), "there is no message 'Hello'"),
    ],
)
def test_what_is_no_message_ends_the_connection_with_the_reason_in_the_log(
    broker: Served, sent: bytes, reported: str
) -> None:
    with Peer(broker.frames) as peer:
        peer.raw(sent)

        assert peer.is_hung_up_on()
        assert "remedy=" in noted(broker, reported, peer)
    assert answers(broker)


@pytest.mark.parametrize("came", [b"\0", b"\0\0\0", b"\0\0\x01\0", b"\0\0\x01\0<Event"])
def test_a_length_whose_message_never_comes_is_waited_for_only_so_long(
    strict: Served, came: bytes
) -> None:
    with Peer(strict.frames) as peer:
        began = time.monotonic()
        peer.raw(came)

        assert peer.is_hung_up_on()
        assert DEADLINE_S / 2 <= time.monotonic() - began < DEADLINE_S + 3
        assert f"only {len(came)} bytes of a message arrived in time" in noted(
            strict, "in time", peer
        )


def test_a_message_that_comes_byte_by_byte_has_no_more_time_than_others(strict: Served) -> None:
    with Peer(strict.frames) as peer:
        peer.raw((1_000).to_bytes(4, "big"))
        for _ in range(40):
            peer.raw(b" ")
            if not peer.hears_nothing(0.05):
                break

        assert peer.is_hung_up_on()
        assert noted(strict, "arrived in time", peer)


def test_what_a_peer_sends_cannot_forge_a_line_of_the_log(broker: Served) -> None:
    with Peer(broker.frames) as peer:
        peer.send('<a xmlns="not a URI &#10;forged"')

        assert peer.is_hung_up_on()
        assert "not a URI \ufffdforged" in noted(broker, "not well-formed", peer)
    assert not [line for line in broker.said().splitlines() if line.startswith("forged")]


def test_who_says_nothing_at_all_is_hung_up_on_and_who_subscribed_is_not(strict: Served) -> None:
    with Peer(strict.frames) as idle, Peer(strict.frames) as subscribed:
        subscribed.open(subscribe(new_name()))

        assert idle.is_hung_up_on()
        assert noted(strict, "no message for frames.idle_s", idle)
        assert subscribed.hears_nothing(0.5)


def test_a_message_cut_at_any_byte_is_no_message_and_harms_nobody(broker: Served) -> None:
    name = new_name()
    inner = f'<{name} xmlns="{EVENTS}"><TimeStamp>2000-11-09T21:51:45Z</TimeStamp></{name}>'
    begun = framed(subscribe(name, extra=options(role="producer")))
    # The id is the broker's to choose; any will do to be cut.
    message = framed(event("1", inner))

    for cut in range(1, len(message)):
        with Peer(broker.frames) as peer:
            peer.raw(begun + message[:cut])

    with Peer(broker.frames) as peer:
        peer.raw(begun + message[:-1])
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.hears("SubscribeReply").returned == "Success"
        assert peer.is_hung_up_on()
        reported = noted(broker, "closed the connection in the middle of a message", peer)
        assert f"after {len(message) - 1} bytes" in reported
    assert stored(broker, name) == []
    assert answers(broker)


def test_where_the_stream_is_cut_makes_no_difference(broker: Served) -> None:
    name = new_name()
    stream = framed(subscribe(name)) + framed(query(name)) + framed(event_names("last"))
    with Peer(broker.frames) as peer:
        for at in range(0, len(stream), 7):
            peer.raw(stream[at : at + 7])
            time.sleep(0.0005)

        kinds = [peer.take().kind for _ in range(3)]

    assert kinds == ["SubscribeReply", "QueryReply", "EventNamesReply"]


def test_what_came_before_a_bad_frame_is_stored_and_answered(broker: Served) -> None:
    name = new_name()
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        events = [framed(event(own, content(name), f"e{n}")) for n in range(20)]
        peer.raw(b"".join(events) + b"\0\0\0\0")

        assert [peer.hears("EventReply").returned for _ in range(20)] == ["Success"] * 20
        assert peer.is_hung_up_on()
    assert len(stored(broker, name)) == 20


def test_a_peer_that_resets_its_connection_loses_nothing_it_had_sent_before(
    broker: Served,
) -> None:
    name = new_name()
    peer, own = producing(broker, name)
    peer.send(*(event(own, content(name)) for _ in range(200)), event_names())
    assert peer.take().kind == "EventNamesReply"
    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    peer.socket.close()

    assert len(stored(broker, name)) == 200
    assert answers(broker)


@pytest.mark.parametrize("listener", ["frames", "archive"])
def test_http_spoken_to_the_port_for_frames_is_told_so(broker: Served, listener: str) -> None:
    with Peer(getattr(broker, listener)) as peer:
        peer.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

        assert peer.is_hung_up_on()
        assert "HTTP came on a port for length-prefixed frames" in noted(
            broker, "port for that protocol", peer
        )


def test_tls_spoken_to_the_plain_port_is_told_so(broker: Served) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Peer(broker.frames, ssl._create_unverified_context())

    assert "TLS came on a port for length-prefixed frames" in noted(broker, "TLS came")


# Noise


def seeds() -> list[bytes]:
    """Good messages, to be spoiled."""
    found = [
        subscribe("UptimeCPULoad", parameters='<Period units="sec">600</Period>'),
        subscribe("A", extra=options(role="producer", acknowledge="fuzz")),
        unsubscribe("1"),
        query("UptimeCPULoad"),
        event_names(),
        event("1", content("UptimeCPULoad")),
        event("2", content("A"), "e1"),
        event("1", "<Error>E</Error><ErrorDetail>d</ErrorDetail>"),
    ]
    return [each.encode() for each in found]


def spoiled(chance: random.Random, good: list[bytes]) -> bytes:
    """A message with some bytes changed, cut out, doubled, or mixed with another."""
    data = bytearray(chance.choice(good))
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at : min(to, at + 40)]
            case 2:
                data[at:at] = data[at : min(to, at + 200)]
            case 3:
                other = chance.choice(good)
                data[at:at] = other[chance.randrange(len(other)) :]
            case 4:
                data[at:at] = chance.choice([b"\xff", b"&x;", b"<", b"]]>", b"\0", b"xmlns=''"])
            case _:
                data = data.replace(chance.choice([b"1", b'"', b">", b"e"]), b"", 1)
        data = data or bytearray(b" ")
    return bytes(data)


def test_two_thousand_spoiled_messages_find_no_failure_of_ours_and_leave_nothing(
    broker: Served,
) -> None:
    chance = random.Random(SEED)
    good = seeds()
    before = resident_bytes(broker)

    sent = 0
    while sent < FUZZED:
        with Peer(broker.frames if chance.random() < 0.8 else broker.archive) as peer:
            for _ in range(chance.randint(1, 40)):
                begin = [chance.choice(good)] if chance.random() < 0.3 else []
                try:
                    peer.send(*begin, spoiled(chance, good))
                except ConnectionError:
                    break
                sent += 1

    assert answers(broker), f"seed {SEED}"
    assert complaints(broker) == []
    assert resident_bytes(broker) - before < 30 * MB
