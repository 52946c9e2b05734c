"""Answers as bytes: heads, problems, and the one answer that is given most."""

from __future__ import annotations

from email.utils import formatdate
from http import HTTPStatus

from tocsin.broker.effects import Accepted
from tocsin.errors import TocsinError
from tocsin.wire.api.problem import MEDIA_TYPE, problem_json, retry_after_s

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
KEEP_ALIVE = b"connection: keep-alive\r\n"  # what HTTP/1.0 expects
# In every answer. No browser shall guess what a payload is that somebody published.
SERVER = b"server: tocsin\r\nx-content-type-options: nosniff\r\n"

_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
_JSON = b"content-type: application/json\r\ncontent-length: "


class ResponseHeads:
    """The parts of an answer that change once a second, made once a second."""

    __slots__ = ("_second", "accepted", "date")

    def __init__(self, unix_s: float) -> None:
        self._second = -1
        self.date = b""
        self.accepted = b""
        self.turn(unix_s)

    def turn(self, unix_s: float) -> None:
        if int(unix_s) == self._second:
            return
        self._second = int(unix_s)
        self.date = f"date: {formatdate(self._second, usegmt=True)}\r\n".encode()
        self.accepted = _STATUS_LINES[202] + self.date + SERVER + _JSON


def connection_header(version: str, *, keep_alive: bool) -> bytes:
    """The Connection header that an answer needs, if any."""
    if not keep_alive:
        return CLOSE
    return b"" if version == "1.1" else KEEP_ALIVE


def status_line(status: int) -> bytes:
    known = _STATUS_LINES.get(status)
    return known if known is not None else f"HTTP/1.1 {status} \r\n".encode()


def accepted(response_heads: ResponseHeads, result: Accepted, connection: bytes) -> bytes:
    """202: the events are on disk."""
    if result.duplicates:
        body = b'{"accepted":%d,"first":%d,"last":%d,"duplicates":%d}' % (
            result.accepted,
            result.first,
            result.last,
            result.duplicates,
        )
    else:
        body = b'{"accepted":%d,"first":%d,"last":%d}' % (
            result.accepted,
            result.first,
            result.last,
        )
    return b"%b%d\r\n%b\r\n%b" % (response_heads.accepted, len(body), connection, body)


def refused(
    response_heads: ResponseHeads, error: TocsinError, connection: bytes, *, head: bool
) -> bytes:
    """The error as a problem. The answer to a HEAD has the same head and no body."""
    body = problem_json(error)
    wait_s = retry_after_s(error)
    retry = b"" if wait_s is None else b"retry-after: %d\r\n" % wait_s
    if error.http_status == 401:
        retry += b'www-authenticate: Bearer realm="tocsin"\r\n'
    return b"%b%b%bcontent-type: %b\r\ncontent-length: %d\r\n%b%b\r\n%b" % (
        status_line(error.http_status),
        response_heads.date,
        SERVER,
        MEDIA_TYPE.encode(),
        len(body),
        retry,
        connection,
        b"" if head else body,
    )
