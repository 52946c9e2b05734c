"""TLS between producers and consumers of the library, with certificates made here."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from gma_peers import RawPeer

from pki import lock, own_files
from tocsin.client.gma import Consumer, Producer
from tocsin.client.gma.connection import PeerConnection
from tocsin.errors import BadSetting, CannotReachBroker
from tocsin.wire.gma.conversation import Conversation
from waiting import wait_until


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine that vouches for itself."""
    folder = tmp_path_factory.mktemp("gma-tls")
    own_files(folder, "localhost", "127.0.0.1")
    lock(folder / "own.key", "secret")
    return folder


@pytest.fixture
def producer(made: Path) -> Iterator[Producer]:
    with Producer(tls_certificate=str(made / "own.pem"), tls_key=str(made / "own.key")) as running:
        running.offer("Count", lambda _: {"N": 7})
        yield running


def test_events_come_by_tls(producer: Producer, made: Path) -> None:
    with Consumer(f"gmas://{producer.address}", ca_file=str(made / "own.pem")) as consumer:
        assert consumer.query("Count")["N"] == 7
        assert consumer.subscribe("Count").take(5)["N"] == 7  # type: ignore[index]


def test_a_certificate_that_nobody_vouches_for_is_not_believed(producer: Producer) -> None:
    with (
        Consumer(f"gmas://{producer.address}") as consumer,
        pytest.raises(CannotReachBroker, match="not trusted") as caught,
    ):
        consumer.query("Count")

    assert "ca_file=FILE in Python" in caught.value.remedy


def test_one_who_speaks_no_tls_is_turned_away_and_leaves_nothing(producer: Producer) -> None:
    with (
        Consumer(producer.address, timeout_s=5) as consumer,
        pytest.raises(CannotReachBroker, match="if it uses TLS, write gmas://"),
    ):
        consumer.query("Count")
    peer = RawPeer.call(str(producer.address))
    peer.send(b"\x00\x00\x00\x05hello")
    peer.hear_end()
    peer.close()

    wait_until(lambda: not producer._consumer_peers.peers)


def test_tls_to_plain_frames_is_an_error_that_says_so(made: Path) -> None:
    with (
        Producer() as plain,
        Consumer(f"gmas://{plain.address}", ca_file=str(made / "own.pem")) as consumer,
        pytest.raises(CannotReachBroker),
    ):
        consumer.query("Count")


def test_a_feed_goes_by_tls(made: Path) -> None:
    certificate = {
        "tls_certificate": str(made / "own.pem"),
        "tls_key": str(made / "own.key"),
    }
    with (
        Consumer(listen="localhost:0", **certificate) as archive,  # type: ignore[arg-type]
        Producer(None, ca_file=str(made / "own.pem")) as producer,
    ):
        producer.offer("Alarm")
        feed = producer.push_to(f"gmas://{archive.address}", "Alarm")
        producer.emit("Alarm", {"N": 1})

        assert archive.take(5)["N"] == 1  # type: ignore[index]
        assert feed.flush(5)
        assert feed.acknowledged == 1


def test_files_that_do_not_do_are_reported_at_once(made: Path) -> None:
    certificate, key = str(made / "own.pem"), str(made / "own.key")
    before = threading.active_count()

    with pytest.raises(BadSetting, match="tls_key is missing"):
        Producer(tls_certificate=certificate)
    with pytest.raises(BadSetting, match="cannot be used"):
        Producer(tls_certificate=certificate, tls_key=str(made / "nowhere"))
    with pytest.raises(BadSetting, match="cannot be used"):
        Producer(tls_certificate=key, tls_key=key)
    with pytest.raises(BadSetting, match="password"):
        Consumer(
            listen="127.0.0.1:0", tls_certificate=certificate, tls_key=str(made / "locked.key")
        )
    with pytest.raises(BadSetting, match="CA file"):
        Consumer("gmas://127.0.0.1:1", ca_file=str(made / "nowhere"))

    assert threading.active_count() <= before


class ClosesAsThePeerDoes(PeerConnection):
    """Closed, then aborted, while TLS already ends since the peer closed."""

    def __init__(self, why: asyncio.Future[str]) -> None:
        super().__init__(Conversation(), frame_bytes_max=1_000, accepted=False)
        self.why = why

    def closed(self, why: str) -> None:
        self.why.set_result(why)

    def eof_received(self) -> None:
        for close in (self.close, self.abort):
            self._loop.call_soon(close, "we both have had enough")


def test_a_connection_closed_while_its_peer_closes_it_can_still_be_aborted(made: Path) -> None:
    raised: list[object] = []

    async def close_both_ways() -> str:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: raised.append(context.get("exception")))
        serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        serving.load_cert_chain(made / "own.pem", made / "own.key")
        calling = ssl.create_default_context(cafile=str(made / "own.pem"))
        why: asyncio.Future[str] = loop.create_future()
        server = await asyncio.start_server(
            lambda _, writer: writer.close(), "localhost", 0, ssl=serving
        )
        async with server:
            port = server.sockets[0].getsockname()[1]
            await loop.create_connection(
                lambda: ClosesAsThePeerDoes(why), "localhost", port, ssl=calling
            )
            return await asyncio.wait_for(why, 5)

    assert asyncio.run(close_both_ways()) == "we both have had enough"
    assert not raised
