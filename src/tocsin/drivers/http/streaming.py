"""`GET /events/stream`: events as server-sent events, as fast as the client reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from tocsin.drivers.http import answers
from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.frames import Frames
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.session import session_of
from tocsin.event.stored import Stored
from tocsin.wire.api.stream_request import StreamRequest, read_stream_request

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

HEARTBEAT_S: Final = 15.0  # proxies cut what is silent for 30 s and more
RETRY_MS: Final = 3_000  # when a browser should come back
WRITE_BUFFER_BYTES: Final = 256 << 10  # unread by the client, before the broker waits for it

_HEAD = (
    b"content-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-store\r\n"
    b"x-accel-buffering: no\r\n"  # nginx would hold events back
)
_encode = msgspec.json.Encoder().encode

ReadRequest = Callable[[bytes, str | None], StreamRequest]


def begin_stream(connection: Connection, head: bytes, first: bytes = b"") -> None:
    """Answer with what has no end: the head, and what is to be read first."""
    assert connection.transport is not None
    connection.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
    date = connection.door.clockwork.date
    parts = (answers.status_line(200), date, answers.SERVER, head, answers.CLOSE, b"\r\n", first)
    connection.write(b"".join(parts))


class EventStream:
    """One reader of a stream."""

    takes_over = True
    may_last = True

    def __init__(
        self,
        connection: Connection,
        request: Request,
        node: Node,
        frames: Frames,
        read: ReadRequest = read_stream_request,
    ) -> None:
        self.name = f"stream to {connection.peer}"
        self._read = read
        self._connection = connection
        self._request = request
        self._port = node.port
        self._frames = frames
        self._stream: int | None = None
        self._heartbeat_s = connection.door.now_s + HEARTBEAT_S

    # Told by the connection

    def start(self) -> None:
        request, connection = self._request, self._connection
        resumed = request.headers.get(b"last-event-id", b"").decode("latin-1") or None
        asked = self._read(request.query, resumed)
        session = session_of(connection, request.headers)
        self._stream = self._port.open_stream(session, self, asked.filter, asked.after, self.name)
        # A reader whose connection breaks before its first event must know where to go on.
        head = self._port.head
        place = head if asked.after is None else min(asked.after, head)
        begin_stream(connection, _HEAD, b"retry: %d\nid: %d\n\n" % (RETRY_MS, place))

    def received(self, data: bytes) -> None:
        """A reader of a stream has nothing to say."""

    def writable(self) -> None:
        if self._stream is not None:
            self._port.stream_ready(self._stream)

    def ended_by_client(self) -> None:
        self._close()

    def lost(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._port.close_stream(stream)

    def tick(self, now_s: float) -> float:
        if now_s >= self._heartbeat_s:
            self._connection.write(b":\n\n")
            self._heartbeat_s = now_s + HEARTBEAT_S
        return self._heartbeat_s

    def stop(self) -> None:
        self.end("the broker is stopping")

    # Told by the node

    def write(self, events: list[Stored]) -> bool:
        self._connection.write(self._frames.of(events))
        return not self._connection.write_paused

    def dropped(self, count: int) -> None:
        self._connection.write(b'event: dropped\ndata: {"dropped":%d}\n\n' % count)

    def end(self, reason: str) -> None:
        data = _encode({"reason": reason})
        self._connection.write(b"event: bye\ndata: %b\n\n" % data)
        self._close()

    def _close(self) -> None:
        self.lost()
        self._connection.close()
