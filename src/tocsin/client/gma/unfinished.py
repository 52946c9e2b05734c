"""Unfinished: what has come of messages that are not whole yet, from all who called together."""

from __future__ import annotations

from typing import Final

ALL_BYTES_MAX: Final = 64 << 20
OWN_BYTES_MAX: Final = 64 << 10  # which everybody may have, whatever the others do


class Unfinished:
    """Of the loop's thread alone."""

    def __init__(self) -> None:
        self._bytes = 0

    def changed(self, before: int, now: int) -> bool:
        """One of them has so much now; False if that is too much."""
        self._bytes += now - before
        return now <= OWN_BYTES_MAX or self._bytes <= ALL_BYTES_MAX
