"""The sources of `tocsin sub`: the live stream, a message box, or the log up to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tocsin.cli.durations import instant_before, seconds
from tocsin.client.incoming.box import BoxReader, Lease, page_messages
from tocsin.client.incoming.live import LiveStream
from tocsin.client.requests import JSON_HEADERS, box_body, query
from tocsin.client.transport.connection import Connection
from tocsin.client.transport.runtime import BLOCKING, run
from tocsin.client.transport.sse import Message
from tocsin.wire.api.views import EventsPage

PAGE_EVENTS_MAX = 1_000
BOX_EVENTS_MAX = 500
BOX_WAIT_S = 5.0


class EventSource(Protocol):
    """A source of events for a terminal."""

    @property
    def dropped(self) -> int:
        """How many events expired before they could be read."""

    @property
    def withheld(self) -> int:
        """How many were withheld for want of a right, as far as one may know."""

    def read(self, deadline: float | None) -> list[Message] | None:
        """What came next, perhaps nothing yet; None when there will be no more."""

    def close(self) -> None:
        """Close connections, and delete what was made on the broker."""


def position_since(duration: str, broker: str | None) -> int:
    """The position in the log after which come the events of the last `duration`.

    A box can start at a time; its cursor is the answer.
    """
    with Connection(broker) as connection:
        body = box_body("", instant_before(seconds(duration)), "PT1M")
        box = connection.request("POST", "/boxes", body=body, headers=JSON_HEADERS).value()
        connection.request("DELETE", Lease("boxes", box["id"]).path).value()
        return int(box["cursor"])


class ClientSource:
    """The live stream, or a box of our own."""

    def __init__(self, source: LiveStream | BoxReader) -> None:
        self._source = source
        run(source.start())

    @property
    def dropped(self) -> int:
        return self._source.dropped

    @property
    def withheld(self) -> int:
        return self._source.withheld

    def read(self, deadline: float | None) -> list[Message] | None:
        return run(self._source.read(deadline))

    def close(self) -> None:
        run(self._source.close())


def stream_source(
    text: str, after: int | None, broker: str | None, on_lost: Callable[[str], None]
) -> ClientSource:
    """Follow the log live."""
    return ClientSource(LiveStream(BLOCKING, text, after, broker, on_lost))


def box_source(text: str, after: int | None, broker: str | None) -> ClientSource:
    """Read a box that is made for this, and deleted in the end."""
    reader = BoxReader(
        BLOCKING, text, after, broker, events_max=BOX_EVENTS_MAX, wait_s_max=BOX_WAIT_S
    )
    return ClientSource(reader)


class LogSource:
    """The log from `after` to where it ends now."""

    dropped = withheld = 0

    def __init__(self, text: str, after: int, broker: str | None) -> None:
        self._text = text
        self._after = after
        self._connection = Connection(broker)

    def read(self, deadline: float | None) -> list[Message] | None:
        target = "/events" + query(after=self._after, limit=PAGE_EVENTS_MAX, filter=self._text)
        page = self._connection.request("GET", target).read(EventsPage)
        if page.next <= self._after:
            return None
        self._after = page.next
        return page_messages(page)

    def close(self) -> None:
        self._connection.close()
