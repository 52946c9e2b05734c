"""Deadline: a time limit that can be stopped, and goes on with what was left of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """Of the loop's thread alone. It knows whom to tell only while it is set."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expired: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._left_s: float | None = None  # while it is stopped

    @property
    def is_set(self) -> bool:
        return self._expired is not None

    def start(
        self, limit_s: float, expired: Callable[[], None], *, is_stopped: bool = False
    ) -> None:
        """From now on, or from when it goes on."""
        self.cancel()
        self._left_s, self._expired = limit_s, expired
        if not is_stopped:
            self.go_on()

    def stop(self) -> None:
        """Time does not count for a while."""
        if self._timer is not None:
            self._left_s = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """It counts again."""
        if self._left_s is not None:
            self._timer = self._loop.call_later(self._left_s, self._expire)
            self._left_s = None

    def cancel(self) -> None:
        """There is none any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._left_s = self._expired = None

    def _expire(self) -> None:
        expired = self._expired
        self.cancel()
        if expired is not None:
            expired()
