"""Tree -> a function of the event's values, made once and called for every event.

The first error ends the evaluation: a filter that met one lets nothing pass (specification, 1.2),
so there is no use in going on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from tocsin.event.cesql.like import compile_like
from tocsin.event.cesql.tree import (
    Attribute,
    Call,
    Exists,
    In,
    Like,
    Literal,
    Minus,
    Negation,
    Node,
    Rank,
    Row,
)
from tocsin.event.cesql.values import (
    INT32_MAX,
    INT32_MIN,
    ErrorKind,
    EvaluationError,
    SqlValue,
    to_boolean,
    to_integer,
    to_number,
    to_string,
    to_type_of,
)
from tocsin.event.event import Value
from tocsin.event.value import Quantity

Values = Mapping[str, Value]
Evaluation = Callable[[Values], SqlValue]

_ALWAYS_THERE = {"specversion": "1.0"}  # every event has it, and none of ours stores it


def compiled(node: Node) -> Evaluation:
    """The value of the tree for an event's values; it raises EvaluationError if there is none."""
    match node:
        case Literal(value):
            return lambda values: value
        case Attribute(name):
            return _attribute(name)
        case Exists(name):
            return lambda values: _look_up(values, name) is not None
        case Negation(operand):
            positive = compiled(operand)
            return lambda values: not to_boolean(positive(values))
        case Minus(operand):
            number = compiled(operand)
            return lambda values: _in_range(-to_integer(number(values)))
        case Like():
            return _like(node)
        case In():
            return _in(node)
        case Call():
            return _call(node)
        case Row(rank=Rank.LOGIC):
            return _logic(node)
        case Row():
            return _row(node)


def zero(node: Node) -> SqlValue:
    """What the specification gives instead of a value, by the type that the node would have."""
    match node:
        case Call(function):
            return function.zero
        case Minus() | Row(rank=Rank.SUM | Rank.PRODUCT):
            return 0
        case _:
            return False


def _look_up(values: Values, name: str) -> Value | None:
    """Names are written in any case; CloudEvents' own are lower-case, JSON members need not be."""
    value = values.get(name)
    if value is None:
        lowered = name.lower()
        value = values.get(lowered, _ALWAYS_THERE.get(lowered))
    return value


def _attribute(name: str) -> Evaluation:
    def attribute(values: Values) -> SqlValue:
        value = _look_up(values, name)
        if value is None:
            raise EvaluationError(ErrorKind.MISSING_ATTRIBUTE, f"there is no {name}")
        return value.value if isinstance(value, Quantity) else value

    return attribute


def _like(node: Like) -> Evaluation:
    text, fits, wanted = compiled(node.operand), compile_like(node.pattern), not node.is_negated
    return lambda values: fits(to_string(text(values))) is wanted


def _in(node: In) -> Evaluation:
    operand, wanted = compiled(node.operand), not node.is_negated
    elements = [compiled(element) for element in node.elements]

    def is_in(values: Values) -> bool:
        value = operand(values)
        found = any(to_type_of(value, element(values)) == value for element in elements)
        return found is wanted

    return is_in


def _call(node: Call) -> Evaluation:
    function = node.function
    arguments = [
        (function.cast_at(index), compiled(argument))
        for index, argument in enumerate(node.arguments)
    ]

    def call(values: Values) -> SqlValue:
        given = [cast(argument(values)) for cast, argument in arguments]
        try:
            return function.apply(*given)
        except EvaluationError as error:
            error.origin = node
            raise

    return call


def _logic(row: Row) -> Evaluation:
    first = compiled(row.first)
    rest = [(joint, compiled(operand)) for joint, operand in row.rest]

    def logic(values: Values) -> bool:
        truth = to_boolean(first(values))
        for joint, operand in rest:
            if joint == "XOR":
                truth ^= to_boolean(operand(values))
            elif truth is (joint == "AND"):  # else the left side has decided
                truth = to_boolean(operand(values))
        return truth

    return logic


def _row(row: Row) -> Evaluation:
    first = compiled(row.first)
    rest = [(_OPERATORS[joint], compiled(operand)) for joint, operand in row.rest]

    def fold(values: Values) -> SqlValue:
        value = first(values)
        for apply, operand in rest:
            value = apply(value, operand(values))
        return value

    return fold


def _equal(left: SqlValue, right: SqlValue) -> bool:
    """The type of the right side decides (specification, 3.7)."""
    return to_type_of(right, left) == right


def _unequal(left: SqlValue, right: SqlValue) -> bool:
    return not _equal(left, right)


def _ordered(
    compare: Callable[[int | float, int | float], bool],
) -> Callable[[SqlValue, SqlValue], bool]:
    return lambda left, right: compare(to_number(left), to_number(right))


def _arithmetic(compute: Callable[[int, int], int]) -> Callable[[SqlValue, SqlValue], int]:
    return lambda left, right: _in_range(compute(to_integer(left), to_integer(right)))


def _in_range(number: int) -> int:
    if not INT32_MIN <= number <= INT32_MAX:
        raise EvaluationError(ErrorKind.MATH, f"{number} does not fit into 32 bits")
    return number


def _quotient(left: int, right: int) -> int:
    """Towards zero, where Python's own goes down."""
    if right == 0:
        raise EvaluationError(ErrorKind.MATH, f"{left} is divided by 0")
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _remainder(left: int, right: int) -> int:
    return left - _quotient(left, right) * right


_OPERATORS: Mapping[str, Callable[[SqlValue, SqlValue], SqlValue]] = {
    "=": _equal,
    "!=": _unequal,
    "<>": _unequal,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(_quotient),
    "%": _arithmetic(_remainder),
}
