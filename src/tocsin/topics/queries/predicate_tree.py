"""The tree of a predicate on properties: logic above, comparisons of values below."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Property:
    """What the property of this name has; unknown if there is none."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, a number (always a double), or a truth."""

    value: str | float | bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left operator right`, on doubles. Division by zero is unknown."""

    operator: str  # + - * /
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Negative:
    """-value."""

    value: Value


Value = Property | Constant | Arithmetic | Negative


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`. Unknown if one of them is, or if they are of different kinds."""

    operator: str  # = <> < <= > >=
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Membership:
    """`value IN (...)`, of constants of one kind."""

    value: Value
    constants: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    """`value LIKE pattern`, the pattern with a backslash before each % and _ that means itself."""

    value: Property
    pattern: str


@dataclass(frozen=True, slots=True)
class Missing:
    """`name IS NULL`."""

    name: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A property that is a truth, standing alone."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """Unknown stays unknown."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class And:
    """Two or more."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Two or more."""

    operands: tuple[Predicate, ...]


Predicate = Comparison | Membership | Likeness | Missing | Flag | Not | And | Or
