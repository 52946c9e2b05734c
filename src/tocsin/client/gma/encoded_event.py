"""Values as programs hold them, as elements of messages, and as events encoded once for all."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec.structs import replace

from tocsin.client.durations import seconds
from tocsin.errors import BadEvent, BadMessage, BadSetting
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import Seen, passes, seen
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import Quantity, Scalar
from tocsin.event.xml_form import FORBIDDEN
from tocsin.wire.gma.messages import Element, Parameters, PerformanceEvent
from tocsin.wire.gma.names import HOST_NAME, PERIOD, TIME_STAMP, EventName
from tocsin.wire.gma.normal import to_event
from tocsin.wire.gma.parameters import PERIOD_S_MAX, PERIOD_S_MIN
from tocsin.wire.gma.stamp import read_stamp
from tocsin.wire.gma.write import event_element

Values = Mapping[str, Scalar | Quantity]
Time = str | datetime | None


def values_of(elements: tuple[Element, ...]) -> dict[str, Scalar | Quantity]:
    """The elements by their names; of several with one name, the first."""
    found: dict[str, Scalar | Quantity] = {}
    for element in elements:
        value = element.value
        if isinstance(value, tuple):
            raise BadMessage(
                f"the parameter {element.name[:80]!r} holds elements",
                remedy="Send parameters as names with one value each.",
            )
        bare = element.units is None and element.accuracy is None
        found.setdefault(
            element.name, value if bare else Quantity(value, element.units, element.accuracy)
        )
    return found


def elements_of(values: Values) -> tuple[Element, ...]:
    """An element for each value; BadEvent if one is nothing that can be sent."""
    return tuple(_element(name, value) for name, value in values.items())


def _element(name: str, value: object) -> Element:
    if isinstance(value, Quantity):
        return Element(name, _scalar(name, value.value), value.unit, value.accuracy)
    return Element(name, _scalar(name, value))


def _scalar(name: str, value: object) -> Scalar:
    if not isinstance(value, bool | int | float | str) and hasattr(value, "item"):
        value = value.item()  # numbers of numpy know what they are in Python
    if isinstance(value, bool):
        return value
    for kind in (int, float, str):  # plain ones, whatever class was made of them
        if isinstance(value, kind):
            return kind(value)
    raise BadEvent(
        f"{str(name)[:80]} is a {type(value).__name__}",
        remedy="Give a bool, int, float or str, or a Quantity of one with its unit.",
    )


def stamp_of(time: Time, now: str) -> str:
    """The time stamp of an event; BadEvent if a text is given that is none."""
    if time is None:
        return now
    if isinstance(time, datetime):
        return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    read_stamp(time)
    return time


def event_of(name: EventName, values: Values, *, host: str, now: str) -> PerformanceEvent:
    """The event of these values. Who does not say when and where gets `now` and `host`."""
    given = dict(values)
    time = given.pop(TIME_STAMP, None)
    if time is not None and not isinstance(time, str):
        raise BadEvent(f"{TIME_STAMP} is not a text", remedy="Send it as in 2000-11-09T21:51:45Z.")
    if host:
        given.setdefault(HOST_NAME, host)
    return PerformanceEvent(name, stamp_of(time, now), elements_of(given))


def period_s_of(period: float | str) -> float:
    """A Period as programs give it: seconds, or a text as in 500ms, 10s, 5min or 1h30m."""
    found = seconds(period) if isinstance(period, str) else float(period)
    if not PERIOD_S_MIN <= found <= PERIOD_S_MAX:
        raise BadSetting(
            f"the Period is {found:g} seconds",
            remedy=f"Ask for {PERIOD_S_MIN:g} seconds or more, and at most a year.",
        )
    return found


def without_period(parameters: Parameters) -> Parameters:
    """For a query, which is for now, whatever Period it says and however that is written
    (section 3.1)."""
    kept = (each for each in parameters.elements if each.name.casefold() != PERIOD.casefold())
    return Parameters(parameters.name, tuple(kept))


def parameters_of(name: EventName, period: float | str | None, values: Values | None) -> Parameters:
    """What is asked for: the Period first, in the unit that the paper's example has."""
    elements = elements_of(values or {})
    if period is None:
        return Parameters(name, elements)
    period_s = period_s_of(period)
    number: Scalar = int(period_s) if period_s.is_integer() else period_s
    return Parameters(name, (Element(PERIOD, number, "sec"), *elements))


EVENT_BYTES_MAX = 1 << 20
EVENTS_MAX = 1_000  # of one call
DETAIL_CHARS_MAX = 1_000

One = Values | PerformanceEvent
Result = One | Sequence[One]


class Failed(NamedTuple):
    """What consumers are sent where no event could be made."""

    error: str
    detail: str


class EncodedEvent:
    """An event with its bytes; how filters see it is worked out when the first one asks."""

    __slots__ = ("_seen", "content", "event")

    def __init__(self, event: PerformanceEvent) -> None:
        self.event = event
        self.content = event_element(event).encode()
        self._seen: Seen | None = None

    def passes(self, wanted: Filter | None) -> bool:
        """True if the event passes the filter; without one, all do."""
        return wanted is None or passes(wanted, self._opened())

    def sampled_by(self, parameters: Collection[str]) -> Event:
        """The event as a rate sees it: what differs in a parameter is of another source."""
        event = self._opened().event
        values = {name: event.attributes[name] for name in parameters if name in event.attributes}
        return replace(event, source=f"{event.source} {values!r}") if values else event

    def _opened(self) -> Seen:
        if self._seen is None:
            self._seen = seen(to_event(self.event, self.content, event_id="0", sender="unknown"))
            self._seen.stopwatch = time.monotonic_ns
        return self._seen


def read_filter(text: str | None) -> Filter | None:
    """The filter that a text says, if it says one; BadFilter if it cannot be read."""
    return parse_filter(text) if text is not None and text.strip() else None


def encode_events(name: EventName, result: Result, *, host: str, now: str) -> list[EncodedEvent]:
    """What a call made, whichever of the forms it came in; BadEvent if it is none of them."""
    several = _several(result)
    if len(several) > EVENTS_MAX:
        raise BadEvent(
            f"{len(several)} events were made in one call", remedy=f"Make at most {EVENTS_MAX}."
        )
    try:
        return [_checked(EncodedEvent(_event(name, each, host, now))) for each in several]
    except BadMessage as error:
        raise BadEvent(error.problem, remedy=error.remedy) from None


def _several(result: Result) -> Sequence[One]:
    if isinstance(result, Sequence) and not isinstance(result, str | bytes):
        return result
    return [result]  # a text is refused as what it is, not as its letters


def _checked(made: EncodedEvent) -> EncodedEvent:
    if len(made.content) > EVENT_BYTES_MAX:
        raise BadEvent(
            f"the event {made.event.name} has {len(made.content)} bytes",
            remedy=f"Send at most {EVENT_BYTES_MAX} in one event.",
        )
    return made


def _event(name: EventName, found: One, host: str, now: str) -> PerformanceEvent:
    if isinstance(found, PerformanceEvent):
        if found.name != name:
            raise BadEvent(
                f"an event {found.name} was made for the offer {name}",
                remedy="Make events of the name that is offered.",
            )
        return found
    if not hasattr(found, "items"):
        raise BadEvent(
            f"a {type(found).__name__} was made for the offer {name}",
            remedy="Return a dict of names and values, a PerformanceEvent, or a list of these.",
        )
    return event_of(name, found, host=host, now=now)


def failed(error: Exception | SystemExit) -> Failed:
    """An error as consumers are sent it."""
    detail = str(error)[:DETAIL_CHARS_MAX] or "no more is known"
    return Failed(type(error).__name__, FORBIDDEN.sub("\ufffd", detail))
