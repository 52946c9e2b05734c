"""Connection: one HTTP/1.1 connection to a sink, one request under way, driven by callbacks."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from tocsin.broker.delivery.outcome import ANSWER_EXCERPT_BYTES

HEAD_BYTES_MAX = 64 << 10
FAMILIAR_MAX = 256  # answers remembered, of all sinks together
FAMILIAR_BYTES_MAX = 512
BODY_BYTES_MAX = 64 << 10  # nobody reads more of a webhook's answer


class Owner(Protocol):
    """Who has a request under way on a connection. One of the two is called, once per request."""

    def answered(self, status: int, head: bytes, body: bytes) -> None:
        """The sink answered. The connection is ready for the next request, or closed."""

    def broken(self, reason: str, *, stale: bool) -> None:
        """No answer can come, and the connection is closed.

        `stale`: it was idle before, and ended without a byte of answer, so the sink most likely
        hung up before it saw the request.
        """

    def lost(self) -> None:
        """The connection is closed, for whatever reason; called before the outcome is reported."""


Familiar = dict[bytes, int]
"""Whole answers that said a success and kept the connection, byte for byte, with their status.

Sinks say the same thing again and again, and to look it up costs a tenth of parsing it.
"""


class Connection(asyncio.Protocol):
    """Requests in turn. The parser calls the `on_` methods while it is fed."""

    body_bytes_max: ClassVar[int] = BODY_BYTES_MAX

    __slots__ = (
        "_answers",
        "_body",
        "_body_bytes",
        "_complete",
        "_familiar",
        "_head",
        "_head_done",
        "_keep",
        "_large",
        "_owner",
        "_parser",
        "_status",
        "_transport",
        "busy",
        "closed",
    )

    def __init__(self, owner: Owner, familiar: Familiar) -> None:
        self._owner = owner
        self._familiar = familiar
        self._parser: Any = None  # it has us, so none is made for a connection that fails
        self._transport: Any = None
        self._answers = 0
        self._head = b""
        self._head_done = False
        self._body = b""
        self._body_bytes = 0
        self._status = 0
        self._complete = False
        self._keep = True
        self._large = False
        self.busy = False
        self.closed = False

    def send(self, head: bytes, rest: bytes) -> None:
        """Write a request. Only when the one before is answered."""
        assert not self.busy
        assert not self.closed
        self.busy = True
        self._transport.write(head)
        if rest:
            self._large = True
            self._transport.write(rest)

    def close(self) -> None:
        """Hang up at once. A request that was under way is not reported."""
        self.busy = False
        self._end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._parser = HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        if not self.busy:
            self._end()  # what nobody asked for could be taken for the next request's answer
            return
        if not self._head and not self._large and (status := self._familiar.get(data)):
            self._answers += 1
            self.busy = False
            self._owner.answered(status, data, b"")
            return
        if not self._head_done:
            self._head = self._head + data if self._head else data
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._keep = False
            if not self._complete:  # else the answer was whole, and what followed it was not
                self._fail(f"the sink's answer is not HTTP: {_wrong(error)}")
                return
        if self._complete:
            if data is self._head and self._keep and 200 <= self._status < 300:
                self._remember(data)
            self._finish()
        elif self._head_done:
            if self._body_bytes > self.body_bytes_max:
                self._keep = False
                self._finish()
        elif len(self._head) > HEAD_BYTES_MAX:
            self._fail(f"the head of the sink's answer is over {HEAD_BYTES_MAX} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything: what came must not wait for the garbage collector."""
        if not self.closed:
            self._lost()
        # The parser has us, the transport and a sender as well: each would be a cycle.
        del self._parser, self._transport, self._owner

    def _lost(self) -> None:
        self.closed = True
        self._owner.lost()
        if not self.busy:
            return
        self.busy = False
        if self._head_done:
            # HTTP/1.0 ends a body so. Whether it is whole or torn, the status is the answer.
            self._owner.answered(self._status, self._head, self._body)
        elif self._head:
            self._owner.broken(
                "the sink closed the connection in the middle of its answer", stale=False
            )
        else:
            self._owner.broken(
                "the sink closed the connection without an answer", stale=self._answers > 0
            )

    def give_up_waiting(self) -> None:
        """The time is over. A status that came counts, though its body did not end."""
        if self._head_done:
            self._keep = False
            self._finish()
        else:
            began = "finish its" if self._head else "begin an"
            self._fail(f"the sink did not {began} answer in time")

    # The parser's callbacks. It has no `on_header`: nine of ten answers need none, and each would
    # cost a call; the rare ones are read from the raw head.

    def on_message_begin(self) -> None:
        if self._complete:
            self._keep = False  # a second answer to one request

    def on_headers_complete(self) -> None:
        if not self._complete:
            self._status = status = self._parser.get_status_code()
            self._head_done = status >= 200
            if status >= 600:
                self._keep = False

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if len(self._body) < ANSWER_EXCERPT_BYTES and not self._complete:
            self._body += body

    def on_message_complete(self) -> None:
        if self._head_done and not self._complete:
            self._complete = True
            if not self._parser.should_keep_alive():
                self._keep = False

    def _remember(self, answer: bytes) -> None:
        if len(answer) <= FAMILIAR_BYTES_MAX:
            if len(self._familiar) >= FAMILIAR_MAX:
                self._familiar.clear()
            self._familiar[answer] = self._status

    def _finish(self) -> None:
        status, head, body = self._status, self._head, self._body
        self._answers += 1
        self._head = b""
        self._head_done = self._complete = self.busy = False
        if self._body_bytes:
            self._body = b""
            self._body_bytes = 0
        # An answer that overtook its request leaves the rest of the request in the way.
        if not self._keep or (self._large and self._transport.get_write_buffer_size()):
            self._end()
        self._owner.answered(status, head, body)

    def _fail(self, reason: str) -> None:
        self.busy = False
        self._end()
        self._owner.broken(reason, stale=False)

    def _end(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._transport.abort()
        self._owner.lost()


def _wrong(error: Exception) -> str:
    return "it changes the protocol" if isinstance(error, HttpParserUpgrade) else str(error)
