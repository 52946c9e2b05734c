"""Durations as people write them: 500ms, 90, 90s, 10m, 1h30m, PT1H30M; and instants as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tocsin.errors import BadSetting

DURATION_S_MAX = 100 * 365 * 86_400

_SHORT = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s(?:ec)?)?")
_MILLISECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*ms")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0)


def seconds(text: str) -> float:
    """How many seconds a duration is."""
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        found: float | None = float(stripped)
    elif (thousandths := _MILLISECONDS.fullmatch(stripped.lower())) is not None:
        found = float(thousandths[1]) / 1_000
    else:
        match = _SHORT.fullmatch(stripped.lower()) or _ISO.fullmatch(stripped.upper())
        parts = match.groups() if match else ()
        found = (
            sum(float(part) * unit for part, unit in zip(parts, _UNITS_S, strict=True) if part)
            if any(parts)
            else None
        )
    if found is None or found > DURATION_S_MAX:
        raise BadSetting(
            f"{text!r} is not a duration", remedy="Write 500ms, 90s, 10m, 1h30m, 7d or PT1H30M."
        )
    return found


def iso_duration(text: str) -> str:
    """The same in the form that the broker's API takes."""
    whole_s, rest_s = divmod(seconds(text), 86_400)
    return f"P{whole_s:.0f}DT{rest_s:.3f}S"


def instant_before(duration_s: float) -> str:
    """The moment so long ago, in RFC 3339."""
    return (datetime.now(UTC) - timedelta(seconds=duration_s)).isoformat().replace("+00:00", "Z")


def brief(duration_s: float) -> str:
    """A duration for a table: 850ms, 12s, 3m, 5h, 2d."""
    if duration_s < 1:
        return f"{duration_s * 1000:.0f}ms"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if duration_s >= 2 * size:
            return f"{duration_s / size:.0f}{unit}"
    return f"{duration_s:.0f}s"
