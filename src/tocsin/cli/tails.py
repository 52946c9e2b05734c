"""What `tocsin sub` reads from: the live stream, a box, or the log up to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from tocsin.cli.durations import instant_before, seconds
from tocsin.client.asking import JSON_HEADERS, box_body, messages_target, query
from tocsin.client.incoming.lease import LEASE, Lease
from tocsin.client.incoming.live import LiveStream
from tocsin.client.incoming.sources import keep
from tocsin.client.transport.connection import Connection
from tocsin.client.transport.refusal import refusal
from tocsin.client.transport.sse import Message
from tocsin.errors import TocsinError

PAGE_EVENTS_MAX = 1_000
BOX_EVENTS_MAX = 500
BOX_WAIT_S = 5.0


class Tail(Protocol):
    """A source of events for a terminal."""

    @property
    def dropped(self) -> int:
        """How many events were gone before they could be read."""

    def read(self, deadline: float | None) -> list[Message] | None:
        """What came next, perhaps nothing yet; None when there will be no more."""

    def close(self) -> None:
        """Give everything back."""


class Page(msgspec.Struct):
    """A page of the log, or what a box handed out; events as they were written."""

    events: list[msgspec.Raw]
    sequences: list[int]
    next: int | str
    dropped: int = 0


_read_page = msgspec.json.Decoder(Page).decode


def read_page(connection: Connection, target: str, timeout_s: float | None = None) -> Page:
    """The page at an address of the broker."""
    answer = connection.request("GET", target, timeout_s=timeout_s)
    if answer.status != 200:
        raise refusal(answer.status, answer.body)
    return _read_page(answer.body)


def messages(page: Page) -> list[Message]:
    """The events of a page as a stream would have brought them."""
    pairs = zip(page.sequences, page.events, strict=True)
    return [Message("", seq, bytes(event)) for seq, event in pairs]


def place_since(duration: str, broker: str | None) -> int:
    """The place in the log from which everything received in the last `duration` follows.

    A box can begin at a time; where it then stands is the answer.
    """
    with Connection(broker) as connection:
        body = box_body("", instant_before(seconds(duration)), "PT1M")
        box = connection.request("POST", "/boxes", body=body, headers=JSON_HEADERS).value()
        connection.request("DELETE", Lease("boxes", box["id"]).path).value()
        return int(box["cursor"])


class StreamTail:
    """The live stream."""

    def __init__(
        self, text: str, after: int | None, broker: str | None, lost: Callable[[str], None]
    ) -> None:
        self._live = LiveStream(text, after, broker, lost)

    @property
    def dropped(self) -> int:
        return self._live.dropped

    def read(self, deadline: float | None) -> list[Message] | None:
        return self._live.read(deadline)

    def close(self) -> None:
        self._live.close()


class LogTail:
    """The log from `after` to where it ends now."""

    dropped = 0

    def __init__(self, text: str, after: int, broker: str | None) -> None:
        self._text = text
        self._after = after
        self._connection = Connection(broker)

    def read(self, deadline: float | None) -> list[Message] | None:
        target = "/events" + query(after=self._after, limit=PAGE_EVENTS_MAX, filter=self._text)
        page = read_page(self._connection, target)
        assert isinstance(page.next, int)
        if page.next <= self._after:
            return None
        self._after = page.next
        return messages(page)

    def close(self) -> None:
        self._connection.close()


class BoxTail:
    """A box of our own, deleted in the end."""

    def __init__(self, text: str, after: int | None, broker: str | None) -> None:
        self.dropped = 0
        self._connection = Connection(broker)
        self._ack: str | None = None
        made = self._connection.request(
            "POST", "/boxes", body=box_body(text, after, LEASE), headers=JSON_HEADERS
        )
        self._box = str(made.value()["id"])
        self._lease = Lease("boxes", self._box)

    def read(self, deadline: float | None) -> list[Message] | None:
        keep(self._lease, self._connection)
        wait_s = BOX_WAIT_S
        if deadline is not None:
            wait_s = min(wait_s, max(0.0, deadline - time.monotonic()))
        target = messages_target(
            self._box, count=BOX_EVENTS_MAX, wait_s=round(wait_s, 3), ack=self._ack
        )
        page = read_page(self._connection, target)
        self._ack = str(page.next)
        self.dropped += page.dropped
        return messages(page)

    def close(self) -> None:
        with suppress(TocsinError):
            self._connection.request("DELETE", self._lease.path)
        self._connection.close()
