"""What the blackboard answers with."""

from __future__ import annotations

import msgspec

from tocsin.ontology import Concept
from tocsin.wire.blackboard.messages import Profile


class ConceptsShown(msgspec.Struct, frozen=True):
    """Every concept that the broker has loaded."""

    concepts: list[Concept]


class PublisherShown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A publisher; `listed` is false while it cannot be reached."""

    id: str
    address: str
    listed: bool
    profile: Profile | None = None


class PublishersShown(msgspec.Struct, frozen=True):
    """Everybody who is told of the aggregate profile."""

    publishers: list[PublisherShown]


class SubscriberShown(msgspec.Struct, frozen=True):
    """A subscriber; `listed` is false while it cannot be reached, and its pairs not asked for."""

    id: str
    address: str
    concepts: list[str]
    expanded: int
    state: str
    listed: bool
    delivered: int
    waiting: int


class SubscribersShown(msgspec.Struct, frozen=True):
    """Everybody who gets pairs pushed."""

    subscribers: list[SubscriberShown]
