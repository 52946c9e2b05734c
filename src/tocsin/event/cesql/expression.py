"""An expression as a filter, compiled once for its text; and its value, for whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tocsin.event.cesql.evaluation import Values, compiled, zero
from tocsin.event.cesql.parser import parse
from tocsin.event.cesql.values import EvaluationError, SqlValue

# One too few, and with every event each is compiled again, at thirty times the cost. Each takes
# some kilobytes; of so many the evaluation alone takes longer than anybody waits for an event.
COMPILED_MAX = 1 << 16


@lru_cache(maxsize=COMPILED_MAX)
def compile_sql(text: str) -> Callable[[Values], bool]:
    """The filter that the expression is: true only if its value is the boolean true.

    BadFilter if the text is no expression or calls a function that is not there. An error in the
    evaluation, such as a missing attribute, means that the event does not pass.
    """
    evaluate = compiled(parse(text))

    def passes(values: Values) -> bool:
        try:
            return evaluate(values) is True
        except EvaluationError:
            return False

    return passes


def evaluate_sql(text: str, values: Values) -> tuple[SqlValue, EvaluationError | None]:
    """The value of the expression; with an error, the value that the specification gives for it."""
    tree = parse(text)
    try:
        return compiled(tree)(values), None
    except EvaluationError as error:
        is_ours = error.origin is tree and error.value is not None
        return error.value if is_ours and error.value is not None else zero(tree), error
