"""Permits: which events one holder may have, as the rights are at each moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tocsin.access.decision import Action
from tocsin.access.policy.grants import Grants
from tocsin.event.event import Event
from tocsin.event.subscription import Owner


class GrantsOfHolders(Protocol):
    """The policy, as a permit asks it."""

    now_ns: Callable[[], int]

    def grants_of(
        self, name: str, groups: frozenset[str], credential: str, entity_id: str = ""
    ) -> Grants: ...


class HolderPermit:
    """Which events one holder may have, by the policy as it is at the moment."""

    __slots__ = ("_action", "_expired", "_expires_ns", "_groups", "_owner", "_policy")

    def __init__(
        self, policy: GrantsOfHolders, owner: Owner, action: Action, expires_ns: int | None
    ) -> None:
        self._policy = policy
        self._owner = owner
        self._groups = frozenset(owner.groups)
        self._action = action
        self._expires_ns = expires_ns
        self._expired = Grants(owner.name, is_valid=False)

    @property
    def _now(self) -> Grants:
        policy, owner = self._policy, self._owner
        if self._expires_ns is not None and policy.now_ns() >= self._expires_ns:
            return self._expired
        return policy.grants_of(owner.name, self._groups, owner.credential, owner.entity_id)

    @property
    def version(self) -> int:
        """Another one whenever an event might be answered otherwise than before."""
        return self._now.number

    @property
    def tells_withheld(self) -> bool:
        return self._now.tells_withheld

    @property
    def is_empty(self) -> bool:
        """True if it allows nothing: the right, or the credential, has ended."""
        return not self._now.has_any(self._action)

    def allows(self, event: Event) -> bool:
        return self._now.event_reason(self._action, event).allowed

    def readable(self) -> ReadableNow | None:
        """As it is at this moment; None if it allows everything."""
        grants = self._now
        return None if grants.has_all(self._action) else ReadableNow(grants, self._action)


class ReadableNow:
    """What one holder may have at one moment."""

    __slots__ = ("_action", "_grants")

    def __init__(self, grants: Grants, action: Action) -> None:
        self._grants = grants
        self._action = action

    def has_event(self, event: Event) -> bool:
        return self._grants.event_reason(self._action, event).allowed

    def has_all_on(self, resource: str, topics: frozenset[str]) -> bool:
        return self._grants.reason(self._action, resource, topics).allowed

    def has_topic(self, topic: str) -> bool:
        return self._grants.has_topic(topic)
