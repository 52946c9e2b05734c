"""One HTTP request, and the checks of its head that the parser leaves to us.

llhttp refuses most of what smuggling is made of by itself: bare line feeds, folded headers, two
Content-Lengths, a length beside a Transfer-Encoding. What it lets through is refused here: no Host
or two of them, another coding than chunked, chunks in HTTP/1.0, versions that do not exist, and the
methods of other protocols.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from tocsin.drivers.http.answers import connection_header
from tocsin.errors import BadRequest, HeadTooLarge, TocsinError, TooLarge

if TYPE_CHECKING:
    from tocsin.config import HttpSettings

Headers = dict[bytes, bytes]
"""By lower-case name."""

METHODS = frozenset({b"GET", b"HEAD", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"})
VERSIONS = frozenset({"1.0", "1.1"})

# Headers that are rare on the way of an event and need a closer look when they come.
UNUSUAL_HEADERS = frozenset(
    {
        b"connection",
        b"transfer-encoding",
        b"expect",
        b"content-encoding",
        b"origin",
        b"sec-fetch-site",
        b"upgrade",
    }
)
# Headers that say who sends a request. What depends on them is never kept for another request.
CREDENTIALS = frozenset({b"authorization", b"proxy-authorization", b"cookie"})
# A second one of these is an attempt to be understood in two ways.
_ONCE = frozenset(
    {
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-type",
        b"expect",
        b"host",
        b"origin",
    }
)
_HEADER_OVERHEAD_BYTES = 4  # the colon, the space and the line end
_QUOTED_BYTES = 80


@dataclass(slots=True)
class Request:
    """A whole request. The names of its headers are in lower case."""

    method: bytes
    target: bytes
    version: str
    headers: Headers
    body: bytes
    keep_alive: bool

    @property
    def connection_header(self) -> bytes:
        """The Connection header that the answer needs, if any."""
        return connection_header(self.version, keep_alive=self.keep_alive)

    @property
    def raw_path(self) -> bytes:
        """The path as it was sent, without the query."""
        return self.target.partition(b"?")[0]

    @property
    def path(self) -> str:
        """The path, decoded; what is no UTF-8 shows as replacement characters."""
        return unquote_to_bytes(self.raw_path).decode(errors="replace")

    @property
    def query(self) -> bytes:
        return self.target.partition(b"?")[2]


def headers_of(fields: list[tuple[bytes, bytes]]) -> Headers:
    """The header fields by name; a field that came twice is joined, or refused."""
    headers = {name.lower(): value for name, value in fields}
    return headers if len(headers) == len(fields) else _joined(fields)


def _joined(fields: list[tuple[bytes, bytes]]) -> Headers:
    headers: Headers = {}
    for name, value in fields:
        name = name.lower()
        if name not in headers:
            headers[name] = value
        elif name in _ONCE or name.startswith(b"ce-"):
            raise bad_request(f"the header {_quoted(name)} came twice", "Send it once.")
        else:
            headers[name] += (b"; " if name == b"cookie" else b", ") + value
    return headers


def check_size(fields: list[tuple[bytes, bytes]], target: bytes, limits: HttpSettings) -> None:
    """The exact size of a head that may be over its limit."""
    if len(fields) > limits.headers_max:
        raise HeadTooLarge(
            f"the request has {len(fields)} headers",
            remedy=f"Send at most {limits.headers_max}.",
        )
    size = len(target) + sum(len(n) + len(v) + _HEADER_OVERHEAD_BYTES for n, v in fields)
    if size > limits.header_bytes_max:
        raise head_too_long(limits)


def head_too_long(limits: HttpSettings) -> TocsinError:
    """The head is over its limit, or would be if it ever ended."""
    return HeadTooLarge(
        f"the head of the request is longer than {limits.header_bytes_max} bytes",
        remedy="Send fewer or shorter headers; what is long belongs into the body.",
    )


def body_too_long(limits: HttpSettings) -> TocsinError:
    """The body is over its limit, as announced, as received or once unpacked."""
    return TooLarge(
        f"the body of the request is longer than {limits.body_bytes_max} bytes",
        remedy="Send less at a time, for instance smaller batches.",
    )


def check_framing(method: bytes, version: str, headers: Headers) -> None:
    """Refuse a head that two programs could understand differently."""
    if version not in VERSIONS:
        raise bad_request(f"HTTP/{version} is not supported", "Use HTTP/1.1.")
    if method not in METHODS:
        raise bad_request(
            f"the method {_quoted(method)} is not supported",
            "Use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.",
        )
    if b"host" not in headers and version == "1.1":
        raise bad_request("the request has no Host header", "Send one: HTTP/1.1 requires it.")
    coding = headers.get(b"transfer-encoding")
    if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
        raise bad_request(
            f"the Transfer-Encoding {_quoted(coding)} is not supported",
            "Send the body with a Content-Length, or chunked in HTTP/1.1.",
        )


def origin_form(target: bytes, headers: Headers) -> bytes:
    """The path and query of a request target; an absolute one also decides the Host (RFC 9112)."""
    if target[:1] != b"/":
        scheme, separator, rest = target.partition(b"://")
        if not separator or scheme.lower() not in (b"http", b"https"):
            raise bad_request(
                f"the request target {_quoted(target)} is not a path",
                "Ask for a path, as in GET /events.",
            )
        authority, slash, path = rest.partition(b"/")
        headers[b"host"] = authority
        target = slash + path if slash else b"/"
    if b"#" in target:
        raise bad_request("the request target has a fragment", "Leave out # and what follows it.")
    return target


def bad_request(problem: str, remedy: str) -> BadRequest:
    return BadRequest(problem, remedy=remedy)


def _quoted(text: bytes) -> str:
    return repr(text[:_QUOTED_BYTES].decode("latin-1"))
