"""Plan: what is asked for, read once and checked."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from tocsin.errors.settings import BadSetting

EVENTS_MIN: Final = 1_000  # fewer have no room for what must be in it
EVENTS_MAX: Final = 10_000_000_000
EVENTS_A_DAY: Final = 100_000  # unless a number of days is asked for
DAYS_MIN: Final = 7
DAYS_MAX: Final = 365
SHARE_MAX: Final = 0.2
ROWS_OF_A_FILE: Final = 500_000  # its columns are in memory while it is made: about 600 bytes each
ROWS_OF_A_FILE_MAX: Final = 2_000_000  # the bytes of one column must stay below 2 GiB
START: Final = date(2026, 1, 1)
MS_PER_DAY: Final = 86_400_000
UNEVEN: Final = 1.05  # a window may have more events than the average


@dataclass(frozen=True, slots=True)
class Plan:
    """How many events, and how many of them are not as they should be."""

    events: int
    seed: int = 0
    broken: float = 0.001
    duplicates: float = 0.01
    late: float = 0.001
    broken_files: bool = False
    """Some of the broken records make their whole file unreadable: see `broken.SPOILING`."""
    files_of: int = ROWS_OF_A_FILE
    start: date = START
    days: int | None = None

    def __post_init__(self) -> None:
        _within("--events", self.events, EVENTS_MIN, EVENTS_MAX)
        _within("--seed", self.seed, 0, 2**63 - 1)
        _within("--files-of", self.files_of, 100, ROWS_OF_A_FILE_MAX)
        for name in ("broken", "duplicates", "late"):
            _within(f"--{name}", getattr(self, name), 0, SHARE_MAX)
        if self.days is not None:
            _within("--days", self.days, 1, 10 * DAYS_MAX)
        _within("the year of --start", self.start.year, 1980, 2200)

    @property
    def span_days(self) -> int:
        """Over so many days; as many as give each file a size that is worth opening."""
        if self.days is not None:
            return self.days
        return min(max(self.events // EVENTS_A_DAY, DAYS_MIN), DAYS_MAX)

    @property
    def start_ms(self) -> int:
        moment = datetime(self.start.year, self.start.month, self.start.day, tzinfo=UTC)
        return int(moment.timestamp()) * 1_000

    @property
    def end_ms(self) -> int:
        return self.start_ms + self.span_days * MS_PER_DAY

    @property
    def windows_a_day(self) -> int:
        """A window is what is made at once, and becomes one file."""
        return math.ceil(self.events * UNEVEN / (self.span_days * self.files_of))

    @property
    def windows(self) -> int:
        return self.span_days * self.windows_a_day

    def told(self) -> dict[str, Any]:
        return {**asdict(self), "start": str(self.start), "days": self.span_days}


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise BadSetting(f"{name} is {value}", remedy=f"Give a number from {least:,} to {most:,}.")
