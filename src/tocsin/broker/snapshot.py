"""Snapshot: what a broker that starts reads from the disk."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from tocsin.broker.log import EventStore, StoreReader
from tocsin.broker.options import BrokerOptions
from tocsin.broker.state.state import CLOCK
from tocsin.errors import DataDirectoryUnusable
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Subscription, from_definition


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where the log begins and ends, the subscriptions, and the state of services."""

    last_seq: int = 0
    first_seq: int = 1
    subscriptions: list[Subscription] = field(default_factory=list)
    cursors: dict[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    last_received_ns: int = 0
    service_state: dict[str, bytes] = field(default_factory=dict)

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


def take_snapshot(log: StoreReader) -> Snapshot:
    """What a broker needs to go on where the last one stopped."""
    first_seq, last_seq = log.bounds()
    last = log.last_where(lambda _: True, first_seq - 1, last_seq)  # the newest that can be read
    return Snapshot(
        last_seq=last_seq,
        first_seq=first_seq,
        subscriptions=[_known(name, data) for name, data in log.subscriptions().items()],
        cursors=log.cursors(),
        dead_letters=log.dead_count(),
        last_received_ns=0 if last is None else last.received_ns,
        service_state=log.service_state(),
    )


def load_snapshot(store: EventStore, options: BrokerOptions) -> Snapshot:
    """Make the store ready to append, and read what is in it."""
    jump_ns = int(options.clock_jump_s * NS_PER_S)
    store.open_window(duplicates_window=options.duplicates_window, clock_jump_ns=jump_ns)
    reader = store.reader()
    try:
        return take_snapshot(reader)
    finally:
        reader.close()
