"""What the API answers about links to other brokers, as types: `/overlay`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

ROWS_DEFAULT = 100
ROWS_MAX = 10_000


class LinkProblemInfo(msgspec.Struct, frozen=True):
    """Why a link is not there, or what came by it and was not taken."""

    code: str
    problem: str
    remedy: str


class AddressProblemInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Why the last attempt at one address of a peer failed."""

    address: str
    error: LinkProblemInfo


class PeerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A setting `--peer`: one address, or several of which one is used at a time.

    `used` and `broker` are the address and the id of the one that is linked. `error` is that of the
    last attempt; `problems` has the last one of each address that is tried.
    """

    addresses: list[str]
    state: Literal["linked", "connecting", "waiting"]
    used: str | None
    broker: str | None
    next_attempt_s: float | None
    error: LinkProblemInfo | None
    problems: list[AddressProblemInfo]


class NeighbourStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that is or was linked with this one.

    `lag` counts events of the log that it has not acknowledged, or that were not yet looked at for
    it; `dropped` were given up, as it was away for longer than the log is held for anybody. Events
    are counted since this broker started. `behind` are the brokers reached through it.
    """

    broker: str
    state: Literal["up", "connecting", "down"]
    peer: str | None
    outgoing: bool | None
    agent: str | None
    since: str | None
    round_trip_ms: float | None
    behind: list[str]
    advertisements: int
    subscriptions: int
    lag: int | None
    in_flight: int
    sent: int
    received: int
    repeats: int
    ignored: int
    dropped: int
    error: LinkProblemInfo | None


class RouteInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a routing table: what was advertised or subscribed to at broker `origin`.

    `last_hop` is the neighbour that it came from, null if it was made at this broker. `reached`
    names the brokers where it holds, with the time when this broker heard so.
    """

    origin: str
    id: str
    filter: str
    last_hop: str | None
    sent_to: list[str]
    covered_by: list[list[str]]
    reached: dict[str, str]


class TdnsStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A broker with topic discovery nodes, and their ids."""

    broker: str
    tdns: list[str]


class ControlStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Control messages of this broker since its start: by what they are about, and those that were
    dropped by the reason. `repeats` came once more while there was a cycle.

    `waiting_bytes` wait for neighbours, `mailbox_bytes` for `streams` of entities.
    """

    sent: dict[str, int]
    received: dict[str, int]
    forwarded: dict[str, int]
    delivered: dict[str, int]
    dropped: dict[str, int]
    repeats: int
    remembered: int
    waiting_bytes: int
    streams: int
    mailbox_bytes: int


class OverlayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the overlay looks from this broker. `rows` bounds each table; totals count all rows.

    `tdns` are the brokers with topic discovery nodes, this one among them.
    """

    broker: str
    log: str
    link: str | None
    covering: bool
    brokers: list[str]
    peers: list[PeerStatus]
    neighbours: list[NeighbourStatus]
    advertisements: list[RouteInfo]
    advertisements_total: int
    subscriptions: list[RouteInfo]
    subscriptions_total: int
    forgotten: list[str]
    handovers: int
    refused: int
    discovery: dict[str, Any]
    tdns: list[TdnsStatus]
    control: ControlStatus
