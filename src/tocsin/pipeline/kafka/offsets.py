"""Which messages of a topic are new, and which sequence numbers they get.

Kafka counts in each partition; the tables count once. So a run numbers what is new on from where
the tables are: one partition after another, each message by its offset. The numbers are the
tables' own. What was taken is known by the offsets, which are kept with each part of the state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.errors.spark import EventsGone

Offsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Messages of one partition: those of [start, end), numbered from `seq` on."""

    partition: int
    start: int
    end: int
    seq: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Offsets that Kafka let go before they were read: those of [start, end)."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KafkaPlan:
    """What to read."""

    ranges: tuple[OffsetRange, ...]
    lost: tuple[Lost, ...]
    positions: dict[str, int]
    """Where each partition goes on afterwards."""
    is_all: bool = True
    """False if there is more than was to be read at a time."""

    @property
    def messages(self) -> int:
        """How many at most: a topic may have holes."""
        return sum(each.end - each.start for each in self.ranges)


def plan(
    taken: Mapping[str, int], begins: Offsets, ends: Offsets, after: int, messages_max: int | None
) -> KafkaPlan:
    """What is new in a topic that has [begins, ends) of each partition.

    Raises EventsGone if it ends before what was taken: it is not the topic that it was.
    """
    whole: dict[int, tuple[int, int]] = {}
    lost: list[Lost] = []
    if gone := {int(each) for each in taken} - ends.keys():
        raise _another_topic(f"there is no partition {min(gone)}, and these tables have read it")
    for partition in sorted(ends):
        begin, end = begins[partition], ends[partition]
        position = taken.get(str(partition), begin)
        if position > end:
            raise _another_topic(
                f"partition {partition} ends at offset {end}, and these tables have read up to "
                f"{position}"
            )
        if position < begin:
            lost.append(Lost(partition, position, begin))
        whole[partition] = (max(position, begin), end)
    cut = _cut(whole, messages_max)
    positions = {str(partition): end for partition, (_, end) in cut.items()}
    return KafkaPlan(_numbered(cut, after), tuple(lost), {**taken, **positions}, cut == whole)


def _another_topic(how: str) -> EventsGone:
    return EventsGone(
        f"{how}: it is not the topic that they were made of",
        remedy="Name other tables with --tables, or use --rebuild to start over.",
    )


def _cut(whole: dict[int, tuple[int, int]], messages_max: int | None) -> dict[int, tuple[int, int]]:
    """Of each partition its share of so many messages."""
    total = sum(end - start for start, end in whole.values())
    if messages_max is None or total <= messages_max:
        return whole
    return {
        partition: (start, start + -(-(end - start) * messages_max // total))
        for partition, (start, end) in whole.items()
    }


def _numbered(whole: dict[int, tuple[int, int]], after: int) -> tuple[OffsetRange, ...]:
    ranges: list[OffsetRange] = []
    for partition, (start, end) in whole.items():
        if start < end:
            ranges.append(OffsetRange(partition, start, end, after + 1))
            after += end - start
    return tuple(ranges)
