"""Peers for the tests of the library: a proxy that can be cut, one that speaks raw frames, and what
is counted at both ends."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tocsin.client.gma import Consumer, Producer

PROTOCOL = "http://www.gridforum.org/Performance/Protocol"
PARAMETERS = "http://www.gridforum.org/Performance/EventParameters"
EVENTS = "http://www.gridforum.org/Performance/Events"
WAIT_S = 10.0


class Proxy:
    """Between two ends; `cut` breaks what goes through, `stop` lets nothing in until `start`."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(0.05)
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.connections = 0
        self._carried = time.monotonic()
        self._closing = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def idle_s(self) -> float:
        """How long nothing has gone through."""
        return time.monotonic() - self._carried

    def cut(self) -> None:
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self._stopped = True
        self.cut()

    def start(self) -> None:
        self._stopped = False

    def close(self) -> None:
        self._closing = True
        self.cut()
        self._thread.join(WAIT_S)
        self._server.close()

    def _accept(self) -> None:
        while not self._closing:
            try:
                near, _ = self._server.accept()
            except TimeoutError:
                continue
            try:
                far = None if self._stopped else socket.create_connection(self._target, 5)
            except OSError:
                far = None
            if far is None:
                near.close()
                continue
            near.settimeout(None)
            far.settimeout(None)
            self.connections += 1
            with self._lock:
                self._pairs.append((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        with near, far, contextlib.suppress(OSError, ValueError):
            while True:
                for end in select.select([near, far], [], [])[0]:
                    data = end.recv(65_536)
                    if not data:
                        return
                    other[end].sendall(data)
                    self._carried = time.monotonic()


@contextmanager
def proxied(target: str) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()


class RawPeer:
    """Says whatever a test wants said, and shows what is said to it."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._socket.settimeout(WAIT_S)
        self._rest = b""

    @classmethod
    def call(cls, address: str) -> RawPeer:
        host, _, port = address.rpartition(":")
        return cls(socket.create_connection((host, int(port)), WAIT_S))

    def say(self, text: str) -> None:
        data = text.encode()
        self.send(struct.pack(">I", len(data)) + data)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def hear(self) -> str:
        """The next message; "" if the other side has closed."""
        head = self._read(4)
        if not head:
            return ""
        return self._read(struct.unpack(">I", head)[0]).decode()

    def hear_end(self) -> list[str]:
        """What is said until the other side closes."""
        received = []
        with contextlib.suppress(ConnectionError):
            while message := self.hear():
                received.append(message)
        return received

    def close(self) -> None:
        self._socket.close()

    def _read(self, count: int) -> bytes:
        while len(self._rest) < count:
            data = self._socket.recv(65_536)
            if not data:
                return b""
            self._rest += data
        found, self._rest = self._rest[:count], self._rest[count:]
        return found


def subscribe_request(
    name: str, *, request: int = 1, subscription: str = "s1", more: str = ""
) -> str:
    return (
        f'<SubscribeRequest xmlns="{PROTOCOL}" requestID="1">'
        f"<SubscriptionID>{subscription}</SubscriptionID>"
        f'<{name} xmlns="{PARAMETERS}">{more}</{name}></SubscribeRequest>'
    )


def event(subscription: str, name: str, body: str, attributes: str = "") -> str:
    return (
        f'<Event xmlns="{PROTOCOL}" subscriptionID="{subscription}"{attributes}>'
        f'<{name} xmlns="{EVENTS}">{body}<TimeStamp>2000-11-09T21:51:45Z</TimeStamp></{name}>'
        "</Event>"
    )


@contextmanager
def raw_listener(serve: Callable[[RawPeer], None]) -> Iterator[str]:
    """An address where each caller is served by the function, in a thread of its own."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.05)
    closing = threading.Event()
    peers: list[RawPeer] = []

    def one(peer: RawPeer) -> None:
        with contextlib.suppress(OSError):
            serve(peer)

    def accept() -> None:
        while not closing.is_set():
            try:
                opened, _ = server.accept()
            except TimeoutError:
                continue
            peers.append(RawPeer(opened))
            threading.Thread(target=one, args=(peers[-1],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.getsockname()[1]}"
    finally:
        closing.set()
        thread.join(WAIT_S)
        server.close()
        for peer in peers:
            peer.close()


def numbers(archive: Consumer, count: int) -> list[object]:
    """The numbers of the next events that an archive takes."""
    found = []
    for _ in range(count):
        event = archive.take(5)
        assert event is not None, found
        found.append(event["N"])
    return found


def counting(producer: Producer, name: str = "Count", **options: object) -> list[Mapping]:
    """An offer whose events are numbered; returns the parameters of its calls."""
    calls: list[Mapping] = []

    def make(parameters: Mapping) -> dict[str, int]:
        calls.append(parameters)
        return {"N": len(calls)}

    producer.offer(name, make, **options)  # type: ignore[arg-type]
    return calls


def accept(peer: RawPeer, options: str = "") -> tuple[str, str]:
    """Agree to a subscription; its id at the consumer, and the request."""
    request = peer.hear()
    number = request.partition('requestID="')[2].partition('"')[0]
    identity = request.partition("<SubscriptionID>")[2].partition("<")[0]
    peer.say(
        f'<SubscribeReply xmlns="{PROTOCOL}" requestID="{number}"><Return>Success</Return>'
        f"<SubscriptionID>p1</SubscriptionID>{options}</SubscribeReply>"
    )
    return identity, request
