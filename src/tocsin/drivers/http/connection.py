"""One client's connection: its requests in order, its answers in the same order, its deadlines.

Publishing happens right here. Every other request becomes an exchange, one at a time. A client that
pipelines more than its share is not read from until some of it is answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import Final

from tocsin.broker.effects import Accepted
from tocsin.drivers.http import answers
from tocsin.drivers.http.door import Door
from tocsin.drivers.http.exchange import Exchange
from tocsin.drivers.http.publication import PUBLISHED, Publication, ReadEvents
from tocsin.drivers.http.reader import IDLE, RequestReader
from tocsin.drivers.http.request import Headers, Request
from tocsin.errors import TocsinError
from tocsin.wire.api.problem import internal_error

# What the bytes that come in are for.
REQUESTS: Final = 0
EXCHANGE: Final = 1  # one that keeps the connection: a stream or a socket
NOBODY: Final = 2  # the last word is said, or will be; what still comes is thrown away

# The parser cannot stop between two requests of one piece, so the pieces are small: what is parsed
# beyond `pipelined_max` is then bounded too.
SLICE_BYTES: Final = 64 << 10
LINGER_S: Final = 2.0  # for a refused client to read why, before the connection is reset


class Connection(asyncio.Protocol):
    """The protocol of one connection. Made by the door, which counts and times it."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.reader = RequestReader(self, door.limits, door.heads)
        self.transport: asyncio.Transport | None = None
        self.peer = ""
        self.deadline_s = inf
        self.in_flight: deque[Publication] = deque()
        self.queue: deque[Request] = deque()
        self.active: Exchange | None = None
        self.write_paused = False
        self._pipelined_max = door.limits.pipelined_max
        self._reading_for: int = REQUESTS
        self._reading_paused = False
        self._unfed = b""
        self._stalled_bytes = 0
        self._last = False  # no request comes after those we have
        self._last_word = b""  # written after all answers, if the client erred

    # Told by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's is no asyncio.Transport
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "?"
        self.deadline_s = self.door.now_s + self.door.limits.header_deadline_s
        if not self.door.admit(self):
            self._reading_for = NOBODY
            self.write(answers.crowded(self.door.clockwork))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.deadline_s = inf
        self._unfed = b""
        self.queue.clear()
        self.door.forget(self)
        if self.active is not None:
            self.active.lost()
            self.active = None

    def data_received(self, data: bytes) -> None:
        if self._reading_for == EXCHANGE:
            if self.active is not None:
                self.active.received(data)
        elif self._reading_for == REQUESTS:
            if self._unfed or self._reading_paused or len(data) > SLICE_BYTES:
                self._unfed += data
                self._advance()
            else:
                self._feed(data)
                if self._last or self.queue or len(self.in_flight) >= self._pipelined_max:
                    self._advance()

    def eof_received(self) -> bool:
        """Answer what was asked before the client said its last word, then close."""
        self._last = True
        if self.active is not None:
            self.active.ended_by_client()
        return self._has_answers_to_give()

    def pause_writing(self) -> None:
        self.write_paused = True
        if self.transport is not None:
            self._stalled_bytes = self.transport.get_write_buffer_size()
        self._rearm()
        self._let_read()

    def resume_writing(self) -> None:
        self.write_paused = False
        self._rearm()
        if self.active is not None:
            self.active.writable()
        self._advance()

    # Told by the reader

    def requested(
        self,
        method: bytes,
        target: bytes,
        version: str,
        headers: Headers,
        body: bytes,
        keep_alive: bool,
    ) -> None:
        """Publish at once if nothing but publishing is before it; else it waits for its turn."""
        self.deadline_s = inf
        if not keep_alive:
            self._last = True
        if (
            target in PUBLISHED
            and method == b"POST"
            and self.active is None
            and not self.queue
            and self._reading_for == REQUESTS
        ):
            tail = answers.connection_header(version, keep_alive=keep_alive)
            read = PUBLISHED[target]
            self._publish(read, headers, body, tail, is_plain=self.reader.is_plain)
        else:
            self.queue.append(Request(method, target, version, headers, body, keep_alive))
            self._advance()

    def expects_continue(self) -> None:
        # Behind an unfinished answer it would be taken for that answer. Then the client just waits
        # a moment before it sends the body unasked, as RFC 9110 has it.
        if not self._has_answers_to_give():
            self.write(answers.CONTINUE)

    def failed(self, cause: BaseException) -> None:
        self.door.note_failure("a request could not be handled", cause, peer=self.peer)
        self.refuse(internal_error())

    def upgraded(self, rest: bytes) -> None:
        """If no exchange took the connection, the request was or will be answered as plain HTTP."""
        self._last = True
        if self._reading_for == EXCHANGE:
            if rest:
                self.data_received(rest)
        elif self.queue:
            self._unfed = rest + self._unfed  # for the exchange, when it is its turn
            self._reading_for = NOBODY

    def refuse(self, error: TocsinError) -> None:
        """Answer with the error after all other answers, and hear no more."""
        if self._reading_for != REQUESTS:
            return
        self._reading_for = NOBODY
        self._unfed = b""
        if not self._last:  # bytes after `Connection: close` deserve no answer
            is_head = self.reader.method == b"HEAD" and self.reader.phase != IDLE
            self._last_word = answers.refused(
                self.door.clockwork, error, answers.CLOSE, head=is_head
            )
            self._last = True
        self._rearm()
        self._advance()

    # Requests, in their order

    def _feed(self, data: bytes) -> None:
        (reader := self.reader).feed(data)
        if reader.phase != IDLE and self._reading_for == REQUESTS:
            if reader.since_s == 0.0:
                reader.since_s = self.door.now_s
                self._rearm()
            reader.check_incomplete()

    def _publish(
        self, read: ReadEvents, headers: Headers, body: bytes, tail: bytes, *, is_plain: bool
    ) -> None:
        self.in_flight.append(publication := Publication(self, tail))
        door = self.door
        try:
            if not is_plain or headers.get(b"host") not in door.guard.passed:
                door.guard.check(b"POST", headers)
            events = read(headers, body, door.event_limits, door.limits.body_bytes_max)
        except TocsinError as error:
            door.unreadable += 1
            publication.answer(error)
            return
        if events:
            door.publish(events, publication)
        else:
            publication.answer(Accepted(0, 0, 0))

    def answered(self, publication: Publication) -> None:
        """A publication has its response; it leaves when those before it have left."""
        in_flight = self.in_flight
        if self.transport is None or in_flight[0] is not publication:
            return
        in_flight.popleft()
        response = publication.response
        assert response is not None
        if in_flight and in_flight[0].response is not None:
            response = self._joined(response)
        self.transport.write(response)
        if not in_flight and self.reader.phase == IDLE and not self.write_paused:
            self.deadline_s = self.door.now_s + self.door.limits.idle_s
        if self._last or self.queue or self._unfed or self._reading_paused:
            self._advance()

    def _joined(self, first: bytes) -> bytes:
        responses = [first]
        while self.in_flight and (response := self.in_flight[0].response) is not None:
            responses.append(response)
            self.in_flight.popleft()
        return b"".join(responses)

    def _advance(self) -> None:
        """Take every step that is possible: start requests, parse more, say the last word."""
        if self.reader.feeding:
            return  # whoever feeds comes by here when the parser can be used again
        while self.transport is not None and (self._start_next() or self._feed_next()):
            pass
        self._let_read()
        if self._last and not self._has_answers_to_give():
            self._part()

    def _start_next(self) -> bool:
        if not self.queue or self.active is not None:
            return False
        request = self.queue[0]
        if request.target in PUBLISHED and request.method == b"POST":
            self.queue.popleft()
            read, tail = PUBLISHED[request.target], request.connection_header
            self._publish(read, request.headers, request.body, tail, is_plain=False)
            return True
        if self.in_flight:
            return False
        self.queue.popleft()
        self._begin(request)
        return True

    def _feed_next(self) -> bool:
        if not self._unfed or self._reading_for != REQUESTS or not self._may_read():
            return False
        piece, self._unfed = self._unfed[:SLICE_BYTES], self._unfed[SLICE_BYTES:]
        self._feed(piece)
        return True

    def _begin(self, request: Request) -> None:
        door = self.door
        try:
            door.guard.check(request.method, request.headers)
            exchange = door.exchange(self, request)
            self.active = exchange
            exchange.start()
        except Exception as error:
            if not isinstance(error, TocsinError):
                door.note_failure("a request could not be handled", error, peer=self.peer)
                error = internal_error()
            self.active = None
            is_head = request.method == b"HEAD"
            self.write(
                answers.refused(door.clockwork, error, request.connection_header, head=is_head)
            )
            self._rearm()
            return
        if exchange.takes_over and self.active is exchange:
            self._reading_for = EXCHANGE
            rest, self._unfed = self._unfed, b""
            if rest:
                exchange.received(rest)
        self._rearm()

    def finished(self, *, keep_alive: bool) -> None:
        """The active exchange has written its whole answer."""
        self.active = None
        if not keep_alive:
            self._last = True
            self._unfed = b""
            self.queue.clear()
        self._rearm()
        self._advance()

    # Deadlines and room

    def deadline_passed(self, now_s: float) -> None:
        """The sweep found the deadline behind it."""
        if self.write_paused:
            self._check_stalled(now_s)
        elif self._reading_for == NOBODY:
            self.abort()
        elif self._reading_for == EXCHANGE:
            self.deadline_s = inf if self.active is None else self.active.tick(now_s)
        elif self.reader.phase == IDLE:
            self.close()
        elif now_s < self.reader.allowed_until_s():
            self.deadline_s = self.reader.allowed_until_s()
        else:
            self.refuse(self.reader.too_slow())

    def _check_stalled(self, now_s: float) -> None:
        assert self.transport is not None
        unread_bytes = self.transport.get_write_buffer_size()
        if unread_bytes < self._stalled_bytes:
            self._stalled_bytes = unread_bytes
            self.deadline_s = now_s + self.door.limits.stalled_reader_s
            return
        message = "a client took nothing for too long and was disconnected"
        what = f"requests of {self.peer}" if self.active is None else self.active.name
        self.door.note("warning", message, client=what, unread_bytes=unread_bytes)
        self.abort()

    def _rearm(self) -> None:
        """Set the deadline that belongs to the state we are in."""
        now_s = self.door.now_s
        if self.write_paused:
            self.deadline_s = now_s + self.door.limits.stalled_reader_s
        elif self._reading_for == NOBODY:
            self.deadline_s = inf if self._has_answers_to_give() else now_s + LINGER_S
        elif self._reading_for == EXCHANGE:
            self.deadline_s = now_s
        elif self.reader.phase != IDLE:
            self.deadline_s = self.reader.allowed_until_s()
        else:
            waiting = self._has_answers_to_give()
            self.deadline_s = inf if waiting else now_s + self.door.limits.idle_s

    def _may_read(self) -> bool:
        waiting = len(self.in_flight) + len(self.queue)
        return waiting < self._pipelined_max and not self.write_paused

    def _let_read(self) -> None:
        """Read from the client if there is room for more requests, else let it wait."""
        if self.transport is None or self.transport.is_closing():
            return
        # Whoever streams goes on reading: that is how it learns that the client has left.
        may_read = self._reading_for != REQUESTS or (self._may_read() and not self._unfed)
        if may_read and self._reading_paused:
            self._reading_paused = False
            if self.reader.since_s:
                self.reader.since_s = self.door.now_s  # the wait was ours, not the client's
            self.transport.resume_reading()
        elif not may_read and not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def _has_answers_to_give(self) -> bool:
        return bool(self.in_flight or self.queue or self.active is not None)

    # Ends

    def stop(self) -> None:
        """The broker is stopping: give the answers that are owed, then close."""
        self._last = True
        self._unfed = b""
        if self.active is not None:
            self.active.stop()
        if self._reading_for == REQUESTS:
            self._reading_for = NOBODY
        self._advance()

    def _part(self) -> None:
        """All answers are given: say the last word and close, without cutting that word off."""
        if self.transport is None:
            return
        if not self._last_word:
            self.close()
            return
        self.transport.write(self._last_word)
        self._last = False
        self._rearm()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.close()  # TLS cannot be closed one way only

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def close(self) -> None:
        """Close once everything is written, unless the client takes too long to read it."""
        if self.transport is not None:
            self._reading_for = NOBODY
            self.deadline_s = self.door.now_s + self.door.limits.stalled_reader_s
            self.transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
