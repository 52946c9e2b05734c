"""ProfileFilter: leaves out of messages what nobody subscribed to. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tocsin.wire.blackboard.messages import Message, Profile


@dataclass(frozen=True, slots=True)
class ProfileFilter:
    """`relevant` are the concepts that make a message worth sending: all but those of identity.

    Who a message is about is in every message, so it alone says nothing.
    """

    concepts: frozenset[str]
    relevant: frozenset[str]
    everything: bool = False

    def __contains__(self, concept: str) -> bool:
        return self.everything or concept in self.concepts

    def __or__(self, other: ProfileFilter) -> ProfileFilter:
        return ProfileFilter(
            self.concepts | other.concepts,
            self.relevant | other.relevant,
            self.everything or other.everything,
        )

    def apply(self, message: Message) -> Message | None:
        """The message with the pairs that were asked for, or None if it is not worth sending."""
        if self.everything:
            return message
        pairs = message.pairs
        if self.relevant.isdisjoint(pairs):
            return None
        concepts = self.concepts
        if concepts.issuperset(pairs):
            return message
        kept = {concept: value for concept, value in pairs.items() if concept in concepts}
        return msgspec.structs.replace(message, pairs=kept)


def profile_filter(profile: Profile, identity: Iterable[str]) -> ProfileFilter:
    """The filter of an aggregate profile; `identity` are the concepts that only say who or what."""
    concepts = frozenset(profile.concepts)
    return ProfileFilter(concepts, concepts.difference(identity), profile.everything)
