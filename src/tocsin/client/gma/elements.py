"""Between what programs hold, names with values, and what messages hold, elements."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from tocsin.client.durations import seconds
from tocsin.errors import BadEvent, BadMessage, BadSetting
from tocsin.event.value import Quantity, Scalar
from tocsin.wire.gma.messages import Element, Parameters, PerformanceEvent
from tocsin.wire.gma.names import HOST_NAME, PERIOD, TIME_STAMP, EventName
from tocsin.wire.gma.parameters import PERIOD_S_MAX, PERIOD_S_MIN
from tocsin.wire.gma.stamp import read_stamp

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
