"""IdSource: the ids that one producer or consumer gives, each once, on whichever connection.

The paper wants them unique for whoever gives them (sections 4.2.1, 4.2.2); a conversation by itself
makes them unique on its connection.
"""

from __future__ import annotations

from itertools import count

from tocsin.wire.gma.conversation import Conversation


class IdSource:
    """Of the loop's thread alone."""

    def __init__(self) -> None:
        self._requests = count(1)
        self._subscriptions = count(1)
        self._events = count(1)

    def conversation(self, roles: str) -> Conversation:
        """One side of a new conversation, in that role."""
        return Conversation(
            frozenset({roles}),
            lambda: str(next(self._subscriptions)),
            lambda: str(next(self._requests)),
        )

    def event(self) -> str:
        """The number of an event that is to be answered: no other of this producer has it, and
        no request, so that feeds may share a connection."""
        return f"e{next(self._events)}"
