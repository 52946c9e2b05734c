"""The transports of stream sessions, and how an answer without end begins."""

from __future__ import annotations

from typing import Final

from tocsin.drivers.http import answers
from tocsin.drivers.http.connection import Connection

WRITE_BUFFER_BYTES: Final = 256 << 10  # unread by the client, before the broker waits for it

EVENT_STREAM: Final = (
    b"content-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-store\r\n"
    b"x-accel-buffering: no\r\n"  # nginx would hold events back
)


def begin_stream(connection: Connection, head: bytes, first: bytes = b"") -> None:
    """Answer with what has no end: the head, and what is to be read first."""
    date = connection.server.response_heads.date
    parts = (answers.status_line(200), date, answers.SERVER, head, answers.CLOSE, b"\r\n", first)
    _begin(connection, b"".join(parts))


def _begin(connection: Connection, first: bytes) -> None:
    assert connection.transport is not None
    connection.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
    connection.write(first)


class SocketTransport:
    """The transport of a WebSocket session, which answers the handshake itself."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def is_full(self) -> bool:
        return self._connection.write_paused

    def begin(self, first: bytes) -> None:
        _begin(self._connection, first)

    def write(self, data: bytes) -> None:
        self._connection.write(data)

    def close(self) -> None:
        self._connection.close()

    def abort(self) -> None:
        self._connection.abort()

    def pause_reading(self) -> None:
        transport = self._connection.transport
        if transport is not None and not transport.is_closing():
            transport.pause_reading()

    def resume_reading(self) -> None:
        transport = self._connection.transport
        if transport is not None and not transport.is_closing():
            transport.resume_reading()

    def hold(self, size: int) -> bool:
        return self._connection.hold(size)

    def count_refused(self) -> None:
        self._connection.server.unreadable += 1


class EventStreamTransport(SocketTransport):
    """The transport of a stream of server-sent events."""

    __slots__ = ()

    def begin(self, first: bytes) -> None:
        begin_stream(self._connection, EVENT_STREAM, first)
