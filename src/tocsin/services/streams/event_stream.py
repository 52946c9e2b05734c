"""`GET /events/stream`: events as server-sent events, as fast as the client reads them."""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.event.stored import Stored
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.services.streams.outlet import Outlet
from tocsin.wire.api.stream_request import StreamRequest

HEARTBEAT_S: Final = 15.0  # proxies cut what is silent for 30 s and more
RETRY_MS: Final = 3_000  # when a browser should come back

_encode = msgspec.json.Encoder().encode


class EventStream:
    """One reader of a stream."""

    takes_over = True
    is_long_lived = True

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        outlet: Outlet,
        asked: StreamRequest,
        frames: FrameCache,
    ) -> None:
        self.name = f"stream to {session.peer}"
        self._port = port
        self._session = session
        self._outlet = outlet
        self._asked = asked
        self._frames = frames
        self._stream: int | None = None
        self._heartbeat_due_s = 0.0

    # Called by the connection

    def start(self) -> None:
        asked, port = self._asked, self._port
        self._stream = port.open_stream(self._session, self, asked.filter, asked.after, self.name)
        place = asked.place(port.head)
        self._outlet.begin(b"retry: %d\nid: %d\n\n" % (RETRY_MS, place))
        self._heartbeat_due_s = port.runtime.elapsed_s() + HEARTBEAT_S

    def received(self, data: bytes) -> None:
        """Ignored: a reader of a stream sends nothing."""

    def writable(self) -> None:
        if self._stream is not None:
            self._port.stream_ready(self._stream)

    def ended_by_client(self) -> None:
        self._close()

    def lost(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._port.close_stream(stream)

    def tick(self) -> float:
        now_s = self._port.runtime.elapsed_s()
        if now_s >= self._heartbeat_due_s:
            self._outlet.write(b":\n\n")
            self._heartbeat_due_s = now_s + HEARTBEAT_S
        return self._heartbeat_due_s - now_s

    def stop(self) -> None:
        self.end("the broker is stopping")

    # Called by the broker

    def write(self, events: list[Stored]) -> bool:
        self._outlet.write(self._frames.of(events))
        return not self._outlet.is_full

    def dropped(self, count: int) -> None:
        self._outlet.write(b'event: dropped\ndata: {"dropped":%d}\n\n' % count)

    def end(self, reason: str) -> None:
        data = _encode({"reason": reason})
        self._outlet.write(b"event: bye\ndata: %b\n\n" % data)
        self._close()

    def _close(self) -> None:
        self.lost()
        self._outlet.close()
