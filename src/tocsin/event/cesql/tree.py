"""The tree of an expression. Operators of one precedence in a row are one node, not a tower."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from tocsin.event.cesql.functions import Function
from tocsin.event.cesql.values import SqlValue


class Rank(Enum):
    """The binary operators by precedence, the loosest first."""

    LOGIC = auto()
    COMPARISON = auto()
    SUM = auto()
    PRODUCT = auto()


RANK_OF = {
    **dict.fromkeys(("AND", "OR", "XOR"), Rank.LOGIC),
    **dict.fromkeys(("=", "!=", "<>", "<", "<=", ">", ">="), Rank.COMPARISON),
    **dict.fromkeys(("+", "-"), Rank.SUM),
    **dict.fromkeys(("*", "/", "%"), Rank.PRODUCT),
}


@dataclass(frozen=True, slots=True)
class Literal:
    value: SqlValue


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str


@dataclass(frozen=True, slots=True)
class Exists:
    name: str


@dataclass(frozen=True, slots=True)
class Negation:
    """NOT x."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Minus:
    """-x."""

    operand: Node


@dataclass(frozen=True, slots=True)
class Row:
    """first op operand op operand ..., evaluated from the left."""

    rank: Rank
    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Like:
    operand: Node
    pattern: str
    is_negated: bool


@dataclass(frozen=True, slots=True)
class In:
    operand: Node
    elements: tuple[Node, ...]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Call:
    function: Function
    arguments: tuple[Node, ...]


Node = Literal | Attribute | Exists | Negation | Minus | Row | Like | In | Call
