"""HTTP/1.1 messages: bytes in, a head and a body out, wherever the network cut them. No sockets.

The standard library's client costs 20 ms of imports, as much as all the rest of `tocsin pub`, and
there is none for asyncio; this reader serves both, and the listener of a pushed consumer too.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from tocsin.client.transport.address import Address
from tocsin.errors import BadRequest

if TYPE_CHECKING:
    from tocsin.credentials.secret import Secret

HEAD_BYTES_MAX = 64 * 1024
CHUNK_LINE_BYTES_MAX = 1_024

_BODILESS_STATUS = frozenset({204, 304})


def request_bytes(
    address: Address,
    method: str,
    target: str,
    *,
    body: bytes = b"",
    headers: Iterable[tuple[str, str]] = (),
) -> bytes:
    """A whole request, ready to send, with the token that belongs to this address."""
    lines = [f"{method} {address.prefix}{target} HTTP/1.1", f"Host: {address.authority}"]
    if (token := token_of(address)) is not None:
        lines.append(f"Authorization: Bearer {token.reveal()}")
    lines += [f"{name}: {value}" for name, value in headers]
    if body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body


def token_of(address: Address) -> Secret | None:
    """The token for a broker, if there is one."""
    return None if address.credentials is None else address.credentials.token()


class _Part(Enum):
    HEAD = "head"
    SIZED = "sized body"
    CHUNK_LINE = "chunk line"
    CHUNK = "chunk"
    TRAILER = "trailer"
    UNTIL_CLOSE = "body until close"
    DONE = "done"


class MessageReader:
    """Reads one message; `rest` is what came after it and belongs to the next."""

    __slots__ = ("_after_chunk", "_left", "_part", "_response", "headers", "rest", "start_line")

    def __init__(self, *, response: bool) -> None:
        self.start_line = ""
        self.headers: dict[str, str] = {}
        self.rest = b""
        self._response = response
        self._part = _Part.HEAD
        self._left = 0
        self._after_chunk = False

    @property
    def complete(self) -> bool:
        """True once the whole message was read."""
        return self._part is _Part.DONE

    @property
    def has_head(self) -> bool:
        """True once the start line and the headers were read."""
        return self._part is not _Part.HEAD

    @property
    def status(self) -> int:
        """The status of a response."""
        return int(self.start_line.split(" ", 2)[1])

    def feed(self, data: bytes) -> bytes:
        """Take what arrived; returns the bytes of the body that it brought."""
        self.rest = self.rest + data if self.rest else data
        body: list[bytes] = []
        while self.rest and self._part is not _Part.DONE and self._step(body):
            pass
        return body[0] if len(body) == 1 else b"".join(body)

    def end(self) -> bool:
        """The peer has closed; True if the message was whole."""
        if self._part is _Part.UNTIL_CLOSE:
            self._part = _Part.DONE
        return self.complete

    def _step(self, body: list[bytes]) -> bool:
        """Read one part; False if more bytes are needed."""
        if self._part is _Part.HEAD:
            return self._read_head()
        if self._part is _Part.CHUNK_LINE:
            return self._read_chunk_line()
        if self._part is _Part.TRAILER:
            return self._read_trailer()
        if self._part is _Part.UNTIL_CLOSE:
            body.append(self.rest)
            self.rest = b""
            return False
        taken = self.rest[: self._left]
        body.append(taken)
        self.rest = self.rest[len(taken) :]
        self._left -= len(taken)
        if not self._left:
            self._part = _Part.DONE if self._part is _Part.SIZED else _Part.CHUNK_LINE
        return True

    def _read_head(self) -> bool:
        end = self.rest.find(b"\r\n\r\n")
        if end < 0 or end > HEAD_BYTES_MAX:
            if len(self.rest) > HEAD_BYTES_MAX:
                raise _not_http("its head is too long")
            return False
        lines = self.rest[:end].decode("latin-1").split("\r\n")
        self.rest = self.rest[end + 4 :]
        self.start_line = lines[0]
        self.headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise _not_http(f"a header line is {line[:80]!r}")
            self.headers[name.strip().lower()] = value.strip()
        self._part = self._body_part()
        return True

    def _body_part(self) -> _Part:
        if self._response:
            words = self.start_line.split(" ", 2)
            if not words[0].startswith("HTTP/1.") or len(words) < 2 or not words[1].isdecimal():
                raise _not_http(f"it began with {self.start_line[:80]!r}")
            status = int(words[1])
            if 100 <= status < 200 and status != 101:
                return _Part.HEAD
            if status in _BODILESS_STATUS or status == 101:
                return _Part.DONE
        elif self.start_line.count(" ") != 2:
            raise _not_http(f"it began with {self.start_line[:80]!r}")
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            return _Part.CHUNK_LINE
        length = self.headers.get("content-length")
        if length is None:
            return _Part.UNTIL_CLOSE if self._response else _Part.DONE
        if not length.isdecimal() or len(length) > 15:
            raise _not_http(f"its Content-Length is {length[:40]!r}")
        self._left = int(length)
        return _Part.SIZED if self._left else _Part.DONE

    def _read_chunk_line(self) -> bool:
        start = 2 if self._after_chunk else 0
        end = self.rest.find(b"\r\n", start)
        if end < 0:
            if len(self.rest) > CHUNK_LINE_BYTES_MAX:
                raise _not_http("a chunk has no size")
            return False
        size_text = self.rest[start:end].partition(b";")[0].strip()
        try:
            size = int(size_text, 16)
        except ValueError:
            raise _not_http(f"a chunk's size is {size_text[:20]!r}") from None
        if size < 0:
            raise _not_http(f"a chunk's size is {size}")
        self.rest = self.rest[end + 2 :]
        self._left = size
        self._after_chunk = True
        self._part = _Part.CHUNK if size else _Part.TRAILER
        return True

    def _read_trailer(self) -> bool:
        end = self.rest.find(b"\r\n")
        if end < 0:
            if len(self.rest) > HEAD_BYTES_MAX:
                raise _not_http("its trailer is too long")
            return False
        self.rest = self.rest[end + 2 :]
        if end == 0:
            self._part = _Part.DONE
        return True


def _not_http(detail: str) -> BadRequest:
    return BadRequest(f"what came is not HTTP/1.1: {detail}", remedy="Check the address.")
