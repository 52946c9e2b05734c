"""What an operation of the REST interface is, and the parameters that many have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

REFERENCE: Final = "#/components/schemas/{name}"
JSON: Final = "application/json"
TEXT: Final[Json] = {"type": "string"}


@dataclass(frozen=True, slots=True)
class Media:
    """An answer that is not JSON of ours."""

    types: tuple[str, ...]


Answer = type | Media | None


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. The keys of a body are media types."""

    method: str
    path: str
    summary: str
    answers: Mapping[int, Answer]
    parameters: tuple[Json, ...]
    body: Json | None


def operation(
    where: str,
    summary: str,
    answers: Answer | Mapping[int, Answer],
    *parameters: Json,
    body: Json | None = None,
) -> Operation:
    """`where` is a method and a path. An answer without a status has 200, or 204 if it is empty."""
    method, path = where.split()
    if not isinstance(answers, Mapping):
        answers = {204 if answers is None else 200: answers}
    return Operation(method.lower(), path, summary, answers, parameters, body)


def ref(schema: type | str) -> Json:
    """A schema by its name."""
    name = schema if isinstance(schema, str) else schema.__name__
    return {"$ref": REFERENCE.format(name=name)}


def json_body(schema: type | str | Json) -> Json:
    """A body in JSON."""
    return {JSON: schema if isinstance(schema, dict) else ref(schema)}


def query(name: str, words: str, schema: Json = TEXT) -> Json:
    return {"name": name, "in": "query", "description": words, "schema": schema}


def whole(least: int, most: int | None = None) -> Json:
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}


def seconds(most: float) -> Json:
    return {"type": "number", "minimum": 0, "maximum": most}


def one_of(names: Iterable[str]) -> Json:
    return {"enum": list(names)}


PAGE: Final = (
    query("limit", "how many at most", whole(1, 1000)),
    query("after", "`next` of the last response"),
)
