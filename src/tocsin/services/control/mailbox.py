"""Mailbox: what waits for one stream of an entity, as much as may."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import msgspec

from tocsin.access.session import Session
from tocsin.overlay.control.options import ControlOptions
from tocsin.wire.sse import sse_event

_encode = msgspec.json.Encoder().encode


class Reader(Protocol):
    """A stream, as its mailbox sees it."""

    @property
    def is_full(self) -> bool: ...

    def write(self, data: bytes) -> None: ...

    def end(self, reason: str) -> None: ...


class Room:
    """What all mailboxes of a broker hold."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes = 0


class Mailbox:
    """See the module. What has no room is dropped and counted, and the reader is told how many."""

    def __init__(
        self,
        entity: str,
        session: Session,
        reader: Reader,
        room: Room,
        options: ControlOptions,
        *,
        has_requests: bool,
    ) -> None:
        """`has_requests`: what is for every entity is for this stream too."""
        self.entity = entity
        self.session = session
        self.has_requests = has_requests
        self.bytes = 0
        self._reader = reader
        self._room = room
        self._options = options
        self._waiting: deque[bytes] = deque()
        self._dropped = 0  # and not told yet

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, frame: bytes) -> bool:
        """Write it now or later; False if it is dropped."""
        options, room = self._options, self._room
        has_room = (
            len(self._waiting) < options.mailbox_messages_max
            and self.bytes + len(frame) <= options.mailbox_bytes_max
            and room.bytes + len(frame) <= room.bytes_max
        )
        # What was dropped is told before anything that came later.
        if not has_room or (self._dropped and self._reader.is_full):
            self._dropped += 1
            return False
        self._waiting.append(frame)
        self.bytes += len(frame)
        room.bytes += len(frame)
        self.pump()
        return True

    def drop(self) -> None:
        """A message for it came and is not kept, for another reason."""
        self._dropped += 1
        self.pump()

    def pump(self) -> None:
        """Write as much as the client takes."""
        while self._waiting and not self._reader.is_full:
            frame = self._waiting.popleft()
            self.bytes -= len(frame)
            self._room.bytes -= len(frame)
            self._reader.write(frame)
        if self._dropped and not self._reader.is_full:
            dropped, self._dropped = self._dropped, 0
            self._reader.write(sse_event(_encode({"count": dropped}), name=b"dropped"))

    def close(self) -> None:
        """Its reader has gone, and takes nothing more."""
        self._waiting.clear()
        self._room.bytes -= self.bytes
        self.bytes = 0

    def end(self, reason: str) -> None:
        self._reader.end(reason)
