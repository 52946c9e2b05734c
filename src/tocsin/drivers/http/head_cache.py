"""Heads of publishes that were read before, byte for byte.

Publishers repeat themselves: on a busy connection nearly every request has a head that came before.
What the parser and every check made of those bytes once, they would make of them again, so a whole
request with such a head needs neither. Only heads without anything unusual are remembered,
and none that says who sends it.
"""

from __future__ import annotations

from typing import Final

from tocsin.drivers.http.request import CREDENTIALS, Headers

HEADS_MAX: Final = 1_024
HEAD_BYTES_MAX: Final = 512  # so all of them take half a megabyte at most

_PUBLISH: Final = b"POST /events HTTP/1.1\r\n"
_END: Final = b"\r\n\r\n"


class HeadCache:
    """Shared by all connections of a server. When it is full it starts again."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Headers, int]] = {}

    def find(self, data: bytes) -> tuple[Headers, bytes] | None:
        """Headers and body, if the data is one whole publish with a head that is known."""
        end = data.find(_END, 0, HEAD_BYTES_MAX)
        known = self._known.get(data[:end]) if end > 0 else None
        if known is None or len(data) != end + len(_END) + known[1]:
            return None
        return known[0], data[end + len(_END) :]

    def learn(self, data: bytes, headers: Headers) -> None:
        """The parser read a plain publish, whose bytes may be this data."""
        end = data.find(_END, 0, HEAD_BYTES_MAX)
        length = headers.get(b"content-length", b"")
        if end < 0 or not data.startswith(_PUBLISH) or not length.isdigit():
            return
        if not CREDENTIALS.isdisjoint(headers):
            return
        if len(data) != end + len(_END) + int(length):
            return
        if len(self._known) >= HEADS_MAX:
            self._known.clear()
        self._known[data[:end]] = headers, int(length)
