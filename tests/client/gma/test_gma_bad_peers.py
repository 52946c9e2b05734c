"""Peers that break the protocol, on purpose or not: each is cut off with a reason, nobody hangs."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator

import pytest
from gma_peers import PROTOCOL, RawPeer, event, raw_listener, subscribe_request
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.client.gma import Consumer, Producer
from tocsin.client.gma import connection as connection_module
from tocsin.client.gma import listener as listener_module
from tocsin.errors import CannotReachBroker
from waiting import wait_until


def framed(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


BOMB = b'<!DOCTYPE a [<!ENTITY b "bbbbbbbb">]><a>&b;&b;</a>'
GARBAGE = {
    "a frame of length 0": struct.pack(">I", 0),
    "a frame of 2 GiB": struct.pack(">I", 2**31) + b"x",
    "a frame of 4 GiB": struct.pack(">I", 2**32 - 1) + b"x",
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": bytes.fromhex("16030100a5010000a10303"),
    "a frame of 3 bytes": framed(b"abc"),
    "bytes that are no UTF-8": framed(b"<Event \xff\xfe>"),
    "an entity bomb": framed(BOMB),
    "an unknown message": framed(b'<Hello xmlns="%b"/>' % PROTOCOL.encode()),
    "a reply to nothing": framed(
        b'<QueryReply xmlns="%b" requestID="77"><Return>Success</Return></QueryReply>'
        % PROTOCOL.encode()
    ),
    "an event of no subscription": framed(event("x9", "Count", "<N>1</N>").encode()),
}


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    with Producer() as running:
        running.offer("Alarm")
        running.offer("Count", lambda _: {"N": 1})
        yield running


@pytest.fixture(scope="module")
def archive() -> Iterator[Consumer]:
    with Consumer(listen="127.0.0.1:0") as running:
        yield running


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_closes_the_connection_and_is_reported(
    producer: Producer, archive: Consumer, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    for address in (producer.address, archive.address):
        peer = RawPeer.call(str(address))
        peer.send(garbage)

        assert peer.hear_end() == []
        peer.close()
    wait_until(lambda: caplog.text.count("closed the connection with 127.0.0.1") >= 2)
    with Consumer(producer.address) as consumer:
        assert consumer.query("Count")["N"] == 1


SOUND = [
    subscribe_request("Count", more='<Period units="sec">10</Period>'),
    f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="2"/>',
    event("1", "Count", "<N>1</N>", ' requestID="e1"'),
    f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="3"><SubscriptionID>1</SubscriptionID>'
    "</UnsubscribeRequest>",
]


@settings(max_examples=60)
@given(
    said=st.lists(st.sampled_from(SOUND), max_size=4),
    at=st.integers(0, 2_000),
    put=st.binary(max_size=12),
    cut=st.integers(0, 40),
)
def test_whatever_is_changed_on_the_way_harms_nobody_else(
    producer: Producer, archive: Consumer, said: list[str], at: int, put: bytes, cut: int
) -> None:
    stream = b"".join(framed(text.encode()) for text in said)
    at = at % (len(stream) + 1)
    stream = stream[:at] + put + stream[at + cut :]
    for address in (producer.address, archive.address):
        peer = RawPeer.call(str(address))
        with contextlib.suppress(ConnectionError):
            peer.send(stream)
            peer._socket.shutdown(socket.SHUT_WR)
        peer.hear_end()
        peer.close()

    with Consumer(producer.address) as consumer:
        assert consumer.query("Count")["N"] == 1


REFUSED = {
    "no SubscriptionID": f'<SubscribeRequest xmlns="{PROTOCOL}" requestID="1"/>',
    "no event": f'<QueryRequest xmlns="{PROTOCOL}" requestID="1"/>',
    "the wrong namespace": '<EventNamesRequest xmlns="urn:other" requestID="1"/>',
    "no such subscription": f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="1">'
    "<SubscriptionID>77</SubscriptionID></UnsubscribeRequest>",
    "10,000 elements": subscribe_request("Count", more="<A>1</A>" * 10_000),
    "both are producers": subscribe_request("Count").replace(
        "</SubscribeRequest>",
        '<Options xmlns="urn:tocsin:gma:1" role="producer"/></SubscribeRequest>',
    ),
}


@pytest.mark.parametrize("request_text", REFUSED.values(), ids=REFUSED.keys())
def test_a_request_that_cannot_be_is_refused_and_the_connection_stays(
    producer: Producer, request_text: str
) -> None:
    peer = RawPeer.call(str(producer.address))

    peer.say(request_text)
    refusal = peer.hear()
    peer.say(f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="2"/>')

    assert "<Return>Failure</Return><ReturnDetail>" in refusal
    assert "<Return>Success</Return>" in peer.hear()
    peer.close()


def test_an_id_in_use_is_refused(producer: Producer) -> None:
    peer = RawPeer.call(str(producer.address))
    peer.say(subscribe_request("Alarm"))
    assert "Success" in peer.hear()

    peer.say(subscribe_request("Alarm"))

    assert "SubscriptionID s1 is in use" in peer.hear()
    peer.close()


def test_a_message_that_never_becomes_whole_is_not_waited_for(
    producer: Producer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection_module, "FRAME_S_MAX", 0.2)
    peer = RawPeer.call(str(producer.address))
    peer.send(struct.pack(">I", 1000))
    for _ in range(10):
        time.sleep(0.03)
        try:
            peer.send(b"<")  # bytes that trickle in win no time
        except ConnectionError:
            break

    assert peer.hear_end() == []
    assert "did not come whole" in caplog.text
    peer.close()


def test_a_connection_that_asks_nothing_is_closed_in_the_end(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "IDLE_S_MAX", 0.2)
    idle = RawPeer.call(str(producer.address))
    subscribed = RawPeer.call(str(producer.address))
    subscribed.say(subscribe_request("Alarm"))
    subscribed.hear()

    assert idle.hear_end() == []
    time.sleep(0.3)
    producer.emit("Alarm", {})
    assert subscribed.hear().startswith("<Event")
    idle.close()
    subscribed.close()


def test_one_who_asks_and_does_not_read_is_no_longer_listened_to(producer: Producer) -> None:
    peer = RawPeer.call(str(producer.address))
    peer._socket.settimeout(0.5)
    request = f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="1"/>'.encode()
    many = framed(request) * 1_000

    def ask_for_ever() -> None:
        for _ in range(200):  # 20 MB; much less than that fits into the buffers on the way
            peer.send(many)

    with pytest.raises(TimeoutError):
        ask_for_ever()

    [guest] = [each for each in producer._consumer_peers.peers if each.is_clogged]
    assert guest.unread_bytes < 4 << 20
    peer.close()


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_producer_that_speaks_garbage_is_an_error_to_who_asks(garbage: bytes) -> None:
    def serve(peer: RawPeer) -> None:
        peer.hear()
        peer.send(garbage)
        peer.hear_end()

    with raw_listener(serve) as address, Consumer(address, timeout_s=5) as consumer:
        with pytest.raises(CannotReachBroker):
            consumer.query("Count")
        with pytest.raises(CannotReachBroker):
            consumer.subscribe("Count")


def test_a_feed_outlives_a_consumer_that_speaks_garbage() -> None:
    calls: list[int] = []

    def serve(peer: RawPeer) -> None:
        calls.append(1)
        peer.hear()
        peer.send(list(GARBAGE.values())[len(calls) % len(GARBAGE)])
        peer.hear_end()

    with raw_listener(serve) as address, Producer(None) as producer:
        producer.offer("Alarm")
        feed = producer.push_to(address, "Alarm")
        wait_until(lambda: len(calls) >= 3)

        assert feed.state == "connecting"
        assert "cannot reach" in (feed.error or "")


def test_a_request_from_a_producer_is_refused_with_a_reason() -> None:
    received: list[str] = []

    def serve(peer: RawPeer) -> None:
        request = peer.hear()
        identity = request.partition("<SubscriptionID>")[2].partition("<")[0]
        peer.say(
            f'<SubscribeReply xmlns="{PROTOCOL}" requestID="1"><Return>Success</Return>'
            "<SubscriptionID>p</SubscriptionID></SubscribeReply>"
        )
        peer.say(f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="5"/>')
        received.append(peer.hear())
        peer.say(subscribe_request("Other", subscription="more"))
        received.append(peer.hear())
        peer.say(event(identity, "Count", "<N>1</N>"))
        peer.hear_end()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        assert consumer.subscribe("Count").take(5)["N"] == 1  # type: ignore[index]

    assert all("<Return>Failure</Return>" in each for each in received)
