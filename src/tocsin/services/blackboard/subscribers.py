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
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NoSuchPublisher, NoSuchSubscription
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.subscription import BLACKBOARD, Change, Config, Kind, Owner, State, Subscription

BATCH = 100  # messages in one POST

_BLACKBOARD: Final = internal("blackboard")
_encode = msgspec.json.Encoder().encode


class Subscribers:
    """The subscription store, by address."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._one_at_a_time = Semaphore(port.runtime)  # of two with one address the second replaces
        # Of each address, by who subscribed it: nobody takes over what another subscribed.
        self._by_address: dict[tuple[str, str | None], str] = {
            (_name(view.subscription.owner), view.subscription.sink): view.subscription.id
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
            known = self._find(session, address)
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
            key = _name(view.subscription.owner), address
            self._by_address[key] = view.subscription.id
        return view, known is None

    async def unsubscribe(self, session: Session, address_or_id: str) -> None:
        """End one of the caller's own by its address or id; whoever may end any, any."""
        async with self._one_at_a_time:
            found = self._find(session, address_or_id) or self._found_for(session, address_or_id)
            if found is None:  # it is refused as somebody else's is
                self._port.check(session, Action.SUBSCRIBE, f"subscription/{address_or_id}")
                raise NoSuchPublisher(
                    f"{address_or_id[:200]!r} is not a subscriber",
                    remedy="GET /blackboard/subscribers lists all.",
                )
            view = self._view(found)
            assert view is not None
            await self._port.unsubscribe(session, view.subscription.id)
            key = _name(view.subscription.owner), view.subscription.sink
            self._by_address.pop(key, None)

    def _found_for(self, session: Session, address_or_id: str) -> str | None:
        """By its id; by its address, of those that anybody subscribed, for who may end them all."""
        if self._view(address_or_id) is not None:
            return address_or_id
        if not self._port.may(session, Action.SUBSCRIBE, "subscription/*"):
            return None
        at = (each for key, each in self._by_address.items() if key[1] == address_or_id)
        return next((each for each in at if self._view(each) is not None), None)

    def views(self, session: Session) -> list[SubscriptionView]:
        return [view for view in self._port.views(session) if is_subscriber(view)]

    def _find(self, session: Session, address: str) -> str | None:
        """The id of the caller's own, unless it was ended by another way."""
        key = _name(session.owner if session.is_signed_in else None), address
        found = self._by_address.get(key)
        view = None if found is None else self._view(found)
        if view is None:
            self._by_address.pop(key, None)
            return None
        if _name(view.subscription.owner) != key[0]:
            return None  # it was given to somebody else
        return found

    def _view(self, subscription_id: str) -> SubscriptionView | None:
        try:
            view = self._port.view(_BLACKBOARD, subscription_id)
        except NoSuchSubscription:
            return None
        return view if is_subscriber(view) else None


def _name(owner: Owner | None) -> str:
    return "" if owner is None or owner.is_internal else owner.name


def is_subscriber(view: SubscriptionView) -> bool:
    subscription = view.subscription
    return subscription.kind is Kind.PUSH and subscription.config.mode == BLACKBOARD
