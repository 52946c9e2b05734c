"""The far ends of a broker process: who waits for an answer, and who follows a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tocsin.event.stored import Stored


class Question:
    """Somebody waits for an answer; compared by identity."""

    __slots__ = ("answer",)

    def __init__(self, answer: Callable[[object], None]) -> None:
        self.answer = answer


class StreamEnd(Protocol):
    """The far end of a stream."""

    def write(self, events: list[Stored]) -> bool: ...

    def dropped(self, count: int) -> None: ...

    def cut_off(self) -> None: ...
