"""Durations that people write in commands and calls."""

from __future__ import annotations

from tocsin.errors import BadSetting
from tocsin.event.instant import duration_s


def seconds(text: str) -> float:
    """How many seconds a duration is; BadSetting if it is none."""
    found = duration_s(text)
    if found is None:
        raise BadSetting(
            f"{text[:80]!r} is not a duration",
            remedy="Write 500ms, 90s, 10m, 1h30m, 7d or PT1H30M.",
        )
    return found
