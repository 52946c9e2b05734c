"""One keep-alive connection to a broker, blocking: ask and answer, or several asks in flight."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Self

from tocsin.client.transport import patience
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.http1 import MessageReader, request_bytes
from tocsin.client.transport.refusal import Response, refusal
from tocsin.errors import CannotReachBroker, TocsinError

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
READ_BYTES = 256 * 1024
BODY_BYTES_MAX = 256 * 1024 * 1024  # an answer this long is a mistake, not a page

Headers = Iterable[tuple[str, str]]


def cannot_reach(address: Address, why: object) -> CannotReachBroker:
    """The error for a broker that is not there, or that speaks something else."""
    return CannotReachBroker(
        f"cannot reach a broker at {address}: {why}",
        remedy="Start one with `tocsin serve`, or give the address of the one you mean: "
        "--broker URL, TOCSIN_BROKER, or broker=URL in Python.",
    )


class Connection:
    """Opened on first use and again after it broke. Not for several threads at once."""

    def __init__(
        self, broker: str | Address | None = None, *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> None:
        self._socket: socket.socket | None = None
        self._rest = b""
        self._timeout_s = timeout_s
        self._unproven = False  # nothing came yet from a broker that is addressed without TLS
        self.address = broker_address(broker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # `Publisher().publish(...)` in one line leaves nobody to close it.
        self.close()

    def close(self) -> None:
        """Close the socket; the next request opens another."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
        self._socket = None
        self._rest = b""

    def interrupt(self) -> None:
        """Wake a thread that is reading here, as if the broker had closed."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: Headers = (),
        timeout_s: float | None = None,
    ) -> Response:
        """Ask and wait for the answer. A reused connection that turns out closed is opened anew."""
        reused = self._socket is not None
        data = request_bytes(self.address, method, target, body=body, headers=headers)
        try:
            self.send(data, timeout_s=timeout_s)
            return self.receive()
        except CannotReachBroker:
            if not reused or method == "POST":
                raise
        self.send(data, timeout_s=timeout_s)
        return self.receive()

    def send(self, data: bytes, *, timeout_s: float | None = None) -> None:
        """Send a whole request without waiting for its answer."""
        opened = self._open()
        try:
            opened.settimeout(self._timeout_s if timeout_s is None else timeout_s)
            opened.sendall(data)
        except OSError as error:
            self.close()
            raise cannot_reach(self.address, error) from None

    def receive(self) -> Response:
        """The answer to the oldest request that has none."""
        reader = MessageReader(response=True)
        body: list[bytes] = []
        size = 0
        for part in self._parts(reader):
            body.append(part)
            size += len(part)
            if size > BODY_BYTES_MAX:
                self.close()
                raise cannot_reach(self.address, "its answer has no end")
        self._rest = reader.rest
        if reader.headers.get("connection", "").lower() == "close":
            self.close()
        return Response(reader.status, reader.headers, b"".join(body))

    def stream(
        self,
        target: str,
        *,
        headers: Headers = (),
        idle_s: float,
        waiting: Callable[[], float | None] | None = None,
    ) -> Iterator[bytes]:
        """The body of an answer that goes on, as it comes; ends when the broker ends it.

        `waiting` is asked before each read how long it may take; past that, an empty part comes.
        """
        self.send(request_bytes(self.address, "GET", target, headers=headers))
        reader = MessageReader(response=True)
        excerpt = b""
        for part in self._parts(reader, idle_s=idle_s, waiting=waiting):
            if not reader.has_head or reader.status == 200:
                yield part
            else:
                excerpt += part
        if reader.status != 200:
            raise refusal(reader.status, excerpt)

    def _parts(
        self,
        reader: MessageReader,
        *,
        idle_s: float | None = None,
        waiting: Callable[[], float | None] | None = None,
    ) -> Iterator[bytes]:
        """What each read brings of a message's body, until the message is whole."""
        data: bytes | None = self._rest
        self._rest = b""
        while True:
            try:
                part = reader.feed(data) if data else b""
            except TocsinError as error:
                self.close()
                raise cannot_reach(self.address, error.problem) from None
            if part:
                yield part
            if reader.complete:
                return
            patience_s = waiting() if waiting is not None else None
            data = self._read(patience_s if patience_s is not None else idle_s, patience_s)
            if data is None:
                yield b""
                data = b""
            elif not data:
                self.close()
                if reader.end():
                    return
                raise self._closed_by_peer()
            else:
                self._unproven = False

    def _read(self, timeout_s: float | None, patience_s: float | None) -> bytes | None:
        """What arrives next; b"" at the end; None if only the caller's patience ran out."""
        opened = self._socket
        if opened is None:
            raise cannot_reach(self.address, "the connection was closed")
        try:
            if timeout_s is not None:
                opened.settimeout(max(timeout_s, 0.001))
            return opened.recv(READ_BYTES)
        except TimeoutError:
            if patience_s is not None:
                return None
            self.close()
            raise cannot_reach(self.address, "it does not answer") from None
        except OSError as error:
            self.close()
            raise cannot_reach(self.address, error) from None

    def _closed_by_peer(self) -> CannotReachBroker:
        if self._unproven:
            from tocsin.client.transport.tls import wants_tls

            self._unproven = False
            if (error := wants_tls(self.address)) is not None:
                return error
        return cannot_reach(self.address, "the connection was closed")

    def _open(self) -> socket.socket:
        if self._socket is None:
            self._socket = connect(self.address)
            self._unproven = not self.address.tls
        return self._socket


def connect(address: Address) -> socket.socket:
    """A socket to the broker, with TLS if its address asks for it."""
    opened = _called(address)
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not address.tls:
            return opened
        return _with_tls(opened, address)
    except OSError as error:
        opened.close()
        raise cannot_reach(address, error) from None
    except TocsinError:
        opened.close()
        raise


def _called(address: Address) -> socket.socket:
    while True:
        try:
            return socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S)
        except ConnectionRefusedError as error:
            if patience.is_over(address.host):
                raise cannot_reach(address, f"{error}{patience.waited(address.host)}") from None
        except OSError as error:
            raise cannot_reach(address, error) from None


def _with_tls(opened: socket.socket, address: Address) -> socket.socket:
    import ssl

    from tocsin.client.transport.tls import client_context, handshake_failed

    try:
        context = client_context(address.ca_file)
        return context.wrap_socket(opened, server_hostname=address.host)
    except ssl.SSLError as error:
        raise handshake_failed(address, error) from None
