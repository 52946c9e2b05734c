"""LimitedPort: the port of a broker with quotas. Every protocol is limited here, in one place."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final

from tocsin.access.decision import Access
from tocsin.access.quotas.holders import Holder, Presence
from tocsin.access.quotas.quotas import WITHOUT_QUOTAS, Quotas
from tocsin.access.quotas.rules import Quota
from tocsin.access.session import Session
from tocsin.broker.broker import Broker
from tocsin.broker.delivery.follower import event_weight
from tocsin.broker.effects import Accepted
from tocsin.broker.engine import Engine, Replier, StreamSink
from tocsin.broker.port import BrokerPort
from tocsin.broker.service_port import OwnerOf
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import QuotaReached
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.subscription import Kind, Owner, Subscription

QUOTA_OF: Final = {Kind.PUSH: Quota.SUBSCRIPTIONS, Kind.BOX: Quota.BOXES}
"""A place of a link in the log is the broker's own."""

_WANTED: Final = Presence(lambda _: True)
_names: Final = (f"new {number}" for number in count(1))
"""Of what has no name, or none before it is there. Two brokers of a process share their quotas."""


class _Settling:
    """Whoever published, of whom bytes are in flight until the answer."""

    __slots__ = ("_replier", "_settle")

    def __init__(self, replier: Replier, settle: Callable[[], None]) -> None:
        self._replier = replier
        self._settle = settle

    def answer(self, result: object) -> None:
        self._settle()
        self._replier.answer(result)


class LimitedPort(BrokerPort):
    """Does what the port does, for whoever has not reached a quota. What a neighbour relays is not
    limited: its link is, and whoever published it was."""

    def __init__(self, broker: Broker, engine: Engine, access: Access, quotas: Quotas) -> None:
        super().__init__(broker, engine, access)
        self.quotas = quotas
        self._steady_ns = engine.steady_ns
        self._subscribed = Presence(broker.has)
        self._registered = Presence(self._is_registered, broker.has_kept)
        self._owners: dict[str, OwnerOf] = {}  # of registrations, by how their keys begin
        quotas.on_rules.append(self._count_all)
        if quotas.has_rules:
            self._count_all()

    # What there is from before the start, or before there were quotas. Whose it is, is known, and
    # not from which address it was made.

    def _count_all(self) -> None:
        for subscription_id in self._broker.subscription_ids():
            quota = QUOTA_OF.get(self._broker.view(subscription_id).subscription.kind)
            if quota is not None:
                owner = self._broker.owner_of(subscription_id)
                holders = self.quotas.counted_for_owner(owner)
                self.quotas.count(holders, quota, subscription_id, self._subscribed)
        for prefix in self._owners:
            self._count_registered(prefix)

    def _count_registrations(self, prefix: str, owner_of: OwnerOf) -> None:
        self._owners[prefix] = owner_of
        if self.quotas.has_rules:
            self._count_registered(prefix)

    def _count_registered(self, prefix: str) -> None:
        for key in self._broker.kept(prefix):
            owner = self._owners[prefix](key.removeprefix(prefix))
            if owner is not None:
                holders = self.quotas.counted_for_owner(owner)
                self.quotas.count(holders, Quota.REGISTRATIONS, key, self._registered)

    def _is_registered(self, key: str) -> bool:
        """Whether it is on disk, and its time is not over."""
        if not self._broker.has_kept(key):
            return False
        owners = ((prefix, each) for prefix, each in self._owners.items() if key.startswith(prefix))
        return all(owner_of(key.removeprefix(prefix)) is not None for prefix, owner_of in owners)

    # Publishing

    def submit(self, session: Session, events: list[Event], replier: Replier) -> None:
        try:
            size, holders = self._take(session, events)
        except QuotaReached as error:
            replier.answer(error)
            return
        if holders:
            replier = _Settling(replier, lambda: self.quotas.settle(holders, size))
        super().submit(session, events, replier)

    async def publish(self, session: Session, events: list[Event]) -> Accepted:
        size, holders = self._take(session, events)
        try:
            return await super().publish(session, events)
        finally:
            self.quotas.settle(holders, size)

    def _take(self, session: Session, events: Sequence[Event]) -> tuple[int, list[Holder]]:
        if not self.quotas.has_rules:
            return 0, []
        size = sum(map(event_weight, events)) if self.quotas.counts_bytes else 0
        return size, self.quotas.publish(session, len(events), size, self._steady_ns())

    # What stays

    async def subscribe(
        self, session: Session, asked: Subscription, filter: Filter, start: int | None
    ) -> SubscriptionView:
        quota = QUOTA_OF.get(asked.kind)
        if quota is None:
            return await super().subscribe(session, asked, filter, start)
        with self._claim(session, quota) as claim:
            view = await super().subscribe(session, asked, filter, start)
            claim.keep(view.subscription.id, self._subscribed)
        return view

    def open_stream(
        self,
        session: Session,
        sink: StreamSink,
        filter: Filter,
        after: int | None,
        name: str,
        asks: frozenset[str] | None = None,
    ) -> int:
        with self._claim(session, Quota.STREAMS) as claim:
            number = super().open_stream(session, sink, filter, after, name, asks)
            claim.keep(next(_names), Presence(lambda _: self._broker.has_stream(number)))
        return number

    def add_to_quota(self, session: Session, quota: Quota, is_there: Callable[[], bool]) -> None:
        self.quotas.claim(session, quota, next(_names), Presence(lambda _: is_there()))

    @contextmanager
    def registering(self, session: Session, key: str) -> Generator[None]:
        if self._is_registered(key):  # it is changed, not one more
            yield
            return
        with self._claim(session, Quota.REGISTRATIONS) as claim:
            yield
            self.quotas.forget(Quota.REGISTRATIONS, key)  # for whom it was before its time was over
            claim.keep(key, self._registered)

    @contextmanager
    def _giving(
        self, session: Session, subscription_id: str, owner: Owner | None, kind: Kind
    ) -> Generator[None]:
        quota, was = QUOTA_OF.get(kind), self._broker.owner_of(subscription_id)
        if owner is None or quota is None or (was is not None and was.name == owner.name):
            yield
            return
        holders = self.quotas.counted_for_owner(owner)
        with _Claim(self.quotas, session, quota, holders) as claim:
            yield
            self.quotas.forget(quota, subscription_id, of_principals_alone=True)
            claim.keep(subscription_id, self._subscribed)

    def _claim(self, session: Session, quota: Quota) -> _Claim:
        return _Claim(self.quotas, session, quota, self.quotas.counted_for(session))


class _Claim:
    """Room for one more, until it is there or has failed."""

    def __init__(
        self, quotas: Quotas, session: Session, quota: Quota, holders: list[Holder]
    ) -> None:
        self._quotas = quotas
        self._quota = quota
        self._holders = holders
        self._name = next(_names)
        quotas.claim_for(holders, session, quota, self._name, _WANTED)

    def keep(self, name: str, presence: Presence) -> None:
        """It is there under this name."""
        self._quotas.count(self._holders, self._quota, name, presence)

    def __enter__(self) -> _Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self._quotas.give_up(self._holders, self._quota, self._name)


def open_port(broker: Broker, engine: Engine, access: Access, quotas: Quotas) -> BrokerPort:
    """The way in to a broker, with quotas where there may be any."""
    if quotas is WITHOUT_QUOTAS:
        return BrokerPort(broker, engine, access)
    return LimitedPort(broker, engine, access, quotas)
