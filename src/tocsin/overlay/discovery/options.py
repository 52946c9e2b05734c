"""Options of resource discovery. They may be exchanged while the broker runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.event.instant import NS_PER_S
from tocsin.wire.link.discovery_messages import ATTRIBUTES_MAX, RESULTS_MAX


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """Switches and limits."""

    similarity: bool = True  # requests share the answers of those that cover them
    reply_to: str = ""  # where this broker takes connections, for direct results
    direct: bool = False  # results go straight to the requester's broker; nothing is shared then
    package: bool = True  # what one broker's resources answer is one message
    package_cached: bool = True  # what is shared from a cache is one message
    cache_expiry_ns: int = 100 * NS_PER_S  # how long an answer is shared (paper 001, 5.2)
    guard_ns: int = 5 * NS_PER_S  # how much longer it is kept for what is on its way
    timeout_ns: int = 30 * NS_PER_S  # for an answer, if some broker never sends its end marker
    resources_max: int = 100_000  # registered here; no service may keep more in the log
    advertisements_max: int = 4_000_000  # of all brokers
    advertisements_per_neighbour_max: int = 100_000  # over one link
    advertisement_bytes_per_neighbour_max: int = 64 << 20  # of those, as they are sent
    resource_bytes_max: int = 1 << 30  # of all advertisements of other brokers
    request_bytes_max: int = 64 << 20  # of all requests, also of those that wait for others
    request_bytes_per_neighbour_max: int = 16 << 20
    result_bytes_max: int = 256 << 20  # kept to be shared, and for continuous requests
    requests_max: int = 1_000_000  # that passed and are not forgotten yet
    continuous_max: int = 100_000
    continuous_per_neighbour_max: int = 50_000  # over one link
    continuous_per_host_max: int = 10_000  # of those, of clients of one broker
    cleared_at_once_max: int = 200  # entries of a link that has ended, in one turn
    waiting_max: int = 10_000  # for one cover
    results_max: int = 1_000_000  # of one request
    attributes_max: int = ATTRIBUTES_MAX
    results_per_message_max: int = RESULTS_MAX
    result_bytes_per_message_max: int = 1 << 20  # one larger result is a message by itself
    hops_max: int = 1_024


DEFAULTS: Final = DiscoveryOptions()
