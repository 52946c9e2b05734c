"""What waits for a commit: changes that clients asked for, and all that one under way carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tocsin.broker.commit.numbering import Applied
from tocsin.broker.effects import Ended, Reply, Token
from tocsin.event.stored import StateChange


class NextCommit(msgspec.Struct, frozen=True):
    """An answer that is true once the next commit is on disk, too."""

    answer: object


class PendingChange(msgspec.Struct, frozen=True):
    """Staged with the next commit, applied when that is on disk."""

    token: Token
    stage: Callable[[], None]  # puts it into `State.unsaved`
    apply: Callable[[Applied, int], object]
    """Takes what the commit did and the time; returns the answer, or a `NextCommit` with it."""


@dataclass(frozen=True, slots=True)
class InFlightCommit:
    """A commit that the store has not answered for yet: what is done and answered once it has."""

    change: StateChange
    publishers: list[Token]  # one for each offer of the append
    pending: list[PendingChange]
    replies: list[Reply]
    ends: list[Ended]

    def askers(self) -> list[Token]:
        """Those whose own request this commit carries: if it fails, theirs has."""
        return self.publishers + [change.token for change in self.pending]
