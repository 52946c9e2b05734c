"""Delegated rights: what owners of topics have granted to entities, beside the rules of a site.

They are checked by whoever puts them here. An entity has them in every session that it signs in to
with its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from tocsin.access.policy.rights import Right


class DelegatedRight(msgspec.Struct, frozen=True):
    """A right of one entity, and what gives it, as a decision says."""

    entity_id: str
    reason: str
    right: Right


class DelegatedRights:
    """All of them, by the name that each is kept under."""

    def __init__(self) -> None:
        self._by_name: dict[str, DelegatedRight] = {}
        self._of_entity: dict[str, dict[str, DelegatedRight]] = {}
        self.changed: list[Callable[[], None]] = []  # called after each change

    def __len__(self) -> int:
        return len(self._by_name)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def put(self, name: str, delegated: DelegatedRight) -> None:
        self._take(name)
        self._by_name[name] = delegated
        self._of_entity.setdefault(delegated.entity_id, {})[name] = delegated
        self._change()

    def drop(self, name: str) -> None:
        if self._take(name):
            self._change()

    def rights_of(self, entity_id: str) -> list[tuple[str, Right]]:
        """Each with what gives it."""
        return [(each.reason, each.right) for each in self._of_entity.get(entity_id, {}).values()]

    def count_of(self, entity_id: str) -> int:
        return len(self._of_entity.get(entity_id, ()))

    def ends(self) -> Iterator[int | None]:
        return (each.right.expires_ns for each in self._by_name.values())

    def _take(self, name: str) -> bool:
        known = self._by_name.pop(name, None)
        if known is None:
            return False
        of_entity = self._of_entity[known.entity_id]
        del of_entity[name]
        if not of_entity:
            del self._of_entity[known.entity_id]
        return True

    def _change(self) -> None:
        for listener in self.changed:
            listener()
