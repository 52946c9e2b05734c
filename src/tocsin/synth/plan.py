"""Plan: the options of an archive to be generated, validated once."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from typing import Any, Final

import numpy as np

from tocsin.errors.settings import BadSetting
from tocsin.synth.texts import MS_PER_DAY, Ints

EVENTS_MIN: Final = 1_000  # fewer leave no room for what every archive must contain
EVENTS_MAX: Final = 10_000_000_000
EVENTS_A_DAY: Final = 100_000  # unless a number of days is asked for
DAYS_MIN: Final = 7
DAYS_MAX: Final = 365
SHARE_MAX: Final = 0.2
ROWS_OF_A_FILE: Final = 500_000  # in memory while they are generated: about 600 bytes each
ROWS_OF_A_FILE_MAX: Final = 2_000_000  # the bytes of one column must stay below 2 GiB
UNEVEN: Final = 1.05  # a window may have more events than the average


@dataclass(frozen=True, slots=True)
class Plan:
    """How many events, and which shares of them are broken, late or duplicates."""

    events: int
    seed: int = 0
    broken: float = 0.001
    duplicates: float = 0.01
    late: float = 0.001
    broken_files: bool = False
    """Some of the broken records make their whole file unreadable: see `broken.FILE_DAMAGE`."""
    files_of: int = ROWS_OF_A_FILE
    start: date = date(2026, 1, 1)
    days: int | None = None

    def __post_init__(self) -> None:
        _check("--events", self.events, EVENTS_MIN, EVENTS_MAX)
        _check("--seed", self.seed, 0, 2**63 - 1)
        _check("--files-of", self.files_of, 100, ROWS_OF_A_FILE_MAX)
        for name in ("broken", "duplicates", "late"):
            _check(f"--{name}", getattr(self, name), 0, SHARE_MAX)
        if self.days is not None:
            _check("--days", self.days, 1, 10 * DAYS_MAX)
        _check("the year of --start", self.start.year, 1980, 2200)

    @property
    def span_days(self) -> int:
        """As asked for, or as many as give files that are worth opening."""
        return self.days or min(max(self.events // EVENTS_A_DAY, DAYS_MIN), DAYS_MAX)

    @property
    def start_ms(self) -> int:
        return int(datetime.combine(self.start, time(), UTC).timestamp()) * 1_000

    @property
    def end_ms(self) -> int:
        return self.start_ms + self.span_days * MS_PER_DAY

    @property
    def windows_a_day(self) -> int:
        """A window is generated at once and becomes one file."""
        return math.ceil(self.events * UNEVEN / (self.span_days * self.files_of))

    @property
    def windows(self) -> int:
        return self.span_days * self.windows_a_day

    def window_begins_ms(self) -> Ints:
        """Of each window, and of the one after the last. None spans two dates."""
        day, part = np.divmod(np.arange(self.windows + 1), self.windows_a_day)
        within_ms = part * (MS_PER_DAY // self.windows_a_day)
        return np.asarray(self.start_ms + day * MS_PER_DAY + within_ms)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "start": str(self.start), "days": self.span_days}


def _check(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise BadSetting(f"{name} is {value}", remedy=f"Give a number from {least:,} to {most:,}.")
