"""Quotas: how much one principal, and one address, may have and send.

Everybody counts for himself: a limit of a group is one for each of its members, and who has not
signed in is somebody else at each address. What is counted is what a limit applies to, and no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from tocsin.access.peers import counted_as, host_of
from tocsin.access.quotas.rules import Limits, Quota, QuotaRule, limits_at, limits_of
from tocsin.access.session import ANONYMOUS, Principal, Session
from tocsin.errors import QuotaReached
from tocsin.event.instant import NS_PER_S

SESSIONS_MAX: Final = 5_000  # whose holders are remembered
HOLDERS_MAX: Final = 20_000  # that are remembered; past that, those with nothing go
IN_FLIGHT_RETRY_S: Final = 1.0

_WORDS: Final = {
    Quota.CONNECTIONS: "connections",
    Quota.STREAMS: "open streams",
    Quota.SUBSCRIPTIONS: "subscriptions",
    Quota.BOXES: "message boxes",
    Quota.REGISTRATIONS: "registrations",
    Quota.PUBLISH_RATE: "events a second",
    Quota.IN_FLIGHT_BYTES: "bytes on their way to the disk",
}


class Holder:
    """A principal or an address, and what it has now."""

    __slots__ = (
        "_full_ns",
        "connections",
        "groups",
        "has",
        "in_flight",
        "is_peer",
        "limits",
        "name",
        "tokens",
    )

    def __init__(
        self,
        name: str,
        limits: Limits,
        groups: frozenset[str] = frozenset(),
        *,
        is_peer: bool,
    ) -> None:
        self.name = name
        self.groups = groups  # all that its credentials have named
        self.is_peer = is_peer
        self.limits = limits
        self.has: dict[Quota, dict[str, Callable[[str], bool]]] = {}  # by id: is it still there?
        self.connections = 0
        self.in_flight = 0
        self.tokens = limits.burst
        self._full_ns: int | None = None  # when the tokens were last counted

    def used(self, quota: Quota) -> float:
        """What counts now towards the limit."""
        if quota is Quota.CONNECTIONS:
            return self.connections
        if quota is Quota.IN_FLIGHT_BYTES:
            return self.in_flight
        if quota is Quota.PUBLISH_RATE:
            return max(0.0, self.limits.burst - self.tokens)
        return len(self._alive(quota))

    def _alive(self, quota: Quota) -> dict[str, Callable[[str], bool]]:
        known = self.has.get(quota)
        if known is None:
            return {}
        gone = [each for each, is_there in known.items() if not is_there(each)]
        for each in gone:
            del known[each]
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
        return not self.connections and not self.in_flight and not any(self.has.values())


class _Holders:
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


Reached = Callable[[Session, Quota, str], None]
"""Called with who reached which quota, and with the words for it."""


class Quotas:
    """See the module."""

    def __init__(
        self,
        rules: Sequence[QuotaRule],
        groups_of: Callable[[Principal], frozenset[str]] = lambda principal: principal.groups,
    ) -> None:
        self._rules = tuple(rules)
        self._groups_of = groups_of
        self._principals = _Holders()
        self._peers = _Holders()
        self._named = frozenset(rule.principal for rule in self._rules)
        self._of_session: dict[int, tuple[Session, list[Holder]]] = {}  # by id() of the session
        self.counts_bytes = any(Quota.IN_FLIGHT_BYTES in rule.limits for rule in self._rules)
        self.reached: Counter[Quota] = Counter()
        self.on_reached: Reached | None = None

    @property
    def has_rules(self) -> bool:
        return bool(self._rules)

    def holders(self, session: Session) -> list[Holder]:
        """The principal and the address, those to which a limit applies."""
        known = self._of_session.get(id(session))
        if known is not None:
            return known[1]
        if session.principal.is_internal or not self._rules:
            return []
        every = [self._principal(session), self.peer(session.peer)]
        found = [each for each in every if each.limits.has_any]
        if len(self._of_session) >= SESSIONS_MAX:
            self._of_session.clear()
        self._of_session[id(session)] = session, found
        return found

    def _principal(self, session: Session) -> Holder:
        principal = session.principal
        is_stranger = principal == ANONYMOUS and ANONYMOUS.name not in self._named
        at = counted_as(host_of(session.peer)) if is_stranger else ""
        holder = self._principals.by_key.get((principal.name, at))
        groups = self._groups_of(principal)
        if holder is None:
            name = f"{principal.name} at {at}" if is_stranger else principal.name
            limits = limits_of(self._rules, principal.name, groups)
            holder = Holder(name, limits, groups, is_peer=False)
            self._add(self._principals, (principal.name, at), holder)
        elif not groups <= holder.groups:  # it has another credential, which names more
            holder.groups |= groups
            holder.limits = limits_of(self._rules, principal.name, holder.groups)
            self._of_session.clear()
        return holder

    def peer(self, peer: str) -> Holder:
        """The address of a peer, which may have a port behind it."""
        host = host_of(peer)
        name = counted_as(host)
        holder = self._peers.by_key.get((name, ""))
        if holder is None:
            holder = Holder(name, limits_at(self._rules, host), is_peer=True)
            self._add(self._peers, (name, ""), holder)
        return holder

    def _add(self, holders: _Holders, key: tuple[str, str], holder: Holder) -> None:
        if holders.add(key, holder):
            self._of_session.clear()  # who was forgotten would be counted twice

    # Publishing

    def publish(self, session: Session, count: int, size: int, now_ns: int) -> list[Holder]:
        """Take so many events; raises QuotaReached. What is returned has them in flight, until
        `settle`."""
        holders = self.holders(session)
        in_flight: list[Holder] = []
        rated: list[Holder] = []
        for holder in holders:
            limits = holder.limits.by_quota
            if Quota.PUBLISH_RATE in limits:
                holder.refill(now_ns)
                wait_s = holder.wait_s(count)
                if wait_s > 0:
                    raise self._refusal(session, Quota.PUBLISH_RATE, holder, wait_s)
                rated.append(holder)
            most = limits.get(Quota.IN_FLIGHT_BYTES)
            if most is not None:
                if holder.in_flight and holder.in_flight + size > most:
                    retry_s = IN_FLIGHT_RETRY_S
                    raise self._refusal(session, Quota.IN_FLIGHT_BYTES, holder, retry_s)
                in_flight.append(holder)
        for holder in rated:
            holder.tokens -= count
        for holder in in_flight:
            holder.in_flight += size
        return in_flight

    def settle(self, holders: Sequence[Holder], size: int) -> None:
        """They are on disk, or were refused."""
        for holder in holders:
            holder.in_flight -= size

    # What stays

    def claim(
        self, session: Session, quota: Quota, name: str, is_there: Callable[[str], bool]
    ) -> list[Holder]:
        """One more of these; raises QuotaReached. It counts for as long as `is_there` says so."""
        found = [each for each in self.holders(session) if quota in each.limits.by_quota]
        for holder in found:
            most = holder.limits.by_quota[quota]
            known = holder.has.get(quota, {})
            if name not in known and len(known) >= most and holder.used(quota) >= most:
                raise self._refusal(session, quota, holder)
        for holder in found:
            holder.has.setdefault(quota, {})[name] = is_there
        return found

    def adopt(
        self, principal: Principal, quota: Quota, name: str, is_there: Callable[[str], bool]
    ) -> None:
        """One that is there from before the start."""
        holder = self._principal(Session(principal, ""))
        if quota in holder.limits.by_quota:
            holder.has.setdefault(quota, {})[name] = is_there

    def rename(
        self,
        holders: Sequence[Holder],
        quota: Quota,
        was: str,
        name: str,
        is_there: Callable[[str], bool],
    ) -> None:
        """What was claimed under a name for the moment has one of its own now."""
        for holder in holders:
            known = holder.has.setdefault(quota, {})
            known.pop(was, None)
            known[name] = is_there

    def give_up(self, holders: Sequence[Holder], quota: Quota, name: str) -> None:
        for holder in holders:
            holder.has.get(quota, {}).pop(name, None)

    # Connections

    def connect(self, session: Session, holders: Sequence[Holder]) -> list[Holder]:
        """One more connection of these; raises QuotaReached. To be given to `disconnect`."""
        found = [each for each in holders if Quota.CONNECTIONS in each.limits.by_quota]
        for holder in found:
            most = holder.limits.by_quota[Quota.CONNECTIONS]
            if holder.connections >= most:
                raise self._refusal(session, Quota.CONNECTIONS, holder)
        for holder in found:
            holder.connections += 1
        return found

    def disconnect(self, holders: Sequence[Holder]) -> None:
        for holder in holders:
            holder.connections -= 1

    # What there is

    def in_use(self) -> list[Holder]:
        """Everybody who has something that is limited, by name."""
        every = [*self._principals.by_key.values(), *self._peers.by_key.values()]
        return sorted(
            (each for each in every if each.limits.has_any),
            key=lambda each: (each.is_peer, each.name),
        )

    def _refusal(
        self,
        session: Session,
        quota: Quota,
        holder: Holder,
        wait_s: float | None = None,
    ) -> QuotaReached:
        self.reached[quota] += 1
        limit = holder.limits.by_quota[quota]
        problem = f"{holder.name} has reached its quota of {_WORDS[quota]}, which is {limit:,.10g}"
        if self.on_reached is not None:
            self.on_reached(session, quota, problem)
        remedy = (
            f"Nothing was changed. Try again in {wait_s:.2g} s, or ask the operator for more."
            if wait_s is not None
            else "Nothing was changed. End some that are not needed, or ask the operator for more."
        )
        return QuotaReached(problem, remedy=remedy, retry_after_s=wait_s)


WITHOUT_QUOTAS: Final = Quotas(())
