"""DeliverySampler: the state of subscriptions, dead letters and lookups, as rows of the archive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tocsin.access.session import Session
from tocsin.archive.file_names import DEADLETTERS, DELIVERIES, DISCOVERIES
from tocsin.broker.delivery.address import is_gma_address
from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NoSuchSubscription
from tocsin.event.filter import EVERYTHING
from tocsin.event.filter_format import format_filter
from tocsin.event.instant import NS_PER_US
from tocsin.event.subscription import BLACKBOARD, Kind, Subscription
from tocsin.services.directory.directory import Directory
from tocsin.wire.directory.listing import Wanted

LOOKED_AT_MAX: Final = 50_000  # subscriptions, oldest first: half a second of work in a minute
SLICE: Final = 500  # of them before others get a turn
WAITING_MAX: Final = 10_000  # rows of one kind that wait for the filling process; then oldest go
TEXT_MAX: Final = 1_000  # characters of an error or a question

Row = dict[str, Any]
OnDead = list[Callable[[dict[str, bytes | None]], None]]
"""Called with the records of dead letters by id, once they are on disk; None for one discarded."""


class DeliverySampler:
    """Gathers rows until somebody takes them."""

    def __init__(
        self, port: BrokerPort, session: Session, directory: Directory, on_dead: OnDead
    ) -> None:
        self._port = port
        self._session = session
        self._marks: dict[str, tuple[Any, ...]] = {}  # how each one was when it was last noted
        self._rows: dict[str, list[Row]] = {DELIVERIES: [], DEADLETTERS: [], DISCOVERIES: []}
        self.dropped = 0
        self._has_warned = False
        on_dead.append(self._died)
        directory.on_found.append(self._found)

    def __bool__(self) -> bool:
        return any(self._rows.values())

    def take(self) -> dict[str, list[Row]]:
        """What there is, by kind; it is the caller's then."""
        taken, self._rows = self._rows, {kind: [] for kind in self._rows}
        return {kind: rows for kind, rows in taken.items() if rows}

    async def look(self) -> None:
        """Note every subscription that is not as it was when it was last noted."""
        ids = self._port.subscription_ids(self._session)
        if len(ids) > LOOKED_AT_MAX and not self._has_warned:
            self._has_warned = True
            self._port.runtime.note(
                "warning",
                "more subscriptions than the archive records: the newest are left out",
                noted=LOOKED_AT_MAX,
                subscriptions=len(ids),
            )
        marks: dict[str, tuple[Any, ...]] = {}
        for number, each in enumerate(ids[:LOOKED_AT_MAX]):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            try:
                view = self._port.view(self._session, each)
            except NoSuchSubscription:
                continue
            marks[each] = mark = _mark(view)
            if self._marks.get(each, _UNMOVED) != mark:
                self._add(DELIVERIES, delivery_row(view, self._now_us()))
        self._marks = marks

    def _add(self, kind: str, row: Row) -> None:
        rows = self._rows[kind]
        if len(rows) >= WAITING_MAX:
            del rows[0]
            self.dropped += 1
        rows.append(row)

    def _now_us(self) -> int:
        return self._port.runtime.now_ns() // NS_PER_US

    def _died(self, dead: dict[str, bytes | None]) -> None:
        for record in dead.values():
            if record is not None:
                self._add(DEADLETTERS, dead_letter_row(from_record(record)))

    def _found(self, wanted: Wanted, found: int, seconds: float) -> None:
        row: Row = {"at": self._now_us(), "model": "directory", "request": request_text(wanted)}
        self._add(DISCOVERIES, {**row, "found": found, "seconds": seconds})


def _mark(view: SubscriptionView) -> tuple[Any, ...]:
    """What makes a subscription worth noting again. One that waits for nothing is not moved by
    events that are not for it."""
    cursor = view.cursor if view.waiting or view.lagging else None
    counts = view.delivered, view.failed_attempts, view.dead, view.dropped
    return (*counts, view.sink_state, view.subscription.state, cursor)


_UNMOVED: Final = ()


def delivery_row(view: SubscriptionView, at_us: int) -> Row:
    subscription = view.subscription
    delivered_ns = view.last_delivered_ns
    return {
        "at": at_us,
        "subscription": subscription.id,
        "sink": subscription.sink,
        "protocol": protocol(subscription),
        "state": subscription.state.value,
        "cursor": view.cursor,
        "behind": view.behind,
        "waiting": view.waiting,
        "delivered": view.delivered,
        "failed_attempts": view.failed_attempts,
        "dead": view.dead,
        "dropped": view.dropped,
        "sink_state": view.sink_state,
        "last_error": view.last_error[:TEXT_MAX] if view.last_error else None,
        "last_delivered": None if delivered_ns is None else delivered_ns // NS_PER_US,
    }


def dead_letter_row(letter: DeadLetter) -> Row:
    return {
        "at": letter.given_up_ns // NS_PER_US,
        "id": letter.id,
        "subscription": letter.subscription,
        "sink": letter.sink,
        "seq": letter.seq,
        "type": letter.event.type,
        "topic": letter.event.topic,
        "reason": letter.reason[:TEXT_MAX],
        "attempts": len(letter.attempts),
        "status": letter.attempts[-1].status if letter.attempts else None,
    }


def protocol(subscription: Subscription) -> str:
    """The protocol of its consumer, in one word."""
    if subscription.kind is not Kind.PUSH:
        return "box" if subscription.kind is Kind.BOX else "link"
    if subscription.soap is not None:
        return subscription.soap.spec
    if is_gma_address(subscription.sink or ""):
        return "gma"
    return BLACKBOARD if subscription.config.mode == BLACKBOARD else "cloudevents"


def request_text(wanted: Wanted) -> str:
    """A request to the directory, in one line."""
    event = wanted.event if wanted.event is not None else wanted.local_name
    asked = {"kind": wanted.kind, "event": event, "host": wanted.host}
    words = [f"{name}={value}" for name, value in asked.items() if value is not None]
    if wanted.filter is not EVERYTHING:
        words.append(f"filter={format_filter(wanted.filter)}")
    return " ".join(words)[:TEXT_MAX]
