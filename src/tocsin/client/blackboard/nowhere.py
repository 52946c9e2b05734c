"""Nowhere: the link to an address that is none. Whoever uses it is told why, each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tocsin.client.blackboard.link import Subscription
from tocsin.errors import TocsinError
from tocsin.wire.blackboard.messages import Message, Profile


class Nowhere:
    """Refuses everything with the error that it was made with."""

    is_remote = True

    def __init__(self, name: str, error: TocsinError) -> None:
        self.name = name
        self._error = error

    def publish(self, messages: Sequence[Message]) -> int:
        raise self._error

    def profile(self, *, after: int | None = None, wait_s: float = 0.0) -> Profile:
        raise self._error

    def subscribe(self, concepts: Iterable[str], *, after: int | None = None) -> Subscription:
        raise self._error

    def interrupt(self) -> None:
        """Nobody waits here."""

    def reopened(self) -> Nowhere:
        return self

    def close(self) -> None:
        """Nothing is open."""
