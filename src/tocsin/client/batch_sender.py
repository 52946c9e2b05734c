"""Batches on their way to a broker, in order: each is sent when the one before is settled, and sent
again if the connection breaks. The ids of the events are fixed before, so that the broker drops
what it had stored already.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tocsin.client.event_json import BATCH_MEDIA_TYPE, EVENT_MEDIA_TYPE
from tocsin.client.transport.connection import Connection, HttpConnection
from tocsin.client.transport.refusal import Response, refusal
from tocsin.client.transport.retry import is_transient, pauses_s, retry
from tocsin.client.transport.runtime import run
from tocsin.errors import BrokerRefused, CannotReachBroker, SomeFailed, TocsinError

BATCH_EVENTS_MAX = 500
BATCH_BYTES_MAX = 1 << 20
FAILURES_KEPT_MAX = 100

# Answers that speak about one of the events, not about the broker.
_ABOUT_AN_EVENT = frozenset({400, 413, 415, 422})


class Batch(NamedTuple):
    """Events in one request, and the caller's own number for each."""

    events: list[bytes]
    numbers: list[int]


class Stored(NamedTuple):
    """What a broker says of what it stored: how many, and their places in the log."""

    accepted: int
    first: int
    last: int


Settled = Callable[[Batch, "Stored | TocsinError"], None]


def stored(response: Response) -> Stored:
    """The broker's acknowledgement; raises its refusal."""
    answer = response.value()
    if not isinstance(answer, dict) or "accepted" not in answer:
        raise refusal(response.status, response.body)
    return Stored(int(answer["accepted"]), int(answer["first"]), int(answer["last"]))


async def post_events(connection: HttpConnection, events: list[bytes], retry_s: float) -> Stored:
    """Publish structured CloudEvents in one request; sent again for `retry_s`, and stored once."""
    body, kind = _body(events)

    async def attempt() -> Stored:
        headers = [("Content-Type", kind)]
        return stored(await connection.request("POST", "/events", body=body, headers=headers))

    return await retry(connection.runtime, attempt, retry_s)


def publish_event(connection: Connection, event: bytes, retry_s: float) -> Stored:
    """Publish one structured CloudEvent; sent again for `retry_s`, and stored once."""
    return run(post_events(connection.http, [event], retry_s))


class BatchSender:
    """Calls `settled` for each batch once, in order: stored, or the error about its only event.

    One batch is under way while the caller prepares the next. Were there two, the second would be
    stored before the events of a first that is refused or put off. What `settled` raises ends it.
    """

    def __init__(self, connection: Connection, settled: Settled, *, patience_s: float) -> None:
        self._connection = connection
        self._settled = settled
        self._patience_s = patience_s
        self._answer_timeout_s: float | None = None
        self._waiting: deque[Batch] = deque()
        self._under_way = False  # the first of those that wait

    def offer(self, batch: Batch) -> None:
        """Send a batch once all before it are settled; returns without waiting for its answer."""
        self._waiting.append(batch)
        self._advance(1)

    def drain(self) -> None:
        """Wait until every batch is settled."""
        self._advance(0)

    def shorten_timeouts(self, timeout_s: float) -> None:
        """The last: settle what can be at once. An interrupt may have cut a request in two."""
        self._connection.close()
        self._under_way = False
        self._patience_s, self._answer_timeout_s = 0.0, timeout_s
        self._advance(0)

    @property
    def unsettled(self) -> int:
        """How many events may or may not be stored."""
        return sum(len(batch.events) for batch in self._waiting)

    def _advance(self, waiting_max: int) -> None:
        pauses = pauses_s(self._patience_s)
        while True:
            try:
                self._send()
                while len(self._waiting) > waiting_max:
                    self._take_answer()
                    pauses = pauses_s(self._patience_s)
                    self._send()
                return
            except (CannotReachBroker, BrokerRefused) as error:  # and not what `settled` raises
                self._connection.close()
                self._under_way = False
                if not is_transient(error):
                    raise
                pause_s = next(pauses, None)
                if pause_s is None:
                    raise
                time.sleep(pause_s)

    def _send(self) -> None:
        if self._under_way or not self._waiting:
            return
        body, kind = _body(self._waiting[0].events)
        headers = [("Content-Type", kind)]
        data = self._connection.encode("POST", "/events", body=body, headers=headers)
        self._connection.send(data, timeout_s=self._answer_timeout_s)
        self._under_way = True

    def _take_answer(self) -> None:
        response = self._connection.receive()
        batch = self._waiting[0]
        result: Stored | TocsinError
        try:
            result = stored(response)
        except BrokerRefused as refused:
            if refused.status not in _ABOUT_AN_EVENT:
                raise
            result = refused
        self._waiting.popleft()
        self._under_way = False
        if isinstance(result, TocsinError) and len(batch.events) > 1:
            # One bad event spoils its batch: halve until it stands alone and can be named.
            self._waiting.extendleft(reversed(halves(batch)))
        else:
            self._settled(batch, result)


def _body(events: list[bytes]) -> tuple[bytes, str]:
    """Events as they are sent; one alone is no batch, so that no error calls it number 0 of one."""
    if len(events) == 1:
        return events[0], EVENT_MEDIA_TYPE
    return b"[" + b",".join(events) + b"]", BATCH_MEDIA_TYPE


def halves(batch: Batch) -> list[Batch]:
    """The batch in two."""
    middle = len(batch.events) // 2
    return [
        Batch(batch.events[:middle], batch.numbers[:middle]),
        Batch(batch.events[middle:], batch.numbers[middle:]),
    ]


class BatchResults:
    """How many events were stored, and the first of those that were not."""

    def __init__(self) -> None:
        self.accepted = 0
        self.failed = 0
        self.failures: list[tuple[int, TocsinError]] = []

    def settle(self, batch: Batch, result: Stored | TocsinError) -> None:
        """Count what became of a batch."""
        if isinstance(result, Stored):
            self.accepted += result.accepted
            return
        self.failed += len(batch.events)
        if len(self.failures) < FAILURES_KEPT_MAX:
            self.failures.append((batch.numbers[0], result))

    def raise_failures(self) -> None:
        """Raises SomeFailed if something failed since the last time."""
        if not self.failed:
            return
        number, first = self.failures[0]
        failed, self.failed, self.failures = self.failed, 0, []
        raise SomeFailed(
            f"the broker refused {failed} of the events; the first, number {number}: "
            f"{first.problem}",
            remedy=first.remedy,
        )
