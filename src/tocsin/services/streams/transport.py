"""What a session needs of the connection under it, and the limits that it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tocsin.wire.cloudevents.limits import Limits


class StreamTransport(Protocol):
    """The connection to one client, as its session sees it."""

    @property
    def is_full(self) -> bool:
        """As much as allowed is written and not read by the client; `writable` follows."""

    def begin(self, first: bytes) -> None:
        """Accept the request; these are the first bytes of the session."""

    def write(self, data: bytes) -> None: ...

    def close(self) -> None:
        """Close once everything is written."""

    def abort(self) -> None:
        """Close at once."""

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def hold(self, size: int) -> bool:
        """The session keeps so many bytes of an unfinished message; False if that is too much."""

    def count_refused(self) -> None:
        """A message was refused before the broker saw it."""


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """What a client may send over one WebSocket."""

    event: Limits
    message_bytes_max: int
    unanswered_max: int  # messages that wait for the disk; then the client is not read from
