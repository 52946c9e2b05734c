"""Snapshot: what the disk tells a broker that starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from tocsin.broker.state import CLOCK
from tocsin.errors import DataDirectoryUnusable
from tocsin.event.stored import Stored
from tocsin.event.subscription import Subscription, from_definition


class Log(Protocol):
    """What a log can tell of itself."""

    def recent_keys(self, count: int) -> list[tuple[str, str, int]]: ...

    def subscriptions(self) -> dict[str, bytes]: ...

    def cursors(self) -> dict[str, int]: ...

    def dead_count(self) -> int: ...

    def kept(self) -> dict[str, bytes]: ...

    def read_one(self, seq: int) -> Stored | None: ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The end of the log, the duplicates window, the subscriptions, and what services keep."""

    last_seq: int = 0
    first_seq: int = 1
    recent: list[tuple[str, str, int]] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    cursors: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    last_received_ns: int = 0
    kept: dict[str, bytes] = field(default_factory=dict)

    @property
    def last_time_ns(self) -> int:
        """The last time of day that was sure; 0 if the log is new."""
        return self.cursors.get(CLOCK, self.last_received_ns)

    @staticmethod
    def filters_of(subscription: Subscription) -> list[object]:
        filters: list[object] = msgspec.json.decode(subscription.filters, type=list[object])
        return filters


def _known(name: str, data: bytes) -> Subscription:
    """To go on without it would let the log forget what it waits for."""
    try:
        return from_definition(data)
    except msgspec.ValidationError as error:
        raise DataDirectoryUnusable(
            f"subscription {name} was written by a newer Tocsin: {error}",
            remedy="Start that version, or name another data directory.",
        ) from error


def take_snapshot(log: Log, first_seq: int, last_seq: int, duplicates_window: int) -> Snapshot:
    """What a broker needs to go on where the last one stopped."""
    recent = log.recent_keys(duplicates_window)
    last = log.read_one(recent[-1][2] if recent else last_seq)  # the newest that can be read
    return Snapshot(
        last_seq=last_seq,
        first_seq=first_seq,
        recent=recent,
        subscriptions=[_known(name, data) for name, data in log.subscriptions().items()],
        cursors=log.cursors(),
        dead_letters=log.dead_count(),
        last_received_ns=0 if last is None else last.received_ns,
        kept=log.kept(),
    )
