"""Which events somebody asked for by concept: those that carry a value under one of the names.

A concept stands for all that it subsumes, worked out here, once, when somebody subscribes. An index
then looks up plain names, and publishing costs the same as without an ontology.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tocsin.event.filter import ByConcept, Operator, Predicate
from tocsin.ontology import in_use

CONCEPTS_MAX = 10_000  # that one subscriber may name
_NAMES_KEPT = 65_536


def concepts_filter(names: Iterable[str]) -> ByConcept:
    """Events with a value for any of these concepts, or for any that one of them subsumes."""
    return ByConcept(tuple(_present(name) for name in sorted(in_use().expanded(names))))


@lru_cache(maxsize=_NAMES_KEPT)
def _present(name: str) -> Predicate:
    """One object for a name, however many profiles have it."""
    return Predicate(name, Operator.EXISTS)
