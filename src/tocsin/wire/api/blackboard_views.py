"""What the blackboard answers with."""

from __future__ import annotations

import msgspec

from tocsin.ontology import Concept
from tocsin.wire.blackboard.messages import Profile


class ConceptList(msgspec.Struct, frozen=True):
    """Every concept that the broker has loaded."""

    concepts: list[Concept]


class PublisherInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """A publisher; `listed` is false while it cannot be reached."""

    id: str
    address: str
    listed: bool
    profile: Profile | None = None


class PublisherList(msgspec.Struct, frozen=True):
    """The publishers that are notified of the aggregate profile."""

    publishers: list[PublisherInfo]


class SubscriberInfo(msgspec.Struct, frozen=True):
    """A subscriber; `listed` is false while it cannot be reached, and its pairs not asked for."""

    id: str
    address: str
    concepts: list[str]
    expanded: int
    state: str
    listed: bool
    delivered: int
    waiting: int


class SubscriberList(msgspec.Struct, frozen=True):
    """Everybody who gets pairs pushed."""

    subscribers: list[SubscriberInfo]
