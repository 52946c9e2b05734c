"""The table of the settings about links to other brokers, and resources."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.broker.options import DAY_S
from tocsin.config.entries import OFF
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.control.options import ControlOptions
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.routing.options import PIECE_ENTRIES, RoutingOptions
from tocsin.overlay.routing.peers import PeerOptions
from tocsin.services.link.options import LinkOptions


@dataclass(frozen=True, slots=True)
class OverlaySettings:
    """[overlay]: links to other brokers, and how much is kept of what those want and offer."""

    address: str = "127.0.0.1:8403"  # where other brokers connect; or off, to connect only
    peers: tuple[str, ...] = ()  # each host:port, or several with commas: one of those is used
    public_address: str = ""  # how other brokers reach this one, if not as it listens
    direct_addresses: tuple[str, ...] = ()  # host:port of brokers that direct results may go to
    tls: bool = False  # connect to peers by TLS; whoever connects here uses it if there is one
    ca_file: str = ""  # PEM file of authorities that peers may have besides the system's
    client_certificate: str = ""  # PEM file, shown to peers; the broker's own if empty
    client_key: str = ""  # PEM file, without a password
    advertises: tuple[str, ...] = ()  # filters of what may be published here; none: everything
    covering: bool = True  # do not send on what a wider subscription or advertisement covers
    heartbeat_s: float = 5.0
    silence_s: float = 15.0  # a neighbour that sends nothing for so long is gone
    handshake_s: float = 10.0  # for the other side to say who it is
    connect_s: float = 10.0  # for a connection to a peer, with TLS
    message_deadline_s: float = 30.0
    bytes_per_s_min: int = 1024  # a message may take longer than the deadline if it flows
    stalled_reader_s: float = 60.0  # a neighbour that takes nothing for so long is cut off
    waiting_bytes_max: int = 64 << 20  # for one neighbour; with more it is cut off
    waiting_bytes_total_max: int = 512 << 20  # for all; with more the slowest is cut off
    received_bytes_max: int = 32 << 20  # of one neighbour, not handled yet; then it is not read
    received_bytes_total_max: int = 256 << 20  # of all neighbours
    acknowledge_s: float = 120.0  # for events sent to a neighbour; then its link is made anew
    pause_s_min: float = 0.5  # before a peer that failed is tried again; doubled each time
    pause_s_max: float = 30.0
    return_s: float = 30.0  # between attempts to go back from a standby to the first peer
    forget_after_s: float = 7.0 * DAY_S  # a neighbour away for so long is forgotten everywhere
    links_max: int = 1_000  # connections that others opened
    subscriptions_max: int = 1_000_000  # of all brokers, in the routing table
    advertisements_max: int = 20_000
    entry_bytes_max: int = 128 << 20  # of both, as they are sent
    subscriptions_per_neighbour_max: int = 50_000  # over one link: about 200 MB of memory
    advertisements_per_neighbour_max: int = 5_000
    entry_bytes_per_neighbour_max: int = 8 << 20  # a byte of a long filter takes about 25
    resources_per_neighbour_max: int = 100_000  # advertisements of resources over one link
    resource_bytes_per_neighbour_max: int = 64 << 20  # of those, as they are sent
    continuous_requests_per_neighbour_max: int = 50_000  # for resources, over one link
    resource_bytes_max: int = 256 << 20  # of all neighbours' advertisements of resources
    request_bytes_max: int = 64 << 20  # of requests for resources, as they are sent
    request_bytes_per_neighbour_max: int = 16 << 20
    result_bytes_max: int = 256 << 20  # found, to be shared or for continuous requests
    control_rate_neighbour: float = 500.0  # control messages a second over one link
    control_rate_total: float = 2_000.0  # over all links, and from clients
    control_rate_entity: float = 100.0  # that one client sends, and that one entity is sent
    control_waiting_bytes_max: int = 4 << 20  # of control messages, for one neighbour
    control_waiting_bytes_total_max: int = 64 << 20
    mailbox_bytes_max: int = 4 << 20  # of control messages, for one stream of an entity
    mailbox_bytes_total_max: int = 128 << 20
    brokers_max: int = 10_000  # behind all neighbours, and as many neighbours that are away
    brokers_per_neighbour_max: int = 5_000  # behind one of them

    @property
    def is_off(self) -> bool:
        return self.address == OFF

    def discovery_options(self) -> DiscoveryOptions:
        """The options type of resource discovery, at the start."""
        return DiscoveryOptions(
            advertisements_per_neighbour_max=self.resources_per_neighbour_max,
            advertisement_bytes_per_neighbour_max=self.resource_bytes_per_neighbour_max,
            continuous_per_neighbour_max=self.continuous_requests_per_neighbour_max,
            resource_bytes_max=self.resource_bytes_max,
            request_bytes_max=self.request_bytes_max,
            request_bytes_per_neighbour_max=self.request_bytes_per_neighbour_max,
            result_bytes_max=self.result_bytes_max,
        )

    def control_options(self) -> ControlOptions:
        """The options type of control messages."""
        return ControlOptions(
            neighbour_rate=self.control_rate_neighbour,
            total_rate=self.control_rate_total,
            entity_rate=self.control_rate_entity,
            waiting_bytes_max=self.control_waiting_bytes_max,
            waiting_bytes_total_max=self.control_waiting_bytes_total_max,
            mailbox_bytes_max=self.mailbox_bytes_max,
            mailbox_bytes_total_max=self.mailbox_bytes_total_max,
        )

    def link_options(self) -> LinkOptions:
        """The options type of the service of links."""
        return LinkOptions(
            peers=self.peers,
            direct_addresses=self.direct_addresses,
            heartbeat_s=self.heartbeat_s,
            silence_s=self.silence_s,
            handshake_s=self.handshake_s,
            links_max=self.links_max,
            waiting_bytes_max=self.waiting_bytes_max,
            waiting_bytes_total_max=self.waiting_bytes_total_max,
            received_bytes_max=self.received_bytes_max,
            received_bytes_total_max=self.received_bytes_total_max,
            acknowledge_s=self.acknowledge_s,
            routing=RoutingOptions(
                piece_entries_max=PIECE_ENTRIES,
                covering=self.covering,
                advertises=self.advertises or ("",),
                subscriptions_max=self.subscriptions_max,
                advertisements_max=self.advertisements_max,
                entry_bytes_max=self.entry_bytes_max,
                subscriptions_per_neighbour_max=self.subscriptions_per_neighbour_max,
                advertisements_per_neighbour_max=self.advertisements_per_neighbour_max,
                entry_bytes_per_neighbour_max=self.entry_bytes_per_neighbour_max,
                brokers_max=self.brokers_max,
                brokers_per_neighbour_max=self.brokers_per_neighbour_max,
                forget_after_ns=int(self.forget_after_s * NS_PER_S),
            ),
            reconnect=PeerOptions(
                pause_ns_min=int(self.pause_s_min * NS_PER_S),
                pause_ns_max=int(self.pause_s_max * NS_PER_S),
                return_ns=int(self.return_s * NS_PER_S),
            ),
        )
