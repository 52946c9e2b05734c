"""Wanted: an aggregate profile made ready to leave out what nobody asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from tocsin.wire.blackboard.messages import Message, Profile


@dataclass(frozen=True, slots=True)
class Wanted:
    """`telling` is what makes a message worth sending: all that is wanted but plain identity.

    Who a message is about is in every message, so it alone says nothing.
    """

    concepts: frozenset[str]
    telling: frozenset[str]
    everything: bool = False

    def __contains__(self, concept: str) -> bool:
        return self.everything or concept in self.concepts

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(
            self.concepts | other.concepts,
            self.telling | other.telling,
            self.everything or other.everything,
        )

    def thinned(self, message: Message) -> Message | None:
        """The message with the pairs that are wanted, or None if it is not worth sending."""
        if self.everything:
            return message
        pairs = message.pairs
        if self.telling.isdisjoint(pairs):
            return None
        concepts = self.concepts
        if concepts.issuperset(pairs):
            return message
        kept = {concept: value for concept, value in pairs.items() if concept in concepts}
        return msgspec.structs.replace(message, pairs=kept)


def wanted(profile: Profile, identity: Iterable[str]) -> Wanted:
    """The profile, ready to use; `identity` are the concepts that only say who or what."""
    concepts = frozenset(profile.concepts)
    return Wanted(concepts, concepts.difference(identity), profile.everything)
