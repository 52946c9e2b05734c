"""Typed attributes in a CloudEvent: values with unit and accuracy from other protocols.

CloudEvents attributes are plain scalars, so the typed ones travel in one extension attribute,
`tocsinattributes`: the text of a JSON object, or the word `data` when the event has no data of its
own and carries that object as its data, where any consumer can read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from tocsin.errors import BadEvent
from tocsin.event.event import Value
from tocsin.event.json_reader import read_json
from tocsin.event.value import Quantity, Scalar
from tocsin.wire.cloudevents.limits import INT64_MAX

MEMBER = "tocsinattributes"
IN_DATA = "data"

_encode = msgspec.json.Encoder().encode
_Members = dict[str, bool | int | float | str | dict[str, bool | int | float | str | None] | None]
_OUTSIDE_ASCII = re.compile("[^ -~]")


def written(attributes: Mapping[str, Value]) -> str:
    """The attributes as a JSON object in printable ASCII, so that any attribute can hold it."""
    plain = {name: _plain(value) for name, value in attributes.items()}
    return _OUTSIDE_ASCII.sub(_escaped, _encode(plain).decode())


def _plain(value: Value) -> Scalar | dict[str, Scalar]:
    if not isinstance(value, Quantity):
        return value
    members = {"value": value.value, "unit": value.unit, "accuracy": value.accuracy}
    return {name: member for name, member in members.items() if member is not None}


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def read(text: Scalar, data: bytes | None) -> tuple[dict[str, Value], bytes | None]:
    """The typed attributes, and the data that is left when they have been taken out of it."""
    source = (data or b"") if text == IN_DATA else str(text).encode()
    try:
        members = msgspec.convert(read_json(source), _Members)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _refused("is not a JSON object of values") from None
    attributes = {
        name: _value(name, member) for name, member in members.items() if member is not None
    }
    return attributes, None if text == IN_DATA else data


def _value(name: str, member: Scalar | Mapping[str, Scalar | None]) -> Value:
    if not isinstance(member, Mapping):
        return _checked(name, member)
    quantity = Quantity.from_mapping(member)
    if quantity is None:
        raise _refused(f"has a member {name[:40]!r} that is not a value with unit and accuracy")
    _checked(name, quantity.value)
    return quantity


def _checked(name: str, value: Scalar) -> Scalar:
    if isinstance(value, int) and not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise _refused(f"has a member {name[:40]!r} that does not fit into 64 bits")
    return value


def _refused(problem: str) -> BadEvent:
    return BadEvent(
        f"attribute {MEMBER} {problem}",
        remedy='Send it as in {"load5": 1.5, "wait": {"value": 2, "unit": "min"}}.',
    )
