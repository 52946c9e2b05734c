"""`GET /events/stream`: events as server-sent events, as fast as the client reads them."""

from __future__ import annotations

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.event.stored import Stored
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.services.streams.sse_session import SseSession
from tocsin.services.streams.transport import StreamTransport
from tocsin.wire.api.stream_request import StreamRequest
from tocsin.wire.sse import sse_event


class EventStream(SseSession):
    """One reader of the log."""

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        transport: StreamTransport,
        asked: StreamRequest,
        frames: FrameCache,
    ) -> None:
        super().__init__(f"stream to {session.peer}", port.runtime, transport)
        self._port = port
        self._session = session
        self._asked = asked
        self._frames = frames
        self._stream: int | None = None

    def start(self) -> None:
        asked, port = self._asked, self._port
        self._stream = port.open_stream(self._session, self, asked.filter, asked.after, self.name)
        self._begin(asked.position(port.head))

    def writable(self) -> None:
        if self._stream is not None:
            self._port.stream_ready(self._stream)

    def lost(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._port.close_stream(stream)

    # Called by the broker

    def write(self, events: list[Stored]) -> bool:
        self._transport.write(self._frames.of(events))
        return not self._transport.is_full

    def dropped(self, count: int) -> None:
        self._transport.write(sse_event(b'{"dropped":%d}' % count, name=b"dropped"))

    def withheld(self, count: int) -> None:
        self._transport.write(sse_event(b'{"withheld":%d}' % count, name=b"withheld"))
