"""Events and parameters, of the elements that the parser made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NoReturn

from lxml import etree

from tocsin.errors import BadMessage
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import (
    EXTENSION,
    NAME_CHARS_MAX,
    NAMESPACE_CHARS_MAX,
    TIME_STAMP,
    XSI,
    EventName,
    event_name,
)
from tocsin.wire.gma.plain import ELEMENTS_MAX
from tocsin.wire.gma.stamp import is_plain, read_stamp
from tocsin.wire.gma.values import XML_SPACE, typed, typed_as
from tocsin.wire.soap.envelope import split

SHOWN_MAX = 80
# A message of so many bytes has no room for more elements than there may be.
SHORT_BYTES_MAX = len("<a/>") * ELEMENTS_MAX

_NAMES_KEPT = 1_024
_XSI_TYPE = f"{{{XSI}}}type"

Tree = etree._Element


def bad(problem: str, remedy: str) -> NoReturn:
    raise BadMessage(problem, remedy=remedy)


def event_of(element: Tree, *, is_short: bool) -> m.PerformanceEvent:
    """The event; `is_short` if the whole message has no more than `SHORT_BYTES_MAX`."""
    name = _event_name(element.tag)
    if not is_short:
        _check_size(element)
    elements: list[m.Element] = []
    stamps: list[Tree] = []
    for child in element:
        local, attributes = _field_name(child.tag), child.items()
        if local == TIME_STAMP:
            stamps.append(child)
        elif attributes or len(child):
            elements.append(_element(child, local, attributes))
        else:  # as most are
            elements.append(m.Element(local, typed(child.text or "")))
    if len(stamps) != 1 or len(stamps[0]):
        bad(
            f"the event {name.local} has {len(stamps) or 'no'} {TIME_STAMP}",
            f"Every event needs one, as in <{TIME_STAMP}>2000-11-09T21:51:45Z</{TIME_STAMP}>.",
        )
    time = (stamps[0].text or "").strip(XML_SPACE)
    if not is_plain(time):
        read_stamp(time)
    return m.PerformanceEvent(name, time, tuple(elements))


def parameters_of(element: Tree, *, is_short: bool) -> m.Parameters:
    """The parameters, without what is ours among them."""
    name = _event_name(element.tag)
    if not is_short:
        _check_size(element)
    wanted = (child for child in element if split(child.tag)[0] != EXTENSION)
    return m.Parameters(name, _elements(wanted))


def _elements(found: Iterable[Tree]) -> tuple[m.Element, ...]:
    return tuple(_element(each, _field_name(each.tag), each.items()) for each in found)


def _element(element: Tree, name: str, attributes: list[tuple[str, str]]) -> m.Element:
    by_name = dict(attributes)
    units, accuracy = by_name.get("units"), by_name.get("accuracy")
    if len(units or "") > m.UNITS_CHARS_MAX or len(accuracy or "") > m.UNITS_CHARS_MAX:
        bad(
            f"units or accuracy of {name} are too long",
            f"Use at most {m.UNITS_CHARS_MAX} characters.",
        )
    if len(element):
        return m.Element(name, _elements(element), units, accuracy)
    text, declared = element.text or "", by_name.get(_XSI_TYPE)
    value = typed(text) if declared is None else typed_as(text, declared)
    return m.Element(name, value, units, accuracy)


def _check_size(parent: Tree) -> None:
    count = sum(1 for _ in parent.iter()) - 1
    if count > ELEMENTS_MAX:
        name = split(parent.tag)[1][:SHOWN_MAX]
        bad(f"{name} has {count} elements", f"Send at most {ELEMENTS_MAX}.")


def _read_event_name(tag: object) -> EventName:
    namespace, local = split(tag)
    if len(local) > NAME_CHARS_MAX or len(namespace) > NAMESPACE_CHARS_MAX:
        bad(
            f"the name of the event {local[:SHOWN_MAX]} is too long",
            f"Use at most {NAME_CHARS_MAX} characters, and {NAMESPACE_CHARS_MAX} for a namespace.",
        )
    return event_name(namespace, local)


def _read_field_name(tag: object) -> str:
    local = split(tag)[1]
    if len(local) > NAME_CHARS_MAX:
        bad(
            f"the name of the element {local[:SHOWN_MAX]} has {len(local)} characters",
            f"Use at most {NAME_CHARS_MAX} characters.",
        )
    return local


# What is kept is short: tags of a long message are checked before, and a short one has no room.
_event_name: Callable[[object], EventName] = lru_cache(maxsize=_NAMES_KEPT)(_read_event_name)
_field_name: Callable[[object], str] = lru_cache(maxsize=_NAMES_KEPT)(_read_field_name)
