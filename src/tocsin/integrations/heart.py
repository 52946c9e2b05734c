"""A sign of life now and then, so that a run whose jobs take hours is not taken for lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

HEARTBEAT_S = 30.0


class Heart:
    """Calls `beat` every `period_s` in a thread of its own, until it is stopped."""

    def __init__(self, beat: Callable[[], None], period_s: float = HEARTBEAT_S) -> None:
        self._beat = beat
        self._period_s = period_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tocsin-heart", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """It may still be beating once: who waits for that waits for a lock, not for a network."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._period_s):
            with suppress(Exception):
                self._beat()
