"""Subscribers of the blackboard: an address and a profile each, as push subscriptions.

A subscriber is known by its address (paper 004, figures 6 and 7): subscribing again replaces its
profile, and is a sign of life. Everything else is what any subscription has: a place in the log,
retries, dead letters.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Semaphore
from tocsin.broker.subscriber import SubscriptionView
from tocsin.errors import NoSuchPublisher, NoSuchSubscription
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.subscription import BLACKBOARD, Change, Config, Kind, State, Subscription

BATCH = 100  # messages in one POST

_BLACKBOARD: Final = internal("blackboard")
_encode = msgspec.json.Encoder().encode


class Subscribers:
    """The subscription store, by address."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._one_at_a_time = Semaphore(port.runtime)  # of two with one address the second replaces
        self._by_address = {
            view.subscription.sink: view.subscription.id
            for view in port.views(_BLACKBOARD)
            if is_subscriber(view)
        }

    async def subscribe(
        self, session: Session, address: str, concepts: list[str]
    ) -> tuple[SubscriptionView, bool]:
        """From now on the address gets these; True if it is new here."""
        wanted = concepts_filter(concepts)
        filters = msgspec.Raw(_encode([{"concepts": concepts}]))
        async with self._one_at_a_time:
            known = self._find(address)
            if known is None:
                asked = Subscription(
                    id="",
                    kind=Kind.PUSH,
                    sink=address,
                    filters=filters,
                    config=Config(mode=BLACKBOARD, batch=BATCH),
                )
                view = await self._port.subscribe(session, asked, wanted, None)
            else:
                change = Change(filters=filters, filter=wanted, state=State.ACTIVE, is_there=True)
                view = await self._port.change(session, known, change)
            self._by_address[address] = view.subscription.id
        return view, known is None

    async def unsubscribe(self, session: Session, address_or_id: str) -> None:
        self._port.check(session, Action.SUBSCRIBE, f"blackboard/subscriber/{address_or_id}")
        async with self._one_at_a_time:
            found = self._find(address_or_id)
            if found is None and self._view(address_or_id) is not None:
                found = address_or_id
            if found is None:
                raise NoSuchPublisher(
                    f"{address_or_id[:200]!r} is not a subscriber",
                    remedy="GET /blackboard/subscribers lists all.",
                )
            view = self._view(found)
            assert view is not None
            await self._port.unsubscribe(session, view.subscription.id)
            self._by_address.pop(view.subscription.sink, None)

    def views(self, session: Session) -> list[SubscriptionView]:
        return [view for view in self._port.views(session) if is_subscriber(view)]

    def _find(self, address: str) -> str | None:
        """Its id, unless it was ended by another way."""
        found = self._by_address.get(address)
        if found is not None and self._view(found) is None:
            del self._by_address[address]
            return None
        return found

    def _view(self, subscription_id: str) -> SubscriptionView | None:
        try:
            view = self._port.view(_BLACKBOARD, subscription_id)
        except NoSuchSubscription:
            return None
        return view if is_subscriber(view) else None


def is_subscriber(view: SubscriptionView) -> bool:
    subscription = view.subscription
    return subscription.kind is Kind.PUSH and subscription.config.mode == BLACKBOARD
