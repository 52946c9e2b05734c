"""What the broker knows, in the words of the API."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from tocsin.access.session import Session
from tocsin.broker.delivery.address import is_gma_address
from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.broker.effects import Pulled
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.broker.status import ClockStatus
from tocsin.drivers.http.rest.responses import View, shown
from tocsin.errors import NotAllowed
from tocsin.event.instant import rfc3339, rfc3339_or_none
from tocsin.event.stored import Stored
from tocsin.event.subscription import Subscription
from tocsin.services.link.service import LinkService
from tocsin.services.link.views import OverlayInfo
from tocsin.wire.api.views import (
    AttemptInfo,
    BoxInfo,
    ClockInfo,
    ConfigInfo,
    DeadLetterInfo,
    EventsPage,
    MessagesPulled,
    SignatureInfo,
    SubscriptionInfo,
)
from tocsin.wire.cloudevents.write import structured, structured_of


def subscription_info(
    view: SubscriptionView, reached: Mapping[str, int] | None = None
) -> SubscriptionInfo:
    """A subscription that pushes. `reached`: since when it holds at which other brokers."""
    subscription = view.subscription
    assert subscription.sink is not None
    return _info(
        SubscriptionInfo,
        view,
        reached,
        protocol="GMA" if is_gma_address(subscription.sink) else "HTTP",
        dialect=_dialect(subscription),
        last_delivered=rfc3339_or_none(view.last_delivered_ns),
        next_attempt=rfc3339_or_none(view.next_attempt_ns),
    )


PERFORMANCE = "Grid Forum performance events"
_SPECIFICATIONS = {
    "wse04": "WS-Eventing 2004/08",
    "wse11": "WS-Eventing 2011/03",
    "wsn13": "WS-Notification 1.3",
    "wsn12": "WS-Notification 1.2",
    "wsn10": "WS-Notification 1.0",
}


def _dialect(subscription: Subscription) -> str:
    """Which specification and versions the consumer uses, in a few words."""
    terms = subscription.soap
    if terms is None:
        return PERFORMANCE if is_gma_address(subscription.sink or "") else "CloudEvents"
    version = terms.wsa.removesuffix("/addressing")[-7:]
    addressing = f"WS-Addressing {version}" if version else "no addressing"
    return f"{_SPECIFICATIONS[terms.spec]} {terms.form}, SOAP {terms.soap}, {addressing}"


def box_info(view: SubscriptionView, reached: Mapping[str, int] | None = None) -> BoxInfo:
    """A message box. `reached`: since when it holds at which other brokers."""
    return _info(BoxInfo, view, reached, messages=f"/boxes/{view.subscription.id}/messages")


def _info(
    kind: type[View], view: SubscriptionView, reached: Mapping[str, int] | None, **own: object
) -> View:
    subscription = view.subscription
    config = subscription.config
    if reached is not None:
        own["reached"] = {broker: rfc3339(since_ns) for broker, since_ns in reached.items()}
    own["withheld"] = view.withheld if view.tells_withheld else None
    return shown(
        kind,
        view,
        subscription,
        config=shown(
            ConfigInfo,
            config,
            secret=config.secret is not None,
            credential=None if config.credential is None else config.credential.kind,
        ),
        state=subscription.state.value,
        owner=None if subscription.owner is None else subscription.owner.name,
        created=rfc3339(subscription.created_ns),
        expires=rfc3339_or_none(subscription.expires_ns),
        **own,
    )


def dead_letter_info(letter: DeadLetter) -> DeadLetterInfo:
    return shown(
        DeadLetterInfo,
        letter,
        sequence=letter.seq,
        received=rfc3339(letter.received_ns),
        given_up=rfc3339(letter.given_up_ns),
        attempts=[shown(AttemptInfo, each, at=rfc3339(each.at_ns)) for each in letter.attempts],
        event=msgspec.Raw(structured(letter.event)),
    )


def pulled_info(pulled: Pulled) -> MessagesPulled:
    return MessagesPulled(
        events=_events(pulled.events),
        sequences=[stored.seq for stored in pulled.events],
        next=pulled.next,
        dropped=pulled.dropped,
        withheld=msgspec.UNSET if pulled.withheld is None else pulled.withheld,
    )


def events_info(
    events: list[Stored],
    next_seq: int,
    corrupt: list[int],
    *,
    more: bool,
    signatures: list[SignatureInfo | None] | None = None,
) -> EventsPage:
    return EventsPage(
        events=_events(events),
        sequences=[stored.seq for stored in events],
        next=next_seq,
        more=more,
        corrupt=corrupt or msgspec.UNSET,
        signatures=msgspec.UNSET if signatures is None else signatures,
    )


def _events(events: list[Stored]) -> list[msgspec.Raw]:
    return [msgspec.Raw(structured_of(stored)) for stored in events]


def views_shown(port: BrokerPort, session: Session) -> list[SubscriptionView]:
    """The subscriptions and boxes, if the caller may read them: ids and sinks are not for all."""
    try:
        return port.views(session)
    except NotAllowed:
        return []


def overlay_shown(links: LinkService | None, session: Session) -> OverlayInfo | None:
    """The overlay without its tables, if there is one and the caller may read it."""
    try:
        return None if links is None else links.info(session, 0)
    except NotAllowed:
        return None


def clock_info(clock: ClockStatus, now_ns: int) -> ClockInfo:
    """The broker's time, which is `now_ns`, and the machine's."""
    return ClockInfo(
        time=rfc3339(now_ns),
        machine=rfc3339(time.time_ns()),
        jump_s=round(clock.jump_ns / 1e9, 3),
        doubt=None if clock.doubt is None else clock.doubt.value,
        problem=clock.complaint or None,
    )
