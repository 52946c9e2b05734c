"""What a person may see of the links of one broker, as `/overlay` shows it."""

from __future__ import annotations

import msgspec

from tocsin.overlay.routing.views import EntryView
from tocsin.services.control.views import ControlInfo


class LinkProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a link is not there, or was refused."""

    code: str
    problem: str
    remedy: str


class AddressProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why the last attempt at one address of a peer failed."""

    address: str
    error: LinkProblem


class PeerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A setting `--peer`: one address, or several of which one is used at a time."""

    addresses: tuple[str, ...]
    state: str  # linked, connecting or waiting
    used: str | None = None  # the address of the one that is linked
    broker: str | None = None  # and its id
    next_attempt_s: float | None = None
    error: LinkProblem | None = None  # of the last attempt, if it failed
    problems: tuple[AddressProblem, ...] = ()  # of each address that is tried, the last one


class NeighbourInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that is or was connected to this one."""

    broker: str
    state: str  # up, connecting or down
    peer: str | None  # the address of the other side
    is_outgoing: bool | None
    agent: str | None
    since_ns: int | None  # it is up, or down
    round_trip_ms: float | None
    behind: tuple[str, ...]  # brokers that are reached through it, it among them
    advertisements: int
    subscriptions: int
    lag: int | None  # events of the log that are not yet looked at, or not acknowledged by it
    in_flight: int  # sent, and not yet acknowledged
    sent: int  # events, since the start
    received: int
    repeats: int  # of those received, which the log had already
    ignored: int  # entries or events of it that were not taken
    dropped: int  # events that were given up for it: it was away for longer than the log is held
    error: LinkProblem | None = None  # the last one


class OverlayInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One broker's view of the overlay."""

    broker: str
    log: str
    link: str | None  # the address that others may connect to
    covering: bool
    brokers: tuple[str, ...]  # that can be reached now, this one not among them
    peers: tuple[PeerInfo, ...]
    neighbours: tuple[NeighbourInfo, ...]
    advertisements: tuple[EntryView, ...]  # the SRT
    advertisements_total: int
    subscriptions: tuple[EntryView, ...]  # the PRT
    subscriptions_total: int
    forgotten: tuple[str, ...]
    handovers: int  # backlogs of neighbours that are gone, on their way to brokers that moved
    refused: int  # connections, since the start
    discovery: dict[str, object]
    control: ControlInfo
