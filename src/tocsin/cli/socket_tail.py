"""What `tocsin sub --via ws` reads from: a WebSocket, opened again where it was when it breaks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

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
from tocsin.client.batching import pauses_s
from tocsin.client.incoming.live import POLL_S, RECONNECT_PATIENCE_S, dropped_count
from tocsin.client.transport.address import broker_address
from tocsin.client.transport.connection import READ_BYTES, cannot_reach, connect
from tocsin.client.transport.refusal import refusal
from tocsin.client.transport.sse import Message
from tocsin.errors import CannotReachBroker

SUBPROTOCOL = "cloudevents.json"
HANDSHAKE_S_MAX = 10.0

# The broker puts it last, so that it need not be searched for in the whole event.
_PLACE = re.compile(rb',"tocsinsequence":"([0-9]+)"}$')


class SocketTail:
    """Events as text messages. `lost` is told each time the connection broke, and why."""

    def __init__(
        self, text: str, after: int | None, broker: str | None, lost: Callable[[str], None]
    ) -> None:
        self._text = text
        self._after = after
        self._broker = broker
        self._lost = lost
        self._pauses: Iterator[float] = pauses_s(RECONNECT_PATIENCE_S)
        self.dropped = 0
        self._open = OpenSocket(text, after, broker)

    def read(self, deadline: float | None) -> list[Message] | None:
        """What came next; nothing if none came by the deadline or for a while."""
        try:
            if self._open.is_closed:
                self._open = OpenSocket(self._text, self._after, self._broker)
            return self._take(self._open.read(deadline))
        except CannotReachBroker as error:
            self._open.close()
            pause_s = next(self._pauses, None)
            if pause_s is None:
                raise
            self._lost(error.problem)
            time.sleep(pause_s)
            return []

    def close(self) -> None:
        self._open.close()

    def _take(self, texts: list[bytes]) -> list[Message]:
        messages: list[Message] = []
        for text in texts:
            place = _PLACE.search(text)
            if place is None:
                self.dropped += dropped_count(text)
                continue
            seq = int(place[1])
            if seq > (self._after or 0):
                self._after = seq
                messages.append(Message("", seq, text))
        if messages:
            self._pauses = pauses_s(RECONNECT_PATIENCE_S)
        return messages


class OpenSocket:
    """One connection, until it breaks."""

    def __init__(self, text: str, after: int | None, broker: str | None) -> None:
        self._address = broker_address(broker)
        self._socket = connect(self._address)
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._parts: list[str] = []
        self._came: list[bytes] = []
        self._accepted = False
        self._status = 0
        self.is_closed = False
        target = self._address.prefix + "/events/socket" + query(filter=text, after=after)
        asked = Request(host=self._address.authority, target=target, subprotocols=[SUBPROTOCOL])
        self._socket.sendall(self._protocol.send(asked))
        deadline = time.monotonic() + HANDSHAKE_S_MAX
        while not self._accepted:
            self._receive(deadline)
            if time.monotonic() > deadline:
                raise cannot_reach(self._address, "it does not answer")

    def read(self, deadline: float | None) -> list[bytes]:
        self._receive(deadline)
        came, self._came = self._came, []
        return came

    def close(self) -> None:
        self.is_closed = True
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
                self._came.append("".join(self._parts).encode())
                self._parts = []
        elif isinstance(event, AcceptConnection):
            self._accepted = True
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
