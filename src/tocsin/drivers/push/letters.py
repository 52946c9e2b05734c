"""Letters: single POSTs to other services, whose answers are read whole.

They go out by the same guard, TLS settings and number of connections as pushes do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from tocsin import __version__
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.delivery.trust import Sink, parse_sink
from tocsin.broker.runtime import HttpAnswer
from tocsin.drivers.push.answer import fields
from tocsin.drivers.push.connection import Connection
from tocsin.drivers.push.envelope_line import EnvelopeLine
from tocsin.drivers.push.line import Exchange, Line
from tocsin.errors import BadRequest, Busy, PeerFailed, ShuttingDown
from tocsin.wire.dime import envelope_message

ANSWER_BYTES_MAX = 1 << 20
LETTERS_MAX = 64  # under way at once
LETTERS_WAITING_MAX = 10_000  # the same as handshakes
TIMEOUT_S = 10.0

OURS = frozenset({"host", "user-agent", "connection", "content-length", "transfer-encoding"})


class Letters:
    """Writes to anybody by HTTP, once each. Everything happens on the loop."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._turns = asyncio.Semaphore(LETTERS_MAX)
        self._waiting = 0
        self._closed = False
        self._under_way: set[asyncio.Future[HttpAnswer]] = set()

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
    ) -> HttpAnswer:
        """POST once and give the answer, also one that refuses; redirects are not followed.

        To a soap.tcp address the body goes in a DIME message, and the answer is 202 once it is
        taken: what the peer has to say comes by another way, if at all.

        Raises BadSubscription if the URL is none, SinkRefused if nothing may be sent there, Busy
        if too many letters wait, PeerFailed if no whole answer comes in time.
        """
        sink = parse_sink(url, soap_tcp=True)
        request = _request(sink, body, headers)
        if self._waiting >= LETTERS_WAITING_MAX:
            raise Busy(
                f"{self._waiting} messages are waiting to be sent", remedy="Try again later."
            )
        self._waiting += 1
        try:
            async with asyncio.timeout(timeout_s), self._turns:
                return await self._send(url, sink, request, timeout_s)
        except TimeoutError:
            raise _failed(url, f"no whole answer within {timeout_s:g} s") from None
        finally:
            self._waiting -= 1

    async def _send(
        self, url: str, sink: Sink, request: tuple[bytes, bytes], timeout_s: float
    ) -> HttpAnswer:
        if self._closed:
            raise ShuttingDown("the broker is stopping", remedy="Try again when it is back.")
        loop = self._exchange.loop
        try:
            # The line asks the guard again; asked here, a refusal keeps its own words and remedy.
            await self._exchange.guard.addresses(sink)
        except OSError as error:
            raise _failed(
                url, f"its host name cannot be resolved: {error.strerror or error}"
            ) from error
        answer: asyncio.Future[HttpAnswer] = loop.create_future()
        line = (EnvelopeLine if sink.soap_tcp else LetterLine)(self._exchange, -1, url, sink)

        self._under_way.add(answer)
        line.ask(request, partial(_take, answer, line), loop.time() + timeout_s)
        try:
            return await answer
        finally:
            self._under_way.discard(answer)
            line.hang_up()
            del answer  # its error has this frame, and so all that came: that would be a cycle

    def close(self) -> None:
        """Hang up everywhere; who waits is told."""
        self._closed = True
        error = ShuttingDown("the broker is stopping", remedy="Try again when it is back.")
        for answer in list(self._under_way):
            if not answer.done():
                answer.set_exception(error)


class LetterConnection(Connection):
    """A connection that keeps the whole body, and knows whether it is whole."""

    __slots__ = ("_parts", "body_ended", "peer_ended", "too_long")

    body_bytes_max: ClassVar[int] = ANSWER_BYTES_MAX

    def __init__(self, line: LetterLine) -> None:
        # Nothing familiar: of an answer that is looked up, only the status would be known.
        super().__init__(line, {})
        self._parts: list[bytes] = []
        self.body_ended = False  # as its framing says
        self.peer_ended = False  # the peer closed the connection
        self.too_long = False

    @property
    def body(self) -> bytes:
        return b"".join(self._parts)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self.too_long = self._body_bytes > ANSWER_BYTES_MAX
        if not self.too_long:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.body_ended = self._complete

    def connection_lost(self, exc: Exception | None) -> None:
        self.peer_ended = exc is None
        super().connection_lost(exc)


class LetterLine(Line):
    """The way to one peer, for one letter."""

    __slots__ = ("_reading", "answer")

    def __init__(self, exchange: Exchange, number: int, url: str, sink: Sink) -> None:
        super().__init__(exchange, number, url, sink)
        self._reading: LetterConnection | None = None
        self.answer: HttpAnswer | None = None

    def _new_connection(self) -> Connection:
        self._reading = LetterConnection(self)
        return self._reading

    def answered(self, status: int, head: bytes, body: bytes) -> None:
        reading = self._reading
        assert reading is not None
        headers = fields(head)
        problem = _what_is_wrong(reading, status, headers)
        if problem is None:
            self.answer = HttpAnswer(status, headers, reading.body)
        self._finish(Failed(problem or "", reachable=True))


def _take(answer: asyncio.Future[HttpAnswer], line: Line, _: int, outcome: Outcome) -> None:
    """What became of a letter, for whoever waits."""
    if answer.done():
        return
    if isinstance(line, LetterLine) and line.answer is not None:
        answer.set_result(line.answer)
    elif isinstance(outcome, Answered):
        answer.set_result(HttpAnswer(outcome.status, {}, b""))
    else:
        answer.set_exception(_failed(line.address, outcome.reason))


def _what_is_wrong(
    reading: LetterConnection, status: int, headers: Mapping[str, str]
) -> str | None:
    if status > 599:
        return f"it answered with the status {status}"
    if reading.too_long:
        return f"its answer is over {ANSWER_BYTES_MAX} bytes"
    until_closed = "content-length" not in headers and "transfer-encoding" not in headers
    if not reading.body_ended and not (until_closed and reading.peer_ended):
        return "its answer was incomplete"
    return None


def _request(sink: Sink, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
    if sink.soap_tcp:
        kinds = (value for name, value in headers.items() if name.lower() == "content-type")
        is_soap12 = next(kinds, "").startswith("application/soap+xml")
        return envelope_message("1.2" if is_soap12 else "1.1", body), b""
    lines = [
        f"POST {sink.target} HTTP/1.1",
        f"host: {sink.authority()}",
        f"user-agent: tocsin/{__version__}",
        "connection: close",
        f"content-length: {len(body)}",
    ]
    for name, value in headers.items():
        if name.lower() in OURS:
            continue
        if not _is_token(name) or not _is_printable(value):
            raise BadRequest(
                f"the header {name[:64]!a} cannot be sent",
                remedy="Use one line of printable ASCII.",
            )
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("ascii"), body


def _is_token(name: str) -> bool:
    return bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _is_printable(value: str) -> bool:
    return value.isascii() and all(" " <= char <= "~" or char == "\t" for char in value)


def _failed(url: str, reason: str) -> PeerFailed:
    return PeerFailed(
        f"the request to {url[:200]} failed: {reason}",
        remedy="Check that it runs and can be reached from the broker.",
    )
