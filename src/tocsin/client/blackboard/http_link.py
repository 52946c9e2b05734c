"""HttpLink: a broker's blackboard over HTTP, one keep-alive connection for each side."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Unpack

import msgspec

from tocsin.client.blackboard.link import Delivered
from tocsin.client.blackboard.remote import ReconnectingSubscription, RemoteLink, delivered
from tocsin.client.incoming.reconnecting_stream import STREAM_IDLE_S
from tocsin.client.requests import JSON_HEADERS, query
from tocsin.client.transport.address import Address, broker_address
from tocsin.client.transport.connection import Connection, HttpConnection
from tocsin.client.transport.refusal import Response
from tocsin.client.transport.runtime import BLOCKING, cannot_reach, run
from tocsin.client.transport.sse import POSITION, StreamReader
from tocsin.credentials.sign_in import SignIn
from tocsin.errors import CannotReachBroker
from tocsin.wire.blackboard.messages import Profile

# A broker that takes longer counts as unreachable; its messages are kept and sent again.
PUBLISH_TIMEOUT_S = 10.0
STALE_S = 1.0
POLL_SLACK_S = 10.0
POLL_S_MAX = 60.0


class HttpLink(RemoteLink):
    """Opens a connection on first use, and again after it broke."""

    def __init__(self, broker: str | Address | None = None, **sign_in: Unpack[SignIn]) -> None:
        super().__init__(broker_address(broker, **sign_in))
        self._publishing = Connection(self.address, timeout_s=PUBLISH_TIMEOUT_S)
        self._watching = Connection(self.address)
        self._was_there = False

    def _publish(self, body: bytes) -> int:
        began = time.monotonic()
        try:
            response = self._post(body)
        except CannotReachBroker:
            if not self._was_there or time.monotonic() - began > STALE_S:
                raise
            # The broker closed an idle connection, or was started again since, which shows at once.
            # The ids make it harmless to say the same twice.
            self._was_there = False
            response = self._post(body)
        self._was_there = True
        answer = response.value()
        return int(answer["accepted"]) - int(answer.get("duplicates", 0))

    def _post(self, body: bytes) -> Response:
        return self._publishing.request(
            "POST", "/blackboard/messages", body=body, headers=JSON_HEADERS
        )

    def profile(self, *, after: int | None = None, wait_s: float = 0.0) -> Profile:
        wait_s = min(wait_s, POLL_S_MAX)
        target = "/blackboard/profile" + query(after=after, wait=wait_s if wait_s else None)
        answer = self._watching.request("GET", target, timeout_s=wait_s + POLL_SLACK_S)
        return msgspec.convert(answer.value(), Profile)

    def subscribe(self, concepts: Iterable[str], *, after: int | None = None) -> HttpSubscription:
        return HttpSubscription(self.address, tuple(concepts), after).started()

    def interrupt(self) -> None:
        self._publishing.interrupt()
        self._watching.interrupt()

    def reopened(self) -> HttpLink:
        return HttpLink(self.address)

    def close(self) -> None:
        self._publishing.close()
        self._watching.close()


class HttpSubscription(ReconnectingSubscription):
    """Reads a stream of server-sent events."""

    def __init__(self, address: Address, concepts: tuple[str, ...], after: int | None) -> None:
        super().__init__(address, concepts, after)
        self._http = HttpConnection(BLOCKING, address)
        self._reader: StreamReader | None = None  # of the stream that is open

    def _read(self, wait_s: float) -> list[Delivered]:
        if self._reader is None:
            target = "/blackboard/stream" + query(
                concepts=",".join(self._concepts), after=self._after
            )
            accept = [("Accept", "text/event-stream")]
            run(self._http.start_stream(target, headers=accept, idle_s=STREAM_IDLE_S))
            self._reader = StreamReader()
        part = run(self._http.read_stream(wait_s))
        if part is None:
            raise cannot_reach(self._address, "it ended the stream")
        came: list[Delivered] = []
        for message in self._reader.feed(part):
            # The first says where the stream begins: the broker has the subscription by then.
            self._active = True
            if message.seq or message.kind == POSITION:
                self._after = max(self._after or 0, message.seq)
            if message.kind != POSITION and (each := delivered(message.data, message.seq)):
                came.append(each)
        return came

    def _disconnect(self) -> None:
        self._reader = None
        self._http.close()

    def close(self) -> None:
        self._closed = True
        self._http.interrupt()
