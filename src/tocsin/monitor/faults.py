"""Faults: which failures are the same one, seen again."""

from __future__ import annotations

import re
from typing import Final
from zlib import crc32

from tocsin.monitor.fold import Row, latest

WORDS_CHARS_MAX: Final = 300

# What differs between two occurrences of the same: numbers, addresses, ids, temporary paths.
_VARIES = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+|/[^\s'\":,]+", re.IGNORECASE)


def fault_of(row: Row, kind: str) -> int:
    """A number that is the same for failures of the same kind of activity for the same reason."""
    error = latest(row, "error") or latest(row, "trace") or latest(row, "log") or ""
    # A trace says at its end what happened, a message at its beginning.
    lines = [line for line in error.splitlines() if line.strip()] or [""]
    line = lines[0] if latest(row, "error") else lines[-1]
    words = _VARIES.sub("#", line[:WORDS_CHARS_MAX]).strip().lower()
    return crc32(f"{kind}\0{latest(row, 'exit_code')}\0{words}".encode(errors="replace"))
