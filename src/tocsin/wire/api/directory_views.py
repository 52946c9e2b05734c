"""What the API answers about the directory, as types."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class OfferedInfo(msgspec.Struct, frozen=True):
    """Events of one name, and what a subscriber can set."""

    name: str
    namespace: str
    parameters: list[str]


class EntryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A producer or a consumer. What the broker itself offers has no lease and does not expire."""

    id: str
    kind: Literal["producer", "consumer"]
    name: str
    host: str
    address: str | None
    events: list[OfferedInfo]
    attributes: dict[str, Any]
    lease: str | None
    registered: str
    expires: str | None


class DirectoryPage(msgspec.Struct, frozen=True):
    """Some entries, by id. Pass `next` as `after` to go on; null is the end."""

    entries: list[EntryInfo]
    next: str | None
