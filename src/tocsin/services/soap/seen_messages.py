"""SeenMessages: which messages came already, for as long as they could come again.

Bounded by time, since a message is refused when it is old, and by number: where there is no room, a
message is refused, since it could not be told from a repetition later.
"""

from __future__ import annotations

import hashlib
from typing import Final

from tocsin.errors import QuotaReached
from tocsin.event.instant import NS_PER_S

_PERIOD_NS: Final = 10 * NS_PER_S  # what ends within one period is dropped at once
_KEY_BYTES: Final = 16  # of a SHA-256


class SeenMessages:
    """By a hash of what makes each its own."""

    def __init__(self, messages_max: int) -> None:
        self._max = messages_max
        self._periods: dict[int, set[bytes]] = {}  # by when they end
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, identity: bytes, until_ns: int, now_ns: int) -> bool:
        """Note a message that nobody takes any more after `until_ns`. False if it came before;
        raises QuotaReached where there is no room."""
        self._forget(now_ns)
        key = hashlib.sha256(identity).digest()[:_KEY_BYTES]
        if any(key in seen for seen in self._periods.values()):
            return False
        if self._count >= self._max:
            raise QuotaReached(
                f"{self._max} messages with a signature or nonce came within a few minutes",
                remedy="Try again later, or raise ws_security.seen_max.",
            )
        self._periods.setdefault(until_ns // _PERIOD_NS, set()).add(key)
        self._count += 1
        return True

    def _forget(self, now_ns: int) -> None:
        current = now_ns // _PERIOD_NS
        for period in [each for each in self._periods if each < current]:
            self._count -= len(self._periods.pop(period))
