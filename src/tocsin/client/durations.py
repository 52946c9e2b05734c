"""Durations as people write them: 500ms, 90, 90s, 10m, 5min, 1h30m, PT1H30M."""

from __future__ import annotations

import re

from tocsin.errors import BadSetting

DURATION_S_MAX = 100 * 365 * 86_400

_SHORT = re.compile(
    r"(?:(\d+)d(?:ays?)?)?(?:(\d+)h(?:ours?)?)?(?:(\d+)m(?:in)?)?(?:(\d+(?:\.\d+)?)s(?:ec)?)?"
)
_MILLISECONDS = re.compile(r"(\d+(?:\.\d+)?)ms")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_GAP = re.compile(r"(?<=\d)\s+(?=[A-Za-z])|(?<=[A-Za-z])\s+(?=\d)")
_UNITS_S = (86_400.0, 3_600.0, 60.0, 1.0)


def seconds(text: str) -> float:
    """How many seconds a duration is."""
    stripped = _GAP.sub("", text.strip())
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
            f"{text[:80]!r} is not a duration",
            remedy="Write 500ms, 90s, 10m, 1h30m, 7d or PT1H30M.",
        )
    return found
