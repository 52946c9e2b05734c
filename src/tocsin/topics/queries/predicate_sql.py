"""A predicate on properties as an expression of SQLite, with every text and number as a parameter.

What comes out is put together from the pieces below alone. Nothing that anybody wrote is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tocsin.topics.queries.predicate_parser import kinds_of
from tocsin.topics.queries.predicate_tree import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    Flag,
    Likeness,
    Membership,
    Missing,
    Negative,
    Not,
    Or,
    Predicate,
    Property,
    Value,
)

LIKE: Final = "tocsin_like"  # the function (pattern, text) that the catalog adds to SQLite

_OPERATORS: Final = {sign: sign for sign in ("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/")}
_COLUMNS: Final = {kind: kind for kind in ("number", "text", "flag")}


class SqlText:
    """An expression, and what its question marks stand for."""

    def __init__(self) -> None:
        self.parameters: list[str | float | int] = []

    def condition(self, wanted: Predicate) -> str:
        """True, false or unknown (NULL), for the advertisement `a` of the statement around it."""
        match wanted:
            case And(operands):
                return self._joined(" AND ", operands)
            case Or(operands):
                return self._joined(" OR ", operands)
            case Not(operand):
                return f"(NOT {self.condition(operand)})"
            case Flag(name):
                return self._property(name, "flag")
            case Missing(name):
                self.parameters.append(name)
                return "(NOT EXISTS (SELECT 1 FROM properties WHERE advert = a.id AND name = ?))"
            case Likeness(Property(name), pattern):
                self.parameters.append(pattern)
                return f"{LIKE}(?, {self._property(name, 'text')})"
            case Membership(value, constants):
                return self._among(value, constants)
            case Comparison(operator, left, right):
                return self._compared(operator, left, right)

    def _joined(self, operator: str, operands: Sequence[Predicate]) -> str:
        """As a balanced tree: SQLite counts how deep an expression is."""
        if len(operands) == 1:
            return self.condition(operands[0])
        middle = len(operands) // 2
        left, right = operands[:middle], operands[middle:]
        return f"({self._joined(operator, left)}{operator}{self._joined(operator, right)})"

    def _compared(self, operator: str, left: Value, right: Value) -> str:
        kinds = kinds_of(left) & kinds_of(right)
        if operator not in {"=", "<>"}:
            kinds = kinds - {"flag"}
        found = [
            f"({self._value(left, kind)} {_OPERATORS[operator]} {self._value(right, kind)})"
            for kind in _COLUMNS
            if kind in kinds
        ]
        return _first_known(found)

    def _among(self, value: Value, constants: tuple[Constant, ...]) -> str:
        kinds = kinds_of(value).intersection(*map(kinds_of, constants))
        found: list[str] = []
        for kind in _COLUMNS:
            if kind in kinds:
                sought = self._value(value, kind)
                listed = ", ".join(self._value(each, kind) for each in constants)
                found.append(f"({sought} IN ({listed}))")
        return _first_known(found)

    def _value(self, value: Value, kind: str) -> str:
        match value:
            case Property(name):
                return self._property(name, kind)
            case Constant(constant):
                self.parameters.append(int(constant) if isinstance(constant, bool) else constant)
                return "?"
            case Negative(operand):
                return f"(- {self._value(operand, 'number')})"
            case Arithmetic(operator, left, right):
                one, other = self._value(left, "number"), self._value(right, "number")
                return f"({one} {_OPERATORS[operator]} {other})"

    def _property(self, name: str, kind: str) -> str:
        self.parameters.append(name)
        column = _COLUMNS[kind]
        return f"(SELECT {column} FROM properties WHERE advert = a.id AND name = ?)"


def _first_known(found: list[str]) -> str:
    assert found
    return found[0] if len(found) == 1 else f"COALESCE({', '.join(found)})"
