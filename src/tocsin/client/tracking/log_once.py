"""LogOnce: problems of tracking in the log, each once. never_raises: no error of tracking reaches
the workflow."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

P = ParamSpec("P")

_log = logging.getLogger("tocsin.tracking")


class LogOnce:
    """Remembers what it logged, so that ten thousand lost events make one line."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def warn(self, key: str, text: str) -> None:
        """Log the text, unless something was logged under this key."""
        if key not in self._logged:
            self._logged.add(key)
            _log.warning("%s", text)

    def reset(self, key: str) -> None:
        """The problem is over; the next one of this key is logged again."""
        self._logged.discard(key)


_errors = LogOnce()


def never_raises(function: Callable[P, None]) -> Callable[P, None]:
    """The function with its exceptions logged, once for each kind."""

    @wraps(function)
    def guarded(*arguments: P.args, **named: P.kwargs) -> None:
        try:
            function(*arguments, **named)
        except Exception as error:
            where = function.__qualname__
            _errors.warn(f"{where} {type(error)}", f"Nothing was sent by {where}: {error!r}.")

    return guarded
