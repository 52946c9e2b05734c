"""Sparing: lines for the log about what peers did wrong, but not one for each of a million."""

from __future__ import annotations

from collections.abc import Callable

LINES_MAX = 1_000  # at once
LINE_S = 0.2  # then one in so many seconds

Note = Callable[..., None]
"""Writes to the broker's own log: level, message, then fields by name."""


class Sparing:
    """Writes what it is told while there is room, and then how much was left unsaid."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._room = float(LINES_MAX)
        self._last_s = 0.0
        self._unsaid = 0

    def warn(self, now_s: float, message: str, **fields: object) -> None:
        self._room = min(float(LINES_MAX), self._room + max(0.0, now_s - self._last_s) / LINE_S)
        self._last_s = now_s
        if self._room < 1.0:
            self._unsaid += 1
            return
        self._room -= 1.0
        if self._unsaid:
            fields["unsaid"] = self._unsaid
            self._unsaid = 0
        self._note("warning", message, **fields)
