"""Backlog: what came over all links and is not handled yet, in messages and bytes.

Of one connection and of all there is at most so much; then nothing more is read, of the one or of
all that have something here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# As many of one link as wait for one save to the disk, and so few that nobody else has to wait long
# for them.
MESSAGES_MAX: Final = 500
MESSAGES_TOTAL_MAX: Final = 20_000
ITEMS_MAX: Final = 50_000  # that follow from them and wait to be done; tables sent at once are more
OWN_BYTES_MAX: Final = 64 << 10  # which every connection may have, whatever the others do


@dataclass(slots=True)
class Backlog:
    """Of all connections."""

    bytes_max: int  # of one
    bytes_total_max: int
    messages: int = 0
    bytes: int = 0  # of messages, and of events that are not stored yet
    items: int = 0  # what follows from messages, and is not done yet

    def share(self) -> Share:
        """That of one connection: nothing yet."""
        return Share(self)

    def has_room(self, size: int) -> bool:
        """For so many bytes more."""
        return self.bytes + size <= self.bytes_total_max


@dataclass(slots=True)
class Share:
    """Of one connection."""

    _all: Backlog
    messages: int = 0
    bytes: int = 0

    @property
    def is_full(self) -> bool:
        everything = self._all
        if self.messages >= MESSAGES_MAX or self.bytes >= everything.bytes_max:
            return True
        are_too_many = self.messages > 0 and (
            everything.messages >= MESSAGES_TOTAL_MAX or everything.items >= ITEMS_MAX
        )
        is_too_much = everything.bytes >= everything.bytes_total_max and self.bytes > OWN_BYTES_MAX
        return are_too_many or is_too_much

    def add(self, size: int) -> None:
        """A message of so many bytes came."""
        self.messages += 1
        self.bytes += size
        self._all.messages += 1
        self._all.bytes += size

    def done(self, size: int) -> None:
        """It is handled."""
        self.messages -= 1
        self.bytes -= size
        self._all.messages -= 1
        self._all.bytes -= size
