"""WebSocket: text messages to and from a broker over one connection, until it breaks."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from threading import Lock

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from tocsin.client.transport.address import Address
from tocsin.client.transport.http1 import token_of
from tocsin.client.transport.refusal import refusal
from tocsin.client.transport.renewal import renew_if_due
from tocsin.client.transport.runtime import BLOCKING, READ_BYTES, cannot_reach, connect, run
from tocsin.errors import CannotReachBroker

NORMAL = 1000  # RFC 6455, 7.4.1
HANDSHAKE_S_MAX = 10.0
SEND_S_MAX = 10.0
TEXT_CHARS_MAX = 64 << 20
IDLE_S = 45.0  # three of the broker's pings


class WebSocket:
    """`read` is for one thread, `send` for any. Errors are CannotReachBroker, or what the broker
    answered in place of a WebSocket."""

    def __init__(self, address: Address, target: str, subprotocol: str) -> None:
        run(renew_if_due(BLOCKING, address))
        token = token_of(address)
        headers = [] if token is None else [(b"Authorization", f"Bearer {token.reveal()}".encode())]
        self._address = address
        self._socket = connect(address)
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._lock = Lock()
        self._parts: list[str] = []
        self._parts_chars = 0
        self._early: list[str] = []  # texts that came together with the end of the handshake
        self._accepted = False
        self._status = 0
        self._read_at = time.monotonic()
        request = Request(
            host=address.authority,
            target=address.prefix + target,
            subprotocols=[subprotocol],
            extra_headers=headers,
        )
        try:
            self._transmit(request)
            deadline = time.monotonic() + HANDSHAKE_S_MAX
            while not self._accepted:
                self._early += self._receive(deadline - time.monotonic())
                if time.monotonic() > deadline:
                    raise cannot_reach(address, "it does not answer")
        except BaseException:
            self.close()
            raise

    def send(self, text: str) -> None:
        self._transmit(TextMessage(text))

    def read(self, wait_s: float) -> list[str]:
        """The texts that came; none if none came in that time."""
        if self._early:
            texts, self._early = self._early, []
            return texts
        return self._receive(wait_s)

    def _receive(self, wait_s: float) -> list[str]:
        try:
            self._socket.settimeout(max(0.001, wait_s))
            data = self._socket.recv(READ_BYTES)
        except TimeoutError:
            if time.monotonic() - self._read_at > IDLE_S:
                raise cannot_reach(self._address, "it does not answer") from None
            return []
        except OSError as error:
            raise cannot_reach(self._address, error) from None
        if not data:
            raise cannot_reach(self._address, "the socket was closed")
        self._read_at = time.monotonic()
        try:
            with self._lock:
                self._protocol.receive_data(data)
                events = list(self._protocol.events())
        except ProtocolError as error:
            raise cannot_reach(self._address, error) from None
        return [text for event in events if (text := self._handle(event)) is not None]

    def _handle(self, event: Event) -> str | None:
        if isinstance(event, TextMessage):
            return self._text_of(event)
        if isinstance(event, AcceptConnection):
            self._accepted = True
        elif isinstance(event, Ping):
            self._transmit(event.response())
        elif isinstance(event, RejectConnection):
            self._status = event.status_code
            if not event.has_body:
                raise refusal(event.status_code, b"")
        elif isinstance(event, RejectData):
            raise refusal(self._status, bytes(event.data))
        elif isinstance(event, CloseConnection):
            raise cannot_reach(self._address, f"it closed: {event.reason or event.code}")
        return None

    def _text_of(self, event: TextMessage) -> str | None:
        self._parts.append(event.data)
        self._parts_chars += len(event.data)
        if self._parts_chars > TEXT_CHARS_MAX:
            raise cannot_reach(self._address, "its message has no end")
        if not event.message_finished:
            return None
        text = "".join(self._parts)
        self._parts, self._parts_chars = [], 0
        return text

    def _transmit(self, event: Event) -> None:
        try:
            with self._lock:
                data = self._protocol.send(event)
                self._write(data)
        except (OSError, ProtocolError) as error:
            raise cannot_reach(self._address, error) from None

    def _write(self, data: bytes) -> None:
        # The reader may have set a short timeout on the same socket.
        deadline = time.monotonic() + SEND_S_MAX
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise

    def interrupt(self) -> None:
        """Send a close frame, and wake whoever reads."""
        # Without it a broker takes the end for a client that is only half closed.
        with suppress(CannotReachBroker):
            self._transmit(CloseConnection(code=NORMAL))
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()
