"""OverlayPlan: which brokers of a world connect to each other, and what goes wrong between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tocsin.event.instant import NS_PER_MS, NS_PER_S
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.peers import PeerOptions
from tocsin.services.link.options import LinkOptions

PORT = 8403
SMALL_PIECES_BROKERS_MAX = 8  # with more, tables of single entries take most of a run


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """One broker of the overlay, and its clients that discover."""

    options: LinkOptions
    discovery: DiscoveryOptions
    resources: int
    requests: int  # of one client, one after the other
    watches: int = 0  # clients with a continuous request each


@dataclass(frozen=True, slots=True)
class Separation:
    """Two brokers cannot reach each other for a while."""

    one: int
    other: int
    at_ms: float
    for_ms: float


@dataclass(frozen=True, slots=True)
class OverlayPlan:
    """The members by their numbers."""

    members: tuple[MemberPlan, ...]
    breaks: float
    separations: tuple[Separation, ...] = ()
    is_searching: bool = False  # clients ask for the first ones, for ages and orders, and watch


def draw_overlay(random: Random, brokers: int, *, standbys: bool = True) -> OverlayPlan:
    """A random tree. Most links are opened by the newer broker, some by the older one."""
    peers: list[list[str]] = [[] for _ in range(brokers)]
    for number in range(1, brokers):
        chosen = random.randrange(number)
        if random.random() < 0.25:
            peers[chosen].append(address_of(number))
            continue
        others = [each for each in range(number) if each != chosen]
        names = [address_of(chosen)]
        if standbys and others and random.random() < 0.6:
            names.append(address_of(random.choice(others)))
        peers[number].append(",".join(names))
    covering = random.random() < 0.8
    direct = random.random() < 0.2
    return OverlayPlan(
        members=tuple(
            _member(random, each, covering=covering, direct=direct, brokers=brokers)
            for each in peers
        ),
        breaks=random.choice((0.0, 0.003, 0.02)),
        separations=_separations(random, brokers),
    )


def search(plan: OverlayPlan, random: Random) -> OverlayPlan:
    """The same brokers with more resources, requests that cover each other, and watchers."""
    expiry_ns = random.choice((NS_PER_S // 2, NS_PER_S, NS_PER_S))
    members = tuple(
        replace(
            member,
            discovery=replace(member.discovery, cache_expiry_ns=expiry_ns),
            resources=random.randint(1, 3),
            requests=random.randint(4, 8),
            watches=random.randint(0, 2),
        )
        for member in plan.members
    )
    return replace(plan, members=members, is_searching=True)


def address_of(number: int) -> str:
    """Where a broker takes connections from others."""
    return f"broker-{number}.example:{PORT}"


def _separations(random: Random, brokers: int) -> tuple[Separation, ...]:
    found: list[Separation] = []
    for _ in range(random.choice((0, 0, 1, 2))):
        one, other = random.sample(range(brokers), 2)
        for_ms = random.choice((50.0, 800.0, 3_000.0))
        found.append(Separation(one, other, random.uniform(0, 1_000), for_ms))
    return tuple(found)


def _member(
    random: Random, peers: list[str], *, covering: bool, direct: bool, brokers: int
) -> MemberPlan:
    batch = random.choice((1, 3, 512))
    options = LinkOptions(
        peers=tuple(peers),
        direct_addresses=tuple(address_of(number) for number in range(0, brokers, 2)),
        heartbeat_s=0.5,
        silence_s=1.5,
        handshake_s=1.0,
        batch_events_max=batch,
        routing=RoutingOptions(
            covering=covering,
            cycle_grace_ns=NS_PER_S,
            piece_entries_max=batch if brokers <= SMALL_PIECES_BROKERS_MAX else None,
        ),
        reconnect=PeerOptions(
            pause_ns_min=50 * NS_PER_MS, pause_ns_max=NS_PER_S, return_ns=2 * NS_PER_S
        ),
    )
    discovery = DiscoveryOptions(
        direct=direct,
        cache_expiry_ns=random.choice((0, NS_PER_S // 2, NS_PER_S)),
        guard_ns=NS_PER_S // 4,
        timeout_ns=2 * NS_PER_S,
    )
    return MemberPlan(options, discovery, random.randint(0, 2), random.choice((0, 2, 3)))


def calm(plan: OverlayPlan) -> OverlayPlan:
    """The same brokers, with nothing that goes wrong between them."""
    return replace(plan, breaks=0.0, separations=())
