"""`GET /events/socket`: events out as text messages, and text messages in as events."""

from __future__ import annotations

import msgspec

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.errors import TocsinError
from tocsin.event.stored import Stored
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.services.streams.transport import SocketLimits, StreamTransport
from tocsin.services.streams.websocket import Reply, UpgradeRequest, WebSocketSession
from tocsin.wire.api.problem import problem_json
from tocsin.wire.api.stream_request import read_stream_request
from tocsin.wire.cloudevents.read import read_events

_STRUCTURED = "application/cloudevents+json"

_encode = msgspec.json.Encoder().encode


class _Publication:
    """An event that came in, until it is on disk."""

    __slots__ = ("_reply",)

    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def answer(self, result: object) -> None:
        body = problem_json(result) if isinstance(result, TocsinError) else _encode(result)
        self._reply.send(body)


class EventSocket(WebSocketSession):
    """A publisher and a subscriber of events."""

    subprotocol = "cloudevents.json"

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        limits: SocketLimits,
        transport: StreamTransport,
        request: UpgradeRequest,
        frames: FrameCache,
    ) -> None:
        super().__init__(port, session, limits, transport, request)
        self._frames = frames

    def _begin(self) -> None:
        asked = read_stream_request(self._request.query, None)
        self._stream = self._port.open_stream(
            self._session, self, asked.filter, asked.after, self.name
        )

    def _message(self, text: str) -> None:
        publication = _Publication(self._new_reply())
        try:
            events = read_events(_STRUCTURED, {}, text.encode(), self._limits.event)
        except TocsinError as error:
            self._transport.count_refused()
            publication.answer(error)
        else:
            self._port.submit(self._session, events, publication)

    def write(self, events: list[Stored]) -> bool:
        if self._is_open:
            self._transport.write(self._frames.of(events))
        return not self._transport.is_full
