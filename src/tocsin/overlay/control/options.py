"""ControlOptions: how many control messages there may be, and how much they may take."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.event.instant import NS_PER_S


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """Rates are messages a second; twice as many may come at once after a while of silence."""

    neighbour_rate: float = 500.0  # over one link
    total_rate: float = 2_000.0  # over all links, and from clients
    entity_rate: float = 100.0  # that one client sends, and that one entity is sent
    waiting_bytes_max: int = 4 << 20  # for one neighbour
    waiting_bytes_total_max: int = 64 << 20  # for all
    # A message that comes again within this time is known. No path takes longer.
    remembered_ns: int = 60 * NS_PER_S
    remembered_max: int = 200_000  # with about 300 bytes each: as many as come in that time
    senders_max: int = 10_000  # clients whose rate is counted at a time
    tdn_brokers_max: int = 256  # other brokers that have topic discovery nodes
    tdn_brokers_per_neighbour_max: int = 200
    share_pause_ns: int = NS_PER_S // 5  # between two times that neighbours are told of those
    mailbox_bytes_max: int = 4 << 20  # that wait for one stream of an entity
    mailbox_messages_max: int = 1_000
    mailbox_bytes_total_max: int = 128 << 20
    streams_per_entity_max: int = 10
    streams_max: int = 10_000
