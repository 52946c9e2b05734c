"""Samples: what the archive keeps beside events. How deliveries went, and what was looked for.

    ARCHIVE/_deliveries/date=2026-11-16/<at_us>.parquet     DELIVERIES_SCHEMA
    ARCHIVE/_deadletters/date=2026-11-16/<at_us>.parquet    DEADLETTERS_SCHEMA
    ARCHIVE/_discoveries/date=2026-11-16/<at_us>.parquet    DISCOVERIES_SCHEMA
    ARCHIVE/_deliveries/date=2026-11-15/<first>-<last>-<count>.parquet    merged, of a date past

A file is named by the moment of its first row, in microseconds, and never changes. A merged one is
named by the first and the last that it was made of, and by how many they were. What lies between
the two is in it: where one of them is still there, it counts for nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

import pyarrow as pa

from tocsin.archive.facts import MOMENT
from tocsin.archive.file_names import DEADLETTERS, DELIVERIES, DISCOVERIES, SUFFIX
from tocsin.archive.record import VERSION, VERSION_KEY

_NUMBER: Final = r"(0|[1-9]\d*)"  # without zeros before it: each file has one name
_NAME: Final = re.compile(rf"{_NUMBER}(?:-{_NUMBER}-{_NUMBER})?\.parquet", re.ASCII)

_METADATA: Final = {VERSION_KEY: str(VERSION).encode()}

DELIVERIES_SCHEMA: Final = pa.schema(
    [
        pa.field("at", MOMENT, nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("sink", pa.string()),  # a URL, or none: a stream, a box
        pa.field("protocol", pa.string()),
        pa.field("state", pa.string()),
        pa.field("cursor", pa.int64()),  # the last sequence number that is done with
        pa.field("behind", pa.int64()),  # how many events the log is ahead of it
        pa.field("waiting", pa.int64()),  # how many are under way or held for it
        pa.field("delivered", pa.int64()),  # since the broker started, as the next three
        pa.field("failed_attempts", pa.int64()),
        pa.field("dead", pa.int64()),
        pa.field("dropped", pa.int64()),
        pa.field("sink_state", pa.string()),
        pa.field("last_error", pa.string()),
        pa.field("last_delivered", MOMENT),
    ],
    metadata=_METADATA,
)

DEADLETTERS_SCHEMA: Final = pa.schema(
    [
        pa.field("at", MOMENT, nullable=False),  # when it was given up
        pa.field("id", pa.string(), nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("sink", pa.string()),
        pa.field("seq", pa.int64()),
        pa.field("type", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("attempts", pa.int64()),
        pa.field("status", pa.int64()),  # of HTTP, in the last answer
    ],
    metadata=_METADATA,
)

DISCOVERIES_SCHEMA: Final = pa.schema(
    [
        pa.field("at", MOMENT, nullable=False),
        pa.field("model", pa.string(), nullable=False),  # which way of finding: "directory"
        pa.field("request", pa.string()),
        pa.field("found", pa.int64()),
        pa.field("seconds", pa.float64()),
        pa.field("brokers", pa.int64()),  # that were asked; null where there is one
        pa.field("messages", pa.int64()),
        pa.field("shared", pa.int64()),  # answers that served another question as well
    ],
    metadata=_METADATA,
)

SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    DELIVERIES: DELIVERIES_SCHEMA,
    DEADLETTERS: DEADLETTERS_SCHEMA,
    DISCOVERIES: DISCOVERIES_SCHEMA,
}


@dataclass(frozen=True, slots=True, order=True)
class SampleFile:
    """What the name of a file says: it has what `count` files had, from `first` through `last`."""

    first: int
    last: int
    count: int = 1

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """None if the name is none of ours."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        first = int(found[1])
        if found[2] is None:
            return cls(first, first)
        last, count = int(found[2]), int(found[3])
        return cls(first, last, count) if first < last and count > 1 else None

    @property
    def is_merged(self) -> bool:
        return self.count > 1

    @property
    def name(self) -> str:
        if self.is_merged:
            return f"{self.first}-{self.last}-{self.count}{SUFFIX}"
        return f"{self.first}{SUFFIX}"

    @property
    def name_of_last(self) -> str:
        """That of the last file it was made of; its own, if it was made of none."""
        return f"{self.last}{SUFFIX}"


def superseded(files: Iterable[SampleFile]) -> dict[SampleFile, SampleFile]:
    """Of the files of one directory those that were merged, and the one that each is in."""
    ordered = sorted(files)
    merged = [each for each in ordered if each.is_merged]
    found: dict[SampleFile, SampleFile] = {}
    for each in ordered:
        place = bisect_right(merged, each.first, key=lambda other: other.first) - 1
        if not each.is_merged and place >= 0 and each.first <= merged[place].last:
            found[each] = merged[place]
    return found
