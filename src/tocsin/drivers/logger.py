"""The broker's own log, for operators. Nothing from a message is ever written raw."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TextIO

from tocsin.broker.effects import Level
from tocsin.event.instant import rfc3339

FIELD_CHARACTERS_MAX = 500

WriteLog = Callable[..., None]
"""Writes a line to the broker's own log: level, message, then fields by name."""


class Logger:
    """Writes to standard error: words for people, or JSON for machines."""

    def __init__(self, *, as_json: bool = False, stream: TextIO | None = None) -> None:
        self._as_json = as_json
        self._stream = stream or sys.stderr

    def __call__(self, level: Level, message: str, **fields: object) -> None:
        moment = rfc3339(time.time_ns())
        if self._as_json:
            line = json.dumps(
                {"time": moment, "level": level, "message": message, **_short(fields)},
                default=str,
            )
        else:
            # JSON strings have no line breaks and no control characters, so neither has the line.
            said = " ".join(f"{k}={json.dumps(v, default=str)}" for k, v in _short(fields).items())
            # The message may quote somebody, too: a parser does in what it says.
            words = "".join(each if each.isprintable() else "\ufffd" for each in message)
            line = f"{moment} {level:7} {words} {said}".rstrip()
        try:
            print(line, file=self._stream, flush=True)
        except (OSError, ValueError):
            return  # nobody reads it any more; a broker does not stop for that


def _short(fields: dict[str, object]) -> dict[str, object]:
    return {
        key: value[:FIELD_CHARACTERS_MAX] if isinstance(value, str) else value
        for key, value in fields.items()
    }
