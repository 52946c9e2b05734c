"""What the parameters of a request mean: how often, and which of the events (section 3.1)."""

from __future__ import annotations

from tocsin.errors import BadMessage
from tocsin.event.facets import number_of
from tocsin.event.filter import All, Filter, Operator, Predicate
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import UNITS, in_base_units
from tocsin.wire.gma.messages import Element, Parameters
from tocsin.wire.gma.names import PERIOD

PARAMETERS_MAX = 64
PERIOD_S_MIN = 0.01
PERIOD_S_MAX = 366 * 86_400.0


def period_of(parameters: Parameters) -> float | None:
    """The wanted time between two events in seconds, if any is asked for."""
    found = [each for each in parameters.elements if each.name == PERIOD]
    if not found:
        return None
    element = found[0]
    value, units = element.value, element.units
    number = None if isinstance(value, tuple) else number_of(value)
    seconds = number if units is None or number is None else _seconds(number, units)
    if len(found) > 1 or seconds is None:
        raise BadMessage(
            f"the Period is {str(value)[:40]!r} {(units or '')[:20]}".rstrip(),
            remedy='Send one, as in <Period units="sec">10</Period>; units are ms, sec, min, hour.',
        )
    if not PERIOD_S_MIN <= seconds <= PERIOD_S_MAX:
        raise BadMessage(
            f"the Period is {seconds:g} seconds",
            remedy=f"Ask for {PERIOD_S_MIN:g} seconds or more, and at most a year.",
        )
    return seconds


def _seconds(number: float, units: str) -> float | None:
    base = in_base_units(number, units.strip().lower())
    return base[1] if base is not None and base[0] == "seconds" else None


def wanted(parameters: Parameters, filter: str | None) -> Filter:
    """Which events of all that there are: those of that name, whose elements are as the other
    parameters say, and that pass the filter. BadFilter if that cannot be read."""
    if len(parameters.elements) > PARAMETERS_MAX:
        raise BadMessage(
            f"there are {len(parameters.elements)} parameters",
            remedy=f"Send at most {PARAMETERS_MAX}.",
        )
    parts: list[Filter] = [Predicate("type", Operator.EQ, parameters.name.type)]
    parts += [_equal(each) for each in parameters.elements if each.name != PERIOD]
    if filter is not None and filter.strip():
        parts.append(parse_filter(filter))
    return All(tuple(parts))


def _equal(element: Element) -> Predicate:
    if isinstance(element.value, tuple):
        raise BadMessage(
            f"the parameter {element.name[:80]!r} holds elements",
            remedy="Send parameters as names with one value each.",
        )
    if isinstance(element.value, str | bool):
        return Predicate(element.name, Operator.EQ, element.value)
    unit = element.units if element.units in UNITS else None
    return Predicate(element.name, Operator.EQ, element.value, unit)
