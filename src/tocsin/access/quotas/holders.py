"""Holder: a principal or an address, what it may have and what it has now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from tocsin.access.quotas.rules import Limits, Quota
from tocsin.event.instant import NS_PER_S

HOLDERS_MAX: Final = 20_000  # that are remembered; past that, those with nothing go
LOOKED_AFTER_MIN: Final = 64  # of one kind, before it is asked which are gone


class Presence(NamedTuple):
    """How it is known of something, by its name, whether it is still there. What is gone for good
    is forgotten; what only has run out, and may be renewed, does not count meanwhile."""

    is_there: Callable[[str], bool]
    is_kept: Callable[[str], bool] | None = None  # False: gone for good; as `is_there` if None

    def is_gone(self, name: str) -> bool:
        return not (self.is_kept or self.is_there)(name)


class Holder:
    """See the module."""

    __slots__ = (
        "_full_ns",
        "_has",
        "_room",
        "connections",
        "groups",
        "in_flight",
        "is_peer",
        "limits",
        "name",
        "reached",
        "tokens",
    )

    def __init__(
        self,
        name: str,
        limits: Limits,
        groups: frozenset[str] = frozenset(),
        *,
        is_peer: bool = False,
    ) -> None:
        self.name = name
        self.groups = groups  # all that its credentials have named
        self.is_peer = is_peer
        self.limits = limits
        self.connections = 0
        self.in_flight = 0
        self.tokens = limits.burst
        self.reached: Counter[Quota] = Counter()  # how often it was refused
        self._full_ns: int | None = None  # when the tokens were last counted
        self._has: dict[Quota, dict[str, Presence]] = {}
        self._room: dict[Quota, int] = {}

    def limit(self, limits: Limits) -> None:
        """From now on it may have this. What it has already stays; of a rate, what was taken of the
        former burst is missing in the new one, which is empty at the worst."""
        if Quota.PUBLISH_RATE in self.limits.by_quota:
            taken = self.limits.burst - self.tokens
            self.tokens = max(0.0, limits.burst - taken)
        else:
            self.tokens = limits.burst
        self.limits = limits

    def used(self, quota: Quota) -> float:
        """What counts now towards the limit."""
        if quota is Quota.CONNECTIONS:
            return self.connections
        if quota is Quota.IN_FLIGHT_BYTES:
            return self.in_flight
        if quota is Quota.PUBLISH_RATE:
            return max(0.0, self.limits.burst - self.tokens)
        known = self._look_after(quota)
        return sum(presence.is_there(name) for name, presence in known.items())

    def has_room(self, quota: Quota, name: str) -> bool:
        """Whether this may be added, or is there already."""
        most = self.limits.by_quota.get(quota)
        if most is None:
            return True
        known = self._has.get(quota, {})
        return name in known or len(known) < most or self.used(quota) < most

    def add(self, quota: Quota, name: str, presence: Presence) -> None:
        known = self._has.setdefault(quota, {})
        if len(known) >= self._room.get(quota, LOOKED_AFTER_MIN):
            known = self._look_after(quota)
            self._room[quota] = max(LOOKED_AFTER_MIN, 2 * len(known))
        known[name] = presence

    def remove(self, quota: Quota, name: str) -> None:
        self._has.get(quota, {}).pop(name, None)

    def _look_after(self, quota: Quota) -> dict[str, Presence]:
        """Those that are not gone."""
        known = self._has.get(quota, {})
        for name in [each for each, presence in known.items() if presence.is_gone(each)]:
            del known[name]
        return known

    def refill(self, now_ns: int) -> None:
        rate = self.limits.by_quota[Quota.PUBLISH_RATE]
        if self._full_ns is not None:
            passed_s = max(0, now_ns - self._full_ns) / NS_PER_S
            self.tokens = min(self.limits.burst, self.tokens + passed_s * rate)
        self._full_ns = now_ns

    def wait_s(self, count: int) -> float:
        """How long until so many events may be sent. More than the burst at once may be sent when
        nothing was for a while: the rest waits longer then."""
        missing = min(count, self.limits.burst) - self.tokens
        return max(0.0, missing) / self.limits.by_quota[Quota.PUBLISH_RATE]

    @property
    def has_nothing(self) -> bool:
        if self.connections or self.in_flight:
            return False
        return not any(self._look_after(quota) for quota in list(self._has))


class Holders:
    """Those that are remembered, by a key. Who has nothing is forgotten when there are many."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[str, str], Holder] = {}
        self._room = HOLDERS_MAX

    def add(self, key: tuple[str, str], holder: Holder) -> bool:
        """True if others were forgotten."""
        is_full = len(self.by_key) >= self._room
        if is_full:
            kept = {name: each for name, each in self.by_key.items() if not each.has_nothing}
            self.by_key = kept
            self._room = max(HOLDERS_MAX, 2 * len(kept))  # not again with each one that comes
        self.by_key[key] = holder
        return is_full
