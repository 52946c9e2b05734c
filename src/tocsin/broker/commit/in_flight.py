"""InFlightCommit: a commit that the store has not answered for yet, and who waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.broker.commit.pending_change import PendingChange
from tocsin.broker.effects import Ended, Reply, Token
from tocsin.event.stored import StateChange


@dataclass(frozen=True, slots=True)
class InFlightCommit:
    """What is done and answered once it is on disk."""

    change: StateChange
    publishers: list[Token]  # one for each offer of the append
    pending: list[PendingChange]
    replies: list[Reply]
    ends: list[Ended]

    def askers(self) -> list[Token]:
        """Those whose own request this commit carries: if it fails, theirs has."""
        return self.publishers + [change.token for change in self.pending]
