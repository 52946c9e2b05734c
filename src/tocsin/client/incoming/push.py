"""Pushed events: the listener that a consumer brings along, and its subscription at the broker."""

from __future__ import annotations

import json
import time
from contextlib import suppress

from tocsin.client.event_json import BATCH_MEDIA_TYPE, EVENT_MEDIA_TYPE
from tocsin.client.incoming.box import LEASE, Lease
from tocsin.client.incoming.consumed_event import (
    ConsumedEvent,
    from_binary,
    from_members,
    from_structured,
)
from tocsin.client.incoming.reconnecting_stream import POLL_S
from tocsin.client.requests import JSON_HEADERS, subscription_body
from tocsin.client.transport.address import Address
from tocsin.client.transport.arrivals import ArrivalQueue, Taken
from tocsin.client.transport.connection import HttpConnection
from tocsin.client.transport.http_listener import RETRY_SOON, HttpAnswer, HttpListener
from tocsin.client.transport.runtime import Runtime
from tocsin.errors import BadEvent, TocsinError

CONNECTIONS_MAX = 16


class Listener:
    """Answers a pushed event with 204 once it was taken from `arrivals`."""

    def __init__(self, host: str, port: int) -> None:
        self.arrivals: ArrivalQueue[ConsumedEvent] = ArrivalQueue()
        self._http = HttpListener(host, port, self._answer, connections_max=CONNECTIONS_MAX)
        self.port = self._http.port

    def close(self) -> None:
        """Stop listening, close every connection and end the threads."""
        self.arrivals.close()
        self._http.close()

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> HttpAnswer:
        if method == "OPTIONS":
            return _handshake_answer(headers)
        if method != "POST":
            return HttpAnswer(405, headers=(("Allow", "POST, OPTIONS"),))
        try:
            events = pushed_events(headers, body)
        except TocsinError:
            return HttpAnswer(400)
        if self.arrivals.deliver(events) is not Taken.YES:
            return HttpAnswer(503, headers=RETRY_SOON)
        return HttpAnswer(204)


def pushed_events(headers: dict[str, str], body: bytes) -> list[ConsumedEvent]:
    """The events in a pushed request, whichever of the three modes it is in."""
    essence = headers.get("content-type", "").partition(";")[0].strip().lower()
    if essence == BATCH_MEDIA_TYPE:
        try:
            batch = json.loads(body)
        except ValueError:
            batch = None
        if not isinstance(batch, list) or not all(isinstance(event, dict) for event in batch):
            raise BadEvent("the batch is not a JSON array of events", remedy="Send one.")
        return [from_members(members, b"") for members in batch]
    if essence == EVENT_MEDIA_TYPE:
        seq = headers.get("tocsin-sequence", "")
        return [from_structured(body, int(seq) if seq.isdecimal() else 0)]
    if "ce-id" not in headers:
        raise BadEvent("the request is not a CloudEvent", remedy="Send one.")
    return [from_binary(headers, body)]


def _handshake_answer(headers: dict[str, str]) -> HttpAnswer:
    """Yes to a broker that asks whether events are wanted here (CloudEvents abuse protection)."""
    allowed = (
        ("WebHook-Allowed-Origin", headers.get("webhook-request-origin", "*")),
        ("WebHook-Allowed-Rate", "*"),
        ("Allow", "POST, OPTIONS"),
    )
    return HttpAnswer(200, headers=allowed)


class PushReceiver:
    """A listener of our own, and the subscription by which the broker sends to it."""

    def __init__(
        self,
        runtime: Runtime,
        text: str,
        after: int | None,
        broker: str | Address | None,
        listen: str,
    ) -> None:
        host, _, port = listen.rpartition(":")
        self._host, self._port = host or "127.0.0.1", int(port)
        self._text = text
        self._after = after
        self._connection = HttpConnection(runtime, broker)
        self._listener: Listener | None = None
        self._lease: Lease | None = None

    async def start(self) -> None:
        """Listen, and subscribe; once is enough."""
        if self._lease is not None:
            return
        self._listener = Listener(self._host, self._port)
        sink = f"http://{self._host}:{self._listener.port}/"
        body = subscription_body(sink, self._text, self._after, LEASE)
        try:
            made = await self._connection.request(
                "POST", "/subscriptions", body=body, headers=JSON_HEADERS
            )
            self._lease = Lease("subscriptions", str(made.value()["id"]))
        except BaseException:
            await self.close()
            raise

    async def read(self, deadline: float | None) -> list[ConsumedEvent]:
        """The next event; nothing if none came by the deadline or for a while."""
        assert self._lease is not None
        assert self._listener is not None
        await self._lease.renew_if_due(self._connection)
        wait_s = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
        event = await self._connection.runtime.take(self._listener.arrivals, max(0.001, wait_s))
        return [] if event is None else [event]

    async def close(self, *, finished: bool = True) -> None:
        """Unsubscribe, and stop listening."""
        runtime = self._connection.runtime
        if self._lease is not None:
            # On a connection of its own: somebody may be waiting on the first.
            other = HttpConnection(runtime, self._connection.address)
            with suppress(TocsinError):
                await other.request("DELETE", self._lease.path)
            other.close()
        self._connection.close()
        if self._listener is not None:
            await runtime.call(self._listener.close)
