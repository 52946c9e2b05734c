"""What the API answers about resources and how they are found, as types."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Model = Literal["static", "dynamic"]
RequestModel = Literal["static", "dynamic", "static continuous", "dynamic continuous"]


class ResourceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that is registered at this broker. Without a lease it stays until withdrawn."""

    id: str
    model: Model
    advertisement: str
    attributes: dict[str, Any]
    kind: str | None
    address: str | None
    lease: str | None
    registered: str
    updated: str | None
    expires: str | None


class ResourcesPage(msgspec.Struct, frozen=True):
    """Resources of this broker, by id. Pass `next` as `after` to go on; null is the end."""

    resources: list[ResourceInfo]
    next: str | None


class FoundResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that was found: its values, and when they were read at its broker.

    `hops` is how many links away that broker is; `round_trip_s` is how long its answer took, for
    static resources the round trip to the neighbour on the way there; null if neither is known.
    `ranges` are what a static resource advertises of attributes that have no single value, in
    words; a dynamic one is found by its values, and has none here.
    """

    id: str
    broker: str
    attributes: dict[str, Any]
    ranges: dict[str, str]
    as_of: str
    kind: str | None
    address: str | None
    hops: int
    round_trip_s: float | None


class DiscoveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a one-time request.

    `brokers` read their resources for it, `messages` went between brokers. `oldest` is how old what
    it rests on may be. `incomplete` and `why_empty` are null, or say what is missing and why.
    """

    resources: list[FoundResource]
    brokers: list[str]
    messages: int
    shared: bool
    oldest: str
    stopped_early: bool
    incomplete: str | None
    why_empty: str | None


class DiscoveryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A continuous request; `resources` is how many match it now."""

    id: str
    stream: str
    request: str
    model: RequestModel
    resources: int
    created: str
    expires: str | None
    why_empty: str | None


class CurrentResources(msgspec.Struct, frozen=True, kw_only=True):
    """Of a continuous request: all that matched at the beginning, `resources` in number, has come.

    `brokers` have read their resources for it, `messages` went between brokers.
    """

    resources: int
    brokers: list[str]
    messages: int
    incomplete: str | None
    why_empty: str | None


class DiscoveryList(msgspec.Struct, frozen=True):
    """The continuous requests of this broker's clients."""

    discoveries: list[DiscoveryInfo]


class OverlayOptions(msgspec.Struct, frozen=True):
    """How requests for dynamic resources travel; seconds for the cache expiry."""

    similarity: bool
    direct: bool
    cache_expiry_s: float
