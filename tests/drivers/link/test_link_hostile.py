"""Peers that mean no good, against a real broker: each is refused, and the broker goes on."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from brokers import (
    Brokers,
    box,
    brokers,
    id_of,
    overlay,
    until_arrived,
    until_reached,
    until_wanted,
)

from served import Served
from tocsin.wire.link.codec import LinkMessage, LinkReader, encode
from tocsin.wire.link.messages import (
    DATA_FORMAT,
    PROTOCOL_VERSION,
    Acknowledge,
    Advertise,
    Events,
    Hello,
    Ignored,
    Message,
    Refuse,
    Subscribe,
    Synced,
    Welcome,
)
from waiting import wait_until

GARBAGE = {
    "nothing at all": b"",
    "text": b"hello, is this a broker?\r\n",
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "a frame of 4 GiB": b"\xff\xff\xff\xff" + b"x" * 100_000,
    "a frame of 17 MiB": (17 << 20).to_bytes(4, "big") + b"x" * 100_000,
    "a frame of length 0": b"\0\0\0\0",
    "no MessagePack": b"\0\0\0\3\xc1\xc1\xc1",
    "an unknown message": b"\0\0\0\6\x91\xa4nope",
    "random bytes": os.urandom(50_000),
}
FLOOD = 20_000  # frames, of which a broker without limits makes 100 MB


@pytest.fixture(scope="module")
def place() -> Iterator[Brokers]:
    with brokers() as found:
        yield found


@pytest.fixture(scope="module")
def broker(place: Brokers) -> Iterator[Served]:
    """It has an honest neighbour, which must never notice anything."""
    running = place.start("broker", TOCSIN_OVERLAY__HANDSHAKE_S="2")
    friend = place.start("friend", running.link)
    until_reached(running, friend)
    yield running
    until_reached(running, friend)
    assert "Traceback" not in running.said()
    assert " error " not in running.said()


class Peer:
    """A connection to the link port."""

    def __init__(self, broker: Served) -> None:
        host, _, port = broker.link.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=20)
        self._reader = LinkReader()
        self.came: list[LinkMessage] = []

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, *messages: LinkMessage) -> None:
        self.send_bytes(b"".join(map(encode, messages)))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def until_closed(self) -> list[LinkMessage]:
        """Everything that the broker sent."""
        try:
            while data := self._socket.recv(1 << 16):
                self.came += self._reader.read(data)
        except ConnectionError:
            pass  # it had not read all that was sent
        return self.came

    def until(self, kind: type[LinkMessage]) -> None:
        while not any(isinstance(each, kind) for each in self.came):
            data = self._socket.recv(1 << 16)
            assert data, self.came
            self.came += self._reader.read(data)


def hello(**changes: object) -> Hello:
    usual = {
        "protocol": PROTOCOL_VERSION,
        "broker": "stranger",
        "log": "its-log",
        "data_format": DATA_FORMAT,
        "agent": "test/1",
        "instance": "i",
    }
    return Hello(**{**usual, **changes})  # type: ignore[arg-type]


def refusals(messages: list[LinkMessage]) -> list[str]:
    return [each.code for each in messages if isinstance(each, Refuse)]


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_is_no_message_ends_the_connection(broker: Served, kind: str) -> None:
    before = overlay(broker)["refused"]

    with Peer(broker) as peer:
        peer.send_bytes(GARBAGE[kind])
        begun_s = time.monotonic()
        peer.until_closed()

    assert time.monotonic() - begun_s < 15
    if kind not in ("nothing at all", "random bytes", "text"):
        assert overlay(broker)["refused"] == before + 1


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (hello(protocol=99), "T802"),
        (hello(data_format=99), "T802"),
        (Acknowledge(1), "T801"),
        (Welcome(), "T801"),
        (Subscribe("stranger", "1", ""), "T801"),
    ],
)
def test_a_wrong_beginning_is_refused_with_its_code(
    broker: Served, first: Message, code: str
) -> None:
    with Peer(broker) as peer:
        peer.send(first)

        assert refusals(peer.until_closed()) == [code]


def test_who_has_the_brokers_own_id_is_refused(broker: Served) -> None:
    with Peer(broker) as peer:
        peer.send(hello(broker=overlay(broker)["broker"]))

        assert refusals(peer.until_closed()) == ["T804"]


def test_who_reaches_what_is_reached_already_is_refused_as_a_cycle(broker: Served) -> None:
    [friend] = overlay(broker)["brokers"]

    with Peer(broker) as peer:
        peer.send(hello(behind={friend: "stranger"}))

        assert refusals(peer.until_closed()) == ["T803"]


def test_tables_before_the_handshake_are_refused(broker: Served) -> None:
    with Peer(broker) as peer:
        peer.send(hello(), Advertise("stranger", "1", ""), Synced("advertisements"))

        assert "T801" in refusals(peer.until_closed())


def test_an_entry_that_is_no_filter_is_ignored_and_counted(broker: Served) -> None:
    with Peer(broker) as peer:
        peer.send(hello())
        peer.until(Welcome)
        peer.send(
            Welcome(),
            Advertise("stranger", "1", "this is ( no filter"),
            Synced("advertisements"),
        )
        peer.until(Synced)
        peer.send(Synced("subscriptions"))

        def ignored() -> list[int]:
            neighbours = overlay(broker)["neighbours"]
            return [each["ignored"] for each in neighbours if each["broker"] == "stranger"]

        wait_until(lambda: ignored() == [1], f"{overlay(broker)['neighbours']}")
    assert broker.call("DELETE", "/overlay/brokers/stranger")[0] in (204, 409)


def test_a_neighbour_that_falls_silent_is_gone(broker: Served) -> None:
    with Peer(broker) as peer:
        peer.send(hello(broker="silent"))
        peer.until(Welcome)
        peer.send(Welcome(), Synced("advertisements"))
        peer.until(Synced)
        peer.send(Synced("subscriptions"))
        begun_s = time.monotonic()
        peer.until_closed()

        assert 4 < time.monotonic() - begun_s < 15  # overlay.silence_s is 6
    wait_until(
        lambda: (
            [e["state"] for e in overlay(broker)["neighbours"] if e["broker"] == "silent"]
            == ["down"]
        ),
        "it is down",
    )


def test_a_neighbour_that_floods_has_its_share_and_the_others_notice_nothing(
    place: Brokers,
) -> None:
    flooded = place.start("flooded", TOCSIN_OVERLAY__SUBSCRIPTIONS_PER_NEIGHBOUR_MAX="2000")
    honest = place.start("honest", flooded.link)
    until_reached(flooded, honest)
    box_id = box(honest, "lead/**")
    until_wanted(flooded, "lead/**")
    frames = [encode(Subscribe("flooder", str(n), f"load > {n}")) for n in range(FLOOD)]
    published: list[str] = []

    with Peer(flooded) as peer, ThreadPoolExecutor(1) as thread:
        peer.send(hello(broker="flooder"))
        peer.until(Welcome)
        peer.send(Welcome(), Synced("advertisements"))
        peer.until(Synced)
        peer.send(Synced("subscriptions"))
        sent = thread.submit(peer.send_bytes, b"".join(frames))
        while ignored_of(flooded, "flooder") < FLOOD - 2_000:
            assert flooded.call("GET", "/livez")[0] == 200
            flooded.publish({"id": f"e{len(published)}", "topic": "lead/x", "data": 1})
            published.append(f"e{len(published)}")
        sent.result()
        peer.until(Ignored)
        shown = {each["broker"]: each for each in overlay(flooded)["neighbours"]}

    assert len(published) > 3, "the broker did nothing else meanwhile"
    until_arrived(honest, box_id, published)
    assert shown["flooder"]["subscriptions"] == 2_000
    assert shown["flooder"]["error"]["code"] == "T806"
    assert shown[id_of(honest)]["state"] == "up"
    assert "a link is down" not in honest.said()
    assert flooded.said().count("is not taken") == (FLOOD - 2_000).bit_length()
    assert flooded.call("DELETE", "/overlay/brokers/flooder")[0] in (204, 409)


def ignored_of(broker: Served, neighbour: str) -> int:
    found = [each for each in overlay(broker)["neighbours"] if each["broker"] == neighbour]
    return sum(each["ignored"] for each in found)


def test_a_liar_with_the_id_of_a_neighbour_that_is_away_gets_nothing_of_what_is_kept(
    place: Brokers,
) -> None:
    here = place.start("here")
    away = place.start("away", here.link)
    until_reached(here, away)
    box_id = box(away, "kept/**")
    until_wanted(here, "kept/**")
    its_id = id_of(away)
    away.kill()
    wait_until(lambda: overlay(here)["brokers"] == [], "it is away")
    here.publish({"id": "e1", "topic": "kept/x", "data": 1})

    with Peer(here) as liar:
        liar.send(hello(broker=its_id), Welcome(), Synced("advertisements"))

        assert refusals(liar.until_closed()) == ["T811"]
    assert not [each for each in liar.came if isinstance(each, Events)]
    away.start()
    until_arrived(away, box_id, ["e1"])
