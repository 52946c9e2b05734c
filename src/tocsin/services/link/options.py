"""LinkOptions: what an operator may choose about links."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.peers import PeerOptions


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """The settings of one broker's links.

    `peers`: each is connected to; of those with commas, as in `one:8403,other:8403`, one of them at
    a time, the first if it can be reached.
    """

    peers: tuple[str, ...] = ()
    direct_addresses: tuple[str, ...] = ()  # where results may be sent directly, beside the peers
    heartbeat_s: float = 5.0
    silence_s: float = 15.0  # a neighbour that sends nothing for so long is gone
    handshake_s: float = 10.0  # from the connection to the neighbour's Hello
    links_max: int = 1_000
    acknowledge_s: float = 120.0  # for events that a neighbour was sent: then its link begins anew
    batch_events_max: int = 512  # of one message
    waiting_bytes_max: int = 64 << 20  # for one neighbour that reads too slowly: then it is cut off
    waiting_bytes_total_max: int = 512 << 20  # for all: then the one that most waits for is cut off
    received_bytes_max: int = 32 << 20  # of one neighbour, not handled yet: then nothing is read
    received_bytes_total_max: int = 256 << 20  # of all, events that are not stored yet among them
    routing: RoutingOptions = field(default_factory=RoutingOptions)
    reconnect: PeerOptions = field(default_factory=PeerOptions)
