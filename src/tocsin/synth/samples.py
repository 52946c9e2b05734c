"""Samples: deliveries, dead letters and directory searches, day by day."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tocsin.archive.file_names import (
    DEADLETTERS,
    DELIVERIES,
    DISCOVERIES,
    SUFFIX,
    date_of,
    format_date,
)
from tocsin.archive.parquet_writer import write_file
from tocsin.archive.samples import SCHEMAS
from tocsin.synth.world import HOUR_MS

US_PER_HOUR: Final = HOUR_MS * 1_000
HOURS: Final = 24
SUBSCRIPTIONS: Final = ("dashboard", "archive", "alarms", "accounting", "slow", "gone")
SLOW, GONE = "slow", "gone"
SLOW_SHARE: Final = 0.97  # of what is published is delivered in time to the slow one
DEAD_A_DAY: Final = 4
DISCOVERIES_A_DAY: Final = 40
REQUESTS: Final = ("[system,=,Linux],[memory,>,8]", "[disk,>,40]", "[rack,=,7]", "[gpu,>=,1]")


@dataclass(slots=True)
class Samples:
    """Writes the samples of one day after the other, and counts their rows."""

    directory: Path
    rng: np.random.Generator
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SCHEMAS, 0))
    _dead: int = 0

    def write_day(self, begin_us: int, seq_before: int, seq_after: int) -> None:
        """`seq_before` and `seq_after`: how far the log was when the day began and ended."""
        self._write(DELIVERIES, self._deliveries(begin_us, seq_before, seq_after))
        self._write(DEADLETTERS, self._dead_letters(begin_us, seq_before, seq_after))
        self._write(DISCOVERIES, self._discoveries(begin_us))

    def _deliveries(self, begin_us: int, before: int, after: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for hour in range(1, HOURS):
            at_us = begin_us + hour * US_PER_HOUR
            head = before + (after - before) * hour // HOURS
            for name in SUBSCRIPTIONS:
                behind = {SLOW: int(head * (1 - SLOW_SHARE)), GONE: head}.get(name, 0)
                is_gone = name == GONE
                found.append(
                    {
                        "at": at_us,
                        "subscription": name,
                        "sink": f"http://{name}.example.org/events",
                        "protocol": "http",
                        "state": "active",
                        "cursor": head - behind,
                        "behind": behind,
                        "waiting": min(behind, 100),
                        "delivered": head - behind,
                        "failed_attempts": self._dead * 8 if is_gone else 0,
                        "dead": self._dead if is_gone else 0,
                        "dropped": 0,
                        "sink_state": "failing" if is_gone else "healthy",
                        "last_error": "connection refused" if is_gone else None,
                        "last_delivered": None if is_gone else at_us - 1_000,
                    }
                )
        return found

    def _dead_letters(self, begin_us: int, before: int, after: int) -> list[dict[str, Any]]:
        if after <= before:  # a day on which nothing came
            return []
        moments = begin_us + np.sort(self.rng.integers(1, HOURS * US_PER_HOUR, DEAD_A_DAY))
        places = np.sort(self.rng.integers(before + 1, after + 1, DEAD_A_DAY))
        self._dead += DEAD_A_DAY
        return [
            {
                "at": int(at_us),
                "id": f"dead-{self._dead - DEAD_A_DAY + number}",
                "subscription": GONE,
                "sink": f"http://{GONE}.example.org/events",
                "seq": int(seq),
                "type": "bb.ActivityFailed",
                "topic": "blackboard/climate-assembly/-",
                "reason": "connection refused" if number % 2 else "the sink answered 503",
                "attempts": 8,
                "status": None if number % 2 else 503,
            }
            for number, (at_us, seq) in enumerate(zip(moments, places, strict=True), 1)
        ]

    def _discoveries(self, begin_us: int) -> list[dict[str, Any]]:
        count = DISCOVERIES_A_DAY
        moments = begin_us + np.sort(self.rng.integers(1, HOURS * US_PER_HOUR, count))
        seconds = self.rng.lognormal(np.log(0.003), 0.6, count)
        which = self.rng.integers(0, len(REQUESTS), count)
        found = self.rng.integers(0, 30, count)
        return [
            {
                "at": int(moments[number]),
                "model": "directory",
                "request": REQUESTS[which[number]],
                "found": int(found[number]),
                "seconds": round(float(seconds[number]), 6),
            }
            for number in range(count)
        ]

    def _write(self, kind: str, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        self.counts[kind] += len(rows)
        at_us, schema = rows[0]["at"], SCHEMAS[kind]
        folder = self.directory / kind / format_date(date_of(at_us))
        table = pa.Table.from_pylist(rows, schema=schema)
        write_file(str(folder), f"{at_us}{SUFFIX}", schema, table.to_batches(), {})
