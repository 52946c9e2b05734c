"""Requests cut from a connection's bytes, each part of them within limits and in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import httptools

from tocsin.drivers.http.head_cache import HeadCache
from tocsin.drivers.http.request import (
    CREDENTIALS,
    UNUSUAL_HEADERS,
    Headers,
    bad_request,
    body_too_long,
    check_framing,
    check_size,
    head_too_long,
    headers_of,
    origin_form,
)
from tocsin.errors import TocsinError, TooSlow

if TYPE_CHECKING:
    from tocsin.config import HttpSettings

# Where the reading of a request stands.
IDLE: Final = 0
HEAD: Final = 1
BODY: Final = 2

READ_BYTES_MAX: Final = 256 << 10  # what the event loop may hand over at once
# Chunked bodies bring their own framing. Beyond this it is no framing but a way to keep us busy.
CHUNK_OVERHEAD: Final = 8


class RequestHandler(Protocol):
    """What is called with what was read."""

    def requested(
        self,
        method: bytes,
        target: bytes,
        version: str,
        headers: Headers,
        body: bytes,
        keep_alive: bool,
    ) -> None:
        """A whole request came."""

    def expects_continue(self) -> None:
        """The client sends the body once it may."""

    def refuse(self, error: TocsinError) -> None:
        """The rest cannot be read: answer so, and read no more."""

    def failed(self, cause: BaseException) -> None:
        """Handling a request failed in a way it should not."""

    def upgraded(self, rest: bytes) -> None:
        """The last request asked for another protocol, to which the rest belongs."""


# What makes an offer of another protocol, in a head.
_OFFER: Final = frozenset({b"upgrade", b"connection", b"http2-settings"})


class RequestReader:
    """A parser with its half-read request."""

    __slots__ = (
        "_body",
        "_fed_bytes",
        "_fields",
        "_handler",
        "_headers",
        "_heads",
        "_is_last",
        "_limits",
        "_own_heads",
        "_parser",
        "_passed_over",
        "_refusal",
        "_target",
        "_version",
        "feeding",
        "is_plain",
        "method",
        "phase",
        "since_s",
    )

    def __init__(self, handler: RequestHandler, limits: HttpSettings, heads: HeadCache) -> None:
        self._handler = handler
        self._limits = limits
        self._heads = heads
        self._own_heads: HeadCache | None = None  # in place of these, once it shows credentials
        self._parser = httptools.HttpRequestParser(self)
        self.feeding = False
        self.phase: int = IDLE
        self.since_s = 0.0  # when the part that is incomplete now began; 0: not known yet
        self.method = b""
        self.is_plain = True  # the head has nothing in it that few heads have
        self._version = ""
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._headers: Headers = {}
        self._body: bytes | bytearray = b""  # one buffer, however many pieces it comes in
        self._fed_bytes = 0  # since the request began
        self._is_last = False  # nothing after this request is to be read
        # The head of a request that offered another protocol, without the offer.
        self._passed_over: list[tuple[bytes, bytes]] = []
        self._refusal: TocsinError | None = None

    @property
    def held_bytes(self) -> int:
        """How much of a body is here that is not yet whole."""
        return len(self._body)

    def close(self) -> None:
        """Nothing more will be read: release what was read, and the handler."""
        self.drop()
        del self._parser, self._handler  # each has us: together they would be a cycle

    def drop(self) -> None:
        """What is being read will not be wanted."""
        self._body = b""
        self._refusal = None

    def feed(self, data: bytes) -> None:
        """Read on; the handler is called with what comes out of it."""
        if self.phase != IDLE or self._is_last:
            self._parse(data)
            return
        known = (self._own_heads or self._heads).find(data)
        if known is not None:
            self._take(known[0], known[1])
            return
        self._parse(data)
        if self.phase == IDLE and self.is_plain and not self._is_last:
            self._learn(data)

    def _learn(self, data: bytes) -> None:
        if self._own_heads is None and not CREDENTIALS.isdisjoint(self._headers):
            self._own_heads = HeadCache.of_connection()
        (self._own_heads or self._heads).learn(data, self._headers)

    def _take(self, headers: Headers, body: bytes) -> None:
        """A whole publish whose head was read before."""
        self.is_plain = True
        try:
            self._handler.requested(b"POST", b"/events", "1.1", headers, body, True)
        except Exception as error:
            self._handler.failed(error)

    def _parse(self, data: bytes) -> None:
        if self.phase == IDLE:
            self.phase = HEAD
        self._fed_bytes += len(data)
        self.feeding = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.feeding = False
            rest = data[upgrade.args[0] :]
            if self._passed_over:
                self._parse_without_offer(rest)
            else:
                self._handler.upgraded(rest)
        except httptools.HttpParserError as error:
            self.feeding = False
            self._unreadable(error)
        self.feeding = False

    def _parse_without_offer(self, rest: bytes) -> None:
        """Read a request that offers a protocol we do not speak as if it offered none.

        The parser stops at its head, as if the offer were accepted; RFC 9110, section 7.8, lets us
        pass over it. Java's HTTP client offers HTTP/2 with every first request.
        """
        head = b"%b %b HTTP/1.1\r\n" % (self.method, self._target)
        for name, value in self._passed_over:
            head += b"%b: %b\r\n" % (name, value)
        self._passed_over = []
        self._target = b""
        self._fields = []
        self.phase = IDLE
        self._fed_bytes = 0
        self._parser = httptools.HttpRequestParser(self)
        self._parse(head + b"\r\n" + rest)

    def check_incomplete(self) -> None:
        """Part of a request is still to come: refuse one that is too large to ever be read."""
        limits = self._limits
        if self.phase == HEAD:
            if self._fed_bytes > limits.header_bytes_max + READ_BYTES_MAX:
                self._handler.refuse(head_too_long(limits))
        else:
            framing_bytes = self._fed_bytes - len(self._body) * CHUNK_OVERHEAD
            if framing_bytes > limits.header_bytes_max + READ_BYTES_MAX:
                self._handler.refuse(body_too_long(limits))

    def allowed_until_s(self, *, in_haste: bool) -> float:
        """When the part that is being read must be complete, at the rate it has been coming; a
        good rate earns no more time where many wait for the room that it takes."""
        if self.phase == HEAD:
            return self.since_s + self._limits.header_deadline_s
        if in_haste:
            return self.since_s + self._limits.body_deadline_s
        earned_s = len(self._body) / self._limits.body_bytes_per_s_min
        return self.since_s + self._limits.body_deadline_s + earned_s

    def too_slow(self) -> TocsinError:
        part = "head" if self.phase == HEAD else "body"
        return TooSlow(
            f"the {part} of the request did not arrive in time",
            remedy="Send the whole request without long pauses.",
        )

    def _unreadable(self, error: httptools.HttpParserError) -> None:
        cause = error.__context__
        if self._refusal is not None:
            self._handler.refuse(self._refusal)  # which drops it: its traceback has us
        elif isinstance(error, httptools.HttpParserCallbackError) and cause is not None:
            self._handler.failed(cause)
        else:
            self._handler.refuse(
                bad_request(
                    f"the request is not valid HTTP: {error}", "Send HTTP/1.1, as curl does."
                )
            )

    # Called by the parser, in this order for each request.

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.method = self._parser.get_method()
        try:
            self._headers = self._checked_headers()
        except TocsinError as error:
            self._refusal = error
            raise
        if not self.is_plain and self._offers_another_protocol():
            self._passed_over = [
                (name, value) for name, value in self._fields if name.lower() not in _OFFER
            ]
            if b"close" in self._headers.get(b"connection", b"").lower():
                self._passed_over.append((b"connection", b"close"))
        self.phase = BODY
        self.since_s = 0.0
        self._fields = []  # of what follows, these are the trailers, and nobody reads those

    def _checked_headers(self) -> Headers:
        limits, fields, method = self._limits, self._fields, self.method
        if len(fields) > limits.headers_max or self._fed_bytes > limits.header_bytes_max:
            check_size(fields, self._target, limits)
        headers = headers_of(fields)
        self.is_plain = UNUSUAL_HEADERS.isdisjoint(headers)
        # Of the versions the parser knows, 1.1 alone keeps alive what does not ask for it.
        if (
            self.is_plain
            and (method == b"POST" or method == b"GET")
            and b"host" in headers
            and self._parser.should_keep_alive()
        ):
            self._version = "1.1"
        else:
            self._version = self._parser.get_http_version()
            check_framing(method, self._version, headers)
        if self._target[:1] != b"/" or b"#" in self._target:
            self._target = origin_form(self._target, headers)
        length = headers.get(b"content-length")
        if length is not None and len(length) > 4 and int(length) > limits.body_bytes_max:
            raise body_too_long(limits)
        if b"expect" in headers:
            self._check_expect(headers[b"expect"])
        return headers

    def _check_expect(self, expected: bytes) -> None:
        if expected.lower() != b"100-continue":
            raise bad_request("the Expect header is not supported", "Leave it out.")
        if self._version == "1.1":
            self._handler.expects_continue()

    def on_body(self, part: bytes) -> None:
        body = self._body
        if len(body) + len(part) > self._limits.body_bytes_max:
            self._refusal = body_too_long(self._limits)
            raise self._refusal
        if not body:
            self._body = part
        elif type(body) is bytearray:
            body += part
        else:
            self._body = bytearray(body)
            self._body += part

    def _offers_another_protocol(self) -> bool:
        offered = self._headers.get(b"upgrade", b"").strip().lower()
        return bool(self._parser.should_upgrade()) and offered not in (b"", b"websocket")

    def on_message_complete(self) -> None:
        if self._passed_over:
            return  # it is read again, with its body
        parts = self._body
        body = parts if type(parts) is bytes else bytes(parts)
        self._body = b""
        target = self._target
        self._target = b""
        self._fed_bytes = 0
        self.since_s = 0.0
        self.phase = IDLE
        if self._fields:
            self._fields = []
        keep_alive = self._parser.should_keep_alive()
        if not self.is_plain and self._parser.should_upgrade():
            keep_alive = False  # whatever comes of it, what follows will be no HTTP
        self._is_last = not keep_alive
        self._handler.requested(self.method, target, self._version, self._headers, body, keep_alive)
