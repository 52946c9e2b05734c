"""Fetch: GET one small document of a service that the operator has named.

Everything about the answer is bounded: its size, its head, and the time until it is whole. Nothing
leads elsewhere: redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from tocsin import __version__
from tocsin.drivers.listeners.bind_address import why_not

HEAD_BYTES_MAX = 32 << 10
READ_BYTES = 64 << 10


class FetchFailed(Exception):
    """A document could not be had: the reason, in words for the log."""


async def fetch(url: str, tls: ssl.SSLContext | None, *, bytes_max: int, timeout_s: float) -> bytes:
    """The document at an http or https address. Raises FetchFailed."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _fetch(url, tls, bytes_max)
    except TimeoutError:
        raise FetchFailed(f"{url} has not answered within {timeout_s:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise FetchFailed(
            f"the certificate of {url} is not valid: {error.verify_message}"
        ) from None
    except ssl.SSLError as error:
        raise FetchFailed(f"{url} cannot be reached by TLS: {error.reason or error}") from None
    except (OSError, UnicodeError) as error:
        raise FetchFailed(f"{url} cannot be reached: {why_not(error)}") from None


async def _fetch(url: str, tls: ssl.SSLContext | None, bytes_max: int) -> bytes:
    parts = urlsplit(url)
    host, is_https = parts.hostname or "", parts.scheme == "https"
    if is_https and tls is None:
        raise FetchFailed(f"{url} needs TLS")
    port = parts.port or (443 if is_https else 80)
    reader, writer = await asyncio.open_connection(host, port, ssl=tls if is_https else None)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [
            f"GET {target} HTTP/1.1",
            f"host: {parts.netloc}",
            f"user-agent: tocsin/{__version__}",
            "accept: application/json",
            "accept-encoding: identity",
            "connection: close",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        return await _read(url, reader, bytes_max)
    finally:
        writer.transport.abort()


async def _read(url: str, reader: asyncio.StreamReader, bytes_max: int) -> bytes:
    answer = _Answer(bytes_max)
    parser, received = HttpResponseParser(answer), 0
    while not answer.is_whole:
        data = await reader.read(READ_BYTES)
        if not data:
            break
        received += len(data)
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            raise FetchFailed(f"what {url} answers is not HTTP: {error}") from None
        if answer.has_head:
            _check_head(url, parser.get_status_code(), answer.headers)
        elif received > HEAD_BYTES_MAX:
            raise FetchFailed(f"the head of what {url} answers is over {HEAD_BYTES_MAX} bytes")
        # Chunks of single bytes are longer than what they bring.
        if answer.is_too_long or received > bytes_max * 8 + HEAD_BYTES_MAX:
            raise FetchFailed(f"what {url} answers is over {bytes_max} bytes")
    if not answer.is_whole and not (answer.has_head and answer.ends_with_connection):
        raise FetchFailed(f"{url} closed the connection before its answer was whole")
    return answer.body


def _check_head(url: str, status: int, headers: Mapping[str, str]) -> None:
    if 300 <= status < 400:
        where = headers.get("location", "elsewhere")
        raise FetchFailed(f"{url} redirects to {where[:200]!r}, and redirects are not followed")
    if status != 200:
        raise FetchFailed(f"{url} answers with the status {status}")
    if headers.get("content-encoding", "identity") != "identity":
        raise FetchFailed(f"{url} answers in a content encoding that was not asked for")


class _Answer:
    """What the parser calls while it is fed."""

    def __init__(self, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._body_bytes = 0
        self._parts: list[bytes] = []
        self.headers: dict[str, str] = {}
        self.has_head = False
        self.is_whole = False

    @property
    def body(self) -> bytes:
        return b"".join(self._parts)

    @property
    def is_too_long(self) -> bool:
        return self._body_bytes > self._body_bytes_max

    @property
    def ends_with_connection(self) -> bool:
        return not {"content-length", "transfer-encoding"} & self.headers.keys()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_whole:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, body: bytes) -> None:
        if self.is_whole:
            return  # of a second answer to one request
        self._body_bytes += len(body)
        if not self.is_too_long:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        self.is_whole = True
