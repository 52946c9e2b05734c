"""UnderWay: a commit that the disk has not answered for yet, and who waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.broker.effects import Ended, Reply, Token
from tocsin.broker.wish import Wish
from tocsin.event.stored import Batch


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What is done and told once the batch is on disk."""

    batch: Batch
    promised: list[Reply]  # to publishers
    wishes: list[Wish]
    replies: list[Reply]
    ends: list[Ended]

    def askers(self) -> list[Token]:
        """Those whose own request this commit carries: if it fails, theirs has."""
        return [reply.token for reply in self.promised] + [wish.token for wish in self.wishes]
