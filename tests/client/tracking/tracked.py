"""What the tests of the tracking library share: a board that hears everything, and quick waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.client.blackboard import InProcessBlackboard, Message
from tocsin.client.tracking import Workflow

PATIENCE_S = 30.0


class Received:
    """A blackboard in this process, and every message that came of the concepts asked for."""

    def __init__(self, *concepts: str) -> None:
        self.board = InProcessBlackboard()
        self._subscription = self.board.subscribe(concepts or ("Event", "Property"))
        self._messages: list[Message] = []

    @property
    def messages(self) -> list[Message]:
        self._messages += [each.message for each in self._subscription.take(0)]
        return self._messages

    def of(self, concept: str) -> list[dict[str, str]]:
        """The pairs of each message that has the concept."""
        return [reported.pairs for reported in self.messages if concept in reported.pairs]

    @contextmanager
    def workflow(self, spool: Path, **named: object) -> Iterator[Workflow]:
        run = Workflow("forecast", link=self.board, spool=spool, **named)  # type: ignore[arg-type]
        with run:
            yield run


def eventually(is_so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.01)
    return is_so()
