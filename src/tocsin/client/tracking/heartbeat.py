"""Heartbeat: calls a function at an interval, in a thread of its own, until it is stopped.

A run whose jobs take hours is not taken for lost as long as its heartbeats come.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

HEARTBEAT_S = 30.0


class Heartbeat:
    """A forked child has none: the parent's goes on, and says that the run does."""

    def __init__(self, beat: Callable[[], None], interval_s: float = HEARTBEAT_S) -> None:
        self._beat = beat
        self._interval_s = interval_s
        self._stopped = Event()
        self._process = os.getpid()

    def start(self) -> None:
        Thread(target=self._run, name="tocsin-heartbeat", daemon=True).start()

    def stop(self) -> None:
        """A call that is under way may still end after this."""
        # In a forked child the event's lock may be held for ever by the thread that is not there.
        if os.getpid() == self._process:
            self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval_s):
            with suppress(Exception):
                self._beat()
