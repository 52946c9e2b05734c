"""One publish under way: the shortest path through the server, without a coroutine or a future."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

from tocsin.broker.effects import Accepted
from tocsin.drivers.http import answers
from tocsin.drivers.http.request import Headers
from tocsin.drivers.http.server import HttpServer
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.services.blackboard.messages import message_events
from tocsin.services.publishing.content_encoding import decoded
from tocsin.services.publishing.publish import events_of
from tocsin.wire.cloudevents.limits import Limits


class Client(Protocol):
    """A connection, as its publications see it."""

    server: HttpServer

    def answered(self, publication: Publication) -> None: ...


class Publication:
    """Waits for the disk, in its place among the answers of one connection."""

    __slots__ = ("connection", "response", "tail")

    def __init__(self, connection: Client, tail: bytes) -> None:
        self.connection = connection
        self.tail = tail  # the Connection header of the answer, if it needs one
        self.response: bytes | None = None

    def answer(self, result: object) -> None:
        """What became of it: Accepted, or the error."""
        response_heads = self.connection.server.response_heads
        if type(result) is Accepted:
            self.response = answers.accepted(response_heads, result, self.tail)
        else:
            assert isinstance(result, TocsinError), result
            self.response = answers.refused(response_heads, result, self.tail, head=False)
        self.connection.answered(self)


def messages_of(headers: Headers, body: bytes, limits: Limits, bytes_max: int) -> list[Event]:
    """The messages of the blackboard that a request publishes, as events."""
    if b"content-encoding" in headers:
        body = decoded(body, headers[b"content-encoding"], bytes_max)
    return message_events(body, limits, _new_id)


def _new_id() -> str:
    return secrets.token_hex(12)


def joined(first: bytes, in_flight: deque[Publication]) -> bytes:
    """This answer, and those behind it that are ready too."""
    responses = [first]
    while in_flight and (response := in_flight[0].response) is not None:
        responses.append(response)
        in_flight.popleft()
    return b"".join(responses)


ReadEvents = Callable[[Headers, bytes, Limits, int], list[Event]]

PUBLISHED: Mapping[bytes, ReadEvents] = {
    b"/events": events_of,
    b"/blackboard/messages": messages_of,
}
"""Where one publishes by POST, and how what is sent there is read."""
