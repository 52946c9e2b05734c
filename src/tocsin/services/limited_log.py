"""LimitedLog: warnings about what peers did wrong, but not one line for each of a million."""

from __future__ import annotations

from tocsin.broker.runtime import Runtime

LINES_MAX = 1_000  # at once
LINE_S = 0.2  # then one in so many seconds


class LimitedLog:
    """Writes warnings while there is room, and then how many were left out."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._room = float(LINES_MAX)
        self._last_s = 0.0
        self._left_out = 0

    def warn(self, message: str, **fields: object) -> None:
        now_s = self._runtime.elapsed_s()
        self._room = min(float(LINES_MAX), self._room + max(0.0, now_s - self._last_s) / LINE_S)
        self._last_s = now_s
        if self._room < 1.0:
            self._left_out += 1
            return
        self._room -= 1.0
        if self._left_out:
            fields["left_out"] = self._left_out
            self._left_out = 0
        self._runtime.note("warning", message, **fields)
