"""Snapshot: what the disk tells a broker that starts."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tocsin.event.subscription import Subscription


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The end of the log, the duplicates window, the subscriptions and their places."""

    last_seq: int = 0
    first_seq: int = 1
    recent: list[tuple[str, str, int]] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    cursors: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0

    @staticmethod
    def filters_of(subscription: Subscription) -> list[object]:
        filters: list[object] = msgspec.json.decode(subscription.filters, type=list[object])
        return filters
