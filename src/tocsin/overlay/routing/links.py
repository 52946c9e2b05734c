"""Link: one connection to a neighbour, from its first message on; and who may be a neighbour."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import Literal

from tocsin.errors import (
    BadLinkMessage,
    LinkCycle,
    LinkToItself,
    LinkTwice,
    LinkVersion,
    RoutingTableFull,
    TocsinError,
)
from tocsin.overlay.routing.effects import EntryKey
from tocsin.overlay.routing.proofs import End
from tocsin.overlay.routing.reach import Reach, beyond
from tocsin.wire.link.messages import PROTOCOL_VERSION, Hello


class Phase(IntEnum):
    """How far a link has come; each phase follows the one before it."""

    OPENED = auto()  # our Hello was sent
    GREETED = auto()  # their Hello was accepted
    UP = auto()  # ours was too; our advertisements were sent
    SUBSCRIBING = auto()  # their advertisements are complete; our subscriptions were sent
    COMPLETE = auto()  # their subscriptions are complete, and so are those that we sent


@dataclass(frozen=True, slots=True)
class Identity:
    """What a broker says about itself in its Hello."""

    broker: str
    log: str
    data_format: int
    agent: str
    instance: str = "-"


@dataclass(slots=True, eq=False)
class Remaining:
    """A table that is being sent on a new link, as it was when that began."""

    table: Literal["advertisements", "subscriptions"]
    keys: list[EntryKey]
    sent: int = 0  # of these


@dataclass(slots=True, eq=False)
class Link:
    """A connection, what was sent on it, and what the neighbour has still to name again."""

    number: int
    is_outgoing: bool
    replacing: str = ""  # the neighbour that is left for this one
    nonce: str = "-"
    token: str = ""  # for the neighbour, if it has none yet
    phase: Phase = Phase.OPENED
    neighbour: str = ""
    hello: Hello | None = None  # the neighbour's, until it is welcome
    sent_behind: dict[str, str] = field(default_factory=dict)  # of brokers behind us
    places_missing: dict[str, frozenset[str]] = field(default_factory=dict)
    """For each broker behind the neighbour that has said so: of this broker and those in
    `sent_behind`, the ones whose place it has not said to have on its disk."""
    places_lacking: set[str] = field(default_factory=set)
    """The brokers behind the neighbour that have not said so of all these places."""
    places_held: list[tuple[frozenset[str], frozenset[str]]] = field(default_factory=list)
    """Brokers behind the neighbour, and those that have their places on disk: to be sent."""
    # The filter of each as text; None for one that is gone, and withdrawn when no cycle is left.
    sent_advertisements: dict[EntryKey, str | None] = field(default_factory=dict)
    sent_subscriptions: dict[EntryKey, str | None] = field(default_factory=dict)
    unnamed_advertisements: set[EntryKey] = field(default_factory=set)
    unnamed_subscriptions: set[EntryKey] = field(default_factory=set)
    remaining: deque[Remaining] = field(default_factory=deque)  # tables not sent to their end
    has_all: bool = False  # of the neighbour's tables
    offers_all: bool = False  # so every subscription goes there
    compared: int = 0  # offers with subscriptions
    is_costly: bool = False  # too many were: for the rest of the link it offers all
    early: dict[str, list[EntryKey]] = field(default_factory=dict)
    """Brokers at which these hold, as the neighbour says, and that it has not named so far."""
    early_count: int = 0
    ignored: int = 0  # entries of the neighbour that were not taken
    refused: dict[tuple[str, EntryKey], str] = field(default_factory=dict)
    """Of those, the ones that it has no right to, by table: it may be granted one."""
    refused_chars: int = 0

    def ends(self, broker: str) -> tuple[End, End]:
        """This broker's and the neighbour's."""
        nonce = "-" if self.hello is None else self.hello.nonce
        return End(broker, self.nonce), End(self.neighbour, nonce)

    def dialler(self, broker: str) -> str:
        return broker if self.is_outgoing else self.neighbour


def paths_without(hello: Hello, broker: str, replacing: str) -> Mapping[str, str]:
    """What is behind the sender, aside from what it reaches through us: by an older connection
    between us that has ended, or by the neighbour that we leave for it."""
    behind = hello.behind
    if behind.get(broker) not in {hello.broker, replacing}:
        return behind
    through_us = beyond(behind, broker)
    return {each: before for each, before in behind.items() if each not in through_us}


def refusal_of(
    hello: Hello, own: Identity, reach: Reach, brokers_max: int, replacing: str
) -> TocsinError | None:
    """Why the sender cannot be a neighbour, or None if it can."""
    if hello.protocol != PROTOCOL_VERSION:
        return LinkVersion(
            f"{hello.broker} speaks version {hello.protocol} of the link protocol "
            f"({hello.agent}), and this broker version {PROTOCOL_VERSION} ({own.agent})",
            remedy="Update the older of the two.",
        )
    if hello.data_format != own.data_format:
        return LinkVersion(
            f"{hello.broker} has data format {hello.data_format} ({hello.agent}), and this broker "
            f"{own.data_format} ({own.agent})",
            remedy="Update the older of the two.",
        )
    if hello.broker == own.broker:
        return LinkToItself(
            f"the other side has the id of this broker, {own.broker}",
            remedy="Name another broker as --peer, or start the copy with an empty data directory.",
        )
    if hello.broker in hello.behind:
        return BadLinkMessage(
            f"{hello.broker} says that it is behind itself",
            remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
        )
    behind = paths_without(hello, own.broker, replacing)
    if max(len(reach), len(behind)) + 1 > brokers_max:
        return too_many_brokers(brokers_max)
    leaving = (hello.leaving, hello.broker)
    met = reach.overlap((hello.broker, *behind), without=(hello.broker, replacing), cut=leaving)
    way = None if met is None else reach.way_to(met)
    # A broker that has no link with the one before it on that way is another one with its id, or
    # has just lost that link.
    if way is not None and met == hello.broker and reach.behind(way)[met] not in behind:
        return elsewhere_error(met, f"{own.broker}, through {way},")
    if met == own.broker and not reach.behind(behind[met]):
        return elsewhere_error(met, f"{hello.broker}, through {behind[met]},")
    if met is not None:
        return cycle_error(hello.broker, own.broker, met, reach.way_to(met))
    return None


def too_many_brokers(brokers_max: int) -> RoutingTableFull:
    return RoutingTableFull(
        f"the overlay would have more than {brokers_max} brokers, those that are away among them",
        remedy="Raise brokers_max in [overlay], at every broker, or `tocsin overlay forget` some.",
    )


def cycle_error(neighbour: str, broker: str, met: str, way: str | None) -> LinkCycle:
    already = f"{met} is reached through {way} already" if way else f"{met} is reached already"
    return LinkCycle(
        f"a link between {broker} and {neighbour} would close a cycle: {already}",
        remedy="Remove one --peer on the way; or leave it as a standby, used when that way fails.",
    )


def loser(one: Link, other: Link, broker: str) -> Link:
    """Of two connections with one neighbour, the one to close; both sides decide alike.

    The one that the smaller id opened stays. Of two that the same side opened the newer stays: it
    would not have opened it, had the older one not failed.
    """
    older, newer = sorted((one, other), key=lambda link: link.number)
    if older.dialler(broker) == newer.dialler(broker):
        return older
    return max(older, newer, key=lambda link: link.dialler(broker))


def elsewhere_error(broker: str, by_whom: str) -> LinkTwice:
    return LinkTwice(
        f"a broker with the id {broker} is reached by {by_whom} already",
        remedy="If this is a copy of its data directory, start it with an empty one. If it has "
        "another way into the overlay, name a peer as its standby; if it has lost that way, it is "
        "let in once the loss is noticed.",
    )


def twice_error(neighbour: str) -> LinkTwice:
    return LinkTwice(
        f"there is another connection with {neighbour}, which is used",
        remedy="Nothing needs to be done.",
    )


def out_of_turn(link: Link, message: object) -> BadLinkMessage:
    return BadLinkMessage(
        f"{type(message).__name__} cannot come while the link is {link.phase.name}",
        remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
    )
