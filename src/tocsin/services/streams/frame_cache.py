"""FrameCache: events in the form of one kind of stream, each rendered once for all its readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tocsin.event.stored import Stored

CACHE_BYTES_MAX: Final = 8 << 20


class FrameCache:
    """Frames by sequence number. When it is full it starts again."""

    __slots__ = ("_bytes", "_frames", "_render")

    def __init__(self, render: Callable[[Stored], bytes]) -> None:
        self._render = render
        self._frames: dict[int, bytes] = {}
        self._bytes = 0

    def of(self, events: list[Stored]) -> bytes:
        """The frames of the events, one after the other."""
        frames = self._frames
        return b"".join([frames.get(stored.seq) or self._add(stored) for stored in events])

    def _add(self, stored: Stored) -> bytes:
        frame = self._render(stored)
        self._bytes += len(frame)
        if self._bytes > CACHE_BYTES_MAX:
            self._frames.clear()
            self._bytes = len(frame)
        self._frames[stored.seq] = frame
        return frame
