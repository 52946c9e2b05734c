"""Moments as blackboard messages write them: RFC 3339, UTC, milliseconds."""

from __future__ import annotations

import time
from functools import lru_cache

NS_PER_MS = 1_000_000


@lru_cache(maxsize=64)
def _second_text(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def time_text(at_ns: int) -> str:
    """A moment by this machine's clock, given in nanoseconds since 1970."""
    second, rest_ms = divmod(at_ns // NS_PER_MS, 1_000)
    return f"{_second_text(second)}.{rest_ms:03}Z"
