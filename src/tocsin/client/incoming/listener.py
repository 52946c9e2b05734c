"""The listener that a pushed consumer brings along: a few threads, a bounded queue."""

from __future__ import annotations

import queue
import socket
from contextlib import suppress
from threading import BoundedSemaphore, Event, Lock, Thread

from tocsin.client.incoming.consumed import ConsumedEvent
from tocsin.client.incoming.pushed import (
    BAD,
    BAD_METHOD,
    CONNECTIONS_MAX,
    NOT_TAKEN,
    QUEUE_EVENTS_MAX,
    REQUEST_BYTES_MAX,
    TAKEN,
    TAKEN_WAIT_S,
    TOO_LARGE,
    handshake_answer,
    pushed_events,
)
from tocsin.client.transport.http1 import MessageReader
from tocsin.errors import TocsinError

READ_BYTES = 64 * 1024
ACCEPT_POLL_S = 0.2
IDLE_S = 120.0


class Arrival:
    """An event that waits to be taken; void once its sender was told to come again."""

    __slots__ = ("event", "taken", "void")

    def __init__(self, event: ConsumedEvent) -> None:
        self.event = event
        self.taken = Event()
        self.void = False


class Listener:
    """Answers a pushed event with 204 once `take` has handed it out."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port))
        self._socket.settimeout(ACCEPT_POLL_S)
        self.port: int = self._socket.getsockname()[1]
        self._arrivals: queue.Queue[Arrival] = queue.Queue(QUEUE_EVENTS_MAX)
        self._lock = Lock()
        self._closing = Event()
        self._room = BoundedSemaphore(CONNECTIONS_MAX)
        self._open: set[socket.socket] = set()
        self._threads: list[Thread] = []
        self._acceptor = Thread(target=self._accept, name="tocsin-listener", daemon=True)
        self._acceptor.start()

    def take(self, timeout_s: float) -> ConsumedEvent | None:
        """The next event; None if none came in time."""
        try:
            arrival = self._arrivals.get(timeout=timeout_s)
        except queue.Empty:
            return None
        with self._lock:
            if arrival.void:
                return None
            arrival.taken.set()
        return arrival.event

    def close(self) -> None:
        """Stop listening, close every connection and end the threads."""
        self._closing.set()
        self._acceptor.join()
        self._socket.close()
        with self._lock:
            waiting = list(self._open)
        for opened in waiting:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                opened, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            if not self._room.acquire(blocking=False):
                opened.close()
                continue
            with self._lock:
                self._open.add(opened)
            thread = Thread(target=self._serve, args=(opened,), daemon=True)
            self._threads = [other for other in self._threads if other.is_alive()]
            self._threads.append(thread)
            thread.start()

    def _serve(self, opened: socket.socket) -> None:
        try:
            opened.settimeout(IDLE_S)
            rest = b""
            while not self._closing.is_set():
                reader = MessageReader(response=False)
                body = self._read(opened, reader, rest)
                if body is None:
                    return
                opened.sendall(self._answer(reader, body))
                rest = reader.rest
        except OSError:
            return
        except TocsinError:
            with suppress(OSError):
                opened.sendall(BAD)
        finally:
            with self._lock:
                self._open.discard(opened)
            opened.close()
            self._room.release()

    def _read(self, opened: socket.socket, reader: MessageReader, rest: bytes) -> bytes | None:
        """The body of the next request; None if the sender has gone or goes on too long."""
        body = [reader.feed(rest)] if rest else []
        while not reader.complete:
            data = opened.recv(READ_BYTES)
            if not data:
                return None
            body.append(reader.feed(data))
            if sum(map(len, body)) > REQUEST_BYTES_MAX:
                opened.sendall(TOO_LARGE)
                return None
        return b"".join(body)

    def _answer(self, reader: MessageReader, body: bytes) -> bytes:
        method = reader.start_line.partition(" ")[0]
        if method == "OPTIONS":
            return handshake_answer(reader.headers)
        if method != "POST":
            return BAD_METHOD
        arrivals = [Arrival(event) for event in pushed_events(reader.headers, body)]
        return TAKEN if self._hand_over(arrivals) else NOT_TAKEN

    def _hand_over(self, arrivals: list[Arrival]) -> bool:
        """True once all were taken; otherwise none of the rest will be."""
        try:
            for arrival in arrivals:
                self._arrivals.put(arrival, timeout=TAKEN_WAIT_S)
            if arrivals and not self._taken(arrivals[-1]):
                raise queue.Full
        except queue.Full:
            with self._lock:
                if arrivals[-1].taken.is_set():
                    return True
                for arrival in arrivals:
                    arrival.void = True
            return False
        return True

    def _taken(self, last: Arrival) -> bool:
        for _ in range(int(TAKEN_WAIT_S / ACCEPT_POLL_S)):
            if last.taken.wait(ACCEPT_POLL_S):
                return True
            if self._closing.is_set():
                return False
        return False
