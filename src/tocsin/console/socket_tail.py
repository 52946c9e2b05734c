"""What `tocsin sub --via ws` reads from: a WebSocket. Its messages carry no place in the log, so
a connection that breaks ends it; the stream, which resumes, is the better choice for a long watch.
"""

from __future__ import annotations

import time

from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import ProtocolError

from tocsin.client.asking import query
from tocsin.client.incoming.live import POLL_S
from tocsin.client.transport.address import broker_address
from tocsin.client.transport.connection import READ_BYTES, cannot_reach, connect
from tocsin.client.transport.refusal import refusal
from tocsin.client.transport.sse import Message

SUBPROTOCOL = "cloudevents.json"
HANDSHAKE_S_MAX = 10.0


class SocketTail:
    """Events as text messages."""

    dropped = 0

    def __init__(self, text: str, after: int | None, broker: str | None) -> None:
        self._address = broker_address(broker)
        self._socket = connect(self._address)
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._parts: list[str] = []
        self._came: list[Message] = []
        self._open = False
        self._status = 0
        target = self._address.prefix + "/events/socket" + query(filter=text, after=after)
        asked = Request(host=self._address.authority, target=target, subprotocols=[SUBPROTOCOL])
        self._socket.sendall(self._protocol.send(asked))
        deadline = time.monotonic() + HANDSHAKE_S_MAX
        while not self._open:
            self._receive(deadline)
            if time.monotonic() > deadline:
                raise cannot_reach(self._address, "it does not answer")

    def read(self, deadline: float | None) -> list[Message] | None:
        self._receive(deadline)
        came, self._came = self._came, []
        return came

    def close(self) -> None:
        self._socket.close()

    def _receive(self, deadline: float | None) -> None:
        wait_s = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
        self._socket.settimeout(max(0.001, wait_s))
        try:
            data = self._socket.recv(READ_BYTES)
            if not data:
                raise cannot_reach(self._address, "the socket was closed")
            self._protocol.receive_data(data)
            for event in self._protocol.events():
                self._handle(event)
        except TimeoutError:
            return
        except (OSError, ProtocolError) as error:
            raise cannot_reach(self._address, error) from None

    def _handle(self, event: object) -> None:
        if isinstance(event, TextMessage):
            self._parts.append(event.data)
            if event.message_finished:
                self._came.append(Message("", 0, "".join(self._parts).encode()))
                self._parts = []
        elif isinstance(event, AcceptConnection):
            self._open = True
        elif isinstance(event, Ping):
            self._socket.sendall(self._protocol.send(event.response()))
        elif isinstance(event, RejectConnection):
            self._status = event.status_code
            if not event.has_body:
                raise refusal(event.status_code, b"")
        elif isinstance(event, RejectData):
            raise refusal(self._status, event.data)
        elif isinstance(event, CloseConnection):
            raise cannot_reach(self._address, f"it closed: {event.reason or event.code}")
