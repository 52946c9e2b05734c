"""Publishing in the background: a bounded queue, and one thread that sends it in batches."""

from __future__ import annotations

from threading import Condition, Thread

from tocsin.client.batch_sender import (
    BATCH_BYTES_MAX,
    BATCH_EVENTS_MAX,
    Batch,
    BatchResults,
    BatchSender,
    Stored,
)
from tocsin.client.transport.connection import Connection
from tocsin.errors import TocsinError


class BackgroundSender:
    """Takes what is queued, as much as fits one batch, as soon as the batch before is on its way.

    If the broker cannot be reached, everything stays queued; `put` and `flush` raise, and each
    call after that makes the thread try again.
    """

    def __init__(self, connection: Connection, in_flight_max: int, patience_s: float) -> None:
        assert in_flight_max > 0
        self._in_flight_max = in_flight_max
        self._changed = Condition()
        self._queue: list[bytes] = []
        self._in_flight = 0
        self._number = 0
        self._error: TocsinError | None = None
        self._closing = False
        self._results = BatchResults()
        self._pipeline = BatchSender(connection, self._settle, patience_s=patience_s)
        self._thread = Thread(target=self._run, name="tocsin-publisher", daemon=True)
        self._thread.start()

    def put(self, event: bytes) -> None:
        """Queue an event; waits while too many are in flight."""
        with self._changed:
            self._raise_error()
            while self._in_flight >= self._in_flight_max:
                self._changed.wait()
                self._raise_error()
            self._queue.append(event)
            self._in_flight += 1
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until nothing is in flight; raises what went wrong since the last time."""
        with self._changed:
            self._error = None
            self._changed.notify_all()
            while self._in_flight and self._error is None:
                self._changed.wait()
            self._raise_error()
            self._results.raise_failures()

    def close(self) -> None:
        """Flush, and end the thread."""
        try:
            self.flush()
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            self._thread.join()

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            self._changed.notify_all()
            raise error

    def _settle(self, batch: Batch, result: Stored | TocsinError) -> None:
        with self._changed:
            self._results.settle(batch, result)
            self._in_flight -= len(batch.events)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            try:
                if batch.events:
                    self._pipeline.offer(batch)
                else:
                    self._pipeline.drain()
            except TocsinError as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()

    def _next_batch(self) -> Batch | None:
        """What to send next; empty to wait for answers; None to end."""
        with self._changed:
            while not self._closing and (self._error is not None or not self._in_flight):
                self._changed.wait()
            if self._closing:
                return None
            count = size = 0
            while count < min(len(self._queue), BATCH_EVENTS_MAX) and size < BATCH_BYTES_MAX:
                size += len(self._queue[count])
                count += 1
            events, self._queue = self._queue[:count], self._queue[count:]
            first, self._number = self._number, self._number + count
            return Batch(events, list(range(first, first + count)))
