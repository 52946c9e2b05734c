"""Durations and instants on the command line: read, and written as the broker and people do."""

from __future__ import annotations

import time

from tocsin.client.durations import seconds
from tocsin.event.instant import NS_PER_S, rfc3339

__all__ = ["brief", "instant_before", "iso_duration", "seconds"]


def iso_duration(text: str) -> str:
    """The same in the form that the broker's API takes."""
    whole_s, rest_s = divmod(seconds(text), 86_400)
    return f"P{whole_s:.0f}DT{rest_s:.3f}S"


def instant_before(duration_s: float) -> str:
    """The moment so long ago, in RFC 3339."""
    return rfc3339(time.time_ns() - int(duration_s * NS_PER_S), digits=6)


def brief(duration_s: float) -> str:
    """A duration for a table: 850ms, 12s, 3m, 5h, 2d."""
    if duration_s < 1:
        return f"{duration_s * 1000:.0f}ms"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if duration_s >= 2 * size:
            return f"{duration_s / size:.0f}{unit}"
    return f"{duration_s:.0f}s"
