"""Whoever stands around a node: those who wait for it, those it writes to, and what it tells."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tocsin.errors import ShuttingDown, TocsinError

CLOCK_JUMP_S = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the broker runs, whether it can take events, and what speaks against it."""

    live: bool
    ready: bool
    reasons: list[str] = field(default_factory=list)


def health_of(
    failure: TocsinError | None,
    full: str | None,
    jump_s: float,
    beside: list[str],
    *,
    stopping: bool,
) -> Health:
    """How a broker is that met this failure, and whose wall clock was set by so much.

    `full` says why there is no room for events: then it answers, and is not ready. What is `beside`
    is told, and keeps nobody from publishing.
    """
    reasons = list(beside)
    if failure is not None:
        reasons.append(str(failure))
    if full is not None:
        reasons.append(full)
    if stopping:
        reasons.append("the broker is stopping")
    if abs(jump_s) > CLOCK_JUMP_S:
        reasons.append(
            f"the wall clock was set by {jump_s:+.1f} s since the start; "
            "leases and retries go by the time that really passed"
        )
    ready = failure is None and full is None and not stopping
    return Health(failure is None, ready, reasons)


class Waiter:
    """Somebody who awaits an answer in a coroutine."""

    __slots__ = ("future",)

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self.future = future

    def answer(self, result: object) -> None:
        if self.future.done():
            return
        if isinstance(result, TocsinError):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


def shutting_down() -> ShuttingDown:
    return ShuttingDown("the broker is stopping", remedy="Send it again when it is back.")
