"""What a producer has to offer, and what is wanted of it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Protocol

from tocsin.client.gma.elements import Values, values_of
from tocsin.client.gma.encoded_event import EncodedEvent, Result, encode_events
from tocsin.client.gma.maker import Asked, Maker
from tocsin.client.outgoing import now_text
from tocsin.errors import BadMessage, BadSetting
from tocsin.wire.gma.messages import Element, Parameters
from tocsin.wire.gma.names import PERIOD, EventName
from tocsin.wire.gma.parameters import PERIOD_S_MAX, PERIOD_S_MIN

OFFERS_MAX = 1_000
NAMED_MAX = 20  # how many of them an error lists

Make = Callable[[Values], Result]


class Interested(Protocol):
    """Somebody who subscribed."""

    def emitted(self, made: EncodedEvent) -> None:
        """An event happened."""


class Offer:
    """A kind of event. Without a maker its events happen when they are emitted."""

    def __init__(
        self, name: EventName, parameters: tuple[str, ...], period_s: float, maker: Maker | None
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.period_s = period_s
        self.maker = maker
        self.last: list[EncodedEvent] = []  # what was emitted, all at once
        self.demands: set[Interested] = set()

    def check(self, asked: tuple[Element, ...]) -> None:
        """BadMessage if a parameter is none of this offer's: it would be ignored in silence."""
        unknown = [each.name for each in asked if each.name not in (*self.parameters, PERIOD)]
        if unknown:
            known = ", ".join(self.parameters) or "none"
            raise BadMessage(
                f"{self.name} has no parameter {unknown[0][:80]!r}",
                remedy=f"Its parameters: {known}.",
            )
        values_of(asked)


class Offers:
    """All of them, by name."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._adding = Lock()
        self._offers: dict[EventName, Offer] = {}

    @property
    def names(self) -> list[EventName]:
        return list(self._offers)

    def all(self) -> list[Offer]:
        return list(self._offers.values())

    def add(
        self, name: EventName, make: Make | None, parameters: tuple[str, ...], period_s: float
    ) -> Offer:
        """Offer events; BadSetting if they are offered already, or cannot be."""
        with self._adding:
            if name in self._offers:
                raise BadSetting(f"{name} is offered already", remedy="Offer each name once.")
            return self._add(name, make, parameters, period_s)

    def find_or_add(self, name: EventName, period_s: float) -> Offer:
        """The offer of that name; without one, it is offered from now on, to be emitted."""
        with self._adding:
            return self._offers.get(name) or self._add(name, None, (PERIOD,), period_s)

    def _add(
        self, name: EventName, make: Make | None, parameters: tuple[str, ...], period_s: float
    ) -> Offer:
        if len(self._offers) >= OFFERS_MAX:
            raise BadSetting(
                f"{OFFERS_MAX} kinds of events are offered", remedy="Start another producer."
            )
        if not PERIOD_S_MIN <= period_s <= PERIOD_S_MAX:
            raise BadSetting(
                f"period_s is {period_s}",
                remedy=f"Give {PERIOD_S_MIN:g} seconds or more, and at most a year.",
            )
        maker = None if make is None else Maker(name.local, self._calling(name, make))
        offer = self._offers[name] = Offer(name, parameters, period_s, maker)
        return offer

    def find(self, name: EventName) -> Offer | None:
        return self._offers.get(name)

    def wanted(self, parameters: Parameters) -> Offer:
        """The offer that a request is about; BadMessage says what there is if it is none."""
        offer = self._offers.get(parameters.name)
        if offer is None:
            raise BadMessage(f"there are no events {parameters.name}", remedy=self.listed())
        offer.check(parameters.elements)
        return offer

    def listed(self) -> str:
        """What there is, for people."""
        if not self._offers:
            return "This producer has no events to offer."
        names = [str(name) for name in sorted(self._offers)]
        more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
        return f"There are: {', '.join(names[:NAMED_MAX])}{more}."

    def close(self) -> None:
        for offer in self._offers.values():
            if offer.maker is not None:
                offer.maker.close()

    def _calling(self, name: EventName, make: Make) -> Callable[[Asked], list[EncodedEvent]]:
        def made(asked: Asked) -> list[EncodedEvent]:
            return encode_events(name, make(values_of(asked)), host=self.host, now=now_text())

        return made
