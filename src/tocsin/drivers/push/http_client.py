"""HttpClient: single POSTs to other services, whose answers are read whole.

They go out by the same guard, TLS settings and number of connections as pushes do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from tocsin import __version__
from tocsin.broker.delivery.address import PORTS, SOAP_TCP, SinkAddress, scheme_of
from tocsin.broker.delivery.answer import fields
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.delivery.sinks import url_sink
from tocsin.broker.runtime import HttpAnswer
from tocsin.drivers.push.connection import Connection
from tocsin.drivers.push.envelope_sender import EnvelopeSender
from tocsin.drivers.push.http_sender import HttpSender
from tocsin.drivers.push.sender import ConnectionSender, PushContext
from tocsin.errors import BadRequest, BadSubscription, Busy, PeerFailed, ShuttingDown
from tocsin.wire.dime import envelope_message

ANSWER_BYTES_MAX = 1 << 20
REQUESTS_MAX = 64  # under way at once
REQUESTS_WAITING_MAX = 10_000  # the same as handshakes
TIMEOUT_S = 10.0

OURS = frozenset({"host", "user-agent", "connection", "content-length", "transfer-encoding"})


class HttpClient:
    """POSTs to any server, once each. Everything happens on the loop."""

    def __init__(self, context: PushContext) -> None:
        self._context = context
        self._turns = asyncio.Semaphore(REQUESTS_MAX)
        self._waiting = 0
        self._closed = False
        self._under_way: set[asyncio.Future[HttpAnswer]] = set()

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
    ) -> HttpAnswer:
        """POST once and give the answer, also one that refuses; redirects are not followed.

        To a soap.tcp address the body goes in a DIME message, and the answer is 202 once it is
        taken: what the peer has to say comes by another way, if at all.

        Raises BadSubscription if the URL is invalid, SinkRefused if nothing may be sent there, Busy
        if too many requests wait, PeerFailed if no whole answer comes in time.
        """
        sink = _parse(url)
        request = _request(sink, body, headers)
        if self._waiting >= REQUESTS_WAITING_MAX:
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
        self, url: str, sink: SinkAddress, request: tuple[bytes, bytes], timeout_s: float
    ) -> HttpAnswer:
        if self._closed:
            raise ShuttingDown("the broker is stopping", remedy="Try again when it is back.")
        loop = self._context.loop
        try:
            # The sender asks the guard again; asked here, a refusal keeps its own words and remedy.
            await self._context.guard.addresses(sink)
        except OSError as error:
            raise _failed(
                url, f"its host name cannot be resolved: {error.strerror or error}"
            ) from error
        answer: asyncio.Future[HttpAnswer] = loop.create_future()
        sender = (EnvelopeSender if sink.scheme == SOAP_TCP else RequestSender)(
            self._context, -1, url, sink
        )

        self._under_way.add(answer)
        sender.ask(request, partial(_take, answer, sender), loop.time() + timeout_s)
        try:
            return await answer
        finally:
            self._under_way.discard(answer)
            sender.close()
            del answer  # its error has this frame, and so all that came: that would be a cycle

    def close(self) -> None:
        """Close every connection; who waits gets an error."""
        self._closed = True
        error = ShuttingDown("the broker is stopping", remedy="Try again when it is back.")
        for answer in list(self._under_way):
            if not answer.done():
                answer.set_exception(error)


class WholeBodyConnection(Connection):
    """A connection that keeps the whole body, and knows whether it is whole."""

    __slots__ = ("_parts", "body_ended", "peer_ended", "too_long")

    body_bytes_max: ClassVar[int] = ANSWER_BYTES_MAX

    def __init__(self, sender: RequestSender) -> None:
        # Nothing familiar: of an answer that is looked up, only the status would be known.
        super().__init__(sender, {})
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


class RequestSender(HttpSender):
    """Sends one request to one server, and keeps its whole answer."""

    __slots__ = ("_reading", "answer")

    def __init__(self, context: PushContext, number: int, url: str, sink: SinkAddress) -> None:
        super().__init__(context, number, url, sink)
        self._reading: WholeBodyConnection | None = None
        self.answer: HttpAnswer | None = None

    def _new_connection(self) -> Connection:
        self._reading = WholeBodyConnection(self)
        return self._reading

    def answered(self, status: int, head: bytes, body: bytes) -> None:
        reading = self._reading
        assert reading is not None
        headers = fields(head)
        problem = _what_is_wrong(reading, status, headers)
        if problem is None:
            self.answer = HttpAnswer(status, headers, reading.body)
        self._finish(Failed(problem or "", reachable=True))


def _take(
    answer: asyncio.Future[HttpAnswer], sender: ConnectionSender, _: int, outcome: Outcome
) -> None:
    """What became of a request, for whoever waits."""
    if answer.done():
        return
    if isinstance(sender, RequestSender) and sender.answer is not None:
        answer.set_result(sender.answer)
    elif isinstance(outcome, Answered):
        answer.set_result(HttpAnswer(outcome.status, {}, b""))
    else:
        answer.set_exception(_failed(sender.address, outcome.reason))


def _what_is_wrong(
    reading: WholeBodyConnection, status: int, headers: Mapping[str, str]
) -> str | None:
    if status > 599:
        return f"it answered with the status {status}"
    if reading.too_long:
        return f"its answer is over {ANSWER_BYTES_MAX} bytes"
    until_closed = "content-length" not in headers and "transfer-encoding" not in headers
    if not reading.body_ended and not (until_closed and reading.peer_ended):
        return "its answer was incomplete"
    return None


def _request(sink: SinkAddress, body: bytes, headers: Mapping[str, str]) -> tuple[bytes, bytes]:
    if sink.scheme == SOAP_TCP:
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


def _parse(url: str) -> SinkAddress:
    sink = url_sink(scheme) if (scheme := scheme_of(url)) in PORTS else None
    if sink is None or not sink.takes_soap:
        raise BadSubscription(
            f"{url[:200]!r} is not an http, https or soap.tcp address",
            remedy="Name an address such as https://example.org/hook.",
        )
    return sink.parse(url)


def _is_token(name: str) -> bool:
    return bool(name) and name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _is_printable(value: str) -> bool:
    return value.isascii() and all(" " <= char <= "~" or char == "\t" for char in value)


def _failed(url: str, reason: str) -> PeerFailed:
    return PeerFailed(
        f"the request to {url[:200]} failed: {reason}",
        remedy="Check that it runs and can be reached from the broker.",
    )
