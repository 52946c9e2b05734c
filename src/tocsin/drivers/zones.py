"""Time zones by name, for times of the day in resources and requests."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone_offset_s(name: str) -> int | None:
    """How far the zone is ahead of UTC at this moment; None if there is no such zone."""
    try:
        offset = datetime.now(ZoneInfo(name)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return None if offset is None else int(offset.total_seconds())
