"""CloudEvents SQL 1.0: expressions over the attributes of one event, as a filter."""

from tocsin.event.cesql.expression import compile_sql, evaluate_sql
from tocsin.event.cesql.values import ErrorKind, EvaluationError, SqlValue

__all__ = ["ErrorKind", "EvaluationError", "SqlValue", "compile_sql", "evaluate_sql"]
