"""Clusters: which rows stand together, and how an event gets to them.

The access key of a row is an attribute that it wants at one value (also: a text, a prefix, a topic
pattern that must be there), the one with the fewest rows so far; or else the pair of its two
least-used attributes; or its only attribute. An event reaches a cluster only if it has the key, so
whatever is not reached cannot match.
"""

from __future__ import annotations

from operator import attrgetter

from tocsin.matching.attributes import Answers, Attribute

# A value is met more seldom than two attributes are, so the cluster of a value may be this many
# times as long as that of the pair before the pair is the better key.
VALUE_ADVANTAGE = 16
SHORT_CLUSTER_ROWS = 64  # not worth a comparison

AttributeTerm = tuple[Attribute, float, float]


_Key = tuple[Attribute, float | None, int | None]
"""(attribute, its value, the number of another): the attribute is there; or has the value; or is
there together with the other."""


class Clusters:
    """The clusters that have rows, by number."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._keys: list[_Key | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """One more than the highest number in use so far."""
        return len(self._sizes)

    @property
    def in_use(self) -> int:
        """How many have rows."""
        return len(self._sizes) - len(self._free)

    def join(self, terms: list[AttributeTerm]) -> int:
        """The cluster for a row of these terms, counted as one larger."""
        key = self._best_key(terms)
        cluster = _find(key)
        if cluster is None:
            cluster = self._new(key)
        self._sizes[cluster] += 1
        return cluster

    def leave(self, cluster: int) -> None:
        """Count the cluster as one smaller; without rows it is gone."""
        self._sizes[cluster] -= 1
        if self._sizes[cluster]:
            return
        key = self._keys[cluster]
        assert key is not None
        _detach(key)
        self._keys[cluster] = None
        self._free.append(cluster)

    def reached(self, answers: Answers) -> list[int]:
        """The clusters that an event with these answers can find rows in, each once."""
        numbers = {attribute.number for attribute, _ in answers}
        found: list[int] = []
        for attribute, value in answers:
            if attribute.cluster is not None:
                found.append(attribute.cluster)
            equals = attribute.equals
            if equals is not None and value in equals:
                found.append(equals[value])
            pairs = attribute.pairs
            if pairs is not None:
                # The shorter side is walked: neither a wide event nor a wide table is slow.
                if len(pairs) < len(numbers):
                    found.extend([pairs[other] for other in pairs if other in numbers])
                else:
                    found.extend([pairs[other] for other in numbers if other in pairs])
        return found

    def _best_key(self, terms: list[AttributeTerm]) -> _Key:
        best: _Key | None = None
        best_size = 0
        ranged: list[Attribute] = []
        for attribute, lo, hi in terms:
            if attribute.is_presence:
                key: _Key = (attribute, None, None)
            elif lo == hi:
                key = (attribute, lo, None)
            else:
                ranged.append(attribute)
                continue
            size = self._size(key)
            if best is None or size < best_size:
                best, best_size = key, size
        if best is None:
            return _pair_key(ranged)
        if best_size > SHORT_CLUSTER_ROWS and ranged:
            pair = _pair_key(ranged)
            return pair if best_size > VALUE_ADVANTAGE * self._size(pair) else best
        return best

    def _size(self, key: _Key) -> int:
        cluster = _find(key)
        return 0 if cluster is None else self._sizes[cluster]

    def _new(self, key: _Key) -> int:
        if self._free:
            cluster = self._free.pop()
            self._keys[cluster] = key
        else:
            cluster = len(self._sizes)
            self._sizes.append(0)
            self._keys.append(key)
        _attach(key, cluster)
        return cluster


_uses = attrgetter("uses")
_number = attrgetter("number")


def _pair_key(attributes: list[Attribute]) -> _Key:
    """Of the two least used, kept at the one with the lower number; one alone pairs with itself."""
    if len(attributes) > 2:
        attributes = sorted(attributes, key=_uses)[:2]
    first, last = min(attributes, key=_number), max(attributes, key=_number)
    return first, None, last.number


def _find(key: _Key) -> int | None:
    attribute, value, other = key
    if value is not None:
        return None if attribute.equals is None else attribute.equals.get(value)
    if other is not None:
        return None if attribute.pairs is None else attribute.pairs.get(other)
    return attribute.cluster


def _attach(key: _Key, cluster: int) -> None:
    attribute, value, other = key
    if value is not None:
        attribute.equals = attribute.equals or {}
        attribute.equals[value] = cluster
    elif other is not None:
        attribute.pairs = attribute.pairs or {}
        attribute.pairs[other] = cluster
    else:
        attribute.cluster = cluster


def _detach(key: _Key) -> None:
    attribute, value, other = key
    if value is not None:
        assert attribute.equals is not None
        del attribute.equals[value]
        attribute.equals = attribute.equals or None
    elif other is not None:
        assert attribute.pairs is not None
        del attribute.pairs[other]
        attribute.pairs = attribute.pairs or None
    else:
        attribute.cluster = None
