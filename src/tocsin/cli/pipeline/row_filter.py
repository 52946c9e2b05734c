"""Where: which rows of a table are wanted, in the filter language for people.

A column is an attribute by its name. Columns in seconds and in bytes have their unit, so that
`p90_s > 2 min` is as good as `p90_s > 120`; a moment is its RFC 3339 text, in UTC, which is in
order as text: `started > '2026-03'`. A null is an attribute that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from tocsin.errors import BadFilter
from tocsin.event.event import Event, Value
from tocsin.event.facets import facets
from tocsin.event.filter import (
    All,
    AnyOf,
    Filter,
    Not,
    Operator,
    Predicate,
    TextIs,
    TopicIs,
    TopicMatches,
)
from tocsin.event.filter_eval import Seen, comparand, passes
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import UNITS, Quantity
from tocsin.event.wildcards import without_foreign_wildcards
from tocsin.tables.schemas import TABLES

_UNITS: Final = {"_s": "s", "_bytes": "B"}
_COMPARED: Final[dict[Operator, Callable[[Any, Any], Any]]] = {
    Operator.EQ: lambda column, value: column == value,
    Operator.NE: lambda column, value: column != value,
    Operator.LT: lambda column, value: column < value,
    Operator.LE: lambda column, value: column <= value,
    Operator.GT: lambda column, value: column > value,
    Operator.GE: lambda column, value: column >= value,
}


class Where:
    """A filter over the rows of one table. `pushed` is what Parquet can be asked beforehand."""

    def __init__(self, table: str, text: str) -> None:
        self._schema = TABLES[table]
        self._text = text
        self._wanted = without_foreign_wildcards(parse_filter(text))
        self.columns = sorted(self._names(table, self._wanted))
        self.pushed = _pushed(self._wanted, self._schema)
        self._is_all_pushed = _is_exact(self._wanted, self._schema)

    def chosen(self, rows: pa.Table) -> pa.Table:
        """Those of the rows that are wanted."""
        if self._is_all_pushed:
            return rows
        asked = rows.select(self.columns).to_pylist()
        return rows.filter(pa.array([self._holds(row) for row in asked], pa.bool_()))

    def _holds(self, row: dict[str, Any]) -> bool:
        values = {name: value for name in row if (value := _value(name, row[name])) is not None}
        topic = row.get("topic") or ""
        event = Event(id="", source="", type="", topic=topic)
        return passes(self._wanted, Seen(event, values, facets(values)))

    def _names(self, table: str, wanted: Filter) -> set[str]:
        match wanted:
            case All(parts) | AnyOf(parts):
                return {name for part in parts for name in self._names(table, part)}
            case Not(part):
                return self._names(table, part)
            case Predicate(name=name) | TextIs(name=name):
                return {self._known(table, name)}
            case TopicIs() | TopicMatches():
                return {self._known(table, "topic")}
            case _:
                raise self._refused(
                    "sql, xpath and concept cannot be used on a table",
                    "Compare columns: workflow = montage and p90_s > 60.",
                )

    def _known(self, table: str, name: str) -> str:
        names = self._schema.names
        plain = [each for each in names if not pa.types.is_nested(self._schema.field(each).type)]
        if name in plain:
            return name
        if name in names:
            raise self._refused(
                f"the column {name!r} of the table {table} has several values in a row",
                f"Compare one of: {', '.join(plain)}.",
            )
        near = get_close_matches(name, plain, 1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise self._refused(
            f"the table {table} has no column {name!r}", f"{hint}It has: {', '.join(plain)}."
        )

    def _refused(self, problem: str, remedy: str) -> BadFilter:
        return BadFilter(problem, remedy=remedy, text=self._text, position=0)


def _value(name: str, value: object) -> Value | None:
    """A cell as filters compare it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, int | float) and not isinstance(value, bool):
        unit = _unit(name)
        return Quantity(value, unit) if unit else value
    return value if isinstance(value, str | bool) else None


def _unit(name: str) -> str | None:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)


def _pushed(wanted: Filter, schema: pa.Schema) -> Any:
    """What holds for every wanted row, as an Arrow expression; None if there is none."""
    if isinstance(wanted, All):
        found = None
        for part in wanted.parts:
            asked = _pushed(part, schema)
            if asked is not None:
                found = asked if found is None else found & asked
        return found
    return _exact(wanted, schema)


def _is_exact(wanted: Filter, schema: pa.Schema) -> bool:
    if isinstance(wanted, All):
        return all(_exact(part, schema) is not None for part in wanted.parts)
    return _exact(wanted, schema) is not None


def _exact(wanted: Filter, schema: pa.Schema) -> Any:
    """The same as Arrow asks it, true and false for the same rows; None if it cannot."""
    match wanted:
        case Predicate():
            return _predicate(wanted, schema.field(wanted.name).type)
        case AnyOf(parts) if parts:
            asked = [_exact(part, schema) for part in parts]
            if any(each is None for each in asked):
                return None
            found = asked[0]
            for each in asked[1:]:
                found = found | each
            return found
        case Not(part):
            inside = _exact(part, schema)
            return None if inside is None else ~inside
        case _:
            return None


def _predicate(predicate: Predicate, kind: pa.DataType) -> Any:
    """Only where both sides are of one kind; a null is like no attribute: nothing holds for it."""
    column = pc.field(predicate.name)
    if predicate.operator is Operator.EXISTS:
        return column.is_valid()
    if predicate.operator not in _COMPARED:
        return None
    value = comparand(predicate)
    is_number = isinstance(value, float) and pa.types.is_floating(kind)
    is_text = isinstance(value, str) and pa.types.is_string(kind)
    if not is_number and not is_text:
        return None
    if predicate.unit is not None and not _is_in_unit(predicate):
        return None
    compared = _COMPARED[predicate.operator](column, pc.scalar(value))
    held = compared & pc.is_finite(column) if is_number else compared
    return pc.coalesce(held, pc.scalar(False))


def _is_in_unit(predicate: Predicate) -> bool:
    """True if the column is in the base unit of what the predicate compares with."""
    unit = _unit(predicate.name)
    return unit is not None and UNITS[unit][0] == UNITS[predicate.unit or ""][0]
