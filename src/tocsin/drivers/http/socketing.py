"""`GET /events/socket`: events out as text messages, and text messages in as events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.frames import Frames
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.websocket import Answer, Socket
from tocsin.errors import TocsinError
from tocsin.event.stored import Stored
from tocsin.wire.api.problem import problem_json
from tocsin.wire.api.stream_request import read_stream_request
from tocsin.wire.cloudevents.read import read_events

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

_STRUCTURED = "application/cloudevents+json"

_encode = msgspec.json.Encoder().encode


class Publication:
    """An event that came in over a socket, until it is on disk."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def answer(self, result: object) -> None:
        body = problem_json(result) if isinstance(result, TocsinError) else _encode(result)
        self._answer.give(body)


class EventSocket(Socket):
    """One WebSocket, in both directions."""

    subprotocol = "cloudevents.json"

    def __init__(
        self, connection: Connection, request: Request, node: Node, frames: Frames
    ) -> None:
        super().__init__(connection, request, node)
        self._frames = frames

    def _begin(self) -> None:
        asked = read_stream_request(self._request.query, None)
        self._stream = self._port.open_stream(
            self._session, self, asked.filter, asked.after, self.name
        )

    def _text(self, text: str) -> None:
        publication = Publication(self._new_answer())
        door = self._connection.door
        try:
            events = read_events(_STRUCTURED, {}, text.encode(), door.event_limits)
        except TocsinError as error:
            door.unreadable += 1
            publication.answer(error)
        else:
            self._port.submit(self._session, events, publication)

    def write(self, events: list[Stored]) -> bool:
        if self._open:
            self._connection.write(self._frames.of(events))
        return not self._connection.write_paused
