"""Heads of publishes that were read before, byte for byte.

Publishers repeat themselves: on a busy connection nearly every request has a head that came before.
What the parser and every check made of those bytes once, they would make of them again, so a whole
request with such a head needs neither. Only heads without anything unusual are remembered. One that
says who sends it is remembered by the connection that it came by, and by no other.
"""

from __future__ import annotations

from typing import Final

from tocsin.drivers.http.request import CREDENTIALS, Headers

HEADS_MAX: Final = 1_024
OWN_HEADS_MAX: Final = 4  # of one connection
HEAD_BYTES_MAX: Final = 512  # so all that are shared take half a megabyte at most

_PUBLISH: Final = b"POST /events HTTP/1.1\r\n"
_END: Final = b"\r\n\r\n"


class HeadCache:
    """Shared by all connections of a server, or of one connection alone, which may keep heads with
    credentials. When it is full it starts again."""

    __slots__ = ("_heads_max", "_is_shared", "_known")

    def __init__(self, heads_max: int = HEADS_MAX, *, is_shared: bool = True) -> None:
        self._known: dict[bytes, tuple[Headers, int]] = {}
        self._heads_max = heads_max
        self._is_shared = is_shared

    @classmethod
    def of_connection(cls) -> HeadCache:
        return cls(OWN_HEADS_MAX, is_shared=False)

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
        if self._is_shared and not CREDENTIALS.isdisjoint(headers):
            return
        if len(data) != end + len(_END) + int(length):
            return
        if len(self._known) >= self._heads_max:
            self._known.clear()
        self._known[data[:end]] = headers, int(length)
