"""The source of `tocsin sub --via ws`: a WebSocket, reopened at its last position."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

from tocsin.client.incoming.live import count_told
from tocsin.client.incoming.reconnecting_stream import POLL_S, RECONNECT_S_MAX
from tocsin.client.requests import query
from tocsin.client.transport.address import broker_address
from tocsin.client.transport.retry import pauses_s
from tocsin.client.transport.sse import Message
from tocsin.client.transport.websocket import WebSocket
from tocsin.errors import CannotReachBroker

SUBPROTOCOL = "cloudevents.json"

# The broker puts it last, so that it need not be searched for in the whole event.
_SEQUENCE = re.compile(r',"tocsinsequence":"([0-9]+)"}$')


class WebSocketSource:
    """Events as text messages. `on_lost` is called each time the connection broke, with why."""

    def __init__(
        self, text: str, after: int | None, broker: str | None, on_lost: Callable[[str], None]
    ) -> None:
        self._text = text
        self._after = after
        self._address = broker_address(broker)
        self._on_lost = on_lost
        self._pauses: Iterator[float] = pauses_s(RECONNECT_S_MAX)
        self.dropped = self.withheld = 0
        self._socket: WebSocket | None = self._open()

    def _open(self) -> WebSocket:
        target = "/events/socket" + query(filter=self._text, after=self._after)
        return WebSocket(self._address, target, SUBPROTOCOL)

    def read(self, deadline: float | None) -> list[Message] | None:
        """What came next; nothing if none came by the deadline or for a while."""
        wait_s = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
        try:
            if self._socket is None:
                self._socket = self._open()
            return self._take(self._socket.read(wait_s))
        except CannotReachBroker as error:
            self.close()
            pause_s = next(self._pauses, None)
            if pause_s is None:
                raise
            self._on_lost(error.problem)
            time.sleep(pause_s)
            return []

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _take(self, texts: list[str]) -> list[Message]:
        messages: list[Message] = []
        for text in texts:
            found = _SEQUENCE.search(text)
            if found is None:
                self.dropped += count_told(text.encode(), "dropped")
                self.withheld += count_told(text.encode(), "withheld")
                continue
            seq = int(found[1])
            if seq > (self._after or 0):
                self._after = seq
                messages.append(Message("", seq, text.encode()))
        if messages:
            self._pauses = pauses_s(RECONNECT_S_MAX)
        return messages
