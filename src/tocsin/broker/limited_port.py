"""LimitedPort: the port of a broker with quotas. Every protocol is limited here, in one place."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Final

from tocsin.access.decision import Access
from tocsin.access.quotas.quotas import Holder, Quotas
from tocsin.access.quotas.rules import Quota
from tocsin.access.session import Principal, Session
from tocsin.broker.broker import Broker
from tocsin.broker.delivery.follower import event_weight
from tocsin.broker.effects import Accepted
from tocsin.broker.engine import Engine, Replier, StreamSink
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import QuotaReached
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.subscription import Kind, Subscription

QUOTA_OF: Final = {Kind.PUSH: Quota.SUBSCRIPTIONS, Kind.BOX: Quota.BOXES}
"""A place of a link in the log is the broker's own."""


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
        self._names = count(1)  # for what has none before it is there
        for subscription_id in broker.subscription_ids():
            self._adopt(subscription_id)

    def _adopt(self, subscription_id: str) -> None:
        """Of the subscriptions from before the start, whose they are is known, and not from which
        address they were made."""
        owner = self._broker.owner_of(subscription_id)
        quota = QUOTA_OF.get(self._broker.view(subscription_id).subscription.kind)
        if owner is not None and quota is not None and not owner.is_internal:
            principal = Principal(owner.name, frozenset(owner.groups))
            self.quotas.adopt(principal, quota, subscription_id, self._broker.has)

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
            claim.keep(view.subscription.id, self._broker.has)
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
            claim.keep(str(number), lambda each: self._broker.has_stream(int(each)))
        return number

    @contextmanager
    def registering(self, session: Session, key: str) -> Generator[None]:
        if self._broker.has_kept(key):  # it is changed, not one more
            yield
            return
        with self._claim(session, Quota.REGISTRATIONS) as claim:
            yield
            claim.keep(key, self._broker.has_kept)

    @contextmanager
    def _claim(self, session: Session, quota: Quota) -> Generator[_Claim]:
        claim = _Claim(self.quotas, session, quota, f"new {next(self._names)}")
        try:
            yield claim
        finally:
            claim.close()


class _Claim:
    """Room for one more, until it is there or has failed."""

    def __init__(self, quotas: Quotas, session: Session, quota: Quota, name: str) -> None:
        self._quotas = quotas
        self._quota = quota
        self._name = name
        self._holders = quotas.claim(session, quota, name, lambda _: True)

    def keep(self, name: str, is_there: Callable[[str], bool]) -> None:
        """It is there under this name."""
        self._quotas.rename(self._holders, self._quota, self._name, name, is_there)

    def close(self) -> None:
        self._quotas.give_up(self._holders, self._quota, self._name)


def open_port(broker: Broker, engine: Engine, access: Access, quotas: Quotas) -> BrokerPort:
    """The way in to a broker, with quotas where there are any."""
    if quotas.has_rules:
        return LimitedPort(broker, engine, access, quotas)
    return BrokerPort(broker, engine, access)
