"""A box at the broker that is read from, and the lease on which the broker keeps it."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from urllib.parse import quote

from tocsin.client.incoming.reconnecting_stream import RECONNECT_S_MAX
from tocsin.client.requests import JSON_HEADERS, box_body, messages_target
from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import HttpConnection
from tocsin.client.transport.retry import retry
from tocsin.client.transport.runtime import Runtime
from tocsin.client.transport.sse import Message
from tocsin.errors import CannotReachBroker, TocsinError
from tocsin.wire.api.views import EventsPage, MessagesPulled

BOX_WAIT_S = 10.0
BOX_EVENTS_MAX = 100
LEASE = "PT1H"
RENEW_AFTER_S = 1_200.0  # a third of the lease: two renewals may fail


def page_messages(page: EventsPage | MessagesPulled) -> list[Message]:
    """The events of a page as a stream would have brought them."""
    pairs = zip(page.sequences, page.events, strict=True)
    return [Message("", seq, bytes(event)) for seq, event in pairs]


class Lease:
    """A subscription or box of our own: gone an hour after its consumer, unless renewed."""

    def __init__(self, collection: str, name: str) -> None:
        self.path = f"/{collection}/{quote(name, safe='')}"
        self._due = time.monotonic() + RENEW_AFTER_S

    async def renew_if_due(self, connection: HttpConnection) -> None:
        """Renew it when it is time; a broker that cannot be reached is asked again later."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + RENEW_AFTER_S
        body = json.dumps({"expires": LEASE}).encode()
        with suppress(CannotReachBroker):
            answer = await connection.request("PATCH", self.path, body=body, headers=JSON_HEADERS)
            answer.value()


class BoxReader:
    """Reads a box. What was handed out is released when the batch after it is asked for.

    Without an id it makes a box, and deletes it in the end.
    """

    def __init__(
        self,
        runtime: Runtime,
        text: str,
        after: int | None,
        broker: str | Address | None,
        box: str | None = None,
        *,
        events_max: int = BOX_EVENTS_MAX,
        wait_s_max: float = BOX_WAIT_S,
    ) -> None:
        self.box = box
        self.dropped = 0
        self.withheld = 0
        self._text = text
        self._after = after
        self._connection = HttpConnection(runtime, broker)
        self._events_max = events_max
        self._wait_s_max = wait_s_max
        self._lease: Lease | None = None
        self._ack: str | None = None
        self._closed = False

    async def start(self) -> None:
        """Make the box, if there is none yet."""
        if self.box is None:
            body = box_body(self._text, self._after, LEASE)
            made = await self._connection.request("POST", "/boxes", body=body, headers=JSON_HEADERS)
            self.box = str(made.value()["id"])
            self._lease = Lease("boxes", self.box)

    async def read(self, deadline: float | None) -> list[Message]:
        """What came next; nothing if none came by the deadline or for a while."""
        if self._lease is not None:
            await self._lease.renew_if_due(self._connection)
        wait_s = self._wait_s_max
        if deadline is not None:
            wait_s = min(wait_s, max(0.0, deadline - time.monotonic()))
        target = self._target(self._events_max, round(wait_s, 3))
        try:
            return await retry(
                self._connection.runtime, lambda: self._fetch(target), RECONNECT_S_MAX
            )
        except TocsinError:
            if self._closed:
                return []
            raise

    async def _fetch(self, target: str) -> list[Message]:
        if self._closed:
            return []
        page = (await self._connection.request("GET", target)).read(MessagesPulled)
        self._ack = page.next
        self.dropped += page.dropped
        self.withheld += page.withheld or 0
        return page_messages(page)

    def _target(self, count: int, wait_s: float) -> str:
        assert self.box is not None
        return messages_target(self.box, count=count, wait_s=wait_s, ack=self._ack)

    async def close(self, *, finished: bool = True) -> None:
        """Delete a box of our own; of another, release what was handed out and is `finished`."""
        # On a connection of its own: somebody may be waiting on the first.
        self._closed = True
        self._connection.interrupt()
        other = HttpConnection(self._connection.runtime, self._connection.address)
        with suppress(TocsinError):
            if self._lease is not None:
                await other.request("DELETE", self._lease.path)
            elif finished and self._ack is not None:
                await other.request("GET", self._target(count=1, wait_s=0))
        other.close()
        self._connection.close()
