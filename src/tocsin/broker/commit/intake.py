"""Intake: from what publishers send to the next commit. Many share one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from tocsin.broker.delivery.follower import event_weight
from tocsin.broker.effects import Token
from tocsin.broker.options import BrokerOptions
from tocsin.errors import Busy, TocsinError
from tocsin.event.event import Event
from tocsin.event.stored import Append, Arrival


class Offer(msgspec.Struct, eq=False):
    """What one publisher sent in one request: all of it is stored, or none."""

    events: list[Event]
    token: Token
    bytes: int
    arrivals: list[Arrival] | None = None  # one for each event, if another broker sent them


class Intake:
    """Offers wait here, in the order they came, while a commit is under way."""

    def __init__(self, options: BrokerOptions) -> None:
        self._options = options
        self._offers: deque[Offer] = deque()
        self._events = 0
        self._bytes = 0
        self._refusal: Callable[[], TocsinError] | None = None

    def refuse(self, why: Callable[[], TocsinError] | None) -> None:
        """Answer every publisher with this from now on; None to take events again."""
        self._refusal = why

    def __bool__(self) -> bool:
        return bool(self._offers)

    def offer(
        self, events: list[Event], token: Token, arrivals: list[Arrival] | None = None
    ) -> None:
        """Queue what a publisher sent. Busy if too much waits already."""
        if self._refusal is not None:
            raise self._refusal()
        size = sum(map(event_weight, events))
        options = self._options
        if self._offers and (
            self._events + len(events) > options.intake_events_max
            or self._bytes + size > options.intake_bytes_max
        ):
            raise Busy(
                f"{self._events} events are already waiting for the disk",
                remedy="Nothing was stored. Send it again in a second.",
            )
        self._offers.append(Offer(events, token, size, arrivals))
        self._events += len(events)
        self._bytes += size

    def take(self, now_ns: int) -> tuple[Append, list[Token]]:
        """What goes into the next commit, and who hears of each offer then."""
        append = Append(received_ns=now_ns)
        offers, tokens = append.offers, list[Token]()
        count = size = 0
        options = self._options
        while self._offers and count < options.batch_events_max:
            if offers and size + self._offers[0].bytes > options.batch_bytes_max:
                break
            offer = self._offers.popleft()
            if offer.arrivals is not None:
                append.arrivals[len(offers)] = offer.arrivals
            offers.append(offer.events)
            tokens.append(offer.token)
            count += len(offer.events)
            size += offer.bytes
        append.count, append.bytes = count, size
        self._events -= count
        self._bytes -= size
        return append, tokens

    def turn_away(self) -> list[Token]:
        """Everybody still waiting, because there will be no further commit."""
        tokens = [offer.token for offer in self._offers]
        self._offers.clear()
        self._events = self._bytes = 0
        return tokens
