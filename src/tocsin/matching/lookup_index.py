"""The subscriber lookup index of paper 004, figures 3 to 8: concept -> who wants it.

The paper walks the whole index for every subscription. Here a subscription touches its own concepts
and those that it no longer has, so the cost is that of the profile, however many others there are.
The aggregate profile is the index's own keys; it changes when one appears or goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

Address = TypeVar("Address")


class LookupIndex(Generic[Address]):
    """Subscription store and index in one, always in step."""

    def __init__(self, store: Mapping[Address, Iterable[str]] | None = None) -> None:
        self._profiles: dict[Address, frozenset[str]] = {}
        self._wanted_by: dict[str, dict[Address, None]] = {}
        # The concepts by which the aggregate differs from what it was when somebody cleared this:
        # what came and went again is not in it.
        self.changed: set[str] = set()
        for address, concepts in (store or {}).items():
            self.subscribe(address, concepts)

    def __len__(self) -> int:
        return len(self._profiles)

    def __contains__(self, address: Address) -> bool:
        return address in self._profiles

    def profile(self, address: Address) -> frozenset[str]:
        """What this subscriber wants; nothing if it is none."""
        return self._profiles.get(address, frozenset())

    def subscribe(self, address: Address, concepts: Iterable[str]) -> bool:
        """From now on the address wants these and nothing else. True if the aggregate changed."""
        profile = frozenset(concepts)
        former = self._profiles.get(address, frozenset())
        self._profiles[address] = profile
        index, changed = self._wanted_by, False
        for concept in profile - former:
            wanted_by = index.get(concept)
            if wanted_by is None:
                index[concept] = {address: None}
                self.changed ^= {concept}
                changed = True
            else:
                wanted_by[address] = None
        return self._withdraw(address, former - profile) or changed

    def unsubscribe(self, address: Address) -> bool:
        """The address wants nothing any more. True if the aggregate changed."""
        return self._withdraw(address, self._profiles.pop(address, frozenset()))

    def _withdraw(self, address: Address, concepts: frozenset[str]) -> bool:
        index, changed = self._wanted_by, False
        for concept in concepts:
            wanted_by = index[concept]
            del wanted_by[address]
            if not wanted_by:
                del index[concept]
                self.changed ^= {concept}
                changed = True
        return changed

    def wanted_by(self, concept: str) -> Iterable[Address]:
        """Who wants the concept, the longest subscribed first."""
        return self._wanted_by.get(concept, ())

    def split(self, pairs: Mapping[str, str]) -> dict[Address, dict[str, str]]:
        """The message to send to each subscriber: the pairs that it asked for, in their order."""
        outgoing: dict[Address, dict[str, str]] = {}
        index = self._wanted_by
        for concept, value in pairs.items():
            for address in index.get(concept, ()):
                message = outgoing.get(address)
                if message is None:
                    outgoing[address] = {concept: value}
                else:
                    message[concept] = value
        return outgoing

    def aggregate(self) -> frozenset[str]:
        """The set union of all profiles."""
        return frozenset(self._wanted_by)

    def wants(self, concept: str) -> bool:
        return concept in self._wanted_by
