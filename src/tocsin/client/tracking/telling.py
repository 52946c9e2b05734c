"""What tracking has to say to people: in the log, and each thing once."""

from __future__ import annotations

import logging

_log = logging.getLogger("tocsin.tracking")


class Teller:
    """Remembers what it said, so that ten thousand events that are lost make one line."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def once(self, about: str, words: str) -> None:
        """Say it, unless something was said of the same."""
        if about not in self._said:
            self._said.add(about)
            _log.warning("%s", words)

    def again(self, about: str) -> None:
        """What was said of this is over; the next time it is told again."""
        self._said.discard(about)
