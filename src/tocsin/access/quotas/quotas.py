"""Quotas: how much one principal, and one address, may have and send.

Everybody counts for himself: a limit of a group is one for each of its members, and who has not
signed in is somebody else at each address. What somebody has is counted whether a limit applies to
it or not, as there may be one after the next look into the settings; what he sends, while one does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from tocsin.access.peers import counted_as, host_of
from tocsin.access.quotas.holders import Holder, Holders, Presence
from tocsin.access.quotas.rules import Limits, Quota, QuotaRule, limits_at, limits_of
from tocsin.access.session import ANONYMOUS, Principal, Session
from tocsin.errors import QuotaReached
from tocsin.event.subscription import Owner

SESSIONS_MAX: Final = 5_000  # whose holders are remembered
IN_FLIGHT_RETRY_S: Final = 1.0

NO_LIMITS: Final = Limits({})

_WORDS: Final = {
    Quota.CONNECTIONS: "connections",
    Quota.STREAMS: "open streams",
    Quota.SUBSCRIPTIONS: "subscriptions",
    Quota.BOXES: "message boxes",
    Quota.REGISTRATIONS: "registrations",
    Quota.PUBLISH_RATE: "events a second",
    Quota.IN_FLIGHT_BYTES: "bytes on their way to the disk",
}


Reached = Callable[[Session, Quota, str], None]
"""Called with who reached which quota, and with the words for it."""


class _Known(NamedTuple):
    """A session, and whom what it does is counted for."""

    session: Session
    every: list[Holder]
    limited: list[Holder]


class Quotas:
    """See the module."""

    def __init__(
        self,
        rules: Sequence[QuotaRule],
        groups_of: Callable[[Principal], frozenset[str]] = lambda principal: principal.groups,
    ) -> None:
        """`groups_of`: those that the credential names, and others."""
        self._groups_of = groups_of
        self._principals = Holders()
        self._peers = Holders()
        self._strangers = Holder(ANONYMOUS.name, NO_LIMITS)  # all who have not signed in
        self._of_session: dict[int, _Known] = {}  # by id() of the session
        self.reached: Counter[Quota] = Counter()
        self.on_reached: Reached | None = None
        self.on_rules: list[Callable[[], None]] = []  # called when there are some, and were none
        self._rules: tuple[QuotaRule, ...] = ()
        self.set_rules(rules)

    def set_rules(self, rules: Sequence[QuotaRule]) -> None:
        """From now on these hold; call it too when somebody is in other groups. Whoever has more
        than he may have now keeps it, and gets no more."""
        are_first = bool(rules) and not self._rules
        self._rules = tuple(rules)
        self._named = frozenset(rule.principal for rule in self._rules)
        self.counts_bytes = any(Quota.IN_FLIGHT_BYTES in rule.limits for rule in self._rules)
        for (name, at), holder in self._principals.by_key.items():
            holder.limit(self._limits(name, at, holder.groups))
        self._strangers.limit(self._limits(ANONYMOUS.name, "", ANONYMOUS.groups))
        for (at, _), holder in self._peers.by_key.items():
            holder.limit(limits_at(self._rules, at))
        self._of_session.clear()
        if are_first:
            for listener in self.on_rules:
                listener()

    @property
    def rules(self) -> Sequence[QuotaRule]:
        return self._rules

    @property
    def has_rules(self) -> bool:
        return bool(self._rules)

    # Whom something is counted for

    def holders(self, session: Session) -> list[Holder]:
        """The principal and the address, those to which a limit applies."""
        return self._known(session).limited if self._rules else []

    def counted_for(self, session: Session) -> list[Holder]:
        """The principal and the address, whether a limit applies or not."""
        return self._known(session).every

    def counted_for_owner(self, owner: Owner | None) -> list[Holder]:
        """Whose it is, of what was made at an address that is not known."""
        if owner is not None and owner.is_internal:
            return []
        if owner is None or owner.name == ANONYMOUS.name:
            return [self._strangers]
        return [self._holder(Principal(owner.name, frozenset(owner.groups)), "")]

    def _known(self, session: Session) -> _Known:
        known = self._of_session.get(id(session))
        if known is None:
            every = self._every(session)
            known = _Known(session, every, [each for each in every if each.limits.has_any])
            if len(self._of_session) >= SESSIONS_MAX:
                self._of_session.clear()
            self._of_session[id(session)] = known
        return known

    def _every(self, session: Session) -> list[Holder]:
        principal = session.principal
        if principal.is_internal:
            return []
        if principal.name != ANONYMOUS.name:
            return [self._holder(principal, ""), self.peer(session.peer)]
        # Each address for itself, or all together: which of the two is limited, rules say.
        at = counted_as(host_of(session.peer))
        return [self._holder(principal, at), self._strangers, self.peer(session.peer)]

    def _holder(self, principal: Principal, at: str) -> Holder:
        name = principal.name
        holder = self._principals.by_key.get((name, at))
        if holder is None:
            limits = self._limits(name, at, principal.groups)
            shown = f"{name} at {at}" if at else name
            holder = Holder(shown, limits, principal.groups)
            self._add(self._principals, (name, at), holder)
        elif not principal.groups <= holder.groups:  # it has another credential, which names more
            holder.groups |= principal.groups
            holder.limit(self._limits(name, at, holder.groups))
            self._of_session.clear()
        return holder

    def _limits(self, name: str, at: str, groups: frozenset[str]) -> Limits:
        if name == ANONYMOUS.name and (name in self._named) is bool(at):
            return NO_LIMITS
        return limits_of(self._rules, name, self._groups_of(Principal(name, groups)))

    def peer(self, peer: str) -> Holder:
        """The address of a peer, which may have a port behind it."""
        name = counted_as(host_of(peer))
        holder = self._peers.by_key.get((name, ""))
        if holder is None:
            holder = Holder(name, limits_at(self._rules, name), is_peer=True)
            self._add(self._peers, (name, ""), holder)
        return holder

    def _add(self, holders: Holders, key: tuple[str, str], holder: Holder) -> None:
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

    def claim(self, session: Session, quota: Quota, name: str, presence: Presence) -> list[Holder]:
        """One more of these; raises QuotaReached. It counts for as long as it is there."""
        holders = self.counted_for(session)
        self.claim_for(holders, session, quota, name, presence)
        return holders

    def claim_for(
        self,
        holders: Sequence[Holder],
        session: Session,
        quota: Quota,
        name: str,
        presence: Presence,
    ) -> None:
        """The same for others than whoever asks in the session."""
        for holder in holders:
            if not holder.has_room(quota, name):
                raise self._refusal(session, quota, holder)
        self.count(holders, quota, name, presence)

    def count(self, holders: Sequence[Holder], quota: Quota, name: str, presence: Presence) -> None:
        """It is there, whatever the limit is: what is from before the start, or was claimed."""
        for holder in holders:
            holder.add(quota, name, presence)

    def give_up(self, holders: Iterable[Holder], quota: Quota, name: str) -> None:
        for holder in holders:
            holder.remove(quota, name)

    def forget(self, quota: Quota, name: str, *, of_principals_alone: bool = False) -> None:
        """It counts for nobody any more; an address may keep what was made there."""
        self.give_up([self._strangers, *self._principals.by_key.values()], quota, name)
        if not of_principals_alone:
            self.give_up(self._peers.by_key.values(), quota, name)

    # Connections

    def connect(self, session: Session, holders: Sequence[Holder]) -> None:
        """One more connection of these, until `disconnect`; raises QuotaReached."""
        for holder in holders:
            most = holder.limits.by_quota.get(Quota.CONNECTIONS)
            if most is not None and holder.connections >= most:
                raise self._refusal(session, Quota.CONNECTIONS, holder)
        for holder in holders:
            holder.connections += 1

    def disconnect(self, holders: Sequence[Holder]) -> None:
        for holder in holders:
            holder.connections -= 1

    # What there is

    def in_use(self) -> list[Holder]:
        """Everybody who has something that is limited, by name."""
        principals, peers = self._principals.by_key.values(), self._peers.by_key.values()
        every = [self._strangers, *principals, *peers]
        return sorted(
            (each for each in every if each.limits.has_any),
            key=lambda each: (each.is_peer, each.name),
        )

    def reached_by(self, session: Session) -> Counter[Quota]:
        """How often whoever asks was refused."""
        return Counter() if not (found := self.counted_for(session)) else found[0].reached

    def _refusal(
        self,
        session: Session,
        quota: Quota,
        holder: Holder,
        wait_s: float | None = None,
    ) -> QuotaReached:
        self.reached[quota] += 1
        self.reached_by(session)[quota] += 1
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
