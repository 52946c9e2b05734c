"""The memory for what is being received: one budget for all listeners and all connections.

Every message has a limit of its own, but many peers can each send one up to that limit and never
finish it. So what has come of messages that are not handled yet is counted here, over HTTP bodies,
WebSocket messages, frames, SOAP.TCP messages and Pegasus records. Past the budget, a message that
is large and still grows is refused, and its sender is asked to come back later.
"""

from __future__ import annotations

from typing import Final

from tocsin.drivers.logger import WriteLog
from tocsin.errors import Busy

OWN_BYTES_MAX: Final = 64 << 10  # which every connection may have, whatever the others do

"""Writes to the broker's own log: level, message, then fields by name."""


class ReceiveBudget:
    """How much of what peers sent is held now, and how much of that there may be."""

    def __init__(self, bytes_max: int, note: WriteLog) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self.refused = 0
        self._note = note
        self._is_noted = False

    @property
    def is_tight(self) -> bool:
        """More than half is in use: nobody should take long now."""
        return self.held_bytes * 2 > self.bytes_max

    def share(self) -> Share:
        """What one connection holds: nothing yet."""
        return Share(self)

    def refuse(self) -> Busy:
        """The error for a message that no longer fits. Noted once, and again once there was room
        in between."""
        self.refused += 1
        if not self._is_noted:
            self._is_noted = True
            self._note(
                "warning",
                "limits.receiving_bytes_max is reached: large messages are refused",
                held_bytes=self.held_bytes,
                limit=self.bytes_max,
            )
        return Busy(
            f"messages being received already take {self.held_bytes} bytes",
            remedy="Send it again in a while, in smaller pieces, or raise "
            "limits.receiving_bytes_max.",
        )

    def change(self, difference: int) -> None:
        self.held_bytes += difference
        if self._is_noted and not self.is_tight:
            self._is_noted = False


class Share:
    """The part of the budget that one connection has."""

    __slots__ = ("_budget", "held_bytes")

    def __init__(self, budget: ReceiveBudget) -> None:
        self._budget = budget
        self.held_bytes = 0

    def hold(self, size: int) -> bool:
        """So many bytes are held now; False if that is more than there is room for."""
        budget = self._budget
        grows = size > self.held_bytes
        budget.change(size - self.held_bytes)
        self.held_bytes = size
        return not grows or size <= OWN_BYTES_MAX or budget.held_bytes <= budget.bytes_max

    def refuse(self) -> Busy:
        """The error for what no longer fits."""
        return self._budget.refuse()
