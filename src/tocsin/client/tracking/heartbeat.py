"""Heartbeat: calls a function again and again, in a thread of its own, until it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread


class Heartbeat:
    """A forked child has none: the parent's goes on, and says that the run does."""

    def __init__(self, every_s: float, beat: Callable[[], None]) -> None:
        self._every_s = every_s
        self._beat = beat
        self._stopped = Event()
        Thread(target=self._run, name="tocsin-heartbeat", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            self._beat()
