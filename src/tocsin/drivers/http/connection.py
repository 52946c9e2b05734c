"""One client's connection: its requests in order, its answers in the same order, its deadlines.

Publishing happens right here. Every other request becomes an exchange, one at a time. A client that
pipelines more than its share is not read from until some of it is answered.
"""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import Final

from tocsin.drivers.http import answers
from tocsin.drivers.http.connection_limiter import PROBES
from tocsin.drivers.http.exchange import Exchange
from tocsin.drivers.http.publication import PUBLISHED, Publication, ReadEvents, joined
from tocsin.drivers.http.reader import HEAD, IDLE, RequestReader
from tocsin.drivers.http.request import Headers, Request
from tocsin.drivers.http.server import HttpServer
from tocsin.drivers.http.session import session_of
from tocsin.drivers.http.transport import EXCHANGE, NOBODY, REQUESTS, ClientTransport
from tocsin.drivers.listeners.delivery_receipts import PendingReceipts
from tocsin.errors import TocsinError
from tocsin.wire.api.problem import internal_error

# The parser cannot stop between two requests of one piece, so the pieces are small: what is parsed
# beyond `pipelined_max` is then bounded too.
SLICE_BYTES: Final = 64 << 10
LINGER_S: Final = 2.0  # for a refused client to read why, before the connection is reset


class Connection(ClientTransport):
    """The protocol of one connection. Made by the listener, which counts and times it."""

    def __init__(self, server: HttpServer) -> None:
        super().__init__(server)
        self.reader = RequestReader(self, server.limits, server.heads)
        self.in_flight: deque[Publication] = deque()
        self.queue: deque[Request] = deque()
        self.active: Exchange | None = None
        self.receipts = PendingReceipts()  # of answers that took something out of a box
        self._refusal: TocsinError | None = None  # its answer, unless it only probes
        self._pipelined_max = server.limits.pipelined_max
        self._reading_paused = False
        self._unfed = b""
        self._last = False  # no request comes after those we have
        self._final_answer = b""  # written after all answers, if the client erred
        self._half_closed = False  # nothing can be written any more
        self._is_tls = False

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        host = self._take_transport(transport)
        self.deadline_s = self.server.now_s + self.server.limits.header_deadline_s
        tls = transport.get_extra_info("ssl_object")
        self._is_tls = tls is not None
        self._refusal = self.server.admit(self, host, tls)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything: what was sent must not wait for the garbage collector."""
        self.receipts.ended(exc)
        self.transport, self.deadline_s, self._unfed = None, inf, b""
        self.queue.clear()
        self.in_flight.clear()
        self.reader.close()
        self._share.hold(0)
        self.server.forget(self)
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
        """Answer what was asked before the client closed its side, then close."""
        self._last = True
        self.receipts.peer_closed()
        if self.active is not None:
            self.active.ended_by_client()
        # TLS has no half of a connection to keep.
        return not self._is_tls and self._has_answers_to_give()

    def pause_writing(self) -> None:
        self._pause()
        self._rearm()
        self._let_read()

    def resume_writing(self) -> None:
        self.write_paused = False
        self._rearm()
        if self.active is not None:
            self.active.writable()
        self._advance()

    # Called by the reader

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
        if self._is_silent:
            self._is_silent = self.server.limiter.sent_request(self)
        self.receipts.next_request()
        if self._refusal is not None:
            if target not in PROBES:
                self.refuse(self._refusal)
                return
            keep_alive = False
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
            self._publish(PUBLISHED[target], headers, body, tail, is_plain=self.reader.is_plain)
        else:
            self.queue.append(Request(method, target, version, headers, body, keep_alive))
            self._advance()

    def expects_continue(self) -> None:
        # Behind an unfinished answer it would be taken for that one; a client sends then anyway.
        if not self._has_answers_to_give():
            self.write(answers.CONTINUE)

    def failed(self, cause: BaseException) -> None:
        self.server.note_failure("a request could not be handled", cause, peer=self.peer)
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
        """Answer with the error after all other answers, and read no more."""
        if self._reading_for != REQUESTS:
            return
        self._reading_for = NOBODY
        self._unfed = b""
        self.reader.drop()
        if not self._last:  # bytes after `Connection: close` deserve no answer
            is_head = self.reader.method == b"HEAD" and self.reader.phase != IDLE
            self._final_answer = answers.refused(
                self.server.response_heads, error, answers.CLOSE, head=is_head
            )
            self._last = True
        self._rearm()
        self._advance()

    # Requests, in their order

    def _feed(self, data: bytes) -> None:
        (reader := self.reader).feed(data)
        if reader.phase != IDLE and self._reading_for == REQUESTS:
            if reader.since_s == 0.0:
                reader.since_s = self.server.now_s
                self._rearm()
            reader.check_incomplete()
            if self._refusal is not None and reader.phase != HEAD:
                self.refuse(self._refusal)  # its body need not come first
            self._count_held()
        elif self._share.held_bytes:
            self._count_held()

    def _publish(
        self, read: ReadEvents, headers: Headers, body: bytes, tail: bytes, *, is_plain: bool
    ) -> None:
        self.in_flight.append(publication := Publication(self, tail))
        server = self.server
        try:
            if not is_plain or headers.get(b"host") not in server.guard.passed:
                server.guard.check(b"POST", headers)
            session = session_of(self, headers)
            events = read(headers, body, server.event_limits, server.limits.body_bytes_max)
        except TocsinError as error:
            server.unreadable += 1
            publication.answer(error)
            return
        server.publish(session, events, publication)

    def answered(self, publication: Publication) -> None:
        """A publication has its response; it leaves when those before it have left."""
        in_flight = self.in_flight
        if self.transport is None or in_flight[0] is not publication:
            return
        in_flight.popleft()
        response = publication.response
        assert response is not None
        if in_flight and in_flight[0].response is not None:
            response = joined(response, in_flight)
        self.transport.write(response)
        if not in_flight and self.reader.phase == IDLE and not self.write_paused:
            self.deadline_s = self.server.now_s + self.server.limits.idle_s
        if self._last or self.queue or self._unfed or self._reading_paused:
            self._advance()

    def _advance(self) -> None:
        """Take every step that is possible: start requests, parse more, send the final answer."""
        if self.reader.feeding:
            return  # the feeding call comes by here when the parser can be used again
        while self.transport is not None and (self._start_next() or self._feed_next()):
            pass
        if self.transport is not None:
            self._count_held()
        self._let_read()
        if self.transport and self._last and not self._has_answers_to_give():
            self._finish()

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
        server = self.server
        try:
            server.guard.check(request.method, request.headers)
            exchange = server.exchange(self, request)
            if exchange.is_long_lived:
                server.limiter.begin_long_lived(self, is_stream=exchange.takes_over)
            self.active = exchange
            self._active_bytes = len(request.body)
            exchange.start()
        except Exception as error:
            if not isinstance(error, TocsinError):
                server.note_failure("a request could not be handled", error, peer=self.peer)
                error = internal_error()
            self.active = None
            server.limiter.end_long_lived(self)
            heads, tail = server.response_heads, request.connection_header
            self.write(answers.refused(heads, error, tail, head=request.method == b"HEAD"))
            self._rearm()
            return
        if exchange.takes_over and self.active is exchange:
            self._reading_for = EXCHANGE
            request.body, self._active_bytes = b"", 0  # it may last for days, and has read it
            rest, self._unfed = self._unfed, b""
            if rest:
                exchange.received(rest)
        self._rearm()

    def finished(self, *, keep_alive: bool) -> None:
        """The active exchange has written its whole answer."""
        self.active = None
        self.server.limiter.end_long_lived(self)
        self._active_bytes = 0
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
            what = f"requests of {self.peer}" if self.active is None else self.active.name
            self._check_stalled(now_s, what)
        elif self._reading_for == NOBODY:
            self.abort()
        elif self._reading_for == EXCHANGE:
            self.deadline_s = inf if self.active is None else now_s + self.active.tick()
        elif self.reader.phase == IDLE:
            self.close()
        elif now_s < (until_s := self.reader.allowed_until_s(in_haste=self._in_haste)):
            # Looked at again before long: there may be less room by then.
            self.deadline_s = min(until_s, now_s + self.server.limits.body_deadline_s)
        else:
            self.refuse(self.reader.too_slow())

    def close_if_idle(self, now_s: float, idle_s: float) -> None:
        """There are many connections: make room, if this one has not been used for so long."""
        # That of one that never asked is near.
        limits, left_s = self.server.limits, self.deadline_s - now_s
        is_used = self._reading_for != REQUESTS or self.reader.phase != IDLE
        if is_used or self.write_paused or self._has_answers_to_give():
            return
        if limits.header_deadline_s < left_s <= limits.idle_s - idle_s:
            self.close()

    def _rearm(self) -> None:
        """Set the deadline that belongs to the state we are in."""
        now_s = self.server.now_s
        if self.write_paused:
            self.deadline_s = now_s + self.server.limits.stalled_reader_s
        elif self._reading_for == NOBODY:
            self.deadline_s = inf if self._has_answers_to_give() else now_s + LINGER_S
        elif self._reading_for == EXCHANGE:
            self.deadline_s = now_s
        elif self.reader.phase != IDLE:
            self.deadline_s = self.reader.allowed_until_s(in_haste=self._in_haste)
        else:
            waiting = self._has_answers_to_give()
            self.deadline_s = inf if waiting else now_s + self.server.limits.idle_s

    def _count_held(self) -> None:
        """Count what is held of what the client sent; past the budget, take no more of it."""
        held_bytes = self.reader.held_bytes + len(self._unfed) + self._active_bytes
        held_bytes += sum(len(request.body) for request in self.queue)
        if held_bytes != self._share.held_bytes and not self._share.hold(held_bytes):
            self.refuse(self._share.refuse())

    def _may_read(self) -> bool:
        waiting = len(self.in_flight) + len(self.queue)
        return waiting < self._pipelined_max and not self.write_paused

    def _let_read(self) -> None:
        """Read from the client if there is room for more requests, else let it wait."""
        if self.transport is None or self.transport.is_closing():
            return
        # A stream goes on reading: that is how it learns that the client has left.
        may_read = self._reading_for != REQUESTS or (self._may_read() and not self._unfed)
        if may_read and self._reading_paused:
            self._reading_paused = False
            if self.reader.since_s:
                self.reader.since_s = self.server.now_s  # the wait was ours, not the client's
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
        self._reading_for = NOBODY if self._reading_for == REQUESTS else self._reading_for
        self._advance()

    def _finish(self) -> None:
        """All answers are given: send the final answer and close, without cutting it off."""
        assert self.transport is not None
        if self._half_closed or not (self._final_answer or self.receipts):
            self.close()
            return
        self._reading_for = NOBODY  # but for the client's own end, which shows what it has read
        self.transport.write(self._final_answer)
        self._last = False
        self._rearm()
        if self.transport.can_write_eof():
            self._half_closed = True
            self.transport.write_eof()
        else:
            self.receipts.closing()
            self.close()  # TLS cannot be closed one way only
