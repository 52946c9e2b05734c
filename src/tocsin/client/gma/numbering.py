"""Numbering: the ids that one producer or consumer gives, each once, on whichever connection.

The paper wants them unique for whoever gives them (sections 4.2.1, 4.2.2); a conversation by itself
makes them unique on its connection.
"""

from __future__ import annotations

from itertools import count

from tocsin.wire.gma.conversation import Conversation


class Numbering:
    """Of the loop's thread alone."""

    def __init__(self) -> None:
        self._requests = count(1)
        self._subscriptions = count(1)

    def conversation(self, plays: str) -> Conversation:
        """One side of a new conversation, in that role."""
        return _Numbered(frozenset({plays}), self._requests, self._subscriptions)


class _Numbered(Conversation):
    def __init__(
        self, plays: frozenset[str], requests: count[int], subscriptions: count[int]
    ) -> None:
        super().__init__(plays, lambda: str(next(subscriptions)))
        self._shared = requests

    def _next_request(self) -> str:
        return str(next(self._shared))
