"""What a connection costs: time while it is held, memory when it is over, turns of the others."""

from __future__ import annotations

import asyncio
import gc
import struct
import time
import weakref
from collections.abc import Iterator

import pytest
from gma_peers import PROTOCOL, RawPeer, event, raw_listener

from tocsin.client.gma import Consumer, Producer, connection, inbox
from tocsin.client.gma import connection as connection_module
from tocsin.client.gma.connection import Deadline
from tocsin.wire.framing import framed
from waiting import wait_until

NAMES_REQUEST = f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="1"/>'.encode()


@pytest.fixture
def without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_the_deadline_of_a_message_stops_while_the_program_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_module, "FRAME_S_MAX", 0.2)
    monkeypatch.setattr(inbox.Inbox.__init__, "__defaults__", (5, 1 << 30))

    def serve(peer: RawPeer) -> None:
        request = peer.hear()
        number = request.partition('requestID="')[2].partition('"')[0]
        identity = request.partition("<SubscriptionID>")[2].partition("<")[0]
        peer.say(
            f'<SubscribeReply xmlns="{PROTOCOL}" requestID="{number}"><Return>Success</Return>'
            "<SubscriptionID>p1</SubscriptionID></SubscribeReply>"
        )
        for first in range(0, 30_000, 1_000):
            texts = [event(identity, "Count", f"<N>{first + n}</N>") for n in range(1_000)]
            peer.send(b"".join(framed(text.encode()) for text in texts))
        peer.hear_end()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        subscription = consumer.subscribe("Count")
        assert subscription.take(5)["N"] == 0  # type: ignore[index]
        time.sleep(0.8)
        found = [subscription.take(5)["N"] for _ in range(29_999)]  # type: ignore[index]

        assert found == list(range(1, 30_000))
        assert subscription.reconnects == 0


def test_a_deadline_goes_on_with_what_was_left() -> None:
    async def run() -> list[str]:
        loop, reported = asyncio.get_running_loop(), []
        deadline = Deadline(loop)
        deadline.start(0.1, lambda: reported.append("late"))
        deadline.stop()
        await asyncio.sleep(0.15)
        assert deadline.is_set
        reported.append("stopped")
        deadline.go_on()
        await asyncio.sleep(0.15)
        deadline.start(0.05, lambda: reported.append("never"))
        deadline.cancel()
        await asyncio.sleep(0.1)
        return reported

    assert asyncio.run(run()) == ["stopped", "late"]


@pytest.mark.usefixtures("without_collection")
@pytest.mark.parametrize(
    "said",
    [
        struct.pack(">I", 100_000) + b"<" * 50_000,
        struct.pack(">I", 0),
        framed(NAMES_REQUEST) * 500,
        framed(b"<no/>"),
    ],
)
def test_who_is_gone_leaves_nothing_to_collect(said: bytes) -> None:
    with Producer() as producer, Consumer(listen="127.0.0.1:0") as archive:
        producer.offer("Load", lambda _: {})
        assert archive._producer_peers is not None
        for address, here in (
            (producer.address, producer._consumer_peers.peers),
            (archive.address, archive._producer_peers.peers),
        ):
            peer = RawPeer.call(str(address))
            wait_until(lambda here=here: here)
            whose = weakref.ref(next(iter(here)))
            peer.send(said)
            time.sleep(0.05)
            peer.close()

            wait_until(lambda here=here, whose=whose: not here and not whose())


def test_all_who_begin_messages_have_one_limit_and_who_begins_small_ones_is_safe(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "ALL_BYTES_MAX", 300_000)
    half = struct.pack(">I", 200_000) + b"<" * 100_000
    request = framed(NAMES_REQUEST)
    with Producer() as producer:
        producer.offer("Load", lambda _: {})
        guests = producer._consumer_peers.peers
        peers = [RawPeer.call(str(producer.address)) for _ in range(6)]
        for peer in peers:
            peer.send(half)
        wait_until(lambda: caplog.text.count("too many messages have begun") >= 4)
        small = RawPeer.call(str(producer.address))
        small.send(request[:20])
        time.sleep(0.05)
        small.send(request[20:])

        assert "EventNamesReply" in small.hear()
        for peer in (*peers, small):
            peer.close()
        wait_until(lambda: not guests)
        assert producer._consumer_peers.partial_messages._bytes == 0


def test_who_asks_much_and_does_not_read_is_not_answered_ahead() -> None:
    with Producer() as producer:
        for number in range(990):
            producer.offer(f"A{'name' * 50}{number}")
        peers = [RawPeer.call(str(producer.address)) for _ in range(5)]
        for peer in peers:
            peer.send(framed(NAMES_REQUEST) * 700)
        time.sleep(0.3)
        began_s = time.monotonic()
        with Consumer(producer.address) as consumer:
            assert len(consumer.event_names()) == 990

        assert time.monotonic() - began_s < 2
        unread = [guest.unread_bytes for guest in producer._consumer_peers.peers]
        assert max(unread) < 2 << 20
        for _ in range(20):
            assert "EventNamesReply" in peers[0].hear()  # who reads on is answered further
        for peer in peers:
            peer.close()


def test_every_request_of_many_at_once_is_answered_in_turn() -> None:
    with Producer() as producer:
        producer.offer("Load", lambda _: {})
        peer = RawPeer.call(str(producer.address))
        texts = [
            f'<EventNamesRequest xmlns="{PROTOCOL}" requestID="{n}"/>'.encode()
            for n in range(3_000)
        ]
        peer.send(b"".join(framed(text) for text in texts))
        for number in range(3_000):
            assert f'requestID="{number}"' in peer.hear()
        peer.close()
