"""Where a consumer's events come from: the live stream, a box, or a listener of our own."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import suppress
from typing import Any, Protocol

from tocsin.client.asking import (
    JSON_HEADERS,
    box_body,
    messages_target,
    subscription_body,
)
from tocsin.client.batching import pauses_s
from tocsin.client.incoming.consumed import ConsumedEvent, from_members, from_structured
from tocsin.client.incoming.lease import LEASE, Lease
from tocsin.client.incoming.listener import Listener
from tocsin.client.incoming.live import POLL_S, RECONNECT_PATIENCE_S, LiveStream
from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import Connection
from tocsin.errors import CannotReachBroker, TocsinError

BOX_WAIT_S = 10.0
BOX_EVENTS_MAX = 100


class Source(Protocol):
    """One way for events to come."""

    def next(self, deadline: float | None) -> ConsumedEvent | None:
        """The next event, or None if none came by the deadline or for a while."""

    def close(self, *, finished: bool) -> None:
        """Give everything back; with `finished`, what was handed out counts as done."""


class StreamSource:
    """The live stream."""

    def __init__(self, text: str, after: int | None, broker: str | Address | None) -> None:
        self._live = LiveStream(text, after, broker)
        self._ready: deque[ConsumedEvent] = deque()

    def next(self, deadline: float | None) -> ConsumedEvent | None:
        if not self._ready:
            came = self._live.read(deadline)
            self._ready.extend(from_structured(message.data, message.seq) for message in came)
        return self._ready.popleft() if self._ready else None

    def close(self, *, finished: bool) -> None:
        self._live.close()


def keep(lease: Lease | None, connection: Connection) -> None:
    """Renew what is ours when it is time; a broker that is away is asked again later."""
    if lease is not None and lease.is_due():
        with suppress(CannotReachBroker):
            connection.request(
                "PATCH", lease.path, body=lease.renewal, headers=JSON_HEADERS
            ).value()


class BoxSource:
    """A box at the broker. What was handed out is released when the batch after it is asked for."""

    def __init__(
        self, text: str, after: int | None, broker: str | Address | None, box: str | None
    ) -> None:
        self._connection = Connection(broker)
        self._lease: Lease | None = None
        self._closed = False
        self._ack: str | None = None
        self._ready: deque[ConsumedEvent] = deque()
        self.dropped = 0
        if box is None:
            made = self._connection.request(
                "POST", "/boxes", body=box_body(text, after, LEASE), headers=JSON_HEADERS
            ).value()
            box = str(made["id"])
            self._lease = Lease("boxes", box)
        self.box = box

    def next(self, deadline: float | None) -> ConsumedEvent | None:
        if not self._ready:
            self._pull(deadline)
        return self._ready.popleft() if self._ready else None

    def close(self, *, finished: bool) -> None:
        # On a connection of its own: another thread may be waiting on the first.
        self._closed = True
        self._connection.interrupt()
        with suppress(TocsinError), Connection(self._connection.address) as connection:
            if self._lease is not None:
                connection.request("DELETE", self._lease.path)
            elif finished and self._ack is not None and not self._ready:
                connection.request("GET", self._target(count=1, wait_s=0))
        self._connection.close()

    def _pull(self, deadline: float | None) -> None:
        keep(self._lease, self._connection)
        wait_s = BOX_WAIT_S
        if deadline is not None:
            wait_s = min(wait_s, max(0.0, deadline - time.monotonic()))
        answer = self._ask(count=BOX_EVENTS_MAX, wait_s=round(wait_s, 3))
        if answer is None:
            return
        self._ack = answer["next"]
        self.dropped += int(answer.get("dropped", 0))
        self._ready.extend(
            from_members(members, json.dumps(members).encode(), seq)
            for seq, members in zip(answer["sequences"], answer["events"], strict=True)
        )

    def _ask(self, *, count: int, wait_s: float) -> dict[str, Any] | None:
        """What is in the box; None if it was closed meanwhile."""
        pauses = pauses_s(RECONNECT_PATIENCE_S)
        while True:
            try:
                target = self._target(count=count, wait_s=wait_s)
                answer: dict[str, Any] = self._connection.request("GET", target).value()
                return answer
            except TocsinError as error:
                if self._closed:
                    return None
                pause_s = next(pauses, None)
                if pause_s is None or not isinstance(error, CannotReachBroker):
                    raise
                time.sleep(pause_s)

    def _target(self, *, count: int, wait_s: float) -> str:
        return messages_target(self.box, count=count, wait_s=wait_s, ack=self._ack)


class PushSource:
    """A listener of our own that the broker sends to."""

    def __init__(
        self, text: str, after: int | None, broker: str | Address | None, listen: str
    ) -> None:
        host, _, port = listen.rpartition(":")
        self._listener = Listener(host or "127.0.0.1", int(port))
        self._connection = Connection(broker)
        sink = f"http://{host or '127.0.0.1'}:{self._listener.port}/"
        try:
            made = self._connection.request(
                "POST",
                "/subscriptions",
                body=subscription_body(sink, text, after, LEASE),
                headers=JSON_HEADERS,
            ).value()
        except TocsinError:
            self._listener.close()
            self._connection.close()
            raise
        self.subscription = str(made["id"])
        self._lease = Lease("subscriptions", self.subscription)

    def next(self, deadline: float | None) -> ConsumedEvent | None:
        keep(self._lease, self._connection)
        wait_s = POLL_S if deadline is None else min(POLL_S, deadline - time.monotonic())
        return self._listener.take(max(0.001, wait_s))

    def close(self, *, finished: bool) -> None:
        with suppress(TocsinError), Connection(self._connection.address) as connection:
            connection.request("DELETE", self._lease.path)
        self._connection.close()
        self._listener.close()
