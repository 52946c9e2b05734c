"""Heartbeats: a consumer who asked for it gets a message in time when nothing happened.

WS-Management 1.1, section 10.2.5: then silence means that something is broken.
"""

from __future__ import annotations

import heapq
from typing import Final

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Tasks, Timer, new_uuid
from tocsin.errors import NoSuchSubscription, TocsinError
from tocsin.event.instant import NS_PER_S, xs_duration_ns
from tocsin.event.subscription import SoapTerms, State, Subscription
from tocsin.wire.soap.delivery import consumer_parts, message
from tocsin.wire.soap.envelope import http_headers
from tocsin.wire.wse.deliver import heartbeat
from tocsin.wire.wse.faults import invalid_message, unsupported_feature
from tocsin.wire.wse.messages import Subscribe

SERVICE: Final = internal("heartbeats")
HEARTBEATS_MAX: Final = 10_000  # subscriptions that have them
UNDER_WAY_MAX: Final = 100  # past it a beat is left out: the broker is busy, not dead
INTERVAL_S_MIN: Final = 1.0
LOOK_NS_MAX: Final = 60 * NS_PER_S  # so that those that ended make room soon


class Heartbeats:
    """Watches the subscriptions that asked for it, with one timer for all of them."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._runtime = port.runtime
        self._due: list[tuple[int, str]] = []  # when to look at which subscription next
        self._beat_ns: dict[str, int] = {}  # when each last had a beat, or was taken on
        self._timer: Timer | None = None
        self._under_way = Tasks(port.runtime)
        for view in port.views(SERVICE):
            self.add(view.subscription)

    def interval_s(self, asked: Subscribe, form: str) -> float | None:
        """How often beats are wanted; a SoapFault where they cannot be had."""
        if asked.heartbeats is None or asked.spec != "wse04":
            return None
        if form == "pull":
            raise unsupported_feature("Heartbeats", "a subscription that pulls gets no heartbeats")
        length_ns = xs_duration_ns(asked.heartbeats)
        if length_ns is None or length_ns <= 0:
            raise invalid_message(asked.spec, f"{asked.heartbeats[:80]!r} is not a duration")
        if length_ns < INTERVAL_S_MIN * NS_PER_S:
            raise unsupported_feature(
                "Heartbeats", f"heartbeats come at most every {INTERVAL_S_MIN:g} s"
            )
        return length_ns / NS_PER_S

    def check_room(self, terms: SoapTerms | None) -> None:
        """A SoapFault if no more subscriptions can have beats."""
        wants = terms is not None and terms.heartbeat_s is not None
        if wants and len(self._due) >= HEARTBEATS_MAX:
            raise unsupported_feature(
                "Heartbeats", f"{HEARTBEATS_MAX} subscriptions already have heartbeats"
            )

    def add(self, subscription: Subscription) -> None:
        """Watch a subscription, if it wants that."""
        terms = subscription.soap
        if terms is None or terms.heartbeat_s is None:
            return
        now_ns = self._runtime.now_ns()
        self._beat_ns[subscription.id] = now_ns
        look_ns = min(now_ns + _interval_ns(terms), now_ns + LOOK_NS_MAX)
        heapq.heappush(self._due, (look_ns, subscription.id))
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due and not self._runtime.is_stopping:
            delay_s = max(0.0, (self._due[0][0] - self._runtime.now_ns()) / NS_PER_S)
            self._timer = self._runtime.call_later(delay_s, self._look)

    def _look(self) -> None:
        now_ns = self._runtime.now_ns()
        while self._due and self._due[0][0] <= now_ns:
            _, subscription_id = heapq.heappop(self._due)
            next_ns = self._look_at(subscription_id, now_ns)
            if next_ns is None:
                self._beat_ns.pop(subscription_id, None)
            else:
                heapq.heappush(self._due, (min(next_ns, now_ns + LOOK_NS_MAX), subscription_id))
        self._set_timer()

    def _look_at(self, subscription_id: str, now_ns: int) -> int | None:
        """Send a beat if it is time; returns when to look again, None if there is nobody."""
        try:
            view = self._port.view(SERVICE, subscription_id)
        except NoSuchSubscription:
            return None
        subscription, terms = view.subscription, view.subscription.soap
        if terms is None or terms.heartbeat_s is None:
            return None
        last_ns = max(self._beat_ns[subscription_id], view.last_delivered_ns or 0)
        due_ns = last_ns + _interval_ns(terms)
        if due_ns > now_ns:
            return due_ns
        self._beat_ns[subscription_id] = now_ns
        if subscription.state is State.ACTIVE and len(self._under_way) < UNDER_WAY_MAX:
            self._under_way.spawn(self._beat(subscription, terms))
        return now_ns + _interval_ns(terms)

    async def _beat(self, subscription: Subscription, terms: SoapTerms) -> None:
        sink = subscription.sink
        assert sink is not None, "a subscription that pulls gets no heartbeats"
        pieces = heartbeat(terms, f"urn:uuid:{new_uuid(self._runtime)}")
        headers = dict(http_headers(terms.soap, pieces.action))
        try:
            await self._runtime.post(sink, message(consumer_parts(terms, sink), pieces), headers)
        except TocsinError as error:
            self._runtime.note(
                "info", "a heartbeat was not delivered", id=subscription.id, reason=error.problem
            )


def _interval_ns(terms: SoapTerms) -> int:
    assert terms.heartbeat_s is not None
    return int(terms.heartbeat_s * NS_PER_S)
